//! Reads [`InputLine`]s from standard input.

use std::io::{self, BufRead, BufReader, Read};

use serde_json::Value;
use tokio::sync::mpsc;

/// The longest line: 16 MB, room for the largest image in base64 and a long text beside it.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// How many lines to read ahead. Few are enough: the server accepts requests quickly.
const LINES_READ_AHEAD: usize = 8;

/// A line of standard input, or why it is not a request.
#[derive(Debug, PartialEq, Eq)]
pub enum InputLine {
    /// Without its line end and surrounding blanks; never empty.
    Line(String),
    /// Longer than [`MAX_LINE_BYTES`]; its content was skipped, but for the id of the request.
    TooLong {
        /// Where it stands at the beginning, as programs write it.
        id: Option<Value>,
    },
    NotUtf8,
}

/// Reads lines on a separate thread, because reading a pipe cannot be cancelled.
pub fn read_lines() -> mpsc::Receiver<InputLine> {
    let (sender, receiver) = mpsc::channel(LINES_READ_AHEAD);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
        // A read error counts as the end of input.
        while let Ok(Some(typed)) = read_line(&mut input, MAX_LINE_BYTES) {
            if sender.blocking_send(typed).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next line that is not blank; none at the end of input. The last line needs no line end.
fn read_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<InputLine>> {
    loop {
        let mut line = Vec::new();
        let limit = longest as u64 + 1; // with the line's end
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let ended = line.last() == Some(&b'\n');
        if !ended && line.len() > longest {
            input.skip_until(b'\n')?;
            return Ok(Some(InputLine::TooLong { id: id_at_start(&line) }));
        }
        let Ok(line) = String::from_utf8(line) else { return Ok(Some(InputLine::NotUtf8)) };
        let line = line.trim();
        if !line.is_empty() {
            return Ok(Some(InputLine::Line(line.to_owned())));
        }
    }
}

/// How far into a long line its id is looked for.
const ID_BYTES: usize = 1024;

/// The id of a message of which only the beginning is there: a field of the outer object that comes before its first
/// list or inner object.
fn id_at_start(line: &[u8]) -> Option<Value> {
    let start = &line[..line.len().min(ID_BYTES)];
    let start = start.strip_prefix(b"{")?;
    let flat = &start[..start.iter().position(|byte| matches!(byte, b'{' | b'['))?];
    // Without the field that the inner value belongs to.
    let whole = flat.iter().rposition(|byte| *byte == b',').map_or(&flat[..0], |end| &flat[..end]);
    let fields = format!("{{{}}}", std::str::from_utf8(whole).ok()?);
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(&fields).ok()?;
    fields.remove("id").filter(|id| id.is_number() || id.is_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_long_line_is_found_where_programs_write_it() {
        let found = |start: &str| id_at_start(format!("{start}{}", "x".repeat(5000)).as_bytes());
        assert_eq!(found(r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":""#), Some(7.into()));
        assert_eq!(found(r#"{"id": "a,b", "params": [""#), Some("a,b".into()));
        assert_eq!(found(r#"{"params":{"id":7,"text":""#), None);
        assert_eq!(found(r#"{"method":"m","params":{"id":7},"id":8,"text":""#), None);
        assert_eq!(found(r#"[{"id":7}, ""#), None);
    }

    #[test]
    fn every_line_is_taken_or_told_about() {
        let bytes = b"{}\r\n\n  \n0123456789\n01234567890\n\xff\n \xC3\xA4 \n01234567890123\nlast";
        let mut input = &bytes[..];
        let mut found = Vec::new();
        while let Some(typed) = read_line(&mut input, 10).unwrap() {
            found.push(typed);
        }
        let line = |text: &str| InputLine::Line(text.into());
        assert_eq!(
            found,
            [
                line("{}"),
                line("0123456789"),
                InputLine::TooLong { id: None },
                InputLine::NotUtf8,
                line("ä"),
                InputLine::TooLong { id: None },
                line("last")
            ]
        );
    }
}
