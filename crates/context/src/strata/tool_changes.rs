//! Changes of the tools that keep the cache: on models that take it, a system message adds or
//! removes a tool from there on, and the declared tools stay what they were as long as the beginning
//! of the prompt can be read from the cache.
//!
//! The message stands after the person's message or the results that the change became known with,
//! because that is the only place where the provider takes it.

use std::sync::Arc;

use hardpan_prompt::{
    AvailableTools, Block, Content, Hash, ItemKind, MessageId, Origin, Prompt, PromptMessage, Region, Role,
    Text, Tool, ToolChange, ToolChangeAction,
};

use super::state::{DeclaredTools, StrataState, ToolChangeSet};
use super::tail::last_sent_message;
use super::{CONTEXT_TOOL, Strata, context_tool};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::message_builder::MessageBuilder;
use crate::system;
use crate::texts::fill_template;

/// Declares the tools and adds the system prompt, which mentions them. A change since they were declared
/// is noted in `strata`; one that no stored message can carry is returned, and told again with the
/// next request.
pub fn declare_tools(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    history: &[Arc<ConvertedMessage>],
    prompt: &mut Prompt,
) -> Option<ToolChangeSet> {
    let wanted = input.snapshot.active_tools();
    if !input.target.takes_tool_changes() {
        (strata.declared_tools, strata.tool_changes) = (None, Vec::new());
        add_tools_and_system(input, wanted, prompt);
        return None;
    }
    let told = count_told(&strata.tool_changes, history, input);
    strata.tool_changes.truncate(told);
    if let Some(declared) = strata.declared_tools.take() {
        add_tools_and_system(input, &declared.tools, prompt);
        strata.declared_tools = Some(declared).filter(|declared| declared.prefix == prefix(prompt));
    }
    // Where the model or the system prompt is another, nothing can be read from the cache, and the
    // tools can be declared as they are.
    let Some(declared) = &strata.declared_tools else {
        strata.tool_changes.clear();
        add_tools_and_system(input, wanted, prompt);
        let declared = DeclaredTools { tools: wanted.to_vec(), prefix: prefix(prompt) };
        strata.declared_tools = Some(declared);
        return None;
    };
    let new = changes_to(input, &declared.tools, &strata.tool_changes, wanted)?;
    match last_sent_message(input, history) {
        None => Some(new),
        Some(last) => {
            strata.tool_changes.push(ToolChangeSet { after: last.clone(), ..new });
            None
        }
    }
}

fn add_tools_and_system(input: &LayoutInput<'_>, tools: &[Tool], prompt: &mut Prompt) {
    prompt.tools = input.blocks_of_tools(tools, Region::Base, Some(context_tool(input)));
    prompt.system = system::system_block(input, &Strata, tools, Region::Base).into_iter().collect();
}

/// Identifies the model and the system prompt.
fn prefix(prompt: &Prompt) -> Hash {
    let model = Hash::of(prompt.model.as_bytes());
    Hash::chain([model].into_iter().chain(prompt.system.iter().map(Block::hash)))
}

/// The changes that lead from the tools that the model knows to the `wanted` ones. `None`: they are
/// the same.
fn changes_to(
    input: &LayoutInput<'_>,
    declared: &[Tool],
    told: &[ToolChangeSet],
    wanted: &[Tool],
) -> Option<ToolChangeSet> {
    let is_others = |tool: &&Tool| *tool.name != *CONTEXT_TOOL;
    let mut known = AvailableTools::new(declared.iter().filter(is_others));
    told.iter().flat_map(|change| &change.actions).for_each(|action| {
        known.apply(action);
    });
    let is_wanted = |tool: &Tool| wanted.iter().any(|other| other.name == tool.name);
    let removed = known.iter().filter(|tool| !is_wanted(tool));
    let mut actions: Vec<ToolChangeAction> =
        removed.map(|tool| ToolChangeAction::Remove(tool.name.clone())).collect();
    let mut added: Vec<&Tool> = Vec::new();
    for tool in wanted.iter().filter(is_others) {
        match known.definition(&tool.name).filter(|definition| has_same_definition(definition, tool)) {
            Some(_) if known.contains(&tool.name) => {}
            Some(_) => actions.push(ToolChangeAction::Restore(tool.name.clone())),
            None => {
                actions.push(ToolChangeAction::Define(tool.clone()));
                added.push(tool);
            }
        }
    }
    if actions.is_empty() {
        return None;
    }
    let defined = told.iter().flat_map(|change| &change.actions).filter_map(|action| match action {
        ToolChangeAction::Define(tool) => Some(tool),
        ToolChangeAction::Restore(_) | ToolChangeAction::Remove(_) => None,
    });
    let before: Vec<&Tool> = declared.iter().chain(defined).collect();
    let guidelines = new_guidelines(input, &before, &added);
    Some(ToolChangeSet { after: MessageId::from(""), actions, guidelines })
}

/// Whether the model reads the same about both tools. The rest is in the system prompt.
fn has_same_definition(one: &Tool, other: &Tool) -> bool {
    (&one.description, &one.parameters) == (&other.description, &other.parameters)
}

/// The guidelines of `added` tools that the model has not read, in the words of the system prompt.
fn new_guidelines(input: &LayoutInput<'_>, before: &[&Tool], added: &[&Tool]) -> Option<Text> {
    let system = &input.snapshot.system;
    if system.whole.as_ref().is_some_and(|whole| !whole.trim().is_empty()) {
        return None; // it replaces the guidelines of all tools
    }
    let mut lines: Vec<String> = Vec::new();
    for guideline in added.iter().flat_map(|tool| &tool.guidelines) {
        let line = format!("- {guideline}");
        if !before.iter().any(|tool| tool.guidelines.contains(guideline)) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let template = &input.texts.phrases.system.guidelines;
    (!lines.is_empty()).then(|| Text::new(fill_template(template, &[("guidelines", &lines.join("\n"))])))
}

/// How many of the changes have their message in this request, each after the one before.
fn count_told(
    changes: &[ToolChangeSet],
    history: &[Arc<ConvertedMessage>],
    input: &LayoutInput<'_>,
) -> usize {
    if changes.is_empty() {
        return 0;
    }
    let mut walk = ToolChangeWalk::new(input, changes);
    history.iter().for_each(|converted| walk.visit(converted));
    walk.visit_prompt();
    walk.met
}

/// A walk along the conversation that meets each change at its message.
pub struct ToolChangeWalk<'a> {
    input: &'a LayoutInput<'a>,
    changes: &'a [ToolChangeSet],
    /// How many of the changes have been met, in order.
    met: usize,
    /// How many have been sent: a system message must be followed by the model, so that a change may
    /// have to wait.
    sent: usize,
}

impl<'a> ToolChangeWalk<'a> {
    /// A walk that begins before the conversation.
    pub fn new(input: &'a LayoutInput<'a>, changes: &'a [ToolChangeSet]) -> Self {
        ToolChangeWalk { input, changes, met: 0, sent: 0 }
    }

    /// Adds the changes that come before the next message of the conversation, and goes on to it.
    pub fn push_before(&mut self, next: &ConvertedMessage, builder: &mut MessageBuilder) {
        if next.role == Role::Assistant {
            let waiting = &self.changes[self.sent..self.met];
            builder.0.extend(waiting.iter().map(|change| message(self.input, change, Region::Log)));
            self.sent = self.met;
        }
        self.visit(next);
    }

    /// Adds the changes that come last. They are not cached yet: if the answer is lost, the next
    /// message of the person stands before them.
    pub fn push_rest(mut self, unstored: Option<&ToolChangeSet>, prompt: &mut Prompt) {
        self.visit_prompt();
        let last = self.changes[self.sent..self.met].iter().chain(unstored);
        prompt.messages.extend(last.map(|change| message(self.input, change, Region::Tail)));
    }

    fn visit(&mut self, next: &ConvertedMessage) {
        if next.role == Role::User {
            next.ids.iter().for_each(|id| self.visit_id(id));
        }
    }

    fn visit_prompt(&mut self) {
        self.input.snapshot.prompt.iter().for_each(|prompt| self.visit_id(&prompt.id));
    }

    fn visit_id(&mut self, id: &MessageId) {
        self.met += self.changes[self.met..].iter().take_while(|change| change.after == *id).count();
    }
}

fn message(input: &LayoutInput<'_>, change: &ToolChangeSet, region: Region) -> PromptMessage {
    let actions = change.actions.iter().map(|action| {
        let action = match action {
            ToolChangeAction::Define(tool) => ToolChangeAction::Define(input.form_tool(tool.clone())),
            other => other.clone(),
        };
        Block::new(region, Content::ToolChange(ToolChange::new(action)))
    });
    let origin = || Origin::rule(ItemKind::System, "tool guidelines");
    let guidelines = change.guidelines.iter().map(|text| Block::text(region, text.clone(), origin()));
    PromptMessage::new(Role::System, actions.chain(guidelines).collect())
}
