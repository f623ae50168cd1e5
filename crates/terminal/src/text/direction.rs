//! Right-to-left text within lines that run from left to right.

use ratatui::text::{Line, Span};

/// U+2068 FIRST STRONG ISOLATE and U+2069 POP DIRECTIONAL ISOLATE.
const ISOLATE: (char, char) = ('\u{2068}', '\u{2069}');

/// The line with an isolate around each run of right-to-left text, so that a terminal which reorders
/// text keeps the columns beside it in place. For the screen, as the last step of printing: blocks
/// themselves hold no such characters.
pub fn isolate_rtl(line: Line<'static>) -> Line<'static> {
    if !line.spans.iter().any(|span| span.content.contains(is_rtl)) {
        return line;
    }
    let isolate = |span: Span<'static>| Span { content: isolate(&span.content).into(), ..span };
    Line { spans: line.spans.into_iter().map(isolate).collect(), ..line }
}

/// Isolates from the first to the last right-to-left character of a run. A run ends with a letter or
/// digit of another script, so that the spaces and signs within it stay in it.
fn isolate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 6);
    let mut rest = text;
    while let Some(start) = rest.find(is_rtl) {
        out.push_str(&rest[..start]);
        let run = &rest[start..];
        let mut end = 0;
        for (at, c) in run.char_indices() {
            if is_rtl(c) {
                end = at + c.len_utf8();
            } else if c.is_alphanumeric() {
                break;
            }
        }
        out.extend([ISOLATE.0]);
        out.push_str(&run[..end]);
        out.push(ISOLATE.1);
        rest = &run[end..];
    }
    out.push_str(rest);
    out
}

/// Whether the character belongs to a script written from right to left (classes R and AL of UAX 9,
/// by blocks).
fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_isolated_and_the_rest_stays() {
        assert_eq!(isolate("12 שלום עולם · 3"), "12 \u{2068}שלום עולם\u{2069} · 3");
        assert_eq!(isolate("a שלום b سلام"), "a \u{2068}שלום\u{2069} b \u{2068}سلام\u{2069}");
        assert_eq!(isolate_rtl(Line::from("plain 世界")), Line::from("plain 世界"));
    }
}
