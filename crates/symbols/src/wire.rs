//! Numbers, texts and lists as bytes, for a cache on disk.
//!
//! The bytes mean something only to the same program: [`format_id`] changes with the queries, the languages and the
//! encoding, and a cache keeps it beside what it stores.

use std::sync::OnceLock;

use thiserror::Error;

use crate::language::{Languages, embedded};

/// Counts up with every change of the encoding or of what is read off a file by code.
const VERSION: u8 = 3;

/// Bytes that are no index.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a stored index is damaged at byte {at}: drop it and read the files again")]
pub struct Damaged {
    /// Where reading stopped.
    pub at: usize,
}

/// What a stored index depends on besides the files: 32 hexadecimal digits.
pub fn format_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[VERSION]);
        for text in embedded() {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        for language in Languages::builtin().iter() {
            hasher.update(&[u8::from(hardpan_grammars::language(language.grammar()).is_some())]);
        }
        hasher.finalize().to_hex()[..32].to_string()
    })
}

/// Seven bits per byte, low bits first; the high bit says that more follow.
pub(crate) fn number(to: &mut Vec<u8>, value: impl Into<u64>) {
    let mut value = value.into();
    while value >= 0x80 {
        to.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

pub(crate) fn text(to: &mut Vec<u8>, value: &str) {
    number(to, value.len() as u64);
    to.extend_from_slice(value.as_bytes());
}

pub(crate) fn list<T>(to: &mut Vec<u8>, items: &[T], mut each: impl FnMut(&mut Vec<u8>, &T)) {
    number(to, items.len() as u64);
    for item in items {
        each(to, item);
    }
}

/// Reads what was written. No bytes make it panic or ask for more memory than they are worth.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A number below another.
    pub(crate) fn below(&mut self, end: usize) -> Option<u32> {
        self.small().filter(|number| (*number as usize) < end)
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.size()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    pub(crate) fn list<T, L: FromIterator<T>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<L> {
        let length = self.size()?;
        // Every item takes a byte at least, so a length that is a lie asks for no memory.
        let length = (length <= self.bytes.len() - self.at).then_some(length)?;
        (0..length).map(|_| each(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        number(&mut bytes, u64::MAX);
        list(&mut bytes, &["a", "", "ü"], |to, item| text(to, item));
        let mut cursor = Cursor::new(&bytes);
        assert_eq!(cursor.number(), Some(u64::MAX));
        assert_eq!(cursor.list(Cursor::text), Some(vec!["a", "", "ü"]));
        assert!(cursor.is_at_end());
        assert_eq!(Cursor::new(&[0xFF; 11]).number(), None);
        assert_eq!(Cursor::new(&[0xFF, 0x7F, 1]).list::<u8, Vec<u8>>(Cursor::byte), None);
    }

    #[test]
    fn the_format_is_a_fixed_text() {
        assert_eq!(format_id().len(), 32);
    }
}
