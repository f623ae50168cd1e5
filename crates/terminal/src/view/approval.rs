//! The question about a call, below the call that was printed; and questions in words.

use ratatui::text::{Line, Span};

use crate::blocks::format::counted;
use crate::keymap::Action;
use crate::model::{ApprovalFocus, ApprovalPrompt, CallKind, FaceState, Model, RuleOffer};
use crate::screen::EncodedRow;
use crate::text::{escape, pad_right, width, wrap};
use crate::theme::Role;

/// From this width on, the answers stand in two columns.
const TWO_COLUMNS: usize = 70;
/// Where the right column begins.
const RIGHT: usize = 37;
/// Columns of the text in the left one.
const LEFT_TEXT: usize = 30;

/// Choices of a question that are shown at once.
const MAX_CHOICES: usize = 8;

/// The rows of whatever waits for an answer.
pub(super) fn question_rows(model: &Model) -> Vec<Line<'static>> {
    if let Some(prompt) = model.approvals.front() {
        return approval_rows(model, prompt);
    }
    let Some(question) = &model.question else { return Vec::new() };
    let columns = usize::from(model.size.columns);
    let held = held_row(model);
    let mut rows = wrap(&[Span::raw(escape(&question.prompt.text).into_owned())], columns);
    // Of a long list, the part with the mark.
    let choices = &question.prompt.choices;
    let first = question.marked.unwrap_or(0).saturating_sub(MAX_CHOICES / 2);
    let first = first.min(choices.len().saturating_sub(MAX_CHOICES));
    for (index, choice) in choices.iter().enumerate().skip(first).take(MAX_CHOICES) {
        let is_marked = question.marked == Some(index);
        let mark = if is_marked { model.theme.glyphs.prompt } else { " " };
        let number = Span::styled(format!("{mark} {}  ", index + 1), model.theme.style(Role::Accent));
        rows.push(Line::from(vec![number, Span::raw(escape(choice).into_owned())]));
    }
    if choices.len() > MAX_CHOICES {
        let text = format!("  {} of {}", MAX_CHOICES, choices.len());
        rows.push(Line::styled(text, model.theme.style(Role::Quiet)));
    }
    rows.extend(held);
    rows
}

/// Says that something waits until the question is answered.
fn held_row(model: &Model) -> Option<Line<'static>> {
    let text = "  what was said since is shown after your answer";
    model.has_held_text().then(|| Line::styled(text, model.theme.style(Role::Quiet)))
}

/// Who asks, and about what, where the call on the page may not be enough: another author than the model of the
/// conversation, or a call whose beginning is not on the screen.
fn summary_row(model: &Model, prompt: &ApprovalPrompt, is_call_cut: bool) -> Option<Line<'static>> {
    let one_line = |text: &str| escape(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
    let author = prompt.author.as_ref().map(|author| format!("{} asks: ", one_line(author)));
    let is_shown = author.is_some() || (is_call_cut && !prompt.summary.is_empty());
    is_shown.then(|| {
        Line::from(vec![
            Span::styled(author.unwrap_or_default(), model.theme.style(Role::Care)),
            Span::raw(one_line(&prompt.summary)),
        ])
    })
}

fn approval_rows(model: &Model, prompt: &ApprovalPrompt) -> Vec<Line<'static>> {
    let columns = usize::from(model.size.columns);
    let is_waiting = model.state() == FaceState::ApprovalWaiting;
    let choices = match model.state() {
        FaceState::ApprovalActive if columns >= TWO_COLUMNS => choices_in_columns(model, prompt),
        FaceState::ApprovalActive => choices_in_rows(model, prompt, columns),
        _ => Vec::new(),
    };
    let mut head = vec![Span::styled(question(prompt), model.theme.bold(Role::Text))];
    let count = model.approvals.len() + model.approvals_answered;
    if count > 1 {
        head.push(Span::raw(format!("   {} of {count}", model.approvals_answered + 1)));
    }
    let above = rows_above(model, prompt, choices.len() + 4 + usize::from(prompt.author.is_some()));
    let is_narrow = columns < TWO_COLUMNS;
    if is_waiting {
        let text = format!("   {} answers", model.keymap.hint(Action::Queue));
        head.push(Span::styled(text, model.theme.style(Role::Accent)));
    } else if above > 0 {
        let rows = counted(above, "row is", "rows are");
        let key = model.keymap.hint(Action::ShowWhole);
        let separator = model.theme.glyphs.separator;
        let text = match is_narrow {
            true => format!("  {above} above {separator} {key} all"),
            false => format!("   {rows} above this screen {separator} {key} shows all from line 1"),
        };
        head.push(Span::styled(text, model.theme.style(Role::Care)));
    } else if let Some(words) = &prompt.model_says {
        let words = escape(words.lines().next().unwrap_or_default()).into_owned();
        let text =
            if is_narrow { format!("  \"{words}\"") } else { format!("   the model says: \"{words}\"") };
        head.push(Span::styled(text, model.theme.style(Role::Quiet)));
    }
    let mut rows: Vec<Line<'static>> = summary_row(model, prompt, above > 0).into_iter().collect();
    rows.push(Line::from(head));
    rows.extend(choices);
    rows.extend(held_row(model));
    rows
}

fn question(prompt: &ApprovalPrompt) -> String {
    match &prompt.kind {
        CallKind::Edit => "Change this file?".to_owned(),
        CallKind::Command { lines: 1 } => "Run this?".to_owned(),
        CallKind::Command { lines } => format!("Run these {lines} lines?"),
        CallKind::Other { tool } => format!("Run {}?", escape(tool)),
    }
}

/// Rows of the printed call that have scrolled off the screen.
fn rows_above(model: &Model, prompt: &ApprovalPrompt, live: usize) -> usize {
    let columns = usize::from(model.size.columns);
    let rows = prompt.preview.iter().map(|line| EncodedRow::whole(line, columns).rows_at(columns));
    (rows.sum::<usize>() + live).saturating_sub(usize::from(model.size.rows))
}

/// An answer as the question offers it: its key, and its words, long and short.
struct Choice {
    action: Option<Action>,
    key: String,
    words: String,
    short: String,
}

fn choice(model: &Model, action: Action, words: impl Into<String>, short: impl Into<String>) -> Choice {
    Choice { action: Some(action), key: model.keymap.hint(action), words: words.into(), short: short.into() }
}

/// The answers that say yes.
fn left_choices(model: &Model, prompt: &ApprovalPrompt) -> Vec<Choice> {
    let yes = if prompt.kind == CallKind::Edit { "yes" } else { "once" };
    let mut choices = vec![choice(model, Action::ApproveOnce, yes, yes)];
    match &prompt.rule {
        RuleOffer::Offered(rule) => {
            let rule = escape(rule);
            choices.push(choice(
                model,
                Action::ApproveSession,
                format!("{rule} until you leave"),
                rule.clone(),
            ));
            choices.push(choice(model, Action::ApproveAlways, "the same, always in this repo", "always"));
        }
        RuleOffer::NotOffered(reason) => {
            let none = |action, words: String| Choice {
                action: None,
                key: model.keymap.hint(action),
                words,
                short: String::new(),
            };
            let reason = if reason.is_empty() { String::new() } else { format!(": {}", escape(reason)) };
            choices.push(none(Action::ApproveSession, format!("not offered{reason}")));
            choices.push(none(Action::ApproveAlways, "not offered".to_owned()));
        }
    }
    choices
}

/// The answers that say no or look closer.
fn right_choices(model: &Model) -> Vec<Choice> {
    let is_command =
        matches!(model.approvals.front(), Some(ApprovalPrompt { kind: CallKind::Command { .. }, .. }));
    let edit = if is_command { "edit the command first" } else { "change it in the editor" };
    let all = [
        (Action::Refuse, "no, and say why", "no, why"),
        (Action::EditCall, edit, "edit"),
        (Action::ShowDiff, "whole file, side by side", "diff"),
        (Action::RefuseAndStop, "no, and stop", "stop"),
    ];
    let offered = model.offered_choices();
    let shown = all.into_iter().filter(|(action, ..)| offered.contains(action));
    shown.map(|(action, words, short)| choice(model, action, words, short)).collect()
}

fn marked_action(model: &Model) -> Option<Action> {
    let ApprovalFocus::Active { marked, .. } = model.approval_focus else { return None };
    model.offered_choices().get(marked?).copied()
}

fn choices_in_columns(model: &Model, prompt: &ApprovalPrompt) -> Vec<Line<'static>> {
    let marked = marked_action(model);
    let key_style = model.theme.style(Role::Accent);
    let quiet = model.theme.style(Role::Quiet);
    let glyph = model.theme.glyphs.prompt;
    let mark = |choice: &Choice| if marked.is_some() && choice.action == marked { glyph } else { " " };
    let mut left: Vec<Vec<Span<'static>>> = Vec::new();
    for choice in left_choices(model, prompt) {
        let style = if choice.action.is_some() { model.theme.style(Role::Text) } else { quiet };
        for (index, line) in
            wrap(&[Span::styled(choice.words.clone(), style)], LEFT_TEXT).into_iter().enumerate()
        {
            let head = match index {
                0 => format!("{} {}  ", mark(&choice), choice.key),
                _ => "     ".to_owned(),
            };
            let mut spans = vec![Span::styled(head, if choice.action.is_some() { key_style } else { quiet })];
            spans.extend(line.spans);
            left.push(spans);
        }
    }
    let right = right_choices(model);
    let rows = left.len().max(right.len());
    let mut lines = Vec::new();
    for row in 0..rows {
        let mut spans = left.get(row).cloned().unwrap_or_default();
        if let Some(choice) = right.get(row) {
            let used: usize = spans.iter().map(|span| width(&span.content)).sum();
            spans.push(Span::raw(" ".repeat((RIGHT - 2).saturating_sub(used))));
            let key = format!("{} {}", mark(choice), pad_right(&choice.key, 5));
            spans.push(Span::styled(key, key_style));
            spans.push(Span::raw(choice.words.clone()));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// The answers one after the other, for narrow terminals.
fn choices_in_rows(model: &Model, prompt: &ApprovalPrompt, columns: usize) -> Vec<Line<'static>> {
    let marked = marked_action(model);
    let mut lines = Vec::new();
    for group in [left_choices(model, prompt), right_choices(model)] {
        let mut line: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        for choice in group.into_iter().filter(|choice| choice.action.is_some()) {
            let glyph = if choice.action == marked { model.theme.glyphs.prompt } else { " " };
            let text = format!(" {}", choice.short);
            let head = format!("{glyph}{}", choice.key);
            let needed = width(&head) + width(&text);
            if used > 0 && used + 2 + needed > columns {
                lines.push(Line::from(std::mem::take(&mut line)));
                used = 0;
            }
            if used > 0 {
                line.push(Span::raw("  "));
                used += 2;
            }
            used += needed;
            line.push(Span::styled(head, model.theme.style(Role::Accent)));
            line.push(Span::raw(text));
        }
        lines.push(Line::from(line));
    }
    lines
}
