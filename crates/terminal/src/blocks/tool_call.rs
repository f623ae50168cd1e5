//! [`ToolCall`]: what a tool does, in one line when it is over, with its last output while it runs.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::format::{clock, counted};
use super::parts::Parts;
use crate::text::{escape, pad_right, strip_lines, truncate, truncate_line, truncate_path, width};
use crate::theme::{Role, Theme};

/// Lines of output shown while a call runs.
pub const RUNNING_TAIL: usize = 5;
/// Lines of output that a failed call keeps.
pub const FAILED_TAIL: usize = 10;
/// Before every line of output.
const OUTPUT_INDENT: &str = "    ";
/// The name of a tool takes at least these columns, so that subjects stand under each other.
const NAME_COLUMNS: usize = 4;
/// A subject is not cut below this; facts go first.
const MIN_SUBJECT: usize = 12;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The name of the tool: `read`, `bash`.
    pub tool: String,
    /// What it works on.
    pub subject: Subject,
    /// What to say about it: `133 lines`, `+1 −1`, `exit 1`, `you: yes`.
    pub facts: Vec<String>,
    /// How far it is.
    pub state: CallState,
}

/// What a call works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A file or folder: its end matters.
    Path(String),
    /// A command, pattern or address: its beginning matters.
    Text(String),
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It waits for an answer.
    Waiting,
    /// It runs.
    Running {
        /// Counts up while it runs, for the spinner; `None` if nothing is to move.
        frame: Option<usize>,
        /// Since it began.
        elapsed: Duration,
        /// Lines of output so far.
        line_count: usize,
        /// The end of the output.
        output: String,
    },
    /// It is over.
    Done {
        /// How long it took; not shown below a second.
        elapsed: Duration,
    },
    /// It failed.
    Failed {
        /// How long it took; not shown below a second.
        elapsed: Duration,
        /// The end of the output.
        output: String,
    },
    /// The person, a rule or the sandbox did not let it run.
    Refused,
}

impl ToolCall {
    /// The call as lines. Output of a call that runs is cut to the width, because it stands in the
    /// live area; output that stays is not.
    pub fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = vec![self.head(columns, theme)];
        match &self.state {
            CallState::Running { output, .. } => {
                let tail = output_tail(output, RUNNING_TAIL, theme).into_iter();
                lines.extend(tail.map(|line| truncate_line(line, columns, theme.glyphs.ellipsis)));
            }
            CallState::Failed { output, .. } => lines.extend(output_tail(output, FAILED_TAIL, theme)),
            CallState::Waiting | CallState::Done { .. } | CallState::Refused => {}
        }
        lines
    }

    /// The first line.
    fn head(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let (glyph, role) = self.glyph(theme);
        let name = pad_right(&escape(&self.tool), NAME_COLUMNS);
        let start = width(glyph) + width(&name) + 3;
        let mut facts = self.all_facts();
        let separator = theme.glyphs.separator;
        let tail_columns = |facts: &[String]| -> usize { facts.iter().map(|fact| width(fact) + 3).sum() };
        while facts.len() > 1 && start + MIN_SUBJECT + tail_columns(&facts) > columns {
            facts.remove(0);
        }
        let room = columns.saturating_sub(start + tail_columns(&facts)).max(MIN_SUBJECT);
        let mut spans = vec![
            Span::styled(format!("{glyph} "), theme.style(role)),
            Span::styled(name, theme.bold(Role::Text)),
            Span::raw("  "),
            Span::raw(self.subject.fitted(room, theme)),
        ];
        for fact in facts {
            spans.push(Span::styled(format!(" {separator} "), theme.style(Role::Quiet)));
            spans.push(Span::raw(escape(&fact).into_owned()));
        }
        Line::from(spans)
    }

    fn glyph(&self, theme: &Theme) -> (&'static str, Role) {
        let glyphs = theme.glyphs;
        match &self.state {
            CallState::Waiting => (" ", Role::Text),
            CallState::Running { frame, .. } => {
                (glyphs.spinner[frame.unwrap_or(0) % glyphs.spinner.len()], Role::Accent)
            }
            CallState::Done { .. } => (glyphs.done, Role::Good),
            CallState::Failed { .. } | CallState::Refused => (glyphs.failed, Role::Danger),
        }
    }

    fn all_facts(&self) -> Vec<String> {
        let mut facts = self.facts.clone();
        match &self.state {
            CallState::Running { elapsed, line_count, .. } => {
                facts.push(clock(*elapsed));
                if *line_count > 0 {
                    facts.push(counted(*line_count, "line", "lines"));
                }
            }
            CallState::Done { elapsed } | CallState::Failed { elapsed, .. } if elapsed.as_secs() > 0 => {
                facts.push(clock(*elapsed));
            }
            CallState::Refused => facts.push("not run".to_owned()),
            _ => {}
        }
        facts
    }
}

impl Subject {
    /// All of it.
    pub fn text(&self) -> &str {
        match self {
            Subject::Path(text) | Subject::Text(text) => text,
        }
    }

    /// The subject in one line of at most `columns`.
    fn fitted(&self, columns: usize, theme: &Theme) -> String {
        let ellipsis = theme.glyphs.ellipsis;
        match self {
            Subject::Path(path) => truncate_path(&escape(path), columns, ellipsis),
            Subject::Text(text) => {
                let mut lines = text.lines().filter(|line| !line.trim().is_empty());
                let first = escape(lines.next().unwrap_or("").trim_end()).into_owned();
                let more = lines.count();
                if more == 0 {
                    return truncate(&first, columns, ellipsis);
                }
                let more = format!(" {ellipsis} +{}", counted(more, "line", "lines"));
                let fitted = truncate(&first, columns.saturating_sub(width(&more)), ellipsis);
                // One ellipsis is enough.
                if fitted == first { fitted + &more } else { fitted + &more[1 + ellipsis.len()..] }
            }
        }
    }
}

/// The last lines of an output. A line that was overwritten with carriage returns counts as what it
/// was in the end.
fn output_tail(output: &str, most: usize, theme: &Theme) -> Vec<Line<'static>> {
    let is_text = |line: &&str| !line.trim().is_empty();
    let lines: Vec<&str> = output.trim_end().split('\n').filter(is_text).collect();
    let shown = &lines[lines.len().saturating_sub(most)..];
    shown.iter().map(|line| output_line(line, theme)).collect()
}

/// All lines of an output.
pub(crate) fn output_lines(output: &str, theme: &Theme) -> Vec<Line<'static>> {
    let output = output.trim_end();
    if output.is_empty() {
        return Vec::new();
    }
    output.split('\n').map(|line| output_line(line, theme)).collect()
}

fn output_line(line: &str, theme: &Theme) -> Line<'static> {
    let last_version = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or("");
    let text = escape(strip_lines(last_version).trim_end()).into_owned();
    Line::from(vec![Span::raw(OUTPUT_INDENT), Span::styled(text, theme.style(Role::Quiet))])
}

/// The text of a command as it will run, every line of it with its number: for approvals.
pub fn command_lines(command: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let lines: Vec<&str> = command.trim_end_matches('\n').split('\n').collect();
    let digits = lines.len().to_string().len().max(2);
    let bar = theme.glyphs.bar;
    let quiet = theme.style(Role::Quiet);
    let indent = if columns < 60 { 0 } else { 3 };
    let room = columns.saturating_sub(indent + digits + 3).max(8);
    let mut out = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        // Nothing of what is decided about may be invisible.
        let text = crate::text::visible(line);
        for (row, part) in crate::text::hard_wrap(&Line::from(text), room).into_iter().enumerate() {
            let number = if row == 0 { (index + 1).to_string() } else { String::new() };
            let head = format!("{}{number:>digits$} {bar} ", " ".repeat(indent));
            let mut spans = vec![Span::styled(head, quiet)];
            spans.extend(part.spans);
            out.push(Line::from(spans));
        }
    }
    out
}

/// What in a command deserves a look, each with what it does: `! rm -rf build/   deletes 214 files`.
pub fn warning_lines(warnings: &[(String, String)], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let name = |(name, _): &(String, String)| width(&escape(name));
    let widest = warnings.iter().map(name).max().unwrap_or(0).min(columns / 3);
    warnings
        .iter()
        .flat_map(|(what, effect)| {
            let what = truncate(&escape(what), widest, theme.glyphs.ellipsis);
            let head = format!("  {} {}  ", theme.glyphs.warning, pad_right(&what, widest));
            let rest = " ".repeat(width(&head));
            let text = [Span::raw(escape(effect).into_owned())];
            let head = Span::styled(head, theme.style(Role::Danger));
            crate::text::wrap_indented(&text, columns, &head, &Span::raw(rest))
        })
        .collect()
}

/// The row of a sub-agent that works: what it was asked, and how far it is.
pub fn subagent_line(
    name: &str,
    task: &str,
    facts: &[String],
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    let mut parts = Parts::new(theme);
    parts.push(format!("{}  {}", escape(name), escape(task)), Role::Text);
    for fact in facts {
        parts.push(escape(fact).into_owned(), Role::Quiet);
    }
    let glyph = Span::styled(format!("{} ", theme.glyphs.spinner[0]), theme.style(Role::Accent));
    truncate_line(parts.line(glyph), columns, theme.glyphs.ellipsis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::golden::drawing;

    fn call(tool: &str, subject: Subject, facts: &[&str], state: CallState) -> ToolCall {
        let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        ToolCall { tool: tool.into(), subject, facts, state }
    }

    fn done() -> CallState {
        CallState::Done { elapsed: Duration::ZERO }
    }

    #[test]
    fn calls_in_one_line() {
        let path = || Subject::Path("packages/tui/src/fuzzy.ts".into());
        let check = || Subject::Text("npm run check".into());
        let output: String = (1..=11).map(|n| format!("ok {n}\u{1b}[0m\r\n")).collect();
        let calls = [
            call("read", path(), &["133 lines"], done()),
            call("edit", path(), &["+1 −1", "you: yes"], done()),
            call("edit", path(), &["+1 −1"], CallState::Waiting),
            call(
                "bash",
                Subject::Text("python3 - <<'PY'\nimport re\nPY\n".into()),
                &["exit 0"],
                CallState::Done { elapsed: Duration::from_secs(9) },
            ),
            call("bash", check(), &[], CallState::Refused),
            call(
                "bash",
                check(),
                &[],
                CallState::Running {
                    frame: Some(4),
                    elapsed: Duration::from_secs(7),
                    line_count: 41,
                    output: output.clone() + "10%\r50%\r",
                },
            ),
            call(
                "bash",
                check(),
                &["exit 1"],
                CallState::Failed { elapsed: Duration::from_secs(65), output },
            ),
        ];
        let draw = |columns, theme: &Theme| {
            let lines: Vec<_> = calls.iter().flat_map(|call| call.lines(columns, theme)).collect();
            drawing(&lines)
        };
        insta::assert_snapshot!("calls_80", draw(80, &Theme::default()));
        insta::assert_snapshot!("calls_40", draw(40, &Theme::default()));
        let ascii = Theme { glyphs: &crate::theme::Glyphs::ASCII, ..Theme::default() };
        insta::assert_snapshot!("calls_ascii", draw(80, &ascii));
    }

    #[test]
    fn a_command_is_shown_whole_and_everything_in_it_can_be_seen() {
        let command = "cd x && rm -rf build/\necho \u{202e}txt.exe\u{1b}[2J\nfind . -name '*.test.ts' -print | xargs grep -l fuzzy | sort | uniq -c | sort -rn | head -20";
        let mut lines = command_lines(command, 60, &Theme::default());
        let warnings = [
            ("rm -rf build/".to_owned(), "deletes 214 files, 38 MB, not in git".to_owned()),
            (
                "git push --force".to_owned(),
                "rewrites origin/main · network: the sandbox refuses it".to_owned(),
            ),
        ];
        lines.extend(warning_lines(&warnings, 60, &Theme::default()));
        insta::assert_snapshot!("command", drawing(&lines));
    }
}
