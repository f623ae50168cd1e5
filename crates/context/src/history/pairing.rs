//! Which result answers which call.

use std::collections::BTreeMap;

use hardpan_prompt::{AgentMessage, Body, Part, State, ToolCall};

/// A call's answer: stored with the call, or in a message of its own.
pub enum Answer<'a> {
    /// Stored with the call.
    Stored(&'a ToolCall),
    /// In a message of its own.
    Message(&'a AgentMessage),
}

impl<'a> Answer<'a> {
    /// The message that holds it, if one does.
    pub fn message(&self) -> Option<&'a AgentMessage> {
        match self {
            Answer::Stored(_) => None,
            Answer::Message(message) => Some(message),
        }
    }

    /// What it says.
    pub fn parts(&self) -> &'a [Part] {
        match self {
            Answer::Stored(call) => call.result.as_ref().map_or(&[], |result| &result.content),
            Answer::Message(message) => match &*message.body {
                Body::ToolResult { content, .. } => content,
                _ => &[],
            },
        }
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        match self {
            Answer::Stored(call) => call.result.as_ref().is_some_and(|result| result.is_error),
            Answer::Message(message) => matches!(*message.body, Body::ToolResult { is_error: true, .. }),
        }
    }
}

/// The result messages of a conversation by the id they answer, and who has been answered.
pub struct Pairing<'a> {
    messages: &'a [AgentMessage],
    start: usize,
    /// By call id: the positions of result messages, and of messages that make a call of this id.
    results: BTreeMap<&'a str, Vec<usize>>,
    makers: BTreeMap<&'a str, Vec<usize>>,
    taken: Vec<bool>,
}

impl<'a> Pairing<'a> {
    /// The calls and results from a position on: what comes before it has nothing to do with them.
    pub fn of(messages: &'a [AgentMessage], start: usize) -> Self {
        let mut results: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut makers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, message) in messages.iter().enumerate().skip(start) {
            match &*message.body {
                Body::ToolResult { call_id, .. } => results.entry(call_id).or_default().push(index),
                Body::Assistant { content, .. } => {
                    for part in content {
                        if let Part::ToolCall(call) = part {
                            makers.entry(&call.id).or_default().push(index);
                        }
                    }
                }
                _ => {}
            }
        }
        Pairing { messages, start, results, makers, taken: vec![false; messages.len()] }
    }

    /// The answer to a call made by message `index`: the one stored with it, else the first result message after it that
    /// answers nobody else, and comes before another message that makes a call of the same id. A result that came only
    /// after the model had spoken again is too late: it was asked without that result, and what was sent stays sent.
    pub fn answer<'b>(&mut self, index: usize, call: &'b ToolCall) -> Option<Answer<'b>>
    where
        'a: 'b,
    {
        let next_maker =
            self.makers.get(&*call.id).and_then(|all| all.iter().find(|maker| **maker > index)).copied();
        let end = next_maker.unwrap_or(self.messages.len()).min(self.next_answer(index));
        let candidates = self.results.get(&*call.id).into_iter().flatten().copied();
        let found = candidates.filter(|at| *at > index && *at < end).find(|at| !self.taken[*at]);
        if let Some(at) = found {
            self.taken[at] = true;
        }
        if call.result.is_some() {
            return Some(Answer::Stored(call));
        }
        let message = &self.messages[found?];
        matches!(message.state, State::Whole | State::TlDr).then_some(Answer::Message(message))
    }

    /// Where the model speaks again after message `index`. Messages of the model right after it belong to it: calls made
    /// side by side may have been stored one by one.
    fn next_answer(&self, index: usize) -> usize {
        let is_model = |at: &usize| matches!(*self.messages[*at].body, Body::Assistant { .. });
        let after = (index + 1..self.messages.len()).skip_while(is_model);
        after.into_iter().find(is_model).unwrap_or(self.messages.len())
    }

    /// Result messages that were to be sent but answer nobody.
    pub fn orphans(&self) -> Vec<usize> {
        let unanswered = |(index, message): (usize, &AgentMessage)| {
            let sent = matches!(message.state, State::Whole | State::TlDr);
            let is_result = matches!(*message.body, Body::ToolResult { .. });
            (sent && is_result && !self.taken[index]).then_some(index)
        };
        self.messages.iter().enumerate().skip(self.start).filter_map(unanswered).collect()
    }
}
