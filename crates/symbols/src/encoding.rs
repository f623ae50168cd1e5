//! [`ByteReader`] and its counterparts: numbers, texts and lists as bytes, for the cache on disk.
//!
//! Only the same program understands the bytes: [`format_id`] changes with the queries, the
//! languages and the encoding, and a cache stores it beside its content.

use std::sync::OnceLock;

use thiserror::Error;

use crate::language::{Languages, embedded_data};

/// Increment it with every change of the encoding, or of how code derives an outline from a file.
const VERSION: u8 = 3;

/// A stored index is damaged.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a stored index is damaged at byte {offset}: drop it and read the files again")]
pub struct IndexDecodeError {
    /// Offset in bytes at which reading stopped.
    pub offset: usize,
}

/// Identifies everything a stored index depends on besides the files: 32 hexadecimal digits.
pub fn format_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[VERSION]);
        for text in embedded_data() {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        for language in Languages::builtin().iter() {
            hasher.update(&[u8::from(hardpan_grammars::language(language.grammar()).is_some())]);
        }
        hasher.finalize().to_hex()[..32].to_string()
    })
}

/// Writes a number as a varint: seven bits per byte, low bits first; the high bit says that more
/// follow.
pub(crate) fn write_number(to: &mut Vec<u8>, value: impl Into<u64>) {
    let mut value = value.into();
    while value >= 0x80 {
        to.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

pub(crate) fn write_text(to: &mut Vec<u8>, value: &str) {
    write_number(to, value.len() as u64);
    to.extend_from_slice(value.as_bytes());
}

pub(crate) fn write_list<T>(to: &mut Vec<u8>, items: &[T], mut each: impl FnMut(&mut Vec<u8>, &T)) {
    write_number(to, items.len() as u64);
    for item in items {
        each(to, item);
    }
}

/// Reads what the functions above wrote. No input makes it panic or allocate more than the input
/// justifies.
#[derive(Debug)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    pub(crate) offset: usize,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.offset == self.bytes.len()
    }

    pub(crate) fn read_byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.offset)?;
        self.offset += 1;
        Some(byte)
    }

    pub(crate) fn read_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(length)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end;
        Some(taken)
    }

    pub(crate) fn read_number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn read_u32(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    /// Reads a number and checks that it is below `end`.
    pub(crate) fn read_u32_below(&mut self, end: usize) -> Option<u32> {
        self.read_u32().filter(|number| (*number as usize) < end)
    }

    pub(crate) fn read_usize(&mut self) -> Option<usize> {
        usize::try_from(self.read_number()?).ok()
    }

    pub(crate) fn read_text(&mut self) -> Option<&'a str> {
        let length = self.read_usize()?;
        std::str::from_utf8(self.read_bytes(length)?).ok()
    }

    pub(crate) fn read_list<T, L: FromIterator<T>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<L> {
        let length = self.read_usize()?;
        // Every item takes at least a byte, so a wrong length allocates nothing.
        let length = (length <= self.bytes.len() - self.offset).then_some(length)?;
        (0..length).map(|_| each(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        write_number(&mut bytes, u64::MAX);
        write_list(&mut bytes, &["a", "", "ü"], |to, item| write_text(to, item));
        let mut cursor = ByteReader::new(&bytes);
        assert_eq!(cursor.read_number(), Some(u64::MAX));
        assert_eq!(cursor.read_list(ByteReader::read_text), Some(vec!["a", "", "ü"]));
        assert!(cursor.is_at_end());
        assert_eq!(ByteReader::new(&[0xFF; 11]).read_number(), None);
        assert_eq!(ByteReader::new(&[0xFF, 0x7F, 1]).read_list::<u8, Vec<u8>>(ByteReader::read_byte), None);
    }

    #[test]
    fn the_format_is_a_fixed_text() {
        assert_eq!(format_id().len(), 32);
    }
}
