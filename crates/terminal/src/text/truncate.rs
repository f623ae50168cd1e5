//! Text that is too long for its place. An ellipsis marks every cut.

use ratatui::text::{Line, Span};

use super::width::{clusters, line_width, width};

/// The beginning of the text, in at most `columns`.
pub fn truncate(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (ellipsis, room) = room_beside(ellipsis, columns);
    format!("{}{ellipsis}", head(text, room))
}

/// The beginning and the end of the text, in at most `columns`.
pub fn truncate_middle(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (ellipsis, room) = room_beside(ellipsis, columns);
    let end = tail(text, room / 2);
    format!("{}{ellipsis}{end}", head(text, room - width(end)))
}

/// The end of a path, in at most `columns`; cut before a folder if one fits: `…/src/fuzzy.ts`.
pub fn truncate_path(path: &str, columns: usize, ellipsis: &str) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let (ellipsis, room) = room_beside(ellipsis, columns);
    let end = tail(path, room);
    // A name alone that is too long loses its beginning; otherwise whole folders go.
    let cut = if end.starts_with('/') { 0 } else { end.find('/').unwrap_or(0) };
    format!("{ellipsis}{}", &end[cut..])
}

/// The beginning of a line, in at most `columns`, with its styles.
pub fn truncate_line(line: Line<'static>, columns: usize, ellipsis: &str) -> Line<'static> {
    if line_width(&line) <= columns {
        return line;
    }
    let (ellipsis, mut room) = room_beside(ellipsis, columns);
    let mut spans = Vec::new();
    for span in line.spans {
        let columns = width(&span.content);
        if columns <= room {
            room -= columns;
            spans.push(span);
            continue;
        }
        let kept = head(&span.content, room);
        spans.push(Span::styled(format!("{kept}{ellipsis}"), span.style));
        break;
    }
    Line { spans, ..line }
}

/// The ellipsis, as far as it fits, and the columns beside it.
fn room_beside(ellipsis: &str, columns: usize) -> (&str, usize) {
    let ellipsis = head(ellipsis, columns);
    (ellipsis, columns - width(ellipsis))
}

fn head(text: &str, columns: usize) -> &str {
    let (mut used, mut end) = (0, 0);
    for (cluster, width) in clusters(text) {
        used += width;
        if used > columns {
            break;
        }
        end += cluster.len();
    }
    &text[..end]
}

fn tail(text: &str, columns: usize) -> &str {
    let mut over = width(text).saturating_sub(columns);
    let mut start = 0;
    for (cluster, width) in clusters(text) {
        if over == 0 {
            break;
        }
        over = over.saturating_sub(width);
        start += cluster.len();
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits_and_says_so() {
        assert_eq!(truncate("something long", 9, "…"), "somethin…");
        assert_eq!(truncate("世界世界", 4, "…"), "世…");
        assert_eq!(truncate("abc", 2, "..."), "..");
        assert_eq!(truncate_middle("beginning and end", 9, "…"), "begi… end");
        assert_eq!(truncate_path("packages/tui/src/fuzzy.ts", 18, "…"), "…/tui/src/fuzzy.ts");
        assert_eq!(truncate_path("packages/tui/src/fuzzy.ts", 17, "…"), "…/src/fuzzy.ts");
        assert_eq!(truncate_path("packages/tui/src/fuzzy.ts", 6, "…"), "…zy.ts");
    }

    #[test]
    fn no_cut_is_wider_than_asked_for() {
        for text in ["", "a", "a/b/c", "世界/世界", "👩\u{200d}💻 and more", "e\u{301}e\u{301}e\u{301}/x"]
        {
            for columns in 0..12 {
                for ellipsis in ["…", "..."] {
                    assert!(width(&truncate(text, columns, ellipsis)) <= columns);
                    assert!(width(&truncate_middle(text, columns, ellipsis)) <= columns);
                    assert!(width(&truncate_path(text, columns, ellipsis)) <= columns);
                    let line = truncate_line(Line::from(text), columns, ellipsis);
                    assert!(line_width(&line) <= columns);
                }
            }
        }
    }
}
