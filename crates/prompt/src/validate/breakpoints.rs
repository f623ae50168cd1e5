//! Rules about cache breakpoints: how many, in which order, on which blocks.

use crate::{Block, CacheLifetime, Content, Prompt};

use super::{Acceptance, Location, MessageForm, ValidationRules, Violation, located_blocks};

/// Checks the number of breakpoints, the order of their lifetimes and the blocks that carry them.
pub(super) fn check_breakpoints(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    let marked = marked_blocks(prompt);
    if rules.breakpoints == Acceptance::Rejected {
        found.extend(marked.iter().map(|(at, ..)| Violation::BreakpointUnknown { at: *at }));
        return;
    }
    if let Some((at, ..)) = rules.max_breakpoints.and_then(|max| marked.get(max)) {
        found.push(Violation::TooManyBreakpoints { at: *at, found: marked.len() });
    }
    let mut short_seen = false;
    for (at, lifetime, block) in marked {
        short_seen |= lifetime == CacheLifetime::FiveMinutes;
        // OpenAI's markers carry no lifetime, and so have no order.
        if short_seen && lifetime == CacheLifetime::OneHour && rules.form == MessageForm::Blocks {
            found.push(Violation::BreakpointOrder { at });
        }
        match block {
            Some(block) if block.can_hold_breakpoint() => {}
            Some(block) if matches!(*block.content, Content::Reasoning(_)) => {
                found.push(Violation::BreakpointOnReasoning { at });
            }
            Some(_) => found.push(Violation::BreakpointOnEmptyText { at }),
            None => {} // a declared tool
        }
    }
}

/// The breakpoints in the provider's order, each with its block. `None` for a declared tool.
fn marked_blocks(prompt: &Prompt) -> Vec<(Location, CacheLifetime, Option<&Block>)> {
    let tools =
        prompt.tools.iter().enumerate().map(|(tool, block)| (Location::Tool(tool), block.breakpoint, None));
    let rest = located_blocks(prompt).map(|(at, block)| (at, block.breakpoint, Some(block)));
    tools.chain(rest).filter_map(|(at, lifetime, block)| Some((at, lifetime?, block))).collect()
}
