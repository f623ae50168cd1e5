//! Pages of content that is too long to be shown at once.

/// The longest page, in bytes: about 4,000 tokens.
pub const PAGE_BYTES: usize = 16_000;

/// One page of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// The text, with a line about the other pages if there are any.
    pub text: String,
    /// Which page it is, from 1. Past the end, the last one.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

/// The page `number` of a text, cut at the ends of lines where they are close.
pub fn page_of(text: &str, number: usize) -> Page {
    if text.len() <= PAGE_BYTES {
        return Page { text: text.to_owned(), number: 1, count: 1 };
    }
    let mut pages = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (page, after) = rest.split_at(page_length(rest));
        pages.push(page);
        rest = after;
    }
    let count = pages.len();
    let number = number.clamp(1, count);
    let page = pages[number - 1];
    let gap = if page.ends_with('\n') { "" } else { "\n" };
    Page { text: format!("{page}{gap}[page {number} of {count}]"), number, count }
}

/// How many bytes of a text the first page has; at least one character.
fn page_length(text: &str) -> usize {
    if text.len() <= PAGE_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(PAGE_BYTES);
    text[..end].rfind('\n').map_or(end, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_page_as_it_is() {
        assert_eq!(page_of("a\nb", 7), Page { text: "a\nb".into(), number: 1, count: 1 });
    }

    #[test]
    fn pages_hold_everything_once_and_end_with_lines() {
        let lines: Vec<String> = (0..4000).map(|n| format!("line {n}\n")).collect();
        let text = lines.concat();
        let count = page_of(&text, 1).count;
        assert!(count > 2);
        let mut joined = String::new();
        for number in 1..=count {
            let page = page_of(&text, number);
            let note = format!("[page {number} of {count}]");
            assert!(page.text.len() <= PAGE_BYTES + note.len() + 1);
            joined.push_str(page.text.strip_suffix(&note).unwrap());
        }
        assert_eq!(joined, text);
        assert_eq!(page_of(&text, 99).number, count);
        assert_eq!(page_of(&text, 0).number, 1);
    }

    #[test]
    fn a_line_without_end_is_cut_between_characters() {
        let text = "é".repeat(PAGE_BYTES);
        let count = page_of(&text, 1).count;
        let length: usize = (1..=count).map(|n| page_of(&text, n).text.matches('é').count()).sum();
        assert_eq!(length, PAGE_BYTES);
    }
}
