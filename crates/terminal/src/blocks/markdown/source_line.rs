//! What a line of Markdown begins.

/// What a line begins, by its first characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind<'a> {
    Blank,
    Heading {
        level: usize,
        text: &'a str,
    },
    Rule,
    Fence(FenceMark<'a>),
    Quote {
        content: &'a str,
    },
    Item(ItemMark<'a>),
    /// Four spaces or more.
    Indented,
    Text,
}

/// The line that opens a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FenceMark<'a> {
    pub indent: usize,
    pub mark: char,
    pub length: usize,
    /// What follows the marks: the language, and more.
    pub info: &'a str,
}

/// The beginning of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemMark<'a> {
    /// `-`, `*`, `+`, or what follows the number: `.`, `)`.
    pub mark: char,
    pub number: Option<u64>,
    /// The column where its text begins.
    pub offset: usize,
    pub content: &'a str,
}

impl<'a> LineKind<'a> {
    pub fn of(line: &'a str) -> Self {
        let indent = indent(line);
        let text = &line[indent..];
        if text.trim_end().is_empty() {
            return LineKind::Blank;
        }
        if indent >= 4 {
            return LineKind::Indented;
        }
        if let Some(fence) = fence(text, indent) {
            return LineKind::Fence(fence);
        }
        if let Some(content) = text.strip_prefix('>') {
            return LineKind::Quote { content: content.strip_prefix(' ').unwrap_or(content) };
        }
        if let Some((level, text)) = heading(text) {
            return LineKind::Heading { level, text };
        }
        if is_rule(text) {
            return LineKind::Rule;
        }
        item(text, indent).map_or(LineKind::Text, LineKind::Item)
    }

    /// Whether the line ends a paragraph before it.
    pub fn interrupts_paragraph(&self) -> bool {
        match self {
            LineKind::Item(item) => !item.content.trim().is_empty() && item.number.is_none_or(|n| n == 1),
            LineKind::Indented | LineKind::Text => false,
            _ => true,
        }
    }
}

/// The spaces that the line begins with.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The line without its first `columns` spaces, or as many as it has.
pub(super) fn dedent(line: &str, columns: usize) -> &str {
    &line[indent(line).min(columns)..]
}

/// The level of the heading that a line of `=` or `-` makes of the paragraph above it.
pub(super) fn underline_level(line: &str) -> Option<usize> {
    let text = line.trim_end();
    if indent(text) > 3 || text.trim_start().is_empty() {
        return None;
    }
    let text = text.trim_start();
    if text.chars().all(|c| c == '=') {
        return Some(1);
    }
    text.chars().all(|c| c == '-').then_some(2)
}

/// Whether a line whose end is not known consists of marks alone, so that it may become anything.
pub(super) fn is_unfinished_mark(line: &str) -> bool {
    let text = line.trim();
    let is_number = text.len() < 5 && text.trim_end_matches(['.', ')']).chars().all(|c| c.is_ascii_digit());
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    is_fence
        || is_number
        || text.chars().all(|c| matches!(c, '#' | '-' | '=' | '*' | '_' | '+' | '|' | ':' | '`' | '~' | ' '))
}

fn fence(text: &str, indent: usize) -> Option<FenceMark<'_>> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.len() - text.trim_start_matches(mark).len();
    let info = text[length..].trim();
    let is_code_span = mark == '`' && info.contains('`');
    (length >= 3 && !is_code_span).then_some(FenceMark { indent, mark, length, info })
}

fn heading(text: &str) -> Option<(usize, &str)> {
    let level = text.len() - text.trim_start_matches('#').len();
    let rest = &text[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest = rest.trim();
    let without_end = rest.trim_end_matches('#');
    let is_closed = without_end.is_empty() || without_end.ends_with(' ');
    Some((level, if is_closed { without_end.trim_end() } else { rest }))
}

fn is_rule(text: &str) -> bool {
    ['-', '*', '_'].into_iter().any(|mark| {
        text.chars().filter(|c| *c == mark).count() >= 3 && text.chars().all(|c| c == mark || c == ' ')
    })
}

fn item(text: &str, indent: usize) -> Option<ItemMark<'_>> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = text[digits..].chars().next()?;
    let number = match (digits, mark) {
        (0, '-' | '*' | '+') => None,
        (1..=9, '.' | ')') => Some(text[..digits].parse().ok()?),
        _ => return None,
    };
    let rest = &text[digits + 1..];
    let spaces = self::indent(rest);
    let is_empty = rest.trim().is_empty();
    if spaces == 0 && !is_empty {
        return None;
    }
    // Five spaces or more: code within the item, one space after its mark.
    let spaces = if is_empty || spaces > 4 { 1 } else { spaces };
    let content = rest.get(spaces..).unwrap_or("");
    Some(ItemMark { mark, number, offset: indent + digits + 1 + spaces, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(LineKind::of("  \t"), LineKind::Blank);
        assert_eq!(LineKind::of("## Title ##"), LineKind::Heading { level: 2, text: "Title" });
        assert_eq!(LineKind::of("#hashtag"), LineKind::Text);
        assert_eq!(LineKind::of("* * *"), LineKind::Rule);
        assert_eq!(LineKind::of("> a"), LineKind::Quote { content: "a" });
        let fence = FenceMark { indent: 2, mark: '`', length: 3, info: "rust" };
        assert_eq!(LineKind::of("  ```rust"), LineKind::Fence(fence));
        assert_eq!(LineKind::of("```a``` b"), LineKind::Text);
        let item = ItemMark { mark: '.', number: Some(12), offset: 4, content: "a" };
        assert_eq!(LineKind::of("12. a"), LineKind::Item(item));
        assert_eq!(LineKind::of("-a"), LineKind::Text);
        assert_eq!(LineKind::of("**bold**"), LineKind::Text);
        assert_eq!(LineKind::of("     x"), LineKind::Indented);
        assert_eq!(
            (underline_level("==="), underline_level("--"), underline_level("a")),
            (Some(1), Some(2), None)
        );
    }
}
