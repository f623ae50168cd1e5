//! Which call a piece belongs to, when the server says it in its own way.

use std::mem;

use crate::{Event, StreamError};

/// The most calls in one answer. None has so many; garbage may.
const MOST: usize = 1024;

/// A piece of a call as an OpenAI-style server sends it; empty where it says nothing.
#[derive(Debug, Default)]
pub struct Piece<'a> {
    pub index: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// The server's number for it.
    number: Option<u64>,
    /// The server's id for it, if it has said one.
    id: String,
    name: String,
    /// Arguments that came before the name.
    early: String,
    braces: Braces,
}

impl Calls {
    /// Takes a piece. `answer` is the answer's id, from which a missing call id is made.
    pub fn take(
        &mut self,
        piece: &Piece<'_>,
        answer: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), StreamError> {
        let index = match self.find(piece) {
            Some(index) => index,
            None if piece.index.is_none() && piece.id.is_empty() && piece.name.is_empty() => {
                return Err(StreamError::malformed(
                    "a piece of a tool call that never began",
                    piece.arguments,
                ));
            }
            None if self.calls.len() == MOST => {
                return Err(StreamError::malformed("too many tool calls", piece.name));
            }
            None => {
                self.calls.push(Call { number: piece.index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index];
        if call.name.is_empty() {
            if call.id.is_empty() {
                call.id = piece.id.to_owned();
            }
            call.name = piece.name.to_owned();
            call.early.push_str(piece.arguments);
            if !call.name.is_empty() {
                call.start(index, answer, events);
            }
        } else {
            call.more(index, piece.arguments.to_owned(), events);
        }
        Ok(())
    }

    /// No more pieces come, and the answer is whole.
    pub fn end(&mut self, answer: &str, events: &mut Vec<Event>) {
        for (index, call) in mem::take(&mut self.calls).iter_mut().enumerate() {
            if call.name.is_empty() {
                call.start(index, answer, events);
            }
            events.push(Event::CallEnd { index });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call that a piece goes on with; none if it begins another.
    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        let Piece { index: number, id, name, arguments } = piece;
        let at = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == *number)?,
            None if !id.is_empty() => return self.calls.iter().rposition(|call| call.id == *id),
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let another = if id.is_empty() || call.id.is_empty() {
            // Only the name can tell. Some servers repeat it with every piece, but none once the arguments are whole.
            let renamed = !name.is_empty() && !call.name.is_empty() && *name != call.name;
            renamed || (!name.is_empty() && !arguments.is_empty() && call.braces == Braces::CLOSED)
        } else {
            // Some servers give every call the number 0.
            *id != call.id
        };
        (!another).then_some(at)
    }
}

impl Call {
    fn start(&mut self, index: usize, answer: &str, events: &mut Vec<Event>) {
        let id = match (self.id.as_str(), answer) {
            ("", "") => format!("call_{index}"),
            ("", answer) => format!("{answer}_{index}"),
            (id, _) => id.to_owned(),
        };
        events.push(Event::CallStart { index, id, name: self.name.clone() });
        let early = mem::take(&mut self.early);
        self.more(index, early, events);
    }

    fn more(&mut self, index: usize, json: String, events: &mut Vec<Event>) {
        if !json.is_empty() {
            self.braces.take(&json);
            events.push(Event::CallDelta { index, json });
        }
    }
}

/// Follows the braces of a JSON object, so that its end is seen without parsing it again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Braces {
    depth: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl Braces {
    /// An object that is whole.
    const CLOSED: Braces = Braces { depth: 0, begun: true, in_string: false, escaped: false };

    fn take(&mut self, json: &str) {
        for byte in json.bytes() {
            match byte {
                _ if mem::take(&mut self.escaped) => {}
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => {
                    self.depth += 1;
                    self.begun = true;
                }
                b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pieces: &[Piece<'_>]) -> Result<Vec<Event>, StreamError> {
        let (mut calls, mut events) = (Calls::default(), Vec::new());
        pieces.iter().try_for_each(|piece| calls.take(piece, "a1", &mut events))?;
        calls.end("a1", &mut events);
        Ok(Event::merge(events))
    }

    fn piece<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> Piece<'a> {
        Piece { index, id, name, arguments }
    }

    fn start(index: usize, id: &str, name: &str) -> Event {
        Event::CallStart { index, id: id.into(), name: name.into() }
    }

    fn delta(index: usize, json: &str) -> Event {
        Event::CallDelta { index, json: json.into() }
    }

    fn end(index: usize) -> Event {
        Event::CallEnd { index }
    }

    #[test]
    fn every_way_to_name_a_call_gives_the_same_two_calls() {
        let expected =
            [start(0, "x", "f"), delta(0, "{\"a\":1}"), start(1, "y", "f"), delta(1, "{}"), end(0), end(1)];
        let by_index = [
            piece(Some(0), "x", "f", ""),
            piece(Some(0), "", "", "{\"a\""),
            piece(Some(0), "", "", ":1}"),
            piece(Some(1), "y", "f", "{}"),
        ];
        let repeated = [
            piece(Some(0), "x", "f", "{\"a\""),
            piece(Some(0), "x", "f", ":1}"),
            piece(Some(1), "y", "f", "{"),
            piece(Some(1), "y", "", "}"),
        ];
        let without_index = [
            piece(None, "x", "f", "{\"a\""),
            piece(None, "", "", ":1}"),
            piece(None, "y", "f", ""),
            piece(None, "y", "f", "{}"),
        ];
        let all_zero = [piece(Some(0), "x", "f", "{\"a\":1}"), piece(Some(0), "y", "f", "{}")];
        for pieces in [&by_index[..], &repeated, &without_index, &all_zero] {
            assert_eq!(take(pieces).unwrap(), expected, "{pieces:?}");
        }
    }

    #[test]
    fn calls_without_ids_get_one_and_are_told_apart_by_their_names() {
        let whole =
            [piece(None, "", "f", "{\"s\":\"}\"}"), piece(None, "", "f", "{}"), piece(None, "", "g", "{}")];
        let starts = [start(0, "a1_0", "f"), start(1, "a1_1", "f"), start(2, "a1_2", "g")];
        let events = take(&whole).unwrap();
        assert_eq!(
            events.into_iter().filter(|e| matches!(e, Event::CallStart { .. })).collect::<Vec<_>>(),
            starts
        );
    }

    #[test]
    fn interleaved_calls_are_kept_apart() {
        let pieces = [
            piece(Some(3), "x", "f", "{"),
            piece(Some(5), "y", "g", "["),
            piece(Some(3), "", "", "}"),
            piece(Some(5), "", "", "]"),
        ];
        let expected = [
            start(0, "x", "f"),
            delta(0, "{"),
            start(1, "y", "g"),
            delta(1, "["),
            delta(0, "}"),
            delta(1, "]"),
            end(0),
            end(1),
        ];
        assert_eq!(take(&pieces).unwrap(), expected);
    }

    #[test]
    fn a_name_may_come_late_or_never() {
        let late = [piece(Some(0), "x", "", "{"), piece(Some(0), "", "f", "}")];
        assert_eq!(take(&late).unwrap(), [start(0, "x", "f"), delta(0, "{}"), end(0)]);
        let never = [piece(Some(0), "x", "", "{}")];
        assert_eq!(take(&never).unwrap(), [start(0, "x", ""), delta(0, "{}"), end(0)]);
    }

    #[test]
    fn a_piece_of_nothing_is_an_error() {
        assert!(take(&[piece(None, "", "", "{}")]).is_err());
        let ids: Vec<String> = (0..=MOST).map(|n| n.to_string()).collect();
        let many: Vec<_> = ids.iter().map(|id| piece(None, id, "f", "{}")).collect();
        assert!(take(&many).is_err());
    }
}
