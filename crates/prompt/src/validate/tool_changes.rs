//! Rules about tools that come and go in the middle of a conversation.

use crate::{AvailableTools, Content, Prompt, ToolChangeAction};

use super::content::check_tool;
use super::{MessageForm, ValidationRules, Violation, located_blocks};

/// Checks that every change is about a tool that is defined at its place. Only Anthropic has such
/// changes.
pub(super) fn check_tool_changes(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let mut tools: Option<AvailableTools<'_>> = None;
    for (at, block) in located_blocks(prompt) {
        let Content::ToolChange(change) = &*block.content else { continue };
        if rules.form != MessageForm::Blocks {
            found.push(Violation::ToolChange { at });
            continue;
        }
        if let ToolChangeAction::Define(tool) = &change.action {
            check_tool(at, tool, rules, found);
        }
        let declared = || AvailableTools::new(prompt.tools.iter().map(|block| &block.tool));
        if !tools.get_or_insert_with(declared).apply(&change.action) {
            found.push(Violation::ToolReference { at, name: change.action.tool_name().to_string() });
        }
    }
}
