//! Single lines of a conversation: prompts, reasoning, retries, the queue, the end of a run.

use std::time::Duration;

use ratatui::text::{Line, Span};

use hardpan_prompt::figures::format_paid;

use super::format::{clock, counted, dollars, percent, short_count};
use super::line_counts;
use super::parts::Parts;
use crate::text::{
    PROSE_WIDTH, escape, line_width, pad_right, truncate, truncate_line, width, wrap, wrap_indented,
};
use crate::theme::{Role, Theme};

/// Rows of reasoning that are shown while it streams.
pub const REASONING_ROWS: usize = 2;

/// What a person wrote, as it was sent.
pub fn prompt_lines(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mark = format!("{} ", theme.glyphs.prompt);
    let rest = Span::raw(" ".repeat(width(&mark)));
    let mut first = Span::styled(mark, theme.style(Role::Accent));
    let mut lines = Vec::new();
    for line in text.trim_end().lines() {
        let spans = [Span::styled(escape(line).into_owned(), theme.bold(Role::Text))];
        lines.extend(wrap_indented(&spans, columns.min(PROSE_WIDTH), &first, &rest));
        first = rest.clone();
    }
    lines
}

/// The last rows of reasoning that streams in. `text` may be its end alone.
pub fn reasoning_tail(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let room = columns.min(PROSE_WIDTH).saturating_sub(2).max(8);
    // Twice what the rows can hold, so that the cost does not grow with the text.
    let start = text.ceil_char_boundary(text.len().saturating_sub(REASONING_ROWS * room * 4));
    let words: Vec<&str> = text[start..].split_whitespace().collect();
    let lines = wrap(&[Span::styled(escape(&words.join(" ")).into_owned(), theme.style(Role::Quiet))], room);
    let shown = lines.len().saturating_sub(REASONING_ROWS);
    let indent = |mut line: Line<'static>| {
        line.spans.insert(0, Span::raw("  "));
        line
    };
    lines.into_iter().skip(shown).filter(|line| line_width(line) > 0).map(indent).collect()
}

/// What reasoning leaves behind: `thought 0:12 · 1.1k`.
pub fn reasoning_line(elapsed: Option<Duration>, tokens: Option<usize>, theme: &Theme) -> Line<'static> {
    let mut parts = Parts::new(theme);
    let time = elapsed.map_or_else(String::new, |elapsed| format!(" {}", clock(elapsed)));
    parts.push(format!("thought{time}"), Role::Quiet);
    parts.push_tokens(tokens);
    parts.line("  ")
}

impl Parts<'_> {
    fn push_tokens(&mut self, tokens: Option<usize>) {
        if let Some(tokens) = tokens {
            self.push(short_count(tokens), Role::Quiet);
        }
    }
}

/// Columns that a reason keeps on the narrowest screen.
const SHORTEST_REASON: usize = 6;

/// A request that is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// What went wrong: `529 overloaded`.
    pub reason: String,
    /// The time until it is sent again.
    pub wait: Duration,
    /// Which attempt comes next, and how many there are.
    pub attempt: (usize, usize),
    /// The key that sends it at once, if there is one.
    pub now: Option<String>,
}

impl Retry {
    /// The retry in a line: `529 overloaded · again in 3 s · 2 of 10 · r now`.
    pub fn line(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let with_reason = |reason: &str| {
            let mut parts = Parts::new(theme);
            parts.push(reason.to_owned(), Role::Care);
            parts.push(format!("again in {}", super::format::age(self.wait)), Role::Text);
            parts.push(format!("{} of {}", self.attempt.0, self.attempt.1), Role::Text);
            if let Some(key) = &self.now {
                parts.push(format!("{} now", escape(key)), Role::Accent);
            }
            parts.line("")
        };
        // When it is sent again, and how at once, matters more than the end of the reason.
        let reason = escape(&self.reason);
        let excess = line_width(&with_reason(&reason)).saturating_sub(columns);
        let room = width(&reason).saturating_sub(excess).max(SHORTEST_REASON);
        let line = with_reason(&truncate(&reason, room, theme.glyphs.ellipsis));
        truncate_line(line, columns, theme.glyphs.ellipsis)
    }
}

/// When a message in the queue is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// After the answer or call that runs.
    AfterThisTool,
    /// When the model is done.
    AtTheEnd,
}

impl Delivery {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Delivery::AfterThisTool => "after this tool",
            Delivery::AtTheEnd => "at the end",
        }
    }
}

/// The messages that wait, one row each.
pub fn queue_lines(queue: &[(Delivery, String)], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let widest = queue.iter().map(|(delivery, _)| delivery.words().len()).max().unwrap_or(0);
    let row = |(index, (delivery, text)): (usize, &(Delivery, String))| {
        let head = format!("  {} {}   ", index + 1, pad_right(delivery.words(), widest));
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        let room = columns.saturating_sub(width(&head)).max(4);
        let text = truncate(&escape(first.trim()), room, theme.glyphs.ellipsis);
        Line::from(vec![Span::styled(head, theme.style(Role::Quiet)), Span::raw(text)])
    };
    queue.iter().enumerate().map(row).collect()
}

/// What was spent. Requests to the simulator are never booked as paid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// What was paid, in dollars.
    pub paid: f64,
    /// What simulated requests would have cost.
    pub simulated: Option<f64>,
    /// The model's price is not known.
    pub is_unknown: bool,
}

impl Cost {
    /// The cost in words: `$0.48`, `$0 (would be $0.07)`, `price unknown`.
    pub fn text(&self) -> String {
        match self.simulated.filter(|amount| *amount > 0.0) {
            None if self.is_unknown && self.paid == 0.0 => "price unknown".to_owned(),
            simulated => format_paid(self.paid, simulated.unwrap_or(0.0)),
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// How it ended: `done`, `stopped`, `failed`.
    pub end: RunEnd,
    /// How long it took.
    pub elapsed: Duration,
    /// The requests that it sent.
    pub requests: usize,
    /// Changed files, added and removed lines.
    pub changes: (usize, usize, usize),
    /// What it cost.
    pub cost: Cost,
    /// Input tokens read from the cache, and all of them.
    pub read: Option<(usize, usize)>,
    /// What was paid again, if anything was.
    pub paid_again: Option<PaidAgain>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The model was done.
    Done,
    /// The person stopped it.
    Stopped,
    /// It could not go on.
    Failed,
}

/// Tokens that were in the cache and had to be paid again.
#[derive(Clone, Debug, PartialEq)]
pub struct PaidAgain {
    /// How many tokens.
    pub tokens: usize,
    /// What they cost, in dollars.
    pub dollars: f64,
    /// What changed: a file, the clock, the model.
    pub cause: String,
}

impl RunSummary {
    /// The summary: one line where it is wide enough.
    pub fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut parts = Parts::new(theme);
        let (word, role) = match self.end {
            RunEnd::Done => ("done", Role::Good),
            RunEnd::Stopped => ("stopped", Role::Care),
            RunEnd::Failed => ("failed", Role::Danger),
        };
        parts.push_spans(vec![
            Span::styled(word, theme.style(role)),
            Span::raw(format!(" {}", clock(self.elapsed))),
        ]);
        parts.push(counted(self.requests, "request", "requests"), Role::Text);
        let (files, added, removed) = self.changes;
        if files > 0 {
            let counts = line_counts(added, removed, theme);
            parts.push(format!("{} {counts}", counted(files, "file", "files")), Role::Text);
        }
        parts.push(self.cost.text(), Role::Text);
        match &self.paid_again {
            Some(again) => {
                let text = format!(
                    "{} paid again, {}: {}",
                    short_count(again.tokens),
                    dollars(again.dollars),
                    escape(&again.cause)
                );
                parts.push(text, Role::Care);
                parts.push("/why", Role::Accent);
            }
            None => {
                if let Some((read, all)) = self.read.filter(|(_, all)| *all > 0) {
                    parts.push(format!("{} read", percent(read, all)), Role::Text);
                    parts.push("nothing paid again", Role::Text);
                }
            }
        }
        parts.lines(columns, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::golden::drawing;

    fn summary() -> RunSummary {
        RunSummary {
            end: RunEnd::Done,
            elapsed: Duration::from_secs(41),
            requests: 4,
            changes: (1, 4, 1),
            cost: Cost { paid: 0.031, ..Cost::default() },
            read: Some((97, 100)),
            paid_again: None,
        }
    }

    #[test]
    fn the_end_of_a_run() {
        let theme = Theme::default();
        let again = PaidAgain { tokens: 8_120, dollars: 0.019, cause: "fuzzy.ts".into() };
        let missed = RunSummary {
            cost: Cost { paid: 0.051, ..Cost::default() },
            changes: (0, 0, 0),
            paid_again: Some(again),
            ..summary()
        };
        let offline = RunSummary {
            end: RunEnd::Stopped,
            requests: 1,
            cost: Cost { simulated: Some(0.07), ..Cost::default() },
            read: None,
            ..summary()
        };
        let lines: Vec<_> =
            [summary(), missed, offline].iter().flat_map(|summary| summary.lines(80, &theme)).collect();
        insta::assert_snapshot!(drawing(&lines), @r"
          done 0:41 · 4 requests · 1 file +4 −1 · $0.031 · 97% read · nothing paid again
          done 0:41 · 4 requests · $0.051 · 8.1k paid again, $0.019: fuzzy.ts · /why
          stopped 0:41 · 1 request · 1 file +4 −1 · $0 (would be $0.070)
        ");
        insta::assert_snapshot!(drawing(&summary().lines(40, &theme)), @r"
          done 0:41 · 4 requests · 1 file +4 −1
          $0.031 · 97% read · nothing paid again
        ");
    }

    #[test]
    fn lines_of_a_conversation() {
        let theme = Theme::default();
        let mut lines = prompt_lines("cap the gap penalty in fuzzyMatch\nand run the checks", 30, &theme);
        lines.extend(reasoning_tail(&"I should look at the matcher first. ".repeat(300), 40, &theme));
        lines.push(reasoning_line(Some(Duration::from_secs(12)), Some(1_100), &theme));
        let retry = Retry {
            reason: "529 overloaded".into(),
            wait: Duration::from_secs(3),
            attempt: (2, 10),
            now: Some("r".into()),
        };
        lines.push(retry.line(80, &theme));
        let queue = [
            (Delivery::AfterThisTool, "also check the docs".into()),
            (Delivery::AtTheEnd, "then write the commit message\n\u{1b}[2J".into()),
        ];
        lines.extend(queue_lines(&queue, 40, &theme));
        insta::assert_snapshot!(drawing(&lines), @r"
        › cap the gap penalty in
          fuzzyMatch
          and run the checks
          matcher first. I should look at the
          matcher first.
          thought 0:12 · 1.1k
        529 overloaded · again in 3 s · 2 of 10 · r now
          1 after this tool   also check the do…
          2 at the end        then write the co…
        ");
    }
}
