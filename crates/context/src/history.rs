//! From the conversation as it is kept to messages that a provider accepts, whatever happened to it.
//!
//! Every layout uses this one conversion. It maps each kind of message to a role, honours states, joins results to their
//! calls, makes ids valid and unique, and leaves out what cannot be sent: each with a reason. What comes before a message
//! alone decides its bytes, so that a conversation that grows keeps its prefix.

mod conversion; // one message after the other
mod pairing; // which result answers which call
mod settled; // what need not be converted again

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::{AgentMessage, Content, Held, LeftOut, MessageId, Role, Tier};

use crate::layout::Input;
pub use conversion::unique_id;
use settled::{Settled, Terms, go_on};

/// What to do with tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Send them, with their results.
    Keep,
    /// Send only the text around them.
    Strip,
}

/// Whether what the model said in two exchanges may become one message, where the words between them are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchanges {
    /// It may.
    Joined,
    /// It may not: each exchange is placed by itself.
    Apart,
}

/// A message on its way to the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Who speaks.
    pub role: Role,
    /// The messages it was made from: several for the results of parallel calls.
    pub ids: Vec<MessageId>,
    /// What is said.
    pub contents: Vec<Held>,
    /// The position of its first message in the conversation.
    pub first: usize,
}

impl Said {
    /// Whether it holds more than images, which can tell nobody what a text says.
    pub fn has_text(&self) -> bool {
        !self.contents.iter().all(|content| matches!(**content, Content::Image(..)))
    }
}

/// The conversation, and what had to be left out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The messages, shared with other requests.
    pub said: Vec<Arc<Said>>,
    /// What cannot be sent.
    pub left_out: Vec<LeftOut>,
}

/// What the last conversion had settled.
#[derive(Default)]
pub struct Past(Mutex<Option<(Terms, Settled)>>);

/// Converts the messages of a snapshot.
pub fn spoken(input: &Input<'_>, messages: &[AgentMessage], calls: Calls, exchanges: Exchanges) -> Spoken {
    let terms = Terms::of(input, calls, exchanges);
    // A panic elsewhere leaves a past that is still true.
    let mut past = input.memo.history.0.lock().unwrap_or_else(PoisonError::into_inner);
    let before = past.take().filter(|(before, settled)| *before == terms && settled.begins(messages));
    let (spoken, settled) = go_on(input, messages, &terms, before.map(|(_, settled)| settled));
    *past = Some((terms, settled));
    spoken
}

/// Whether an exchange (a user's message up to the next one) begins at one of these positions.
fn begins_exchange(messages: &[AgentMessage], mut range: RangeInclusive<usize>) -> bool {
    range.any(|at| messages[at].is_user() && !messages[at - 1].is_user())
}

/// The tier of each message: an exchange moves as a whole, at the pace of its least stable message.
pub fn exchange_tiers(messages: &[AgentMessage]) -> Vec<Tier> {
    let mut tiers = vec![Tier::Active; messages.len()];
    let mut start = 0;
    for index in 1..=messages.len() {
        if index == messages.len() || begins_exchange(messages, index..=index) {
            let tier = messages[start..index].iter().map(|m| m.tier.unwrap_or(Tier::Active)).max();
            tiers[start..index].fill(tier.unwrap_or(Tier::Active));
            start = index;
        }
    }
    tiers
}

#[cfg(test)]
mod tests;
