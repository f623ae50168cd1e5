//! Rules about the conversation as a whole: who begins, who ends, and that every call meets its
//! result.

use rustc_hash::FxHashSet;

use crate::{Block, Content, Prompt, PromptMessage, Role};

use super::{Acceptance, Location, MessageForm, ValidationRules, Violation};

/// Checks who begins, which result answers which call, where reasoning is required, and who ends.
pub(super) fn check_conversation(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let anthropic = rules.form == MessageForm::Blocks;
    let mut speakers = prompt.messages.iter().enumerate().filter(|(_, it)| it.role != Role::System);
    if anthropic && speakers.clone().next().is_some_and(|(_, first)| first.role == Role::Assistant) {
        found.push(Violation::FirstNotUser);
    }
    match rules.form {
        MessageForm::Blocks | MessageForm::ToolMessages => check_answers(prompt, rules.form, found),
        MessageForm::Parts => check_steps(prompt, found),
        MessageForm::Items => check_items(prompt, found),
    }
    if anthropic {
        check_reasoning(prompt, found);
    }
    // Anthropic takes no prefill while the model thinks, whatever the model.
    let refused = rules.prefill == Acceptance::Rejected || (anthropic && prompt.thinking.is_on());
    if let Some((last, _)) = speakers.next_back().filter(|(_, last)| refused && last.role == Role::Assistant)
    {
        found.push(Violation::Prefill { at: Location::Message(last) });
    }
}

/// A message as the server sees it: one or more neighbours of the same role.
#[derive(Clone, Copy)]
struct MergedMessage<'a> {
    role: Role,
    /// Index of its first message in the prompt.
    first: usize,
    turns: &'a [PromptMessage],
    form: MessageForm,
}

impl<'a> MergedMessage<'a> {
    /// Its blocks. For OpenAI the results of a user message are tool messages that go before
    /// the rest of it.
    fn blocks(self) -> impl Iterator<Item = (Location, &'a Block)> {
        let is_result = |block: &Block| matches!(*block.content, Content::Result(_));
        let apart = self.form == MessageForm::ToolMessages;
        let all = move || {
            self.turns.iter().zip(self.first..).flat_map(|(turn, message)| {
                turn.blocks.iter().enumerate().map(move |(block, b)| (Location::Block { message, block }, b))
            })
        };
        let first = all().filter(move |(_, block)| !apart || is_result(block));
        first.chain(all().filter(move |(_, block)| apart && !is_result(block)))
    }
}

/// The messages as the server sees them. Anthropic merges neighbours of the same role.
fn merged_messages(prompt: &Prompt, form: MessageForm) -> impl Iterator<Item = MergedMessage<'_>> {
    let is_one = move |a: &PromptMessage, b: &PromptMessage| form == MessageForm::Blocks && a.role == b.role;
    prompt.messages.chunk_by(is_one).scan(0, move |next, turns| {
        let first = std::mem::replace(next, *next + turns.len());
        Some(MergedMessage { role: turns[0].role, first, turns, form })
    })
}

fn check_answers(prompt: &Prompt, form: MessageForm, found: &mut Vec<Violation>) {
    let mut ids = FxHashSet::default();
    let mut round = ToolRound::new(form);
    for message in merged_messages(prompt, form) {
        if message.role == Role::Assistant {
            round.close(found);
            round = ToolRound::new(form);
        }
        for (at, block) in message.blocks() {
            match (message.role, &*block.content) {
                (Role::Assistant, Content::Call(call)) => {
                    if !ids.insert(&*call.id) {
                        found.push(Violation::CallTwice { at, id: call.id.to_string() });
                    }
                    round.call(at, &call.id);
                }
                (Role::User, Content::Result(result)) => round.result(at, &result.call_id, found),
                (Role::User, _) => round.close(found),
                (Role::Assistant | Role::System, _) => {}
            }
        }
    }
    round.close(found);
}

/// Every call has one output, somewhere after it; every output has its call before it.
fn check_items(prompt: &Prompt, found: &mut Vec<Violation>) {
    let mut waiting: Vec<(Location, &str)> = Vec::new();
    let (mut called, mut answered) = (FxHashSet::default(), FxHashSet::default());
    for (at, block) in super::located_blocks(prompt) {
        match &*block.content {
            Content::Call(call) if !called.insert(&*call.id) => {
                found.push(Violation::CallTwice { at, id: call.id.to_string() });
            }
            Content::Call(call) => waiting.push((at, &call.id)),
            Content::Result(result) if !called.contains(&*result.call_id) => {
                found.push(Violation::NoToolCall { at, id: result.call_id.to_string() });
            }
            Content::Result(result) if !answered.insert(&*result.call_id) => {
                found.push(Violation::ResultTwice { at, id: result.call_id.to_string() });
            }
            Content::Result(result) => waiting.retain(|(_, id)| *id != &*result.call_id),
            Content::Text(_)
            | Content::Image(..)
            | Content::Reasoning(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => {}
        }
    }
    found.extend(waiting.into_iter().map(|(at, id)| Violation::NoToolOutput { at, id: id.to_owned() }));
}

/// The calls of one assistant message, and whether results answered them.
struct ToolRound<'a> {
    form: MessageForm,
    /// Calls that can still be answered.
    waiting: Vec<(Location, &'a str)>,
    /// Calls that a result has answered.
    answered: Vec<&'a str>,
    /// Calls whose result comes too late, after something else; they have been reported.
    late: Vec<&'a str>,
}

impl<'a> ToolRound<'a> {
    fn new(form: MessageForm) -> Self {
        ToolRound { form, waiting: Vec::new(), answered: Vec::new(), late: Vec::new() }
    }

    fn call(&mut self, at: Location, id: &'a str) {
        if self.waiting.iter().all(|(_, other)| *other != id) {
            self.waiting.push((at, id));
        }
    }

    fn result(&mut self, at: Location, id: &'a str, found: &mut Vec<Violation>) {
        if let Some(index) = self.waiting.iter().position(|(_, other)| *other == id) {
            self.waiting.remove(index);
            self.answered.push(id);
        } else if self.answered.contains(&id) {
            found.push(Violation::ResultTwice { at, id: id.to_string() });
        } else if let Some(index) = self.late.iter().position(|other| *other == id) {
            self.answered.push(self.late.remove(index));
        } else {
            found.push(match self.form {
                MessageForm::Blocks | MessageForm::Parts => Violation::Orphan { at, id: id.to_string() },
                MessageForm::ToolMessages | MessageForm::Items => {
                    Violation::StrayToolMessage { at, id: id.to_string() }
                }
            });
        }
    }

    /// Something other than a result follows, or nothing at all: the waiting calls stay unanswered.
    fn close(&mut self, found: &mut Vec<Violation>) {
        let waiting = std::mem::take(&mut self.waiting);
        if let Some((at, _)) = waiting.first().copied() {
            let ids = waiting.iter().map(|(_, id)| id.to_string()).collect();
            found.push(match self.form {
                MessageForm::Blocks | MessageForm::Parts => Violation::Unanswered { at, ids },
                MessageForm::ToolMessages | MessageForm::Items => Violation::NoToolMessage { at, ids },
            });
        }
        match self.form {
            MessageForm::Blocks | MessageForm::Parts => self.late.extend(waiting.iter().map(|(_, id)| id)),
            // A tool message after this one is a stray, whatever it names.
            MessageForm::ToolMessages | MessageForm::Items => self.answered.clear(),
        }
    }
}

/// Gemini: a message with calls comes after the user's, and the next one answers all of its calls,
/// each once.
fn check_steps(prompt: &Prompt, found: &mut Vec<Violation>) {
    let mut ids = FxHashSet::default();
    let mut open: Vec<&str> = Vec::new();
    let mut made_at = Location::Message(0);
    let mut previous = None;
    for (index, message) in prompt.messages.iter().enumerate() {
        let at = Location::Message(index);
        let mut results: Vec<&str> = Vec::new();
        let mut calls: Vec<&str> = Vec::new();
        for (block, content) in message.blocks.iter().enumerate() {
            match &*content.content {
                Content::Call(call) => {
                    if !ids.insert(&*call.id) {
                        let at = Location::Block { message: index, block };
                        found.push(Violation::CallTwice { at, id: call.id.to_string() });
                    }
                    calls.push(&call.id);
                }
                Content::Result(result) => results.push(&result.call_id),
                Content::Text(_)
                | Content::Image(..)
                | Content::Reasoning(_)
                | Content::ToolChange(_)
                | Content::Provider(_) => {}
            }
        }
        let (expected, answered) = (sorted(&open), sorted(&results));
        if expected != answered {
            found.push(Violation::ResponseCount { at: if open.is_empty() { at } else { made_at } });
        }
        if !calls.is_empty() && previous != Some(Role::User) {
            found.push(Violation::CallNotAfterUser { at });
        }
        (open, made_at, previous) = (calls, at, Some(message.role));
    }
    if !open.is_empty() {
        found.push(Violation::ResponseCount { at: made_at });
    }
}

fn sorted<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids
}

fn check_reasoning(prompt: &Prompt, found: &mut Vec<Violation>) {
    let is_reasoning = |block: &Block| matches!(*block.content, Content::Reasoning(_));
    let (mut made, mut last) = (None, None);
    for message in merged_messages(prompt, MessageForm::Blocks).filter(|it| it.role != Role::System) {
        if message.role == Role::Assistant {
            let blocks = message.turns.iter().enumerate().rev();
            let end =
                blocks.flat_map(|(turn, it)| it.blocks.last().map(|block| (turn, it.blocks.len(), block)));
            if let Some((turn, blocks, _)) = end.take(1).find(|(.., block)| is_reasoning(block)) {
                let at = Location::Block { message: message.first + turn, block: blocks - 1 };
                found.push(Violation::EndsInReasoning { at });
            }
        }
        (made, last) = (last, Some(message));
    }
    let (Some(made), Some(last)) = (made, last) else { return };
    let is_result = |(_, block): (Location, &Block)| matches!(*block.content, Content::Result(_));
    let in_a_round = last.role == Role::User && last.blocks().any(is_result);
    if prompt.thinking.budget().is_none() || !in_a_round {
        return;
    }
    if let Some((at, _)) = made.blocks().next().filter(|(_, block)| !is_reasoning(block)) {
        found.push(Violation::ReasoningMissing { at });
    }
}
