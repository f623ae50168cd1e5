//! [`TerminalInput`]: reads what a person types, and the answers of the terminal.

use std::io::{self, PipeReader, Read};
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
    /// Waits until something comes, and gives everything that is there. Empty if a byte came through
    /// `wake` instead.
    pub fn read_batch(&mut self, wake: &mut PipeReader) -> io::Result<Vec<Event>> {
        if wait_for_input(&io::stdin(), wake)? {
            wake.read_exact(&mut [0])?;
            return Ok(Vec::new());
        }
        let events = self.read_events(Duration::ZERO)?.into_iter();
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

/// Waits for standard input or `wake`, and tells whether it was `wake`.
fn wait_for_input(stdin: &io::Stdin, wake: &PipeReader) -> io::Result<bool> {
    let mut waited = [PollFd::new(stdin, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
    loop {
        match poll(&mut waited, None) {
            Ok(_) => return Ok(!waited[1].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
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
