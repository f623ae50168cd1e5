//! [`AnswerPieces`]: an answer while it streams, as the events of Anthropic's API.

use hardpan_agent::events::MessageDelta;
use serde_json::{Value, json};

/// The answer that streams now.
#[derive(Default)]
pub struct AnswerPieces {
    /// Blocks that have begun, by what they are. Calls stay open until something else begins, because their
    /// arguments may come in turns.
    open: Vec<(usize, BlockKind)>,
    blocks: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    /// With the number of the call within the answer.
    Call(usize),
}

impl AnswerPieces {
    /// The event for the beginning of an answer.
    pub fn begin(&mut self, id: &str, model: &str) -> Value {
        *self = AnswerPieces::default();
        let message = json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        });
        json!({"type": "message_start", "message": message})
    }

    /// The events for a piece.
    pub fn add(&mut self, delta: &MessageDelta) -> Vec<Value> {
        let mut events = Vec::new();
        let (index, delta) = match delta {
            MessageDelta::Text { text } => {
                let block = json!({"type": "text", "text": ""});
                let index = self.enter(BlockKind::Text, &block, &mut events);
                (index, json!({"type": "text_delta", "text": text}))
            }
            MessageDelta::Reasoning { text } => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                let index = self.enter(BlockKind::Thinking, &block, &mut events);
                (index, json!({"type": "thinking_delta", "thinking": text}))
            }
            MessageDelta::Call { index, call_id, name } => {
                let block = json!({"type": "tool_use", "id": call_id, "name": name, "input": {}});
                self.enter(BlockKind::Call(*index), &block, &mut events);
                return events;
            }
            MessageDelta::Arguments { index, json } => {
                let Some(index) = self.find(BlockKind::Call(*index)) else { return events };
                (index, json!({"type": "input_json_delta", "partial_json": json}))
            }
        };
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events
    }

    /// The events for the end of an answer.
    pub fn end(&mut self, stop_reason: Option<&str>, usage: &Value) -> Vec<Value> {
        let mut events = self.close();
        let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn find(&self, kind: BlockKind) -> Option<usize> {
        self.open.iter().find(|(_, open)| *open == kind).map(|(index, _)| *index)
    }

    /// The number of the block that is open, or of one that begins.
    fn enter(&mut self, kind: BlockKind, block: &Value, events: &mut Vec<Value>) -> usize {
        if let Some(index) = self.find(kind) {
            return index;
        }
        let are_calls = |(_, open): &(usize, BlockKind)| matches!(open, BlockKind::Call(_));
        if !matches!(kind, BlockKind::Call(_)) || !self.open.iter().all(are_calls) {
            events.extend(self.close());
        }
        let index = self.blocks;
        self.blocks += 1;
        self.open.push((index, kind));
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        index
    }

    fn close(&mut self) -> Vec<Value> {
        let stop = |(index, _)| json!({"type": "content_block_stop", "index": index});
        self.open.drain(..).map(stop).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_begins_grows_and_ends_once() {
        let mut pieces = AnswerPieces::default();
        pieces.begin("m", "model");
        let call =
            |index: usize| MessageDelta::Call { index, call_id: format!("c{index}"), name: "read".into() };
        let arguments = |index: usize| MessageDelta::Arguments { index, json: "{}".into() };
        let deltas = [
            MessageDelta::Reasoning { text: "r".into() },
            MessageDelta::Text { text: "a".into() },
            MessageDelta::Text { text: "b".into() },
            call(0),
            call(1),
            arguments(1),
            arguments(0),
            MessageDelta::Text { text: "c".into() },
        ];
        let mut events: Vec<Value> = deltas.iter().flat_map(|delta| pieces.add(delta)).collect();
        events.extend(pieces.end(Some("end_turn"), &json!({})));
        let short = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or_default().replace("content_block_", "");
            format!("{kind} {}", event["index"])
        };
        let expected = [
            "start 0",
            "delta 0",
            "stop 0",
            "start 1",
            "delta 1",
            "delta 1",
            "stop 1",
            "start 2",
            "start 3",
            "delta 3",
            "delta 2",
            "stop 2",
            "stop 3",
            "start 4",
            "delta 4",
            "stop 4",
            "message_delta null",
            "message_stop null",
        ];
        assert_eq!(events.iter().map(short).collect::<Vec<_>>(), expected);
    }
}
