//! Breaks styled text into lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::width::{clusters, line_width, width};

/// Prose is not set wider than this, however wide the terminal is.
pub const PROSE_WIDTH: usize = 100;

/// Breaks the text at words into lines of at most `columns`. Wide characters (Chinese, Japanese,
/// Korean) break anywhere, and so does a word that fits no line. Only an address stays whole: cut in
/// two it could be neither opened nor copied, so the terminal wraps it.
pub fn wrap(spans: &[Span<'static>], columns: usize) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    let mut writer = LineWriter::default();
    for word in words(spans) {
        if writer.is_started && writer.column + word.gap + word.columns > columns {
            writer.finish_line();
        } else {
            writer.push_gap(&word);
        }
        let is_whole = word.columns <= columns || word.is_address();
        for (cluster, width, style) in word.clusters {
            if !is_whole && writer.is_started && writer.column + width > columns {
                writer.finish_line();
            }
            writer.push(cluster, width, style);
        }
    }
    if writer.is_started || writer.lines.is_empty() {
        writer.finish_line();
    }
    writer.lines
}

/// Like [`wrap`], with `first` before the first line and `rest` before the others. They are part of
/// the width.
pub fn wrap_indented(
    spans: &[Span<'static>],
    columns: usize,
    first: &Span<'static>,
    rest: &Span<'static>,
) -> Vec<Line<'static>> {
    let indent = width(&first.content).max(width(&rest.content));
    let mut lines = wrap(spans, columns.saturating_sub(indent).max(1));
    for (index, line) in lines.iter_mut().enumerate() {
        let indent = if index == 0 { first } else { rest };
        if !indent.content.is_empty() {
            line.spans.insert(0, indent.clone());
        }
    }
    lines
}

/// Longer lines are data rather than sentences: they stay whole, for the terminal to wrap, so that they
/// can be copied.
const LONGEST_SENTENCE: usize = 1_000;

/// Breaks a line of a list or a table at words. What follows is indented: to the second column, if the
/// line has two, else by two more than its beginning.
pub fn wrap_hanging(text: &str, columns: usize) -> Vec<Line<'static>> {
    if width(text) <= columns || text.len() > LONGEST_SENTENCE {
        return vec![Line::from(text.to_owned())];
    }
    let indent = text.len() - text.trim_start_matches(' ').len();
    let gaps: Vec<usize> =
        text.trim_end().match_indices("  ").map(|(at, _)| at + 2).filter(|end| *end > indent).collect();
    // The end of the only gap; a gap of three spaces is two matches or one, side by side.
    let second_column = gaps.first().map(|end| text.len() - text[*end..].trim_start_matches(' ').len());
    let is_list =
        |column: &usize| gaps.iter().all(|end| end <= column) && width(&text[..*column]) * 2 <= columns;
    let (start, hang) = match second_column.filter(is_list) {
        Some(column) => (column, width(&text[..column])),
        None => (indent, indent + 2),
    };
    let rest = [Span::raw(text[start..].to_owned())];
    wrap_indented(&rest, columns, &Span::raw(text[..start].to_owned()), &Span::raw(" ".repeat(hang)))
}

/// Breaks a line wherever it reaches the width, as a terminal does: for code and output in places
/// that the terminal does not wrap itself.
pub fn hard_wrap(line: &Line<'static>, columns: usize) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    if line_width(line) <= columns {
        return vec![line.clone()];
    }
    let mut writer = LineWriter::default();
    for span in &line.spans {
        for (cluster, width) in clusters(&span.content) {
            if writer.is_started && writer.column + width > columns {
                writer.finish_line();
            }
            writer.push(cluster, width, span.style);
        }
    }
    writer.finish_line();
    writer.lines
}

/// Clusters that stay together, and the white space before them.
struct Word<'a> {
    gap: usize,
    gap_style: Style,
    clusters: Vec<(&'a str, usize, Style)>,
    columns: usize,
}

impl Word<'_> {
    fn is_address(&self) -> bool {
        let colon = self.clusters.windows(3).any(|three| {
            let [a, b, c] = [three[0].0, three[1].0, three[2].0];
            (a, b, c) == (":", "/", "/")
        });
        colon && self.clusters.iter().all(|(_, width, _)| *width <= 1)
    }
}

fn words<'a>(spans: &'a [Span<'static>]) -> Vec<Word<'a>> {
    let empty = || Word { gap: 0, gap_style: Style::new(), clusters: Vec::new(), columns: 0 };
    let mut words = Vec::new();
    let mut word = empty();
    for span in spans {
        for (cluster, width) in clusters(&span.content) {
            if cluster == " " {
                if !word.clusters.is_empty() {
                    words.push(std::mem::replace(&mut word, empty()));
                }
                word.gap += 1;
                word.gap_style = span.style;
                continue;
            }
            let last = word.clusters.last();
            let is_break =
                last.is_some_and(|(_, last, _)| *last > 1 || width > 1) && !sticks_to_last(cluster);
            if is_break {
                words.push(std::mem::replace(&mut word, empty()));
            }
            word.clusters.push((cluster, width, span.style));
            word.columns += width;
        }
    }
    if !word.clusters.is_empty() {
        words.push(word);
    }
    words
}

/// Closing signs, which do not begin a line in Chinese, Japanese and Korean text, nor after it.
fn sticks_to_last(cluster: &str) -> bool {
    matches!(
        cluster,
        "。" | "、"
            | "，"
            | "．"
            | "："
            | "；"
            | "！"
            | "？"
            | "）"
            | "」"
            | "』"
            | "】"
            | "》"
            | "〉"
            | "ー"
            | "・"
            | "."
            | ","
            | ":"
            | ";"
            | "!"
            | "?"
            | ")"
            | "]"
            | "}"
            | "\""
            | "'"
            | "”"
            | "’"
    )
}

#[derive(Default)]
struct LineWriter {
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    text: String,
    style: Style,
    column: usize,
    is_started: bool,
}

impl LineWriter {
    fn push(&mut self, text: &str, width: usize, style: Style) {
        if style != self.style {
            self.finish_span();
            self.style = style;
        }
        self.text.push_str(text);
        self.column += width;
        self.is_started = true;
    }

    fn push_gap(&mut self, word: &Word<'_>) {
        for _ in 0..word.gap {
            self.push(" ", 1, word.gap_style);
        }
    }

    fn finish_span(&mut self) {
        if !self.text.is_empty() {
            self.spans.push(Span::styled(std::mem::take(&mut self.text), self.style));
        }
    }

    fn finish_line(&mut self) {
        self.finish_span();
        self.lines.push(Line::from(std::mem::take(&mut self.spans)));
        (self.column, self.is_started) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_lists_and_tables_break_at_words_below_their_text() {
        let shown = |text: &str, columns| {
            wrap_hanging(text, columns).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown("  /cost   what it cost", 40), ["  /cost   what it cost"]);
        assert_eq!(
            shown("  /cost   what this conversation has cost", 24),
            ["  /cost   what this", "          conversation", "          has cost"]
        );
        assert_eq!(
            shown("Nothing was sent yet: nothing to compare", 20),
            ["Nothing was sent", "  yet: nothing to", "  compare"]
        );
        assert_eq!(shown("  a   1,000   $0.10   read", 16), ["  a   1,000", "    $0.10   read"]);
        let data = "x ".repeat(600);
        assert_eq!(shown(&data, 40), [data.as_str()]);
        for columns in 1..30 {
            for line in shown("    世界 and some words of a sentence", columns) {
                assert!(width(&line) <= columns.max(8), "{columns}: {line:?}");
            }
        }
    }

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[Span::raw(text.to_owned())], columns);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_at_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one  two", 80), ["one  two"]);
        assert_eq!(wrapped("", 8), [""]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrapped("世界世界。ok", 5), ["世界", "世", "界。", "ok"]);
    }

    #[test]
    fn addresses_stay_whole() {
        let address = "https://example.org/a/long/path";
        assert_eq!(wrapped(&format!("see {address} there"), 12), ["see", address, "there"]);
    }

    #[test]
    fn styles_survive_a_break() {
        let bold = Style::new().add_modifier(ratatui::style::Modifier::BOLD);
        let lines = wrap(&[Span::raw("a "), Span::styled("bb cc", bold), Span::raw(" d")], 4);
        let expected = [
            Line::from(vec![Span::raw("a "), Span::styled("bb", bold)]),
            Line::from(vec![Span::styled("cc", bold), Span::raw(" d")]),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_hard_break_keeps_every_character() {
        let line = Line::from(vec![Span::raw("let x"), Span::raw(" = 世界;")]);
        let lines: Vec<String> = hard_wrap(&line, 6).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["let x ", "= 世界", ";"]);
    }
}
