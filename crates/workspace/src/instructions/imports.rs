//! [`find_imports`]: the files that an instruction file names with `@path`.

/// The paths that a text imports, in order, each once: a word that begins with `@`, outside of code
/// spans and code blocks. Punctuation at the end of the word is not part of the path.
pub(super) fn find_imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut open_ticks = 0;
    for line in text.lines() {
        let trimmed = line.trim_start_matches(' ');
        let marker = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = marker.map_or(0, |marker| trimmed.chars().take_while(|c| *c == marker).count());
        let is_fence = length >= 3 && line.len() - trimmed.len() <= 3;
        match (fence, marker) {
            (Some((open, least)), Some(marker)) if is_fence && marker == open && length >= least => {
                if trimmed[length..].trim().is_empty() {
                    fence = None;
                }
            }
            (Some(_), _) => {}
            // A fence of backticks has none after it in its line: that would be a code span.
            (None, Some(marker)) if is_fence && !(marker == '`' && trimmed[length..].contains('`')) => {
                fence = Some((marker, length));
                open_ticks = 0;
            }
            _ => {
                if trimmed.is_empty() {
                    open_ticks = 0; // a code span ends with its paragraph
                }
                find_in_line(line, &mut open_ticks, &mut found);
            }
        }
    }
    found
}

/// Whether a text says nothing but what it imports.
pub(super) fn is_imports_alone(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.len() > 1 && word.starts_with('@'))
}

/// `open_ticks` is the number of backticks that began a code span which has not ended yet.
fn find_in_line<'a>(line: &'a str, open_ticks: &mut usize, found: &mut Vec<&'a str>) {
    let mut before = ' ';
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            let ticks = rest.chars().take_while(|c| *c == '`').count();
            match *open_ticks {
                0 => *open_ticks = ticks,
                open if open == ticks => *open_ticks = 0,
                _ => {}
            }
            rest = &rest[ticks..];
        } else if c == '@' && *open_ticks == 0 && before.is_whitespace() {
            let end = rest.find(|c: char| c.is_whitespace() || c == '`').unwrap_or(rest.len());
            let path = rest[1..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
            rest = &rest[end..];
        } else {
            rest = &rest[c.len_utf8()..];
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_an_at_sign_are_imports_outside_of_code() {
        let text = "See @README.md, and @docs/a.md. Mail me@x.org.\n`@no.md` ``a ` @no.md`` @~/mine.md\n\
                    ```sh\n@no.md\n```\n~~~\n```\n@no.md\n~~~\n- @b.md\n@README.md\nopen ` @no.md\n@no.md ` @c.md\n";
        assert_eq!(find_imports(text), ["README.md", "docs/a.md", "~/mine.md", "b.md", "c.md"]);
    }

    #[test]
    fn an_open_code_span_ends_with_its_paragraph() {
        assert_eq!(find_imports("a ` b @no.md\n\n@yes.md"), ["yes.md"]);
    }

    #[test]
    fn a_file_that_only_imports_is_known() {
        assert!(is_imports_alone("@AGENTS.md\n\n@docs/a.md\n"));
        assert!(!is_imports_alone("See @AGENTS.md"));
        assert!(!is_imports_alone(" \n"));
    }
}
