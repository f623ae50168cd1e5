//! What the agent does: the unfinished block of the answer, reasoning, running tools, a retry.

use ratatui::text::{Line, Span};

use super::elapsed;
use crate::blocks::format::clock;
use crate::blocks::{CallState, RUNNING_TAIL, Retry, Subject, ToolCall, reasoning_tail, subagent_line};
use crate::keymap::Action;
use crate::model::{BlockKind, Model, Phase, RunningTool};
use crate::text::escape;
use crate::theme::Role;

/// Rows of output that each of several running tools shows.
const SHARED_TAIL: usize = 1;

/// What kind of block the activity will become on the page; none if there is none to show.
pub(super) fn activity_kind(model: &Model) -> Option<BlockKind> {
    // Output of running tools would stand between the question and what it is about.
    if model.holds_text() {
        return None;
    }
    match &model.phase {
        Phase::Idle => None,
        Phase::Streaming if model.has_text => Some(BlockKind::Answer),
        Phase::Streaming if model.reasoning.is_empty() => {
            // A question is all that there is to wait for.
            model.question.is_none().then_some(BlockKind::Text)
        }
        Phase::Tool => Some(BlockKind::Tool),
        _ => Some(BlockKind::Text),
    }
}

/// What the agent does, in about `room` rows; the last ones matter most.
pub(super) fn activity_rows(model: &Model, room: usize) -> Vec<Line<'static>> {
    let columns = usize::from(model.size.columns);
    let theme = &model.theme;
    let spinner = Span::styled(format!("{} ", spinner(model)), theme.style(Role::Accent));
    let row = |text: String| vec![Line::from(vec![spinner.clone(), Span::raw(text)])];
    match &model.phase {
        Phase::Idle => Vec::new(),
        Phase::Streaming if model.has_text => model.answer.open_tail(),
        Phase::Streaming if !model.reasoning.is_empty() => reasoning_tail(&model.reasoning, columns, theme),
        Phase::Streaming => {
            let since = clock(elapsed(model, model.run_since.unwrap_or(model.now)));
            match &model.extensions.working {
                Some(words) => row(format!("{} {since}", escape(&words.replace('\n', " ")))),
                None => row(since),
            }
        }
        Phase::Tool => tool_rows(model, room),
        Phase::Compacting { text } => row(format!("compacting {text}")),
        Phase::Retry { message, until, attempt, attempts } => {
            let wait = until.saturating_sub(model.now);
            let attempt = (*attempt as usize, *attempts as usize);
            let now = model.editor.is_empty().then(|| model.keymap.hint(Action::RetryNow));
            vec![Retry { reason: message.clone(), wait, attempt, now }.line(columns, theme)]
        }
        Phase::Stopping => {
            let first_line = |text: &str| escape(text.lines().next().unwrap_or_default()).into_owned();
            let what = model.tools.first().map(|tool| match &tool.subject {
                Subject::Path(text) | Subject::Text(text) => format!(" {}", first_line(text)),
            });
            row(format!("stopping{}", what.unwrap_or_default()))
        }
    }
}

fn tool_rows(model: &Model, room: usize) -> Vec<Line<'static>> {
    let columns = usize::from(model.size.columns);
    let tail = match model.tools.len() {
        1 => room.saturating_sub(1).clamp(1, RUNNING_TAIL),
        _ => SHARED_TAIL,
    };
    let rows = |tool: &RunningTool| {
        if let Some(task) = &tool.task {
            let mut facts = task.facts.clone();
            facts.push(clock(elapsed(model, tool.since)));
            return vec![subagent_line(&task.agent, &task.activity, &facts, columns, &model.theme)];
        }
        let state = CallState::Running {
            frame: model.has_motion.then(|| frame(model)),
            elapsed: elapsed(model, tool.since),
            line_count: tool.line_count,
            output: tool.output.clone(),
        };
        let call =
            ToolCall { tool: tool.name.clone(), subject: tool.subject.clone(), facts: Vec::new(), state };
        let mut lines = call.lines(columns, &model.theme);
        let skipped = lines.len().saturating_sub(1 + tail);
        lines.drain(1..1 + skipped);
        lines
    };
    model.tools.iter().flat_map(rows).collect()
}

/// Quarters of a second since the start.
fn frame(model: &Model) -> usize {
    usize::try_from(model.now.as_millis() / 250).unwrap_or(0)
}

fn spinner(model: &Model) -> &'static str {
    let frame = if model.has_motion { frame(model) } else { 0 };
    let glyphs = &model.theme.glyphs.spinner;
    glyphs[frame % glyphs.len()]
}
