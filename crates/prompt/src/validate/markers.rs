//! Where breakpoints may stand.

use crate::{Block, Content, Lifetime, Prompt};

use super::{At, MAX_BREAKPOINTS, Protocol, Rules, Stance, Violation, blocks};

/// How many breakpoints, in which order, on what.
pub(super) fn check(prompt: &Prompt, rules: &Rules, found: &mut Vec<Violation>) {
    let marked = marked(prompt);
    if rules.breakpoints == Stance::Refuses {
        found.extend(marked.iter().map(|(at, ..)| Violation::BreakpointUnknown { at: *at }));
        return;
    }
    if let Some((at, ..)) = marked.get(MAX_BREAKPOINTS) {
        found.push(Violation::TooManyBreakpoints { at: *at, found: marked.len() });
    }
    let mut short_seen = false;
    for (at, lifetime, block) in marked {
        short_seen |= lifetime == Lifetime::FiveMinutes;
        // OpenAI's markers carry no lifetime, and so have no order.
        if short_seen && lifetime == Lifetime::OneHour && rules.protocol == Protocol::Anthropic {
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

/// The breakpoints in the provider's order, each with its block unless it is a tool's.
fn marked(prompt: &Prompt) -> Vec<(At, Lifetime, Option<&Block>)> {
    let tools = prompt.tools.iter().enumerate().map(|(tool, block)| (At::Tool(tool), block.breakpoint, None));
    let rest = blocks(prompt).map(|(at, block)| (at, block.breakpoint, Some(block)));
    tools.chain(rest).filter_map(|(at, lifetime, block)| Some((at, lifetime?, block))).collect()
}
