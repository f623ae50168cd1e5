//! Encoding the requests of a conversation, each of which is mostly the one before.

use std::collections::HashMap;
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
        let mut before = Before::new(std::mem::take(&mut kept.turns));
        kept.turns = prompt
            .turns
            .iter()
            .map(|turn| before.take(turn).unwrap_or_else(|| Encoded::of(turn, wire)))
            .collect();
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

/// The messages of the last request. The next ones are expected in the same order, some of them elsewhere.
struct Before {
    turns: Vec<Option<Encoded>>,
    next: usize,
    /// Where to find a message by what its first block holds: made when the first is not where it was.
    places: Option<HashMap<usize, usize>>,
}

impl Before {
    fn new(turns: Vec<Encoded>) -> Self {
        Before { turns: turns.into_iter().map(Some).collect(), next: 0, places: None }
    }

    /// The message, if it was sent before as it is now.
    fn take(&mut self, turn: &Turn) -> Option<Encoded> {
        let is_it = |at: &usize| {
            self.turns.get(*at).and_then(Option::as_ref).is_some_and(|encoded| encoded.is_of(turn))
        };
        let at = Some(self.next).filter(is_it).or_else(|| {
            let places = self.places.get_or_insert_with(|| places(&self.turns));
            let place = turn.blocks.first().and_then(|block| places.get(&block.content.address()));
            place.copied().filter(is_it)
        })?;
        self.next = at + 1;
        self.turns[at].take()
    }
}

fn places(turns: &[Option<Encoded>]) -> HashMap<usize, usize> {
    let place =
        |(at, turn): (usize, &Option<Encoded>)| Some((turn.as_ref()?.blocks.first()?.0.address(), at));
    turns.iter().enumerate().filter_map(place).collect()
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
