//! [`RenderedPrompt`]: what the model sees of a request, after thinking was dropped, text for one
//! turn has passed, and the context was cleared or compacted.

use hardpan_models::Model;
use hardpan_prompt::{
    Block, CacheLifetime, Content, ItemKind, Origin, Prompt, PromptMessage, ResultPart, Role, Segment,
    TokenCounter, ToolResult,
};
use hardpan_providers::decode::{DecodedRequest, SpecialBlock};
use serde_json::{Value, json};

use super::binding::ThinkingCheck;

/// What the model sees of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderedPrompt {
    /// The prompt that is counted, cached and billed.
    pub prompt: Prompt,
    /// The field `input_transformations` of the answer.
    pub transformations: Vec<Value>,
    /// The field `context_management.applied_edits` of the answer; `None` without edits.
    pub applied_edits: Option<Vec<Value>>,
    /// Whether the answer begins with a summary of the conversation, or consists of it.
    pub compaction: Option<CompactionKind>,
}

/// Why a conversation is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// It grew over a threshold: the answer follows the summary.
    Threshold,
    /// It grew over a threshold: the answer ends after the summary.
    Pause,
    /// The request asks for it: the summary is signed and is the whole answer.
    OnDemand,
}

/// The server's defaults for clearing and compacting.
const CLEAR_TRIGGER: u64 = 100_000;
const KEPT_TOOL_USES: u64 = 3;
const COMPACT_TRIGGER: u64 = 150_000;

/// Renders a request that passed its checks.
pub fn render(
    decoded: &DecodedRequest,
    model: &Model,
    thinking: ThinkingCheck,
    counter: &TokenCounter,
) -> RenderedPrompt {
    let ThinkingCheck { dropped, transformations } = thinking;
    let mut prompt = decoded.prompt.clone();
    let start = compaction_start(decoded);
    let is_person = |message: &PromptMessage| message.role == Role::User && !has_results(message);
    let old_turns = match model.thinking.last_turn_only {
        true => prompt.messages.iter().rposition(is_person).unwrap_or(0),
        false => 0,
    };
    let last_user = prompt.messages.iter().rposition(|message| message.role == Role::User);
    // Once a request has a marker, the server marks the results of its own tools for five minutes.
    let is_cached = decoded.automatic_cache.is_some() || !prompt.breakpoints().is_empty();
    let special = &decoded.anthropic.special_blocks;
    for (index, message) in prompt.messages.iter_mut().enumerate() {
        for (block_index, block) in message.blocks.iter_mut().enumerate() {
            if is_cached && special.get(&(index, block_index)) == Some(&SpecialBlock::ServerToolResult) {
                block.breakpoint = block.breakpoint.or(Some(CacheLifetime::FiveMinutes));
            }
        }
        let has_passed = message.turn_scoped && last_user.is_some_and(|last| last > index);
        let mut block_index = 0;
        message.blocks.retain(|block| {
            let at = (index, block_index);
            block_index += 1;
            let is_old_thinking = index < old_turns && is_thinking(block);
            at >= start && !has_passed && !is_old_thinking && !dropped.contains(&at)
        });
    }
    prompt.messages.retain(|message| !message.blocks.is_empty());
    let mut rendered = RenderedPrompt { prompt, transformations, ..RenderedPrompt::default() };
    if let Some(management) = &decoded.anthropic.context_management {
        rendered.apply_edits(&management.value(), counter);
    }
    if decoded.anthropic.compaction {
        rendered.compaction = Some(CompactionKind::OnDemand);
    }
    rendered
}

/// The last summary of the conversation: the server ignores everything before it.
fn compaction_start(decoded: &DecodedRequest) -> (usize, usize) {
    let is_summary =
        |kind: &SpecialBlock| matches!(kind, SpecialBlock::Compaction | SpecialBlock::SignedCompaction);
    let special = decoded.anthropic.special_blocks.iter();
    special.filter(|(_, kind)| is_summary(kind)).map(|(at, _)| *at).next_back().unwrap_or_default()
}

impl RenderedPrompt {
    fn apply_edits(&mut self, management: &Value, counter: &TokenCounter) {
        let mut applied = Vec::new();
        for edit in management["edits"].as_array().into_iter().flatten() {
            match edit["type"].as_str() {
                Some("clear_thinking_20251015") => applied.extend(self.clear_thinking(edit, counter)),
                Some("clear_tool_uses_20250919") => applied.extend(self.clear_tool_uses(edit, counter)),
                _ => {
                    let trigger = edit["trigger"]["value"].as_u64().unwrap_or(COMPACT_TRIGGER);
                    if self.tokens(counter) > trigger {
                        let pauses = edit["pause_after_compaction"] == true;
                        let kind = if pauses { CompactionKind::Pause } else { CompactionKind::Threshold };
                        self.compaction = Some(kind);
                    }
                }
            }
        }
        self.applied_edits = Some(applied);
    }

    fn tokens(&self, counter: &TokenCounter) -> u64 {
        counter.measure(&self.prompt).total() as u64
    }

    /// Removes thinking from all but the last turns; `"all"` keeps everything.
    fn clear_thinking(&mut self, edit: &Value, counter: &TokenCounter) -> Option<Value> {
        let kept = usize::try_from(edit["keep"]["value"].as_u64()?).unwrap_or(usize::MAX);
        let before = self.tokens(counter);
        let thinking: Vec<usize> = (0..self.prompt.messages.len())
            .filter(|index| self.prompt.messages[*index].blocks.iter().any(is_thinking))
            .collect();
        let cleared = thinking.len().saturating_sub(kept);
        for index in &thinking[..cleared] {
            self.prompt.messages[*index].blocks.retain(|block| !is_thinking(block));
        }
        self.prompt.messages.retain(|message| !message.blocks.is_empty());
        (cleared > 0).then(|| {
            json!({
                "type": "clear_thinking_20251015",
                "cleared_thinking_turns": cleared,
                "cleared_input_tokens": before - self.tokens(counter),
            })
        })
    }

    /// Replaces the results of all but the last tool uses, if the prompt is over the threshold.
    fn clear_tool_uses(&mut self, edit: &Value, counter: &TokenCounter) -> Option<Value> {
        let before = self.tokens(counter);
        let uses = self.prompt.blocks().filter(|block| result(block).is_some()).count() as u64;
        let trigger = &edit["trigger"];
        let limit = trigger["value"].as_u64().unwrap_or(CLEAR_TRIGGER);
        let size = if trigger["type"] == "tool_uses" { uses } else { before };
        if size <= limit {
            return None;
        }
        let excluded: Vec<&str> =
            edit["exclude_tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let kept = edit["keep"]["value"].as_u64().unwrap_or(KEPT_TOOL_USES);
        let mut edited = self.clone();
        let mut number = 0;
        let mut cleared = 0;
        for block in edited.prompt.blocks_mut() {
            let Some(old) = result(block) else { continue };
            number += 1;
            let tool = crate::script::called_tool(&self.prompt, old).unwrap_or_default();
            if number + kept <= uses && !excluded.contains(&tool) {
                let text = Segment::new("[cleared]", Origin::rule(ItemKind::History, "cleared"));
                let new = ToolResult { parts: vec![ResultPart::Text(vec![text])], ..old.clone() };
                block.content = Content::Result(new).into();
                cleared += 1;
            }
        }
        let saved = before.saturating_sub(edited.tokens(counter));
        if cleared == 0 || saved < edit["clear_at_least"]["value"].as_u64().unwrap_or(0) {
            return None;
        }
        *self = edited;
        Some(json!({
            "type": "clear_tool_uses_20250919",
            "cleared_tool_uses": cleared,
            "cleared_input_tokens": saved,
        }))
    }
}

fn is_thinking(block: &Block) -> bool {
    matches!(*block.content, Content::Reasoning(_))
}

fn result(block: &Block) -> Option<&ToolResult> {
    if let Content::Result(result) = &*block.content { Some(result) } else { None }
}

fn has_results(message: &PromptMessage) -> bool {
    message.blocks.iter().any(|block| result(block).is_some())
}
