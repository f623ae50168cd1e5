//! [`read_lines`]: the lines of a file of JSON lines with bounded memory, whatever the file holds.

use std::io::{BufRead, BufReader, Read};

use crate::{RegularFile, UnreadableReason};

/// The longest line of a session or a recording that is read, in bytes. No provider takes a request
/// of more than 32 MB, so that a longer line cannot be part of a conversation that goes on.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// The most values in a line, by its commas: each takes a hundred bytes of memory when it is parsed.
/// Only lines of more than 1 MiB can have more.
const MAX_VALUES: usize = 500_000;
const MIN_COUNTED_BYTES: usize = 1024 * 1024;

/// The most bytes that all lines of a file may have together, without those that are too long.
const MAX_FILE_BYTES: usize = 1024 * 1024 * 1024;

/// The content of a file of lines. Lines that cannot be read within the limits are left out of it,
/// and only of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLines {
    /// The lines, each with its end; the last one may have none. A line that is left out is empty
    /// here, so that the others keep their numbers.
    pub bytes: Vec<u8>,
    /// The lines that are left out, in order.
    pub left_out: Vec<UnreadLine>,
    /// Length of the file in bytes, as far as it was read: to its end.
    pub file_bytes: u64,
}

/// A line that is left out, with its length and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadLine {
    /// Line number, from 1.
    pub number: usize,
    /// Its length without the line end.
    pub bytes: u64,
    /// Whether it has a line end. Only the last line can lack it.
    pub has_end: bool,
    /// Why it is left out.
    pub excess: LineExcess,
}

/// What a line has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineExcess {
    /// Bytes.
    #[error("more than {} MiB", MAX_LINE_BYTES >> 20)]
    Bytes,
    /// JSON values, which would take many times their length.
    #[error("more than {MAX_VALUES} values")]
    Values,
}

/// Reads a file of JSON lines from its start. Memory is bounded by the lines within the limits, and
/// those together by 1 GiB: a longer file is an error.
pub fn read_lines(file: &mut RegularFile) -> Result<FileLines, UnreadableReason> {
    read_bounded(&mut file.file, MAX_LINE_BYTES, MAX_FILE_BYTES)
}

fn read_bounded(source: impl Read, max_line: usize, max_file: usize) -> Result<FileLines, UnreadableReason> {
    let mut reader = BufReader::with_capacity(64 * 1024, source);
    let mut lines = FileLines::default();
    let mut number = 1;
    let mut start = 0; // of the current line in `bytes`
    let mut length = 0_u64; // of the current line so far
    loop {
        let chunk = match reader.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        let newline = memchr::memchr(b'\n', chunk);
        let piece = &chunk[..newline.unwrap_or(chunk.len())];
        let is_end = chunk.is_empty();
        length += piece.len() as u64;
        if length <= max_line as u64 {
            lines.bytes.extend_from_slice(piece);
        } else {
            lines.bytes.truncate(start);
        }
        if lines.bytes.len() > max_file {
            return Err(UnreadableReason::TooLarge { limit: max_file as u64 });
        }
        let used = piece.len() + usize::from(newline.is_some());
        lines.file_bytes += used as u64;
        reader.consume(used);
        if newline.is_some() || is_end {
            let excess = if length > max_line as u64 {
                Some(LineExcess::Bytes)
            } else {
                has_many_values(&lines.bytes[start..]).then_some(LineExcess::Values)
            };
            if let Some(excess) = excess {
                lines.bytes.truncate(start);
                lines.left_out.push(UnreadLine { number, bytes: length, has_end: !is_end, excess });
            }
            if is_end {
                return Ok(lines);
            }
            lines.bytes.push(b'\n');
            (start, length, number) = (lines.bytes.len(), 0, number + 1);
        }
    }
}

/// Whether a line of JSON has too many values to be parsed. Only commas outside of strings count.
fn has_many_values(line: &[u8]) -> bool {
    if line.len() < MIN_COUNTED_BYTES {
        return false;
    }
    let (mut commas, mut rest) = (0, line);
    loop {
        let text = memchr::memchr(b'"', rest).unwrap_or(rest.len());
        commas += memchr::memchr_iter(b',', &rest[..text]).count();
        if commas > MAX_VALUES {
            return true;
        }
        let Some(inside) = rest.get(text + 1..) else { return false };
        let Some(end) = string_end(inside) else { return false };
        rest = &inside[end + 1..];
    }
}

/// Where a JSON string ends, from after its first quote.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        match text[at] {
            b'"' => return Some(at),
            // The character after a backslash is part of the string.
            _ if at + 2 <= text.len() => from = at + 2,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_the_others_keep_their_numbers() {
        let read = |text: &str| read_bounded(text.as_bytes(), 4, 100).unwrap();
        let lines = read("one\nfours\nfour\n\nlonger");
        assert_eq!(lines.bytes, b"one\n\nfour\n\n");
        assert_eq!(
            lines.left_out,
            [
                UnreadLine { number: 2, bytes: 5, has_end: true, excess: LineExcess::Bytes },
                UnreadLine { number: 5, bytes: 6, has_end: false, excess: LineExcess::Bytes },
            ]
        );
        assert_eq!(lines.file_bytes, 22);
        assert_eq!(read("a\nb").bytes, b"a\nb");
        assert_eq!(read(""), FileLines::default());
    }

    #[test]
    fn a_long_line_of_many_pieces_takes_no_memory() {
        let endless = std::io::repeat(b'x').take(200 << 20);
        let lines = read_bounded(endless, 1 << 20, 1 << 30).unwrap();
        assert!(lines.bytes.is_empty() && lines.bytes.capacity() < 4 << 20);
        assert_eq!(lines.left_out[0].bytes, 200 << 20);
    }

    #[test]
    fn a_line_of_many_values_is_left_out_and_one_of_long_strings_is_not() {
        let values = format!("[{}1]", "1,".repeat(MAX_VALUES + 1));
        let spread = values.clone() + &" ".repeat(MIN_COUNTED_BYTES);
        let string = format!("[\"{}\"]", ",\\\",\\\\".repeat(MAX_VALUES));
        let text = format!("{spread}\n{string}\n{spread}");
        let lines = read_bounded(text.as_bytes(), 1 << 25, 1 << 30).unwrap();
        assert_eq!(lines.bytes, format!("\n{string}\n").into_bytes());
        let left_out: Vec<_> = lines.left_out.iter().map(|line| (line.number, line.excess)).collect();
        assert_eq!(left_out, [(1, LineExcess::Values), (3, LineExcess::Values)]);
    }

    #[test]
    fn too_many_lines_are_an_error() {
        let many = std::io::repeat(b'\n').take(200);
        assert!(matches!(read_bounded(many, 4, 100), Err(UnreadableReason::TooLarge { limit: 100 })));
    }
}
