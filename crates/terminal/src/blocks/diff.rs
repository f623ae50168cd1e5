//! [`FileDiff`]: what a change does to a file, as lines with numbers and the changed words marked.

mod side_by_side;
mod words;

use std::ops::Range;
use std::time::Duration;

use ratatui::text::{Line, Span};
use similar::{DiffOp, TextDiff};

use super::format::counted;
use super::highlight::Highlighter;
use crate::text::escape;
use crate::theme::{Palette, Role, Theme};
use words::{changed_words, restyle};

pub use side_by_side::side_by_side;

/// Unchanged lines around a change.
pub const CONTEXT_LINES: usize = 2;

/// Narrower terminals get diffs without an indent.
const NARROW: usize = 60;

/// After this time a diff of large files is no longer the smallest one.
const DEADLINE: Duration = Duration::from_millis(200);

/// The changes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    path: String,
    before: Vec<String>,
    after: Vec<String>,
    lines: Vec<DiffLine>,
}

/// A line of the file before or after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DiffLine {
    kind: DiffKind,
    /// Its index in the file before the change, unless it is new.
    old: Option<usize>,
    /// Its index in the file after the change, unless it is gone.
    new: Option<usize>,
    /// The bytes of its text that differ from the line it replaces.
    changed: Vec<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffKind {
    Same,
    Removed,
    Added,
}

impl FileDiff {
    /// Compares two states of a file. The path tells the language.
    pub fn new(path: &str, before: &str, after: &str) -> Self {
        // Where both have the line ends of Windows, these are not worth a sign.
        let has_crlf = |text: &str| text.contains("\r\n");
        let hides_crlf = has_crlf(before) == has_crlf(after) || before.is_empty() || after.is_empty();
        let lines = |text: &str| -> Vec<String> {
            let strip = |line: &'_ str| {
                let line = if hides_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
                escape(line).into_owned()
            };
            let text = text.strip_suffix('\n').map_or_else(|| text.to_owned(), str::to_owned);
            if text.is_empty() { Vec::new() } else { text.split('\n').map(strip).collect() }
        };
        let mut diff =
            FileDiff { path: path.to_owned(), before: lines(before), after: lines(after), lines: Vec::new() };
        diff.compare();
        diff
    }

    fn compare(&mut self) {
        let (before, after): (Vec<&str>, Vec<&str>) = (
            self.before.iter().map(String::as_str).collect(),
            self.after.iter().map(String::as_str).collect(),
        );
        let diff = TextDiff::configure().timeout(DEADLINE).diff_slices(&before, &after);
        for op in diff.ops() {
            let (old, new) = (op.old_range(), op.new_range());
            if let DiffOp::Equal { .. } = op {
                self.lines.extend(old.zip(new).map(|(old, new)| DiffLine {
                    kind: DiffKind::Same,
                    old: Some(old),
                    new: Some(new),
                    changed: Vec::new(),
                }));
                continue;
            }
            let pairs: Vec<_> = old
                .clone()
                .zip(new.clone())
                .map(|(old, new)| changed_words(before[old], after[new]))
                .collect();
            let start = (old.start, new.start);
            self.lines.extend(old.map(|old| DiffLine {
                kind: DiffKind::Removed,
                old: Some(old),
                new: None,
                changed: pairs.get(old - start.0).map(|pair| pair.0.clone()).unwrap_or_default(),
            }));
            self.lines.extend(new.map(|new| DiffLine {
                kind: DiffKind::Added,
                old: None,
                new: Some(new),
                changed: pairs.get(new - start.1).map(|pair| pair.1.clone()).unwrap_or_default(),
            }));
        }
    }

    /// The file's path, as given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The number of added lines.
    pub fn added(&self) -> usize {
        self.lines.iter().filter(|line| line.kind == DiffKind::Added).count()
    }

    /// The number of removed lines.
    pub fn removed(&self) -> usize {
        self.lines.iter().filter(|line| line.kind == DiffKind::Removed).count()
    }

    /// What to say about it in a line: `+4 −1`, `2 places`.
    pub fn facts(&self, theme: &Theme) -> Vec<String> {
        let mut facts = vec![line_counts(self.added(), self.removed(), theme)];
        let places = self.hunks(CONTEXT_LINES).len();
        if places > 1 {
            facts.push(counted(places, "place", "places"));
        }
        facts
    }

    /// The changed lines with their surroundings, under each other. Lines are not cut.
    pub fn unified(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let hunks = self.hunks(CONTEXT_LINES);
        let shown = || hunks.iter().flat_map(|hunk| &self.lines[hunk.clone()]);
        let digits = shown().map(|line| line.number().to_string().len()).max().unwrap_or(1).max(2);
        let is_narrow = width < NARROW;
        let indent = " ".repeat(if is_narrow { 0 } else { 4 });
        let spaces = |line: &DiffLine| {
            let text = self.text(line);
            (!text.is_empty()).then(|| text.len() - text.trim_start_matches(' ').len())
        };
        let dedent = if is_narrow { shown().filter_map(spaces).min().unwrap_or(0) } else { 0 };
        let code = self.highlighted(theme);
        let mut out = Vec::new();
        for (index, hunk) in hunks.iter().enumerate() {
            if index > 0 {
                let gap = format!("{indent}{:>digits$}", theme.glyphs.gap);
                out.push(Line::styled(gap, theme.style(Role::Quiet)));
            }
            for line in &self.lines[hunk.clone()] {
                let role = line.kind.role();
                let number = format!("{indent}{:>digits$} ", line.number());
                let sign = format!("{} ", line.kind.sign());
                let number_role = if role == Role::Text { Role::Quiet } else { role };
                let mut spans = vec![Span::styled(number, theme.style(number_role))];
                spans.push(Span::styled(sign, theme.style(role)));
                spans.extend(skip_bytes(self.spans(line, &code, theme), dedent));
                if self.text(line).trim().is_empty() && line.kind == DiffKind::Same {
                    spans.truncate(1);
                }
                out.push(Line::from(spans));
            }
        }
        out
    }

    /// The ranges of lines with changes and what surrounds them.
    fn hunks(&self, context: usize) -> Vec<Range<usize>> {
        let mut hunks: Vec<Range<usize>> = Vec::new();
        for (index, _) in self.lines.iter().enumerate().filter(|(_, line)| line.kind != DiffKind::Same) {
            let start = index.saturating_sub(context);
            let end = (index + 1 + context).min(self.lines.len());
            match hunks.last_mut() {
                // A gap of one line would take as much room as the line.
                Some(last) if start <= last.end + 1 => last.end = end,
                _ => hunks.push(start..end),
            }
        }
        hunks
    }

    fn text(&self, line: &DiffLine) -> &str {
        match (line.new, line.old) {
            (Some(new), _) => &self.after[new],
            (None, Some(old)) => &self.before[old],
            (None, None) => "",
        }
    }

    /// The text of a line with its styles. With 16 colours, a changed line has the colour of its sign:
    /// green strings would look like added text.
    fn spans(&self, line: &DiffLine, code: &Code, theme: &Theme) -> Vec<Span<'static>> {
        let highlighted = match (line.new, line.old) {
            (Some(new), _) => code.after.get(new),
            (None, Some(old)) => code.before.get(old),
            (None, None) => None,
        };
        let role = line.kind.role();
        let spans = match highlighted {
            Some(spans) => spans.clone(),
            None => vec![Span::styled(self.text(line).to_owned(), theme.style(role))],
        };
        if line.changed.is_empty() { spans } else { restyle(spans, &line.changed, theme.changed_words(role)) }
    }

    /// Both states of the whole file: a hunk alone does not tell whether it is within a comment.
    fn highlighted(&self, theme: &Theme) -> Code {
        let has_room = matches!(theme.palette, Palette::Light | Palette::Dark);
        let read = |lines: &[String]| -> Vec<Vec<Span<'static>>> {
            let Some(mut highlighter) = Highlighter::for_path(&self.path).filter(|_| has_room) else {
                return Vec::new();
            };
            lines.iter().map(|line| highlighter.spans(line, theme)).collect()
        };
        Code { before: read(&self.before), after: read(&self.after) }
    }
}

/// The highlighted lines of both states; empty if they are not highlighted.
struct Code {
    before: Vec<Vec<Span<'static>>>,
    after: Vec<Vec<Span<'static>>>,
}

impl DiffLine {
    /// What the line is called in the file: after the change if it is still there.
    fn number(&self) -> usize {
        self.new.or(self.old).unwrap_or(0) + 1
    }
}

impl DiffKind {
    fn role(self) -> Role {
        match self {
            DiffKind::Same => Role::Text,
            DiffKind::Removed => Role::Danger,
            DiffKind::Added => Role::Good,
        }
    }

    fn sign(self) -> char {
        match self {
            DiffKind::Same => ' ',
            DiffKind::Removed => '-',
            DiffKind::Added => '+',
        }
    }
}

/// `+4 −1`, without a part that is zero.
pub fn line_counts(added: usize, removed: usize, theme: &Theme) -> String {
    let minus = theme.glyphs.minus;
    match (added, removed) {
        (0, 0) => "no change".to_owned(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("{minus}{removed}"),
        (added, removed) => format!("+{added} {minus}{removed}"),
    }
}

fn skip_bytes(spans: Vec<Span<'static>>, mut bytes: usize) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    for span in spans {
        let skipped = bytes.min(span.content.len());
        bytes -= skipped;
        if skipped < span.content.len() {
            out.push(Span::styled(span.content[skipped..].to_owned(), span.style));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::golden::{drawing, marked};

    const BEFORE: &str = "a\nb\nexport function score(i: number) {\n  if (last >= 0) {\n    score += (i - last - 1) * 2;\n  }\n  return score;\n}\nx\ny\nz\n// end\n";
    const AFTER: &str = "a\nb\nexport function score(i: number) {\n  if (last >= 0) {\n    score += Math.min(i - last - 1, MAX) * 2;\n  }\n  return score;\n}\nx\ny\nz\nconst MAX = 24;\n\n// end\n";

    #[test]
    fn changes_are_numbered_and_signed() {
        let diff = FileDiff::new("src/score.ts", BEFORE, AFTER);
        assert_eq!(diff.facts(&Theme::default()), ["+3 −1", "2 places"]);
        insta::assert_snapshot!(drawing(&diff.unified(80, &Theme::default())), @r"
            3   export function score(i: number) {
            4     if (last >= 0) {
            5 -     score += (i - last - 1) * 2;
            5 +     score += Math.min(i - last - 1, MAX) * 2;
            6     }
            7     return score;
            ⋮
           10   y
           11   z
           12 + const MAX = 24;
           13 +
           14   // end
        ");
        let edit = FileDiff::new("a.ts", "  if (a) {\n    b();\n  }\n", "  if (a) {\n    c();\n  }\n");
        insta::assert_snapshot!(drawing(&edit.unified(40, &Theme::default())), @r"
         1   if (a) {
         2 -   b();
         2 +   c();
         3   }
        ");
    }

    #[test]
    fn changed_words_are_marked() {
        let diff = FileDiff::new("a.ts", "let total = count * 2;\n", "let total = count * price;\n");
        for palette in Palette::ALL {
            let theme = Theme { palette, ..Theme::default() };
            let lines = diff.unified(80, &theme);
            assert_eq!(marked(&lines[..1], theme.changed_words(Role::Danger)), ["2"], "{palette:?}");
            assert_eq!(marked(&lines[1..], theme.changed_words(Role::Good)), ["price"], "{palette:?}");
        }
    }

    #[test]
    fn files_that_come_and_go() {
        let theme = Theme::default();
        let new = FileDiff::new("a.rs", "", "fn a() {}\n");
        assert_eq!(
            (new.facts(&theme), drawing(&new.unified(80, &theme))),
            (vec!["+1".into()], "     1 + fn a() {}\n".into())
        );
        let gone = FileDiff::new("a.rs", "fn a() {}\n", "");
        assert_eq!(gone.facts(&theme), ["−1"]);
        let same = FileDiff::new("a.rs", "a\n", "a\n");
        assert_eq!((same.facts(&theme), same.unified(80, &theme).len()), (vec!["no change".into()], 0));
        let ends = FileDiff::new("a.txt", "a\r\nb\r\n", "a\nb\n");
        assert_eq!(drawing(&ends.unified(80, &theme)).lines().next(), Some("     1 - a^M"));
    }
}
