//! Text files: their encoding, and where to cut them.

use std::io::Read;
use std::path::Path;

use crate::regular::{self, Reason, Unreadable};

/// How much of a text file is read where nobody says otherwise: 1 MiB, more than most models can hold.
pub const TEXT_LIMIT: usize = 1024 * 1024;

/// How much of a file is searched for control characters: what git looks at, too.
const EARLY: usize = 8000;

/// A text file as the model is to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The text, without a byte order mark. Line endings are as in the file.
    pub text: String,
    /// Set where the file is longer than the limit.
    pub cut: Option<Cut>,
}

/// How much of a file that was too long is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of the file that are shown, from its start.
    pub shown_bytes: usize,
    /// Bytes in the whole file.
    pub total_bytes: usize,
}

/// Reads a text file, at most `limit` bytes of it. What is longer is cut after a line, or, where lines are very
/// long, after a character.
///
/// UTF-8, with or without a byte order mark, and UTF-16 with one are understood.
pub fn read_text(path: &Path, limit: usize) -> Result<TextFile, Unreadable> {
    read(path, limit).map_err(|reason| reason.of(path))
}

fn read(path: &Path, limit: usize) -> Result<TextFile, Reason> {
    let (file, metadata) = regular::open(path)?;
    let mut bytes = Vec::new();
    file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() <= limit {
        let text = decode(&bytes, Extent::Whole)?.0;
        return Ok(TextFile { text, cut: None });
    }
    bytes.truncate(limit);
    let (text, shown_bytes) = decode(&bytes, Extent::Start)?;
    // Files of the system may say they are empty when they are not.
    let total_bytes = usize::try_from(metadata.len()).unwrap_or(usize::MAX).max(limit + 1);
    Ok(TextFile { text, cut: Some(Cut { shown_bytes, total_bytes }) })
}

/// Whether the bytes are all of a file.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    Start,
}

/// The text, and how many of the bytes it stands for.
fn decode(bytes: &[u8], extent: Extent) -> Result<(String, usize), Reason> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => decode_utf16(rest, extent, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => decode_utf16(rest, extent, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => decode_utf8(rest, extent, 3),
        _ => decode_utf8(bytes, extent, 0),
    }
}

fn decode_utf8(bytes: &[u8], extent: Extent, mark: usize) -> Result<(String, usize), Reason> {
    if let Some(offset) = binary(bytes) {
        return Err(Reason::Binary { offset: mark + offset });
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may fall into a character.
        Err(error) if extent == Extent::Start && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => return Err(Reason::NotUtf8 { offset: mark + error.valid_up_to() }),
    };
    let text = if extent == Extent::Start { &text[..line_end(text)] } else { text };
    Ok((text.to_owned(), mark + text.len()))
}

fn decode_utf16(bytes: &[u8], extent: Extent, unit: fn([u8; 2]) -> u16) -> Result<(String, usize), Reason> {
    const MARK: usize = 2;
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut units = 0;
    for char in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        match char {
            Ok(char) => {
                text.push(char);
                units += char.len_utf16();
            }
            Err(_) if extent == Extent::Start && units + 1 == pairs.len() => break,
            Err(_) => return Err(Reason::NotUtf16 { offset: MARK + 2 * units }),
        }
    }
    if extent == Extent::Whole && !odd.is_empty() {
        return Err(Reason::NotUtf16 { offset: MARK + 2 * pairs.len() });
    }
    if let Some(offset) = binary(text.as_bytes()) {
        let units = text[..offset].encode_utf16().count();
        return Err(Reason::Binary { offset: MARK + 2 * units });
    }
    if extent == Extent::Start {
        text.truncate(line_end(&text));
        units = text.encode_utf16().count();
    }
    Ok((text, MARK + 2 * units))
}

/// Where to cut a text that goes on: after its last line, unless that would lose half of it.
fn line_end(text: &str) -> usize {
    match text.rfind('\n') {
        Some(newline) if newline + 1 > text.len() / 2 => newline + 1,
        _ => text.len(),
    }
}

/// The byte that betrays a binary file: a NUL anywhere, or the first control character where more than one early
/// byte in 32 is one. Text does hold a few: terminal colours, form feeds, overstrikes.
fn binary(bytes: &[u8]) -> Option<usize> {
    let control = |byte: &u8| matches!(byte, 0..=7 | 11 | 14..=26 | 28..=31 | 127);
    let early = &bytes[..bytes.len().min(EARLY)];
    let many = early.iter().filter(|byte| control(byte)).count() * 32 > early.len();
    let nul = bytes.iter().position(|&byte| byte == 0);
    if many { early.iter().position(control) } else { nul }
}

#[cfg(test)]
mod tests;
