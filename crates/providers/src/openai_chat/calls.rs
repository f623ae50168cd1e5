//! [`CallAssembler`] finds the tool call that a streamed fragment belongs to. Servers mark that in
//! different ways: by index, by id, by repeating the name, or not at all.

use std::mem;

use crate::limits::too_long;
use crate::{AnswerEvent, StreamError};

/// The maximum number of calls in one answer. Real answers stay far below.
const MAX_CALLS: usize = 1024;

/// The most bytes of arguments that are kept for a call before its name has come.
const MAX_EARLY_BYTES: usize = 4 << 20;

/// A fragment of a call as an OpenAI-compatible server sends it; fields it leaves out are empty.
#[derive(Debug, Default)]
pub struct CallFragment<'a> {
    pub index: Option<u64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

/// The tool calls of an answer, as far as they have arrived.
#[derive(Debug, Default)]
pub struct CallAssembler {
    calls: Vec<PartialCall>,
}

#[derive(Debug, Default)]
struct PartialCall {
    /// The server's index of the call, if it sends one.
    number: Option<u64>,
    /// The server's id of the call; empty until it sends one.
    id: String,
    name: String,
    /// Arguments that arrived before the name.
    early_arguments: String,
    braces: BraceTracker,
}

impl CallAssembler {
    /// Adds a fragment. `answer` is the id of the answer, from which a missing call id is
    /// generated.
    pub fn add_fragment(
        &mut self,
        piece: &CallFragment<'_>,
        answer: &str,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        let index = match self.find_call(piece) {
            Some(index) => index,
            None if piece.index.is_none() && piece.id.is_empty() && piece.name.is_empty() => {
                return Err(StreamError::malformed(
                    "arguments of a tool call that never began",
                    piece.arguments,
                ));
            }
            None if self.calls.len() == MAX_CALLS => {
                return Err(StreamError::malformed("too many tool calls", piece.name));
            }
            None => {
                self.calls.push(PartialCall { number: piece.index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[index];
        if call.name.is_empty() {
            if call.id.is_empty() {
                call.id = piece.id.to_owned();
            }
            call.name = piece.name.to_owned();
            call.early_arguments.push_str(piece.arguments);
            if call.early_arguments.len() > MAX_EARLY_BYTES {
                return Err(too_long(MAX_EARLY_BYTES, "bytes of arguments without a name"));
            }
            if !call.name.is_empty() {
                call.emit_start(index, answer, events);
            }
        } else {
            call.append_arguments(index, piece.arguments.to_owned(), events);
        }
        Ok(())
    }

    /// Ends all calls; called when the answer is complete.
    pub fn finish_calls(&mut self, answer: &str, events: &mut Vec<AnswerEvent>) {
        for (index, call) in mem::take(&mut self.calls).iter_mut().enumerate() {
            if call.name.is_empty() {
                call.emit_start(index, answer, events);
            }
            events.push(AnswerEvent::CallEnd { index });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The index of the call that a fragment continues; `None` if it begins a new one.
    fn find_call(&self, piece: &CallFragment<'_>) -> Option<usize> {
        let CallFragment { index: number, id, name, arguments } = piece;
        let at = match number {
            Some(_) => self.calls.iter().rposition(|call| call.number == *number)?,
            None if !id.is_empty() => return self.calls.iter().rposition(|call| call.id == *id),
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let another = if id.is_empty() || call.id.is_empty() {
            // Only the name can tell. Some servers repeat it with every fragment, but none after
            // the arguments are complete.
            let renamed = !name.is_empty() && !call.name.is_empty() && *name != call.name;
            renamed || (!name.is_empty() && !arguments.is_empty() && call.braces == BraceTracker::CLOSED)
        } else {
            // Some servers give every call the index 0.
            *id != call.id
        };
        (!another).then_some(at)
    }
}

impl PartialCall {
    fn emit_start(&mut self, index: usize, answer: &str, events: &mut Vec<AnswerEvent>) {
        let id = match (self.id.as_str(), answer) {
            ("", "") => format!("call_{index}"),
            ("", answer) => format!("{answer}_{index}"),
            (id, _) => id.to_owned(),
        };
        events.push(AnswerEvent::CallStart { index, id, name: self.name.clone() });
        let early = mem::take(&mut self.early_arguments);
        self.append_arguments(index, early, events);
    }

    fn append_arguments(&mut self, index: usize, json: String, events: &mut Vec<AnswerEvent>) {
        if !json.is_empty() {
            self.braces.feed(&json);
            events.push(AnswerEvent::CallDelta { index, json });
        }
    }
}

/// Tracks the braces of a JSON object, to notice its end without parsing it repeatedly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BraceTracker {
    depth: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl BraceTracker {
    /// The state after a complete object.
    const CLOSED: BraceTracker = BraceTracker { depth: 0, begun: true, in_string: false, escaped: false };

    fn feed(&mut self, json: &str) {
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

    fn take(pieces: &[CallFragment<'_>]) -> Result<Vec<AnswerEvent>, StreamError> {
        let (mut calls, mut events) = (CallAssembler::default(), Vec::new());
        pieces.iter().try_for_each(|piece| calls.add_fragment(piece, "a1", &mut events))?;
        calls.finish_calls("a1", &mut events);
        Ok(AnswerEvent::merge(events))
    }

    fn piece<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> CallFragment<'a> {
        CallFragment { index, id, name, arguments }
    }

    fn start(index: usize, id: &str, name: &str) -> AnswerEvent {
        AnswerEvent::CallStart { index, id: id.into(), name: name.into() }
    }

    fn delta(index: usize, json: &str) -> AnswerEvent {
        AnswerEvent::CallDelta { index, json: json.into() }
    }

    fn end(index: usize) -> AnswerEvent {
        AnswerEvent::CallEnd { index }
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
            events.into_iter().filter(|e| matches!(e, AnswerEvent::CallStart { .. })).collect::<Vec<_>>(),
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
        let ids: Vec<String> = (0..=MAX_CALLS).map(|n| n.to_string()).collect();
        let many: Vec<_> = ids.iter().map(|id| piece(None, id, "f", "{}")).collect();
        assert!(take(&many).is_err());
    }
}
