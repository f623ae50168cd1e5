//! [`read_text`]: reads text files of known encodings, and cuts long ones at a good place.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use hardpan_files::{RegularFile, UnreadableFile, UnreadableReason};
use hardpan_symbols::utf16_units;

/// Default limit for reading a text file: 1 MiB, more than most models can hold.
pub const TEXT_LIMIT: usize = 1024 * 1024;

/// How many bytes are searched for control characters; git looks at as many.
const BINARY_CHECK_BYTES: usize = 8000;

/// The text of a file, or the first part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The text, without a byte order mark. Line endings are as in the file.
    pub text: String,
    /// How much was cut; `None` if the text is complete.
    pub truncation: Option<Truncation>,
}

/// How much of a file that was too long was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Bytes of the file that the text stands for, from its start.
    pub shown_bytes: usize,
    /// Size of the whole file in bytes.
    pub total_bytes: usize,
}

/// Reads at most `limit` bytes of a text file. A longer file is cut after a line, or after a
/// character where lines are very long.
///
/// It understands UTF-8, with or without a byte order mark, and UTF-16 with one.
pub fn read_text(path: &Path, limit: usize) -> Result<TextFile, UnreadableFile> {
    let read = RegularFile::open(path).and_then(|file| read_open_text(&file, limit));
    read.map_err(|reason| reason.for_path(path))
}

/// Decodes the content of a text file as [`read_text`] does.
pub fn decode_text(bytes: &[u8]) -> Result<String, UnreadableReason> {
    decode(bytes, FilePortion::Whole).map(|(text, _)| text)
}

/// Reads an open text file as [`read_text`] does, from its start.
pub fn read_open_text(file: &RegularFile, limit: usize) -> Result<TextFile, UnreadableReason> {
    let mut bytes = Vec::new();
    let mut content = &file.file;
    content.seek(SeekFrom::Start(0))?;
    content.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() <= limit {
        let text = decode(&bytes, FilePortion::Whole)?.0;
        return Ok(TextFile { text, truncation: None });
    }
    bytes.truncate(limit);
    let (text, shown_bytes) = decode(&bytes, FilePortion::Prefix)?;
    // Files below /proc claim to be empty.
    let total_bytes = usize::try_from(file.metadata.len()).unwrap_or(usize::MAX).max(limit + 1);
    Ok(TextFile { text, truncation: Some(Truncation { shown_bytes, total_bytes }) })
}

/// Whether the bytes are a whole file or only its beginning.
#[derive(Clone, Copy, PartialEq)]
enum FilePortion {
    Whole,
    Prefix,
}

/// Decodes the bytes; also returns how many of them the text stands for.
fn decode(bytes: &[u8], portion: FilePortion) -> Result<(String, usize), UnreadableReason> {
    match utf16_units(bytes) {
        Some(units) => decode_utf16(units, bytes.len(), portion),
        None => match bytes.strip_prefix(b"\xEF\xBB\xBF") {
            Some(rest) => decode_utf8(rest, portion, 3),
            None => decode_utf8(bytes, portion, 0),
        },
    }
}

fn decode_utf8(bytes: &[u8], portion: FilePortion, mark: usize) -> Result<(String, usize), UnreadableReason> {
    if let Some(offset) = find_binary_byte(bytes) {
        return Err(UnreadableReason::Binary { offset: mark + offset });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may fall into a character.
        Err(error) if portion == FilePortion::Prefix && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => return Err(UnreadableReason::NotUtf8 { offset: mark + error.valid_up_to() }),
    };
    let text = if portion == FilePortion::Prefix { &text[..cut_position(text)] } else { text };
    Ok((text.to_owned(), mark + text.len()))
}

fn decode_utf16(
    all: impl ExactSizeIterator<Item = u16>,
    bytes: usize,
    portion: FilePortion,
) -> Result<(String, usize), UnreadableReason> {
    const MARK: usize = 2;
    let total = all.len();
    let mut text = String::with_capacity(bytes);
    let mut units = 0;
    for char in char::decode_utf16(all) {
        match char {
            Ok(char) => {
                text.push(char);
                units += char.len_utf16();
            }
            Err(_) if portion == FilePortion::Prefix && units + 1 == total => break,
            Err(_) => return Err(UnreadableReason::NotUtf16 { offset: MARK + 2 * units }),
        }
    }
    if portion == FilePortion::Whole && !bytes.is_multiple_of(2) {
        return Err(UnreadableReason::NotUtf16 { offset: MARK + 2 * total });
    }
    if let Some(offset) = find_binary_byte(text.as_bytes()) {
        let units = text[..offset].encode_utf16().count();
        return Err(UnreadableReason::Binary { offset: MARK + 2 * units });
    }
    if portion == FilePortion::Prefix {
        text.truncate(cut_position(&text));
        units = text.encode_utf16().count();
    }
    Ok((text, MARK + 2 * units))
}

/// Where to cut a text that goes on: after its last line end, unless that would lose half of it.
fn cut_position(text: &str) -> usize {
    match text.rfind('\n') {
        Some(newline) if newline + 1 > text.len() / 2 => newline + 1,
        _ => text.len(),
    }
}

/// Offset of the byte that shows the file is binary: a NUL anywhere, or the first control character
/// if more than one in 32 of the first bytes is one. Text files do contain a few: terminal colours,
/// form feeds, overstrikes.
fn find_binary_byte(bytes: &[u8]) -> Option<usize> {
    let control = |byte: &u8| matches!(byte, 0..=7 | 11 | 14..=26 | 28..=31 | 127);
    let early = &bytes[..bytes.len().min(BINARY_CHECK_BYTES)];
    let many = early.iter().filter(|byte| control(byte)).count() * 32 > early.len();
    let nul = memchr::memchr(0, bytes);
    if many { early.iter().position(control) } else { nul }
}

#[cfg(test)]
mod tests;
