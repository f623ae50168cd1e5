//! [`Template`]: a prompt with placeholders for arguments.

use std::path::PathBuf;

use super::arguments::{self, FilledTemplate};
use super::{ExpandedText, UsedExpansion};

/// A prompt that is used again and again, with placeholders for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The name it is called by: its file's name without `.md`.
    pub name: String,
    /// What it is for, in one line: from the front matter, or else the first line of its text.
    pub description: String,
    /// Which arguments it takes, for completion: `<issue> [crate…]`.
    pub argument_hint: Option<String>,
    /// Path of the template's file.
    pub path: PathBuf,
    /// The text below the front matter.
    pub body: String,
    /// Whether the model may be told of it: false for what the user has for another agent.
    pub listed: bool,
    /// What the person is told when it is called: what of the file Hardpan does not do.
    pub notes: Vec<String>,
}

impl Template {
    /// Expands `/name rest`.
    pub(super) fn expand(&self, rest: &str) -> ExpandedText {
        let words = arguments::split(rest);
        let FilledTemplate { text, unused, missing } = arguments::fill(&self.body, &words.list);
        let name = &self.name;
        let mut notes: Vec<String> = self.notes.iter().map(|note| format!("/{name}: {note}")).collect();
        if let Some(quote) = words.unclosed {
            notes.push(format!(
                "/{name}: the quote {quote} is not closed, so it takes everything after it; \
                 write \\{quote} for the character itself"
            ));
        }
        if !missing.is_empty() {
            let places: Vec<String> = missing.iter().map(|index| format!("${index}")).collect();
            notes.push(format!("/{name}: no argument for {}, left empty", places.join(", ")));
        }
        if !unused.is_empty() {
            let quoted: Vec<String> = unused.iter().map(|argument| format!("\"{argument}\"")).collect();
            notes.push(format!("/{name} has no place for {}, which is not sent", quoted.join(", ")));
        }
        ExpandedText { text, used: Some(UsedExpansion::Template(name.clone())), notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(body: &str) -> Template {
        Template {
            name: "t".into(),
            description: String::new(),
            argument_hint: None,
            path: "t.md".into(),
            body: body.into(),
            listed: true,
            notes: Vec::new(),
        }
    }

    #[test]
    fn what_is_not_sent_is_said() {
        let expanded = template("no places").expand(" one 'two three'");
        assert_eq!(expanded.text, "no places");
        assert_eq!(expanded.notes, ["/t has no place for \"one\", \"two three\", which is not sent"]);
        assert_eq!(template("$1").expand("a b").notes, ["/t has no place for \"b\", which is not sent"]);
        assert!(template("${@:2} $1").expand("a b c").notes.is_empty());
    }

    #[test]
    fn what_is_missing_is_said() {
        let expanded = template("[$2] [$3] [$2] [$@]").expand("a");
        assert_eq!(expanded.text, "[] [] [] [a]");
        assert_eq!(expanded.notes, ["/t: no argument for $2, $3, left empty"]);
    }

    #[test]
    fn an_unclosed_quote_is_said() {
        let expanded = template("$1|$2").expand("fix don't do it");
        assert_eq!(expanded.text, "fix|dont do it");
        let note = "/t: the quote ' is not closed, so it takes everything after it; \
                    write \\' for the character itself";
        assert_eq!(expanded.notes, [note]);
    }
}
