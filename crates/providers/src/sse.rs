//! [`Parser`]: server-sent events from bytes that may be cut anywhere.
//!
//! The parser follows the standard, with two deviations that real streams require:
//!
//! - An event at the end without its blank line, or even without its line end, is not dropped but
//!   returned by [`Parser::finish`]: many servers end with a bare `data: [DONE]`.
//! - A line or an event over [`LIMIT`] bytes is an error, so that a server that never ends a line
//!   cannot fill the memory.
//!
//! ```
//! let mut parser = hardpan_providers::sse::Parser::default();
//! let mut bytes: &[u8] = b": hello\r\nevent: ping\r\ndata: {}\r\n\r\ndata: half a li";
//! let event = parser.next(&mut bytes)?.unwrap();
//! assert_eq!((event.event, event.data), (Some("ping"), "{}"));
//! assert!(parser.next(&mut bytes)?.is_none());
//! # Ok::<(), hardpan_providers::sse::EventTooLong>(())
//! ```

use std::mem;

use memchr::memchr2;

/// The maximum length of a line, and of the data of one event, in bytes. Large enough for images
/// and whole answers.
pub const LIMIT: usize = 16 << 20;

/// One event, borrowed from the parser until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event's name; `None` if it has none.
    pub event: Option<&'a str>,
    /// The event's data, its lines joined by newlines.
    pub data: &'a str,
    /// The last id in the stream so far, of this event or an earlier one.
    pub id: Option<&'a str>,
}

/// A line or an event exceeded [`LIMIT`]. The stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server sent a line or an event of more than {LIMIT} bytes, which no provider does; check the base URL"
)]
pub struct EventTooLong;

/// An incremental parser: feed it bytes, get events.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    event: String,
    data: Option<String>,
    id: Option<String>,
    retry_ms: Option<u64>,
    /// The buffer of an earlier event's data, kept to reuse its allocation.
    spare: String,
    after_cr: bool,
    begun: bool,
    lent: bool,
}

impl Parser {
    /// Returns the next event of `input` and advances `input` behind it. `None`: all of `input` is
    /// consumed, and more is needed.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'_>>, EventTooLong> {
        self.release_lent_event();
        while let Some(&first) = input.first() {
            // The second half of a CRLF, which may arrive in another chunk than the first.
            if mem::take(&mut self.after_cr) && first == b'\n' {
                *input = &input[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', input) else {
                self.buffer_partial_line(input)?;
                *input = &[];
                break;
            };
            let line = &input[..end];
            self.after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
            if self.finish_line(line)? {
                return Ok(self.lend_event());
            }
        }
        Ok(None)
    }

    /// Returns the rest when the stream has ended: an event without its blank line, whose last line
    /// may be cut short.
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLong> {
        self.release_lent_event();
        self.finish_line(&[])?;
        Ok(self.lend_event())
    }

    /// The reconnection time in milliseconds, if the stream set one (`retry:`).
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Completes a line with its last bytes. Returns whether an event is complete.
    fn finish_line(&mut self, end: &[u8]) -> Result<bool, EventTooLong> {
        if self.line.is_empty() {
            return self.parse_line(end);
        }
        self.buffer_partial_line(end)?;
        let mut line = mem::take(&mut self.line);
        let complete = self.parse_line(&line);
        line.clear();
        self.line = line;
        complete
    }

    fn buffer_partial_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > LIMIT {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn parse_line(&mut self, line: &[u8]) -> Result<bool, EventTooLong> {
        if line.len() > LIMIT {
            return Err(EventTooLong);
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
        // A comment is a field with an empty name, so it needs no case of its own.
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.append_data(value)?,
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

    fn append_data(&mut self, value: &[u8]) -> Result<(), EventTooLong> {
        let data = match &mut self.data {
            None => self.data.insert(mem::take(&mut self.spare)),
            Some(data) => {
                data.push('\n');
                data
            }
        };
        if data.len() + value.len() > LIMIT {
            return Err(EventTooLong);
        }
        push_text(data, value);
        Ok(())
    }

    fn lend_event(&mut self) -> Option<SseEvent<'_>> {
        self.lent = true;
        let event = Some(self.event.as_str()).filter(|name| !name.is_empty());
        self.data.as_deref().map(|data| SseEvent { event, data, id: self.id.as_deref() })
    }

    /// Clears the event that was lent, and keeps its buffer.
    fn release_lent_event(&mut self) {
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

/// Appends bytes as text. As the standard demands, invalid UTF-8 is replaced.
fn push_text(out: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => out.push_str(text),
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests;
