//! [`FileExcerpt`]: the lines of a file in a tool's answer, without line numbers, notices and
//! reminders.

use super::line_ranges::LineRanges;

/// Consecutive lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExcerpt {
    /// The number of the first line, from 1.
    first: u64,
    lines: Vec<String>,
    /// The number of the file's last line. `None` if it is not known.
    pub last: Option<u64>,
}

/// What tools say when they show only a part of a file.
const NOTICES: [&str; 5] = ["more lines", "Showing lines", "truncated", "lines omitted", "lines "];

impl FileExcerpt {
    /// The lines in the answer of a read tool that was asked for `wanted` lines from line `from`
    /// on.
    pub fn from_read_result(answer: &str, from: Option<u64>, wanted: Option<u64>) -> Option<Self> {
        let answer = answer.split("\n<system-reminder>").next().unwrap_or(answer);
        if answer.starts_with("<system-reminder>") {
            return None; // an empty file, in Claude Code's words
        }
        let (text, notice) = cut_notice(answer);
        if let Some((first, lines)) = numbered_lines(text) {
            // Claude Code shows at most 2,000 lines unless asked for more.
            let most = wanted.unwrap_or(2000);
            let is_end = notice.is_none() && (lines.len() as u64) < most;
            let last = is_end.then_some(first + lines.len() as u64 - 1);
            return Some(FileExcerpt { first, lines, last });
        }
        Some(FileExcerpt::plain(text, from, wanted, notice))
    }

    /// The lines in the output of a command such as `cat` or `sed -n`.
    pub fn from_command_output(output: &str, from: Option<u64>, wanted: Option<u64>) -> Option<Self> {
        // Codex writes a header before the output.
        let output = match output.split_once("\nOutput:\n") {
            Some((head, output)) if head.starts_with("Exit code:") || head.contains("exited with code") => {
                output
            }
            _ => output,
        };
        if output.contains("truncated") || output.contains("lines omitted") || output.is_empty() {
            return None; // what is missing is not known
        }
        Some(FileExcerpt::plain(output, from, wanted, None))
    }

    fn plain(text: &str, from: Option<u64>, wanted: Option<u64>, notice: Option<&str>) -> Self {
        let first = from.unwrap_or(1);
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let shown_to = first + lines.len() as u64 - 1;
        let last = match notice {
            Some(notice) => number_before(notice, "more lines")
                .map(|more| shown_to + more)
                .or(number_after(notice, " of ")),
            None if wanted.is_some_and(|wanted| lines.len() as u64 >= wanted) => None,
            None => Some(shown_to),
        };
        FileExcerpt { first, lines, last }
    }

    /// Whether the excerpt is the whole file.
    pub fn is_whole(&self) -> bool {
        self.first == 1 && self.last == Some(self.lines.len() as u64)
    }

    /// The lines as text, each with its line end.
    pub fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// The lines with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &String)> {
        (self.first..).zip(&self.lines)
    }

    /// The numbers of the lines.
    pub fn line_ranges(&self) -> LineRanges {
        match self.lines.len() as u64 {
            0 => LineRanges::default(),
            count => LineRanges::span(self.first, self.first + count - 1),
        }
    }

    /// Whether `text` has these lines at these line numbers.
    pub fn agrees_with(&self, text: &str) -> bool {
        let mut there = text.lines().skip(self.first.saturating_sub(1) as usize);
        self.lines.iter().all(|line| there.next() == Some(line.strip_suffix('\r').unwrap_or(line)))
    }
}

/// Splits a notice at the end from the text before it.
fn cut_notice(answer: &str) -> (&str, Option<&str>) {
    let Some((text, end)) = answer.trim_end().rsplit_once('\n') else { return (answer, None) };
    let is_notice = end.len() < 300
        && (end.starts_with("...") || end.starts_with('[') || end.starts_with('(') || end.starts_with('…'))
        && NOTICES.iter().any(|notice| end.contains(notice));
    if is_notice { (text.strip_suffix('\n').unwrap_or(text), Some(end)) } else { (answer, None) }
}

fn number_before(notice: &str, word: &str) -> Option<u64> {
    let before = notice.split_once(word)?.0.trim_end();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn number_after(notice: &str, word: &str) -> Option<u64> {
    let after = notice.split_once(word)?.1;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The first line number and the lines of a text in which every line is numbered. `None` if one is
/// not.
fn numbered_lines(text: &str) -> Option<(u64, Vec<String>)> {
    let mut first = None;
    let mut lines = Vec::new();
    for (index, line) in text.trim_end_matches('\n').split('\n').enumerate() {
        let (number, line) = line.trim_start().split_once(['→', '\t'])?;
        let number: u64 = number.parse().ok()?;
        let first = *first.get_or_insert(number);
        if number != first + index as u64 {
            return None;
        }
        lines.push(line.to_owned());
    }
    first.map(|first| (first, lines))
}
