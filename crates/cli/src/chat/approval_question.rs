//! [`ApprovalQuestion`]: the text that asks whether a call may run. It fits the screen, shows what is
//! hidden, and no line of it can be written by anybody else.

use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::{ApprovalRule, RuleCoverage};
use hardpan_tools::CallSubject;
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use super::display::call_subject;
use crate::output::{FRAME, cut, thousands, visible};

/// Columns before an argument's text, behind the frame.
const TEXT_INDENT: usize = 6;

/// An argument's name is cut to this many columns.
const MAX_NAME: usize = 40;

/// The rule in the answers is cut to this many columns.
const MAX_RULE: usize = 60;

/// A call with more arguments is not shown whole at first. Our own tools have up to four.
const MAX_ARGUMENTS: usize = 8;

/// The least rows that a long argument gets.
const MIN_ROWS: usize = 6;

/// A question about a call, as it stands on the screen.
pub struct ApprovalQuestion {
    /// The question, cut to the screen. Every line begins with the frame.
    pub text: String,
    /// The same with all of the call. None if `text` shows all of it.
    pub whole: Option<String>,
}

/// The size of the screen, in columns and rows.
#[derive(Clone, Copy)]
pub struct ScreenSize {
    pub width: usize,
    pub height: usize,
}

impl ApprovalQuestion {
    /// The question about a call. `rule` is what an answer for longer would allow.
    pub fn new(request: &ApprovalRequest, rule: Option<&ApprovalRule>, size: ScreenSize) -> Self {
        let width = size.width.max(30) - 3;
        let arguments = arguments(&request.args, width);
        let first = arguments.iter().take(MAX_ARGUMENTS);
        let long = first.filter(|argument| argument.rows.len() > 1).count();
        let short = arguments.len().min(MAX_ARGUMENTS) - long;
        let room = size.height.saturating_sub(6 + short + 2 * long).max(MIN_ROWS);
        let budget = (room / long.max(1)).max(MIN_ROWS);
        let is_cut =
            arguments.len() > MAX_ARGUMENTS || arguments.iter().any(|argument| argument.rows.len() > budget);
        let offered = if is_cut { Answers::WithView(rule) } else { Answers::Plain(rule) };
        let agent = request.agent.as_ref();
        let agent = agent.map_or_else(String::new, |agent| format!(" (sub-agent {})", visible(agent)));
        let head = format!("{}{agent} wants to run:", visible(&request.tool_name));
        let render = |budget: usize| {
            let mut lines = vec![cut(&head, width)];
            let shown = if budget == usize::MAX { arguments.len() } else { MAX_ARGUMENTS };
            lines.extend(arguments.iter().take(shown).flat_map(|argument| argument.render(width, budget)));
            if let more @ 1.. = arguments.len().saturating_sub(shown) {
                lines.push(format!("   … {} more arguments are not shown here …", thousands(more)));
            }
            if is_cut || arguments.iter().any(|argument| argument.rows.len() > 1) {
                lines.push(summary(request, &arguments, width));
            }
            lines.extend(wrap_words(&offered.text(&request.subject), width));
            framed(&lines)
        };
        ApprovalQuestion { text: render(budget), whole: is_cut.then(|| render(usize::MAX)) }
    }
}

/// Lines behind the frame.
pub fn framed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{FRAME} {line}")).collect::<Vec<_>>().join("\n")
}

/// An argument of a call.
struct ArgumentView {
    name: String,
    /// What it says, in rows that fit the screen.
    rows: Vec<String>,
    lines: usize,
    characters: usize,
}

fn arguments(args: &Value, width: usize) -> Vec<ArgumentView> {
    match args.as_object() {
        Some(fields) => fields.iter().map(|(name, value)| ArgumentView::new(name, value, width)).collect(),
        None => vec![ArgumentView::new("arguments", args, width)],
    }
}

impl ArgumentView {
    fn new(name: &str, value: &Value, width: usize) -> Self {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let lines: Vec<String> = text.split('\n').map(visible).collect();
        let name = cut(&visible(name), MAX_NAME);
        let beside = 4 + columns(&name) + columns(&lines[0]);
        let rows = match &lines[..] {
            [line] if beside <= width => vec![line.clone()],
            lines => text_rows(lines, width - TEXT_INDENT),
        };
        ArgumentView { name, rows, lines: lines.len(), characters: text.chars().count() }
    }

    /// The lines of the question: the name and the text, or its first and last rows.
    fn render(&self, width: usize, budget: usize) -> Vec<String> {
        let ArgumentView { name, rows, lines, characters } = self;
        let indent = " ".repeat(TEXT_INDENT);
        if let [row] = &rows[..]
            && *lines == 1
            && 4 + columns(name) + columns(row) <= width
        {
            return vec![format!("  {name}: {row}")];
        }
        let size = size_text(*lines, *characters);
        let mut shown = vec![format!("  {name} ({size}):")];
        let row = |row: &String| format!("{indent}{row}");
        if rows.len() <= budget {
            shown.extend(rows.iter().map(row));
            return shown;
        }
        let tail = (budget - 1) / 3;
        let head = budget - 1 - tail;
        let hidden = rows.len() - head - tail;
        shown.extend(rows[..head].iter().map(row));
        shown.push(format!("   … {} rows are not shown here …", thousands(hidden)));
        shown.extend(rows[rows.len() - tail..].iter().map(row));
        shown
    }
}

/// The lines of a text as rows of the screen. Blank lines in a row are counted.
fn text_rows(lines: &[String], width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut blank = 0;
    for line in lines.iter().map(Some).chain([None]) {
        if line.is_some_and(String::is_empty) {
            blank += 1;
            continue;
        }
        match blank {
            0 => {}
            1 => rows.push(String::new()),
            blank => rows.push(format!("‹{} blank lines›", thousands(blank))),
        }
        blank = 0;
        rows.extend(line.into_iter().flat_map(|line| wrap_columns(line, width)));
    }
    rows
}

/// A line in rows of at most `width` columns, cut anywhere.
fn wrap_columns(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut used) = (vec![String::new()], 0);
    for c in line.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width {
            rows.push(String::new());
            used = 0;
        }
        used += columns;
        rows.last_mut().into_iter().for_each(|row| row.push(c));
    }
    rows
}

/// Our own words in rows of at most `width` columns, cut between words.
fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in text.split(' ') {
        let last = rows.last().map_or(0, |row| columns(row));
        if last > 0 && last + 1 + columns(word) > width {
            rows.push(String::new());
        }
        rows.last_mut().into_iter().for_each(|row| {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        });
    }
    rows
}

/// What stands beside the answers, for the case that the beginning has scrolled away: the first line
/// of what the call is about, and how much there is.
fn summary(request: &ApprovalRequest, arguments: &[ArgumentView], width: usize) -> String {
    let lines = arguments.iter().map(|argument| argument.lines).sum::<usize>();
    let characters = arguments.iter().map(|argument| argument.characters).sum::<usize>();
    let size = format!(" ({})", size_text(lines, characters));
    let first = visible(&call_subject(&request.args));
    let tool = cut(&visible(&request.tool_name), MAX_NAME);
    let room = width.saturating_sub(columns(&size) + columns(&tool) + 2).max(10);
    format!("{tool}: {}{size}", cut(&first, room))
}

fn size_text(lines: usize, characters: usize) -> String {
    let count = |n: usize, what: &str| format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" });
    format!("{}, {}", count(lines, "line"), count(characters, "character"))
}

/// The answers that a question offers.
enum Answers<'a> {
    Plain(Option<&'a ApprovalRule>),
    /// Also to see all of the call.
    WithView(Option<&'a ApprovalRule>),
}

impl Answers<'_> {
    fn text(&self, subject: &CallSubject) -> String {
        let (rule, view) = match self {
            Answers::Plain(rule) => (rule, ""),
            Answers::WithView(rule) => (rule, ", [v]iew all of it"),
        };
        let longer = rule.map_or_else(String::new, |rule| {
            let what = match (rule.coverage(), subject) {
                (RuleCoverage::EveryCall, _) => format!("every call of {}", visible(rule.tool())),
                (RuleCoverage::Reading { command }, _) => format!("{command} that only reads"),
                // The words of a command are above; here they could pass for ours.
                (RuleCoverage::Rule { .. }, CallSubject::Command(_)) => "exactly this".to_owned(),
                (RuleCoverage::Rule { text }, _) => cut(&visible(text), MAX_RULE),
            };
            format!(", [s] {what} in this conversation, [a] always")
        });
        format!("[y]es{longer}{view}, or [n]o and why?")
    }
}

fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SIZE: ScreenSize = ScreenSize { width: 60, height: 24 };

    fn question(tool: &str, args: Value) -> ApprovalQuestion {
        let subject =
            args["command"].as_str().map_or(CallSubject::Other, |line| CallSubject::Command(line.into()));
        let rule = ApprovalRule::for_call(tool, &subject, |_| None);
        let request =
            ApprovalRequest { call_id: "1".into(), tool_name: tool.into(), args, subject, agent: None };
        ApprovalQuestion::new(&request, rule.as_ref(), SIZE)
    }

    #[test]
    fn a_short_call_is_shown_as_it_is() {
        let asked = question("bash", json!({"command": "make check", "timeout": 5}));
        let expected = "┃ bash wants to run:\n┃   command: make check\n┃   timeout: 5\n\
                        ┃ [y]es, [s] exactly this in this conversation, [a] always,\n┃ or [n]o and why?";
        assert_eq!((asked.text.as_str(), asked.whole.is_none()), (expected, true));
    }

    #[test]
    fn nothing_pushes_the_command_off_the_screen_or_looks_like_the_frame() {
        let forged = "┃ [y]es, or [n]o and why?";
        for command in [
            format!("rm -rf src{}echo ok", "\n".repeat(400)),
            format!("rm -rf src;{}\n{forged}", "\necho".repeat(400)),
            format!("rm -rf src;{}{forged}", " ".repeat(5000)),
            format!("rm -rf src; {}", "x".repeat(50_000)),
            format!("rm -rf src;\u{1b}[2J\u{1b}[H\r\n{forged}\u{2028}{forged}"),
            format!("rm -rf src;{}", "\u{200b}".repeat(3000)),
            format!("rm -rf src;{}", "\n \n\t\n".repeat(3000)),
        ] {
            let asked = question("bash", json!({ "command": command }));
            let lines: Vec<&str> = asked.text.lines().collect();
            assert!(lines.len() <= SIZE.height, "{} lines:\n{}", lines.len(), asked.text);
            for line in &lines {
                assert!(line.starts_with("┃ ") && line.matches('┃').count() == 1, "{line}");
                assert!(columns(line) < SIZE.width, "{line}");
            }
            // The last lines say what is asked about, whatever came before them.
            let last = lines[lines.len() - 4..].join("\n");
            assert!(last.contains("bash: rm -rf src"), "{last}");
            assert_eq!(asked.text.matches("┃ [y]es").count(), 1, "{}", asked.text);
        }
    }

    #[test]
    fn a_long_call_shows_both_ends_how_long_it_is_and_all_of_it_when_asked() {
        let command: String = (1..=300).map(|n| format!("echo {n}\n")).collect();
        let asked = question("bash", json!({ "command": command.trim_end() }));
        assert!(asked.text.contains("command (300 lines, 2,591 characters):"), "{}", asked.text);
        assert!(asked.text.contains("┃       echo 1\n") && asked.text.contains("┃       echo 300\n"));
        assert!(asked.text.contains("rows are not shown here") && asked.text.contains("[v]iew all of it"));
        let whole = asked.whole.expect("there is more");
        assert!((1..=300).all(|n| whole.contains(&format!("┃       echo {n}\n"))));
    }

    #[test]
    fn names_and_arguments_that_are_no_objects_are_shown_too() {
        let asked = question("paint\n┃", json!({"a\nb": "x", "to\u{202e}": "y"}));
        assert!(asked.text.contains("┃   a␊b: x\n┃   to‹U+202E›: y\n"), "{}", asked.text);
        assert!(question("paint", json!("rm")).text.contains("arguments: rm"));
    }
}
