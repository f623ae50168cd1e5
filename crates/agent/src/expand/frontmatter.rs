//! The YAML at the top of a file, between two lines of `---`.

use serde::de::DeserializeOwned;

/// The front matter, if the text begins with one, and the text below it.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The YAML between the lines.
    pub yaml: Option<&'a str>,
    /// What follows, without blank lines before it and blanks after it.
    pub body: &'a str,
}

/// Cuts a text in two, or says what is wrong with it.
pub fn cut(text: &str) -> Result<Parts<'_>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(Parts { yaml: None, body: tidy(text) });
    };
    let start = first.len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok(Parts { yaml: Some(&text[start..end]), body: tidy(&text[end + line.len()..]) });
        }
        end += line.len();
    }
    Err("its front matter is not closed: put a line of --- below it".into())
}

/// Without the blank lines before the text, whose first line may be indented, and without blanks after it.
fn tidy(text: &str) -> &str {
    let mut rest = text.trim_end();
    while let Some((first, after)) = rest.split_once('\n') {
        if !first.trim().is_empty() {
            break;
        }
        rest = after;
    }
    rest
}

/// Reads the YAML, or says what is wrong with it and in which line of the file.
pub fn read<T: DeserializeOwned + Default>(yaml: &str) -> Result<T, String> {
    // Nothing but comments is null in YAML, and no mapping.
    let says_something = |line: &str| !matches!(line.trim_start().chars().next(), None | Some('#'));
    if !yaml.lines().any(says_something) {
        return Ok(T::default());
    }
    // The line of `---` above it counts, so that line numbers are the file's.
    serde_saphyr::from_str(&format!("\n{yaml}")).map_err(|error: serde_saphyr::Error| {
        let error = error.without_snippet();
        format!(
            "its front matter cannot be read ({error}): correct it; a text that holds \": \" needs quotes"
        )
    })
}

/// A text as one line: every run of blanks is a space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Sample {
        name: Option<String>,
    }

    #[test]
    fn a_text_is_cut_below_its_front_matter() {
        let parts = |yaml, body| Ok(Parts { yaml, body });
        assert_eq!(cut("---\na: 1\n---\n\n  body\nmore\n\n"), parts(Some("a: 1\n"), "  body\nmore"));
        assert_eq!(cut("\u{feff}---\r\na: 1\r\n---\r\nbody\r\n"), parts(Some("a: 1\r\n"), "body"));
        assert_eq!(cut("---\n---"), parts(Some(""), ""));
        assert_eq!(cut("body\n---\nx: 1\n---\n"), parts(None, "body\n---\nx: 1\n---"));
        assert_eq!(cut("----\nbody"), parts(None, "----\nbody"));
        assert_eq!(cut("--- \na: b--- \n---\t\n---"), parts(Some("a: b--- \n"), "---"));
        assert_eq!(cut(""), parts(None, ""));
    }

    #[test]
    fn a_front_matter_that_is_not_closed_is_an_error() {
        assert!(cut("---\na: 1\n").unwrap_err().contains("not closed"));
    }

    #[test]
    fn an_empty_front_matter_says_nothing() {
        assert_eq!(read::<Sample>(" \n# a comment\n"), Ok(Sample { name: None }));
    }

    #[test]
    fn an_error_names_the_line_of_the_file() {
        let said = read::<Sample>("name: a\ndescription: use when: asked\n").unwrap_err();
        assert!(said.contains("line 3"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}
