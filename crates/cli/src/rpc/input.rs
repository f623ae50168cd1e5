//! Lines from standard input, whatever comes.

use std::io::{self, BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// The longest line: 16 MB, more than the largest image in base64 and a long text beside it.
pub const LONGEST: usize = 16 << 20;

/// So many lines are read ahead: requests are taken faster than they come.
const AHEAD: usize = 8;

/// A line, or why it is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line without its end.
    Line(String),
    /// It was longer than a request may be, and was passed over.
    TooLong,
    /// It is no text.
    NotUtf8,
}

/// The lines of standard input, from a thread of its own: reading a pipe cannot be cancelled.
pub fn lines() -> mpsc::Receiver<Typed> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
        // Standard input that cannot be read has ended.
        while let Ok(Some(typed)) = next(&mut input, LONGEST) {
            if sender.blocking_send(typed).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next line that is not empty; none at the end. A last line needs no end.
fn next(input: &mut impl BufRead, longest: usize) -> io::Result<Option<Typed>> {
    loop {
        let mut line = Vec::new();
        let limit = longest as u64 + 1; // with the line's end
        if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let ended = line.last() == Some(&b'\n');
        if !ended && line.len() > longest {
            input.skip_until(b'\n')?;
            return Ok(Some(Typed::TooLong));
        }
        let Ok(line) = String::from_utf8(line) else { return Ok(Some(Typed::NotUtf8)) };
        let line = line.trim();
        if !line.is_empty() {
            return Ok(Some(Typed::Line(line.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_taken_or_told_about() {
        let bytes = b"{}\r\n\n  \n0123456789\n01234567890\n\xff\n \xC3\xA4 \n01234567890123\nlast";
        let mut input = &bytes[..];
        let mut found = Vec::new();
        while let Some(typed) = next(&mut input, 10).unwrap() {
            found.push(typed);
        }
        let line = |text: &str| Typed::Line(text.into());
        assert_eq!(
            found,
            [
                line("{}"),
                line("0123456789"),
                Typed::TooLong,
                Typed::NotUtf8,
                line("ä"),
                Typed::TooLong,
                line("last")
            ]
        );
    }
}
