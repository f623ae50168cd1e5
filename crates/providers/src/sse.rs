//! Server-sent events, from bytes that may be cut anywhere.
//!
//! The parser follows the standard, with two deviations that streams in the field ask for. What stands at the end
//! without its blank line, or even without its line end, is not thrown away but handed out by [`Parser::finish`]: many
//! servers end with a bare `data: [DONE]`. And a line or an event over [`LIMIT`] is an error, so that a server that
//! never ends a line cannot fill the memory.
//!
//! ```
//! let mut parser = hardpan_providers::sse::Parser::default();
//! let mut bytes: &[u8] = b": hello\r\nevent: ping\r\ndata: {}\r\n\r\ndata: half a li";
//! let event = parser.next(&mut bytes)?.unwrap();
//! assert_eq!((event.event, event.data), (Some("ping"), "{}"));
//! assert!(parser.next(&mut bytes)?.is_none());
//! # Ok::<(), hardpan_providers::sse::TooLong>(())
//! ```

use std::mem;

/// The longest line, and the most data of one event, in bytes. Images and whole answers fit; endless lines do not.
pub const LIMIT: usize = 16 << 20;

/// One event, lent by the parser until it is asked for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its name, where it has one.
    pub event: Option<&'a str>,
    /// Its data, several lines joined by newlines.
    pub data: &'a str,
    /// The last id that the stream gave, to this event or to one before.
    pub id: Option<&'a str>,
}

/// A line or an event was over [`LIMIT`]. The stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server sent a line or an event of more than {LIMIT} bytes; this is no answer: check the base URL"
)]
pub struct TooLong;

/// Takes bytes, gives events.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    event: String,
    data: Option<String>,
    id: Option<String>,
    retry_ms: Option<u64>,
    /// Data of an earlier event, kept for its memory.
    spare: String,
    after_cr: bool,
    begun: bool,
    lent: bool,
}

impl Parser {
    /// The next event of `input`, which is moved on behind it. `None`: all of `input` is taken, and more is needed.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'_>>, TooLong> {
        self.forget();
        while let Some(&first) = input.first() {
            // The second half of a CRLF, which may come in another piece than the first.
            if mem::take(&mut self.after_cr) && first == b'\n' {
                *input = &input[1..];
                continue;
            }
            let Some(end) = line_end(input) else {
                self.hold(input)?;
                *input = &[];
                break;
            };
            let line = &input[..end];
            self.after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
            if self.whole(line)? {
                return Ok(self.lend());
            }
        }
        Ok(None)
    }

    /// What is left when the stream has ended: the event that lacks its blank line, its last line perhaps cut short.
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, TooLong> {
        self.forget();
        self.whole(&[])?;
        Ok(self.lend())
    }

    /// How long to wait before connecting again, where the stream said so, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes the end of a line. Whether an event is complete.
    fn whole(&mut self, end: &[u8]) -> Result<bool, TooLong> {
        if self.line.is_empty() {
            return self.field(end);
        }
        self.hold(end)?;
        let mut line = mem::take(&mut self.line);
        let complete = self.field(&line);
        line.clear();
        self.line = line;
        complete
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > LIMIT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn field(&mut self, line: &[u8]) -> Result<bool, TooLong> {
        if line.len() > LIMIT {
            return Err(TooLong);
        }
        let line = match line {
            [0xEF, 0xBB, 0xBF, line @ ..] if !self.begun => line, // a byte order mark
            line => line,
        };
        self.begun = true;
        if line.is_empty() {
            if self.data.is_none() {
                self.event.clear();
            }
            return Ok(self.data.is_some());
        }
        // A comment is a field without a name, so it needs no case of its own.
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.append(value)?,
            b"event" => {
                self.event.clear();
                push_text(&mut self.event, value);
            }
            b"id" if !value.contains(&0) => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
        Ok(false)
    }

    fn append(&mut self, value: &[u8]) -> Result<(), TooLong> {
        let data = match &mut self.data {
            None => self.data.insert(mem::take(&mut self.spare)),
            Some(data) => {
                data.push('\n');
                data
            }
        };
        if data.len() + value.len() > LIMIT {
            return Err(TooLong);
        }
        push_text(data, value);
        Ok(())
    }

    fn lend(&mut self) -> Option<SseEvent<'_>> {
        self.lent = true;
        let event = Some(self.event.as_str()).filter(|name| !name.is_empty());
        self.data.as_deref().map(|data| SseEvent { event, data, id: self.id.as_deref() })
    }

    /// Lets go of the event that was lent, and keeps its memory.
    fn forget(&mut self) {
        if !mem::take(&mut self.lent) {
            return;
        }
        self.event.clear();
        if let Some(mut data) = self.data.take() {
            data.clear();
            self.spare = data;
        }
    }
}

/// Where the first line ends. Eight bytes at a time: half of the time goes into this search if it goes byte by byte.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ (ONES * u64::from(b'\n'))) | zeros(word ^ (ONES * u64::from(b'\r')));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    Some(words.len() * 8 + end)
}

/// A one in each byte.
const ONES: u64 = u64::MAX / 255;

/// The top bit of the first byte that is zero. Bytes above it may be marked too, by the borrow: they do not count.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// The standard's way: what is not UTF-8 is replaced, and the stream goes on.
fn push_text(out: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests;
