//! Encoding the requests of a conversation, each of which is mostly the one before.

use std::sync::{Arc, Mutex, PoisonError};

use hardpan_models::{Protocol, Wire};
use hardpan_prompt::{Block, Held, Lifetime, Prompt, Role, Turn};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::pieces::to_bytes;
use crate::{anthropic, openai};

/// Makes the same bytes as [`encode`](crate::encode), and keeps those of the last request: messages that are sent again as
/// they were are copied.
#[derive(Default)]
pub struct Encoder(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    wire: Option<Wire>,
    turns: Vec<Encoded>,
    /// The length of the last body.
    bytes: usize,
}

/// A message as it was sent; with OpenAI's protocol one may become several.
struct Encoded {
    role: Role,
    id: Option<Arc<str>>,
    documents: Vec<Arc<str>>,
    blocks: Vec<(Held, Option<Lifetime>)>,
    messages: Vec<Box<RawValue>>,
}

impl Encoder {
    /// The body of the request, to the byte.
    pub fn encode(&self, prompt: &Prompt, wire: &Wire) -> Vec<u8> {
        // What is kept is true by itself, so a panic elsewhere leaves nothing half done.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.wire.as_ref() != Some(wire) {
            *kept = Kept { wire: Some(wire.clone()), ..Kept::default() };
        }
        kept.turns.truncate(prompt.turns.len());
        for (index, turn) in prompt.turns.iter().enumerate() {
            match kept.turns.get_mut(index) {
                Some(encoded) if encoded.is_of(turn) => {}
                Some(encoded) => *encoded = Encoded::of(turn, wire),
                None => kept.turns.push(Encoded::of(turn, wire)),
            }
        }
        let messages: Vec<&RawValue> =
            kept.turns.iter().flat_map(|turn| turn.messages.iter().map(|it| &**it)).collect();
        let room = kept.bytes + kept.bytes / 16;
        let body = match wire.protocol {
            Protocol::Anthropic => to_bytes(&anthropic::Body { prompt, messages }, room),
            Protocol::Openai => {
                let messages = openai::Messages::after_system(prompt, wire, messages);
                to_bytes(&openai::Body { prompt, wire, messages }, room)
            }
        };
        kept.bytes = body.len();
        body
    }
}

impl Encoded {
    fn of(turn: &Turn, wire: &Wire) -> Self {
        let Turn { role, blocks, id, documents } = turn;
        let messages = match wire.protocol {
            Protocol::Anthropic => vec![raw(&anthropic::Message(turn))],
            Protocol::Openai => {
                let mut messages = Vec::new();
                openai::split(turn, wire, &mut messages);
                messages.iter().map(raw).collect()
            }
        };
        let blocks = blocks.iter().map(|block| (block.content.clone(), block.breakpoint)).collect();
        Encoded { role: *role, id: id.clone(), documents: documents.clone(), blocks, messages }
    }

    fn is_of(&self, turn: &Turn) -> bool {
        // Every field is named, so that a new one forces a decision here.
        let Turn { role, blocks, id, documents } = turn;
        let is_same = |((held, marker), block): (&(Held, Option<Lifetime>), &Block)| {
            let Block { place: _, content, breakpoint } = block;
            held.is(content) && marker == breakpoint
        };
        self.role == *role
            && self.blocks.len() == blocks.len()
            && self.blocks.iter().zip(blocks).all(is_same)
            && self.id == *id
            && self.documents == *documents
    }
}

/// Serialising to memory cannot fail: every key is a string, and every value is known.
fn raw(message: &impl Serialize) -> Box<RawValue> {
    to_raw_value(message).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
