//! [`NameTable`]: interned names, each stored once and known by a number.

#![expect(clippy::disallowed_types, reason = "names are looked up by hash, never iterated")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of a name. Numbers depend on the order of arrival, so nothing that is shown may depend on
/// them.
pub(crate) type NameId = u32;

/// Finds names by number, and numbers by name.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// All names, concatenated.
    text: String,
    /// End offset of each name in `text`.
    ends: Vec<u32>,
    /// Numbers by hash, since a table of strings would store every name twice. Colliding hashes are
    /// resolved by adding one.
    ids: IdsByHash,
}

/// Numbers by the hash of the name.
pub(crate) type IdsByHash = HashMap<u64, NameId, BuildHasherDefault<IdentityHasher>>;

impl NameTable {
    /// Splits concatenated names by their lengths; `None` if a length cuts a character in two. No
    /// name can be found before [`set_ids`](Self::set_ids).
    pub(crate) fn from_text(text: &str, lengths: &[usize]) -> Option<Self> {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += length;
            u32::try_from(end).ok().filter(|_| text.is_char_boundary(end))
        });
        Some(NameTable { ends: ends.collect::<Option<_>>()?, text: text.into(), ids: IdsByHash::default() })
    }

    /// Builds the hash table of all names.
    pub(crate) fn build_ids(&self) -> IdsByHash {
        let mut ids = IdsByHash::with_capacity_and_hasher(self.ends.len(), BuildHasherDefault::default());
        for id in 0..self.ends.len() as NameId {
            let mut hash = hash(self.get(id));
            while ids.contains_key(&hash) {
                hash = hash.wrapping_add(1);
            }
            ids.insert(hash, id);
        }
        ids
    }

    pub(crate) fn set_ids(&mut self, ids: IdsByHash) {
        self.ids = ids;
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, id: NameId) -> &str {
        let at = id as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }

    pub(crate) fn find_id(&self, name: &str) -> Option<NameId> {
        let mut hash = hash(name);
        loop {
            let id = *self.ids.get(&hash)?;
            if self.get(id) == name {
                return Some(id);
            }
            hash = hash.wrapping_add(1);
        }
    }

    /// The number of a name; a new name gets a new number.
    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        let mut hash = hash(name);
        while let Some(id) = self.ids.get(&hash) {
            if self.get(*id) == name {
                return *id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = NameId::try_from(self.ends.len()).unwrap_or(NameId::MAX);
        self.text.push_str(name);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.ids.insert(hash, id);
        id
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// A fast hash for words, which are short and come from files: an attacker gains nothing but a slow
/// map.
pub(crate) type WordHash = BuildHasherDefault<WordHasher>;

/// Multiplies eight bytes at a time, like FxHash.
#[derive(Debug, Default)]
pub(crate) struct WordHasher {
    state: u64,
}

/// 2^64 divided by the golden ratio, odd: spreads bits well.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            self.state = (self.state.rotate_left(5) ^ u64::from_le_bytes(eight)).wrapping_mul(MIX);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.state = (self.state.rotate_left(5) ^ u64::from(byte)).wrapping_mul(MIX);
    }

    fn finish(&self) -> u64 {
        // The high bits of a product are the best mixed, and tables use the low ones too.
        self.state ^ (self.state >> 32)
    }
}

/// A hasher for keys that already are hashes.
#[derive(Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_a_number_one_name() {
        let mut names = NameTable::default();
        let words: Vec<String> =
            (0..5000).map(|n| format!("name_{}", n % 3000)).chain(["".into(), "ü".into()]).collect();
        let ids: Vec<NameId> = words.iter().map(|word| names.intern(word)).collect();
        assert_eq!(names.len(), 3002);
        for (word, id) in words.iter().zip(ids) {
            assert_eq!((names.get(id), names.find_id(word)), (word.as_str(), Some(id)));
        }
        assert_eq!(names.find_id("other"), None);
    }
}
