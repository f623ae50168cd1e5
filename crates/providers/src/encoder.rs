//! [`Encoder`] encodes the requests of one conversation, each of which mostly repeats the previous.

#![expect(clippy::disallowed_types, reason = "messages are looked up by address, never iterated")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_models::ProviderProfile;
use hardpan_prompt::{Block, CacheLifetime, Effort, Prompt, PromptMessage, Role, SharedContent};
use serde_json::value::RawValue;

use crate::codec::{BodyMessages, Codec, RequestContext, codec};

/// Produces the same bytes as [`encode`](crate::encode), faster: it keeps the encoded messages of
/// the last request and copies those that are unchanged.
#[derive(Default)]
pub struct Encoder(Mutex<EncodedRequest>);

#[derive(Default)]
struct EncodedRequest {
    profile: Option<ProviderProfile>,
    messages: Vec<EncodedMessage>,
    /// The length of the last body in bytes, to allocate the next one.
    bytes: usize,
}

/// A prompt message with its JSON, which may be several messages of the body.
struct EncodedMessage {
    role: Role,
    id: Option<Arc<str>>,
    documents: Vec<Arc<str>>,
    turn_scoped: bool,
    effort: Option<Effort>,
    blocks: Vec<(SharedContent, Option<CacheLifetime>)>,
    json_messages: Vec<Box<RawValue>>,
}

impl Encoder {
    /// Encodes the body of a request, byte for byte as [`encode`](crate::encode) does.
    pub fn encode(&self, prompt: &Prompt, profile: &ProviderProfile) -> Vec<u8> {
        self.encode_in_context(prompt, profile, &RequestContext::default())
    }

    /// Encodes the body of a request that is sent with more than its prompt.
    pub fn encode_in_context(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        context: &RequestContext<'_>,
    ) -> Vec<u8> {
        // Each kept message is valid on its own, so a panic elsewhere leaves nothing inconsistent.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.profile.as_ref() != Some(profile) {
            *last = EncodedRequest { profile: Some(profile.clone()), ..EncodedRequest::default() };
        }
        let codec = codec(profile.protocol);
        let mut previous = PreviousMessages::new(std::mem::take(&mut last.messages));
        last.messages = prompt
            .messages
            .iter()
            .map(|message| {
                let encode = || EncodedMessage::encode(codec, prompt, message, profile);
                previous.take_unchanged(message).unwrap_or_else(encode)
            })
            .collect();
        let messages: Vec<&RawValue> =
            last.messages.iter().flat_map(|message| message.json_messages.iter().map(|it| &**it)).collect();
        let room = last.bytes + last.bytes / 16;
        let body = codec.encode_body(prompt, profile, context, BodyMessages::Encoded(&messages), room);
        last.bytes = body.len();
        body
    }
}

/// The messages of the last request, to be reused. They are expected in the same order, with some
/// moved, added or removed.
struct PreviousMessages {
    messages: Vec<Option<EncodedMessage>>,
    next: usize,
    /// Index of a message by the address of its first block's content; built at the first message
    /// that is not where it was.
    places: Option<HashMap<usize, usize>>,
}

impl PreviousMessages {
    fn new(messages: Vec<EncodedMessage>) -> Self {
        PreviousMessages { messages: messages.into_iter().map(Some).collect(), next: 0, places: None }
    }

    /// Takes the encoded form of `message` if it was sent before unchanged.
    fn take_unchanged(&mut self, message: &PromptMessage) -> Option<EncodedMessage> {
        let is_it = |at: &usize| {
            self.messages
                .get(*at)
                .and_then(Option::as_ref)
                .is_some_and(|encoded| encoded.matches_message(message))
        };
        let at = Some(self.next).filter(is_it).or_else(|| {
            let places = self.places.get_or_insert_with(|| index_by_first_block(&self.messages));
            let place = message.blocks.first().and_then(|block| places.get(&block.content.address()));
            place.copied().filter(is_it)
        })?;
        self.next = at + 1;
        self.messages[at].take()
    }
}

fn index_by_first_block(messages: &[Option<EncodedMessage>]) -> HashMap<usize, usize> {
    let place = |(at, message): (usize, &Option<EncodedMessage>)| {
        Some((message.as_ref()?.blocks.first()?.0.address(), at))
    };
    messages.iter().enumerate().filter_map(place).collect()
}

impl EncodedMessage {
    fn encode(
        codec: &dyn Codec,
        prompt: &Prompt,
        message: &PromptMessage,
        profile: &ProviderProfile,
    ) -> Self {
        let PromptMessage { role, blocks, id, documents, turn_scoped, effort } = message;
        let json_messages = codec.encode_message(prompt, message, profile);
        let blocks = blocks.iter().map(|block| (block.content.clone(), block.breakpoint)).collect();
        EncodedMessage {
            role: *role,
            id: id.clone(),
            documents: documents.clone(),
            turn_scoped: *turn_scoped,
            effort: *effort,
            blocks,
            json_messages,
        }
    }

    fn matches_message(&self, message: &PromptMessage) -> bool {
        // Every field is named, so that a new one forces a decision here.
        let PromptMessage { role, blocks, id, documents, turn_scoped, effort } = message;
        let is_same =
            |((content_before, marker), block): (&(SharedContent, Option<CacheLifetime>), &Block)| {
                let Block { region: _, content, breakpoint } = block;
                content_before.ptr_eq(content) && marker == breakpoint
            };
        self.role == *role
            && self.blocks.len() == blocks.len()
            && self.blocks.iter().zip(blocks).all(is_same)
            && self.id == *id
            && self.documents == *documents
            && self.turn_scoped == *turn_scoped
            && self.effort == *effort
    }
}
