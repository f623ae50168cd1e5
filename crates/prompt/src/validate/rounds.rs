//! Rules about the conversation as a whole: who begins, who ends, and that every call meets its result.

use std::collections::BTreeSet;

use crate::{Block, Content, Prompt, Role, Thinking};

use super::{At, Protocol, Rules, Stance, Violation};

/// Who begins, what answers what, what reasoning must be there, who ends.
pub(super) fn check(prompt: &Prompt, rules: &Rules, found: &mut Vec<Violation>) {
    let said = said(prompt, rules.protocol);
    let anthropic = rules.protocol == Protocol::Anthropic;
    if anthropic && said.first().is_some_and(|first| first.role == Role::Assistant) {
        found.push(Violation::FirstNotUser);
    }
    check_answers(&said, rules.protocol, found);
    if anthropic {
        check_reasoning(&said, prompt.thinking, found);
    }
    // Anthropic takes no prefill while the model thinks, whatever the model.
    let refused = rules.prefill == Stance::Refuses || (anthropic && prompt.thinking != Thinking::Off);
    if refused && prompt.turns.last().is_some_and(|last| last.role == Role::Assistant) {
        found.push(Violation::Prefill { at: At::Message(prompt.turns.len() - 1) });
    }
}

/// A message as the server sees it.
struct Said<'a> {
    role: Role,
    blocks: Vec<(At, &'a Block)>,
}

/// The messages as the server sees them. Anthropic merges neighbours of one role. On OpenAI's wire the results of a
/// user message are tool messages that go before the rest of it.
fn said(prompt: &Prompt, protocol: Protocol) -> Vec<Said<'_>> {
    let mut said: Vec<Said<'_>> = Vec::new();
    for (message, turn) in prompt.turns.iter().enumerate() {
        let blocks = turn.blocks.iter().enumerate().map(|(block, b)| (At::Block { message, block }, b));
        match (protocol, said.last_mut()) {
            (Protocol::Anthropic, Some(last)) if last.role == turn.role => last.blocks.extend(blocks),
            (Protocol::Anthropic, _) => said.push(Said { role: turn.role, blocks: blocks.collect() }),
            (Protocol::OpenAi, _) => {
                let is_result = |(_, block): &(At, &Block)| matches!(*block.content, Content::Result(_));
                let (results, rest): (Vec<_>, Vec<_>) = blocks.partition(is_result);
                said.push(Said { role: turn.role, blocks: [results, rest].concat() });
            }
        }
    }
    said
}

fn check_answers(said: &[Said<'_>], protocol: Protocol, found: &mut Vec<Violation>) {
    let mut ids = BTreeSet::new();
    let mut round = Round::new(protocol);
    for message in said {
        if message.role == Role::Assistant {
            round.close(found);
            round = Round::new(protocol);
        }
        for (at, block) in &message.blocks {
            match (message.role, &*block.content) {
                (Role::Assistant, Content::Call(call)) => {
                    if !ids.insert(&*call.id) {
                        found.push(Violation::CallTwice { at: *at, id: call.id.to_string() });
                    }
                    round.call(*at, &call.id);
                }
                (Role::User, Content::Result(result)) => round.result(*at, &result.call_id, found),
                (Role::User, _) => round.close(found),
                (Role::Assistant, _) => {}
            }
        }
    }
    round.close(found);
}

/// The calls of one assistant message, and what became of them.
struct Round<'a> {
    protocol: Protocol,
    /// Calls that can still be answered.
    waiting: Vec<(At, &'a str)>,
    /// Calls that were answered.
    answered: Vec<&'a str>,
    /// Calls that something else came in between; they have been reported.
    late: Vec<&'a str>,
}

impl<'a> Round<'a> {
    fn new(protocol: Protocol) -> Self {
        Round { protocol, waiting: Vec::new(), answered: Vec::new(), late: Vec::new() }
    }

    fn call(&mut self, at: At, id: &'a str) {
        if self.waiting.iter().all(|(_, other)| *other != id) {
            self.waiting.push((at, id));
        }
    }

    fn result(&mut self, at: At, id: &'a str, found: &mut Vec<Violation>) {
        let named = id.to_string();
        if let Some(index) = self.waiting.iter().position(|(_, other)| *other == id) {
            self.waiting.remove(index);
            self.answered.push(id);
        } else if self.answered.contains(&id) {
            found.push(Violation::ResultTwice { at, id: named });
        } else if let Some(index) = self.late.iter().position(|other| *other == id) {
            self.answered.push(self.late.remove(index));
        } else {
            found.push(match self.protocol {
                Protocol::Anthropic => Violation::Orphan { at, id: named },
                Protocol::OpenAi => Violation::StrayToolMessage { at, id: named },
            });
        }
    }

    /// Something other than a result was said, or nothing more: what still waits is not answered.
    fn close(&mut self, found: &mut Vec<Violation>) {
        let waiting = std::mem::take(&mut self.waiting);
        if let Some((at, _)) = waiting.first().copied() {
            let ids = waiting.iter().map(|(_, id)| id.to_string()).collect();
            found.push(match self.protocol {
                Protocol::Anthropic => Violation::Unanswered { at, ids },
                Protocol::OpenAi => Violation::NoToolMessage { at, ids },
            });
        }
        match self.protocol {
            Protocol::Anthropic => self.late.extend(waiting.iter().map(|(_, id)| id)),
            // A tool message after this one is a stray, whatever it names.
            Protocol::OpenAi => self.answered.clear(),
        }
    }
}

fn check_reasoning(said: &[Said<'_>], thinking: Thinking, found: &mut Vec<Violation>) {
    let is_reasoning = |block: &Block| matches!(*block.content, Content::Reasoning(_));
    for message in said.iter().filter(|message| message.role == Role::Assistant) {
        if let Some((at, _)) = message.blocks.last().filter(|(_, block)| is_reasoning(block)) {
            found.push(Violation::EndsInReasoning { at: *at });
        }
    }
    let [.., made, last] = said else { return };
    let is_result = |(_, block): &(At, &Block)| matches!(*block.content, Content::Result(_));
    let in_a_round = last.role == Role::User && last.blocks.iter().any(is_result);
    if thinking == Thinking::Off || !in_a_round {
        return;
    }
    if let Some((at, _)) = made.blocks.first().filter(|(_, block)| !is_reasoning(block)) {
        found.push(Violation::ReasoningMissing { at: *at });
    }
}
