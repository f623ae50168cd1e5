//! [`convert_history`]: from the stored conversation to messages that every provider accepts.
//!
//! Every layout uses this one conversion. It maps each kind of message to a role, honours message
//! states (summarised, deleted, …), joins results to their calls, makes call ids valid and unique,
//! and leaves out what cannot be sent, each with a reason. The bytes of a message depend only on
//! what comes before it, so a conversation that grows keeps its cached prefix.

mod conversion; // converts message by message
mod incremental; // reuses the part of the last conversion that cannot change any more
mod pairing; // which result answers which call
mod searches; // blocks of a provider's own web search

use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::{AgentMessage, Content, MessageId, Omission, Role, SharedContent};

use crate::layout::LayoutInput;
pub use conversion::unique_id;
use incremental::{ConversionSettings, SettledPrefix, extend_conversion};

/// Whether tool calls of the conversation are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCallHandling {
    /// Send them, with their results.
    Keep,
    /// Send only the text around them.
    Strip,
}

/// Whether messages of the model from two exchanges may be merged into one, where the user message
/// between them is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeMerging {
    /// Consecutive messages of the model are merged.
    Join,
    /// They are not: the layout places each exchange by itself.
    Separate,
}

/// A message in the form a provider accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertedMessage {
    /// User or assistant; tool results are the user's.
    pub role: Role,
    /// The stored messages it was made from: several for the results of parallel calls.
    pub ids: Vec<MessageId>,
    /// Its content blocks in order, never empty.
    pub contents: Vec<SharedContent>,
    /// The position of its first stored message in the conversation.
    pub first: usize,
}

impl ConvertedMessage {
    /// Whether it holds anything but images. An image cannot show the model the text of a file.
    pub fn has_text(&self) -> bool {
        !self.contents.iter().all(|content| matches!(**content, Content::Image(..)))
    }
}

/// The converted conversation, and what had to be left out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvertedHistory {
    /// The messages in order, shared with earlier conversions.
    pub messages: Vec<Arc<ConvertedMessage>>,
    /// What cannot be sent, each with a reason.
    pub left_out: Vec<Omission>,
}

/// The settled prefix of the last conversion, and the settings it was made with.
#[derive(Default)]
pub struct ConversionCache(Mutex<Option<(ConversionSettings, SettledPrefix)>>);

/// Converts the messages of a snapshot.
pub fn convert_history(
    input: &LayoutInput<'_>,
    messages: &[AgentMessage],
    calls: ToolCallHandling,
    exchanges: ExchangeMerging,
) -> ConvertedHistory {
    let settings = ConversionSettings::new(input, calls, exchanges);
    // A panic elsewhere leaves a cache that is still valid.
    let mut past = input.render_cache.conversion_cache.0.lock().unwrap_or_else(PoisonError::into_inner);
    let before =
        past.take().filter(|(before, settled)| *before == settings && settled.is_prefix_of(messages));
    let (history, settled) =
        extend_conversion(input, messages, &settings, before.map(|(_, settled)| settled));
    *past = Some((settings, settled));
    history
}

#[cfg(test)]
mod tests;
