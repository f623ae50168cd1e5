//! [`TerminalInput`]: reads what a person types, and the answers of the terminal.

use std::io;
use std::time::Duration;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

use super::byte_decoder::{ByteDecoder, TerminalEvent};

/// An escape that is not followed by anything within this time is the key. Slow connections cut the
/// sequences of other keys in two.
const ESCAPE_TIME: Duration = Duration::from_millis(8);
/// A terminal answers within this time, or never.
const ANSWER_TIME: Duration = Duration::from_millis(100);
/// The most that is read before it is handled.
const MOST_BYTES: usize = 1 << 20;

/// Reads standard input.
#[derive(Debug, Default)]
pub struct TerminalInput {
    decoder: ByteDecoder,
}

impl TerminalInput {
    /// Everything that is there, after at most `wait`. Empty if nothing came.
    pub fn read_batch(&mut self, wait: Duration) -> io::Result<Vec<Event>> {
        let events = self.read_events(wait)?.into_iter();
        Ok(events
            .filter_map(|event| match event {
                TerminalEvent::Input(event) => Some(event),
                TerminalEvent::Background(..) => None,
            })
            .collect())
    }

    fn read_events(&mut self, mut wait: Duration) -> io::Result<Vec<TerminalEvent>> {
        let stdin = io::stdin();
        let (mut events, mut bytes, mut length) = (Vec::new(), [0; 4096], 0);
        while length < MOST_BYTES && is_readable(&stdin, wait)? {
            let count = match read(&stdin, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(Errno::INTR | Errno::AGAIN) => continue,
                count => count?,
            };
            events.extend(self.decoder.decode(&bytes[..count]));
            length += count;
            wait = if self.decoder.has_escape() { ESCAPE_TIME } else { Duration::ZERO };
        }
        events.extend(self.decoder.finish());
        Ok(events)
    }

    /// The colour that the terminal says its background has. The terminal is in raw mode; `ask` writes
    /// the question.
    pub fn background(&mut self, ask: impl FnOnce() -> io::Result<()>) -> Option<(u8, u8, u8)> {
        ask().ok()?;
        let answer = |event: &TerminalEvent| match event {
            TerminalEvent::Background(red, green, blue) => Some((*red, *green, *blue)),
            TerminalEvent::Input(_) => None,
        };
        self.read_events(ANSWER_TIME).ok()?.iter().find_map(answer)
    }
}

fn is_readable(stdin: &io::Stdin, wait: Duration) -> io::Result<bool> {
    let mut waited = [PollFd::new(stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    match poll(&mut waited, Some(&wait)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
