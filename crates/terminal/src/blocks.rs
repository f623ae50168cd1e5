//! Content as styled lines: Markdown, code, diffs, tool calls, the rows of views.
//!
//! Every function takes plain values, a width and a [`Theme`](crate::theme::Theme), and returns
//! [`Line`](ratatui::text::Line)s. Text of others is made harmless here
//! ([`escape`](crate::text::escape)), so that no line holds a control character. Prose is wrapped to
//! the width; code, diffs and output are whole lines, for the terminal to wrap, so that copying gives
//! the text.

mod context_view;
mod conversation;
mod core_sample;
mod diff;
pub mod format;
#[cfg(test)]
pub(crate) mod golden;
pub mod highlight;
mod markdown;
mod parts;
pub mod pickers;
mod status;
#[cfg(test)]
mod tests;
mod tool_call;
mod view;

pub(crate) use self::context_view::key_line;
#[cfg(test)]
pub(crate) use self::context_view::sample_context;
pub use self::context_view::{
    CacheExpiry, CacheMark, ContextColumns, ContextFacts, ContextRow, ContextView, Garbage, LastRequest,
    LastUse, LastVerdict, Layer, LayerAge, NextFold, SessionTotals,
};
pub use self::conversation::{
    Cost, Delivery, PaidAgain, REASONING_ROWS, Retry, RunEnd, RunSummary, prompt_lines, queue_lines,
    reasoning_line, reasoning_tail,
};
pub use self::core_sample::{CacheState, LayerPart, STRIP_CELLS, core_sample, layer_bar};
pub use self::diff::{CONTEXT_LINES, FileDiff, line_counts, side_by_side};
pub use self::markdown::{MarkdownRenderer, render_markdown};
pub use self::status::{StatusLine, Warmth};
pub(crate) use self::tool_call::output_lines;
pub use self::tool_call::{
    CallState, FAILED_TAIL, RUNNING_TAIL, Subject, ToolCall, command_lines, subagent_line, warning_lines,
};
pub use self::view::ViewLines;

/// Before every line of code.
const CODE_INDENT: &str = "  ";
