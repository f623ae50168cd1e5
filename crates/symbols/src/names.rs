//! Names, each kept once and known by a number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of a name. Numbers depend on the order in which names came, so nothing that is shown may depend on them.
pub(crate) type NameId = u32;

/// Names by number, numbers by name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// All names, one after the other.
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
    /// By hash, since a table of strings would keep every name twice. Equal hashes follow each other by steps of one.
    numbers: Numbered,
}

/// Numbers by the hash of their names.
pub(crate) type Numbered = HashMap<u64, NameId, BuildHasherDefault<Identity>>;

impl Names {
    /// Names one after the other, by their lengths; none where those cut a letter in two. Nothing is found among them before
    /// [`numbered`](Self::numbered) was adopted.
    pub(crate) fn of(text: &str, lengths: &[usize]) -> Option<Self> {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += length;
            u32::try_from(end).ok().filter(|_| text.is_char_boundary(end))
        });
        Some(Names { ends: ends.collect::<Option<_>>()?, text: text.into(), numbers: Numbered::default() })
    }

    /// The table of all names.
    pub(crate) fn numbered(&self) -> Numbered {
        let mut numbers = Numbered::with_capacity_and_hasher(self.ends.len(), BuildHasherDefault::default());
        for id in 0..self.ends.len() as NameId {
            let mut hash = hash(self.get(id));
            while numbers.contains_key(&hash) {
                hash = hash.wrapping_add(1);
            }
            numbers.insert(hash, id);
        }
        numbers
    }

    pub(crate) fn adopt(&mut self, numbers: Numbered) {
        self.numbers = numbers;
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, id: NameId) -> &str {
        let at = id as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }

    pub(crate) fn find(&self, name: &str) -> Option<NameId> {
        let mut hash = hash(name);
        loop {
            let id = *self.numbers.get(&hash)?;
            if self.get(id) == name {
                return Some(id);
            }
            hash = hash.wrapping_add(1);
        }
    }

    /// The number of a name, new or known.
    pub(crate) fn intern(&mut self, name: &str) -> NameId {
        let mut hash = hash(name);
        while let Some(id) = self.numbers.get(&hash) {
            if self.get(*id) == name {
                return *id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = NameId::try_from(self.ends.len()).unwrap_or(NameId::MAX);
        self.text.push_str(name);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.numbers.insert(hash, id);
        id
    }
}

fn hash(name: &str) -> u64 {
    let mut hasher = WordHasher::default();
    hasher.write(name.as_bytes());
    hasher.finish()
}

/// Hashing for words, which are short and come from files: quick matters, and an attacker gains nothing but a slow map.
pub(crate) type WordHash = BuildHasherDefault<WordHasher>;

/// Multiplies eight bytes at a time.
#[derive(Debug, Default)]
pub(crate) struct WordHasher {
    state: u64,
}

/// An odd number without a pattern: the digits of the golden ratio.
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
        // The best bits of a product are the high ones, and tables look at the low ones too.
        self.state ^ (self.state >> 32)
    }
}

/// For keys that are hashes already.
#[derive(Debug, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
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
        let mut names = Names::default();
        let words: Vec<String> =
            (0..5000).map(|n| format!("name_{}", n % 3000)).chain(["".into(), "ü".into()]).collect();
        let ids: Vec<NameId> = words.iter().map(|word| names.intern(word)).collect();
        assert_eq!(names.len(), 3002);
        for (word, id) in words.iter().zip(ids) {
            assert_eq!((names.get(id), names.find(word)), (word.as_str(), Some(id)));
        }
        assert_eq!(names.find("other"), None);
    }
}
