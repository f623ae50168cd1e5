//! [`CallPairing`]: which tool result answers which call.

use std::collections::BTreeMap;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, MessageState, ToolCall};

/// The result of a call.
pub enum CallAnswer<'a> {
    /// The result is stored with the call.
    Stored(&'a ToolCall),
    /// The result is a message of its own.
    Message(&'a AgentMessage),
}

impl<'a> CallAnswer<'a> {
    /// The result message; none if the result is stored with the call.
    pub fn message(&self) -> Option<&'a AgentMessage> {
        match self {
            CallAnswer::Stored(_) => None,
            CallAnswer::Message(message) => Some(message),
        }
    }

    /// The content of the result: text and images.
    pub fn parts(&self) -> &'a [MessagePart] {
        match self {
            CallAnswer::Stored(call) => call.result.as_ref().map_or(&[], |result| &result.content),
            CallAnswer::Message(message) => match &*message.body {
                MessageBody::ToolResult { content, .. } => content,
                _ => &[],
            },
        }
    }

    /// Whether the tool reported a failure.
    pub fn is_error(&self) -> bool {
        match self {
            CallAnswer::Stored(call) => call.result.as_ref().is_some_and(|result| result.is_error),
            CallAnswer::Message(message) => {
                matches!(*message.body, MessageBody::ToolResult { is_error: true, .. })
            }
        }
    }
}

/// The calls and result messages of a conversation by call id, and which results are claimed.
pub struct CallPairing<'a> {
    messages: &'a [AgentMessage],
    start: usize,
    /// By call id: the positions of result messages, and of messages that make a call of this id.
    results: BTreeMap<&'a str, Vec<usize>>,
    callers: BTreeMap<&'a str, Vec<usize>>,
    claimed: Vec<bool>,
}

impl<'a> CallPairing<'a> {
    /// Indexes the messages from `start` on. Calls before `start` must be settled already.
    pub fn new(messages: &'a [AgentMessage], start: usize) -> Self {
        let mut results: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut callers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, message) in messages.iter().enumerate().skip(start) {
            match &*message.body {
                MessageBody::ToolResult { call_id, .. } => results.entry(call_id).or_default().push(index),
                MessageBody::Assistant { content, .. } => {
                    for part in content {
                        if let MessagePart::ToolCall(call) = part {
                            callers.entry(&call.id).or_default().push(index);
                        }
                    }
                }
                _ => {}
            }
        }
        CallPairing { messages, start, results, callers, claimed: vec![false; messages.len()] }
    }

    /// The answer to a call made by message `index`: the result stored with it, else the first
    /// unclaimed result message before another message makes a call of the same id. A result that
    /// came after the model had spoken again is too late: the request that made the model speak was
    /// sent without it, and a sent prefix must not change.
    pub fn find_answer<'b>(&mut self, index: usize, call: &'b ToolCall) -> Option<CallAnswer<'b>>
    where
        'a: 'b,
    {
        let next_caller =
            self.callers.get(&*call.id).and_then(|all| all.iter().find(|maker| **maker > index)).copied();
        let end = next_caller.unwrap_or(self.messages.len()).min(self.next_model_message(index));
        let candidates = self.results.get(&*call.id).into_iter().flatten().copied();
        let found = candidates.filter(|at| *at > index && *at < end).find(|at| !self.claimed[*at]);
        if let Some(at) = found {
            self.claimed[at] = true;
        }
        if call.result.is_some() {
            return Some(CallAnswer::Stored(call));
        }
        let message = &self.messages[found?];
        matches!(message.state, MessageState::Whole | MessageState::TlDr)
            .then_some(CallAnswer::Message(message))
    }

    /// The position where the model speaks again after message `index`. Messages of the model right
    /// after it belong to it: parallel calls may have been stored in a message each.
    fn next_model_message(&self, index: usize) -> usize {
        let is_model = |at: &usize| matches!(*self.messages[*at].body, MessageBody::Assistant { .. });
        let after = (index + 1..self.messages.len()).skip_while(is_model);
        after.into_iter().find(is_model).unwrap_or(self.messages.len())
    }

    /// The positions of result messages that should be sent but answer no call.
    pub fn orphans(&self) -> Vec<usize> {
        let unanswered = |(index, message): (usize, &AgentMessage)| {
            let sent = matches!(message.state, MessageState::Whole | MessageState::TlDr);
            let is_result = matches!(*message.body, MessageBody::ToolResult { .. });
            (sent && is_result && !self.claimed[index]).then_some(index)
        };
        self.messages.iter().enumerate().skip(self.start).filter_map(unanswered).collect()
    }
}
