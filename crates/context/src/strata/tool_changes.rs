//! Changes of the tools that keep the cache: the declared tools stay what they were as long as the
//! beginning of the prompt can be read from the cache ([`crate::declared_tools`]). On models that take
//! it, a system message adds or removes a tool from there on; on others that waits for a fold.
//!
//! A tool that is defined keeps its definition until a fold on all models: each new one would stay in all
//! later requests, and a server can have another one for every request ([`server_limits`](super::server_limits)
//! bounds what else servers can change).
//!
//! The message stands after the person's message or the results that the change became known with,
//! because that is the only place where the provider takes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{
    AvailableTools, Block, Content, ItemKind, MessageId, Origin, Prompt, PromptMessage, PromptTokens, Region,
    Role, Text, Tool, ToolChange, ToolChangeAction,
};

use super::server_limits::ServerLimits;
use super::state::{StrataState, ToolChangeSet};
use super::tail::last_sent_message;
use super::{CONTEXT_TOOL, Strata, context_tool};
use crate::declared_tools::{PromptHead, ToolPlace};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::message_builder::MessageBuilder;
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
    let before = strata.declared_tools.clone();
    let own = Some(context_tool(input));
    let place = ToolPlace { layout: &Strata, region: Region::Base, own, beside: &[] };
    let PromptHead { tools, system } = place.begin_prompt(input, &mut strata.declared_tools);
    prompt.tools = tools;
    prompt.system.extend((!system.is_empty()).then(|| Block::new(Region::Base, Content::Text(system))));
    let told = match &strata.declared_tools {
        Some(_) if strata.declared_tools == before => count_told(&strata.tool_changes, history, input),
        _ => 0,
    };
    strata.tool_changes.truncate(told);
    let declared = strata.declared_tools.as_ref().filter(|_| input.target.takes_tool_changes())?;
    let wanted = input.snapshot.active_tools();
    let new = changes_to(input, &declared.tools, &strata.tool_changes, wanted)?;
    match last_sent_message(input, history) {
        None => Some(new),
        Some(last) => {
            strata.tool_changes.push(ToolChangeSet { after: last.clone(), ..new });
            None
        }
    }
}

/// Whether the requests declare other tools than the snapshot has.
pub fn has_other_tools(input: &LayoutInput<'_>, strata: &StrataState) -> bool {
    let wanted = input.snapshot.active_tools();
    strata.declared_tools.as_ref().is_some_and(|declared| *declared.tools != *wanted)
}

/// What declares or changes tools and goes with a fold that declares the tools as they are, as blocks of
/// the prompt with their tokens: all but one definition of each tool that the snapshot has.
pub fn superfluous_declarations(
    input: &LayoutInput<'_>,
    prompt: &Prompt,
    measured: &PromptTokens,
) -> Vec<(usize, usize)> {
    let wanted = input.snapshot.active_tools();
    let is_wanted = |name: &str| name == CONTEXT_TOOL || wanted.iter().any(|wanted| *wanted.name == *name);
    let declared = prompt.tools.iter().enumerate().map(|(block, tool)| (block, Some(&tool.tool)));
    let changes = prompt.blocks().zip(prompt.tools.len()..).filter_map(|(block, at)| match &*block.content {
        Content::ToolChange(change) => Some((at, definition_of(&change.action))),
        _ => None,
    });
    let mut defined: BTreeSet<&str> = BTreeSet::new();
    let superfluous = declared
        .chain(changes)
        .filter(|(_, tool)| !tool.is_some_and(|tool| is_wanted(&tool.name) && defined.insert(&tool.name)));
    // Only a fold before all messages takes a change of tools along.
    let place = |block: usize| if block < prompt.tools.len() { block } else { 0 };
    superfluous.map(|(block, _)| (place(block), measured.tokens(block))).collect()
}

/// The changes that lead from the tools that the model knows to the `wanted` ones, as far as they do not
/// wait for a fold. `None`: there are none.
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
    let mut limits = ServerLimits::new(declared, told);
    let is_wanted = |tool: &Tool| wanted.iter().any(|other| other.name == tool.name);
    let removed = known.iter().filter(|tool| !is_wanted(tool) && limits.may_remove(&tool.name));
    let mut actions: Vec<ToolChangeAction> =
        removed.map(|tool| ToolChangeAction::Remove(tool.name.clone())).collect();
    let mut added: Vec<&Tool> = Vec::new();
    for tool in wanted.iter().filter(is_others) {
        match known.definition(&tool.name) {
            Some(_) if known.contains(&tool.name) => {}
            Some(_) => actions.push(ToolChangeAction::Restore(tool.name.clone())),
            None if limits.take_addition(&tool.name) => {
                actions.push(ToolChangeAction::Define(tool.clone()));
                added.push(tool);
            }
            None => {}
        }
    }
    if actions.is_empty() {
        return None;
    }
    let defined = told.iter().flat_map(|change| &change.actions).filter_map(definition_of);
    let before: Vec<&Tool> = declared.iter().chain(defined).collect();
    let guidelines = new_guidelines(input, &before, &added);
    Some(ToolChangeSet { after: MessageId::from(""), actions, guidelines })
}

/// The tool that an action defines.
pub fn definition_of(action: &ToolChangeAction) -> Option<&Tool> {
    match action {
        ToolChangeAction::Define(tool) => Some(tool),
        ToolChangeAction::Restore(_) | ToolChangeAction::Remove(_) => None,
    }
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
