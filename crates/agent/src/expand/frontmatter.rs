//! The YAML front matter at the top of a file, between two lines of `---`.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::ExpansionFault;

/// The front matter, if the text begins with one, and the text below it.
#[derive(Debug, PartialEq, Eq)]
pub struct FrontMatterSplit<'a> {
    /// The YAML between the two lines; `None` without front matter.
    pub yaml: Option<&'a str>,
    /// The text below, without leading blank lines and trailing white space.
    pub body: &'a str,
}

/// Splits a text into front matter and body, or says what is wrong with it.
pub fn split(text: &str) -> Result<FrontMatterSplit<'_>, ExpansionFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(FrontMatterSplit { yaml: None, body: tidy(text) });
    };
    let start = first.len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok(FrontMatterSplit {
                yaml: Some(&text[start..end]),
                body: tidy(&text[end + line.len()..]),
            });
        }
        end += line.len();
    }
    Err(ExpansionFault::OpenFrontMatter)
}

/// Removes leading blank lines and trailing white space, but keeps the first line's indentation.
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

/// Parses the YAML, or says what is wrong with it and in which line of the file.
pub fn parse<T: DeserializeOwned + Default>(yaml: &str) -> Result<T, ExpansionFault> {
    // YAML of nothing but comments is null, not an empty mapping.
    let says_something = |line: &str| !matches!(line.trim_start().chars().next(), None | Some('#'));
    if !yaml.lines().any(says_something) {
        return Ok(T::default());
    }
    // One line more for the `---` above, so that line numbers are the file's.
    serde_saphyr::from_str(&format!("\n{yaml}")).map_err(|error| ExpansionFault::FrontMatter(Arc::new(error)))
}

/// Joins a text into one line: every run of white space becomes a space.
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
        let parts = |yaml, body| FrontMatterSplit { yaml, body };
        let split = |text| split(text).unwrap();
        assert_eq!(split("---\na: 1\n---\n\n  body\nmore\n\n"), parts(Some("a: 1\n"), "  body\nmore"));
        assert_eq!(split("\u{feff}---\r\na: 1\r\n---\r\nbody\r\n"), parts(Some("a: 1\r\n"), "body"));
        assert_eq!(split("---\n---"), parts(Some(""), ""));
        assert_eq!(split("body\n---\nx: 1\n---\n"), parts(None, "body\n---\nx: 1\n---"));
        assert_eq!(split("----\nbody"), parts(None, "----\nbody"));
        assert_eq!(split("--- \na: b--- \n---\t\n---"), parts(Some("a: b--- \n"), "---"));
        assert_eq!(split(""), parts(None, ""));
    }

    #[test]
    fn a_front_matter_that_is_not_closed_is_an_error() {
        assert!(matches!(split("---\na: 1\n"), Err(ExpansionFault::OpenFrontMatter)));
    }

    #[test]
    fn an_empty_front_matter_says_nothing() {
        assert_eq!(parse::<Sample>(" \n# a comment\n").unwrap(), Sample { name: None });
    }

    #[test]
    fn an_error_names_the_line_of_the_file() {
        let error = parse::<Sample>("name: a\ndescription: use when: asked\n").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
