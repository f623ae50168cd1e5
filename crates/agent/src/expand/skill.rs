//! [`Skill`]: instructions for one kind of work.

use std::path::PathBuf;

use super::{ExpandedText, UsedExpansion};

/// Instructions for one kind of work, which the model reads when they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name it is called by: `/skill:name`.
    pub name: String,
    /// When to use it, in one line; listed in the system prompt.
    pub description: String,
    /// The path that the model sees: relative to the project for a project's skill, absolute for a
    /// user's.
    pub location: String,
    /// Path of the skill's file.
    pub path: PathBuf,
    /// The text below the front matter.
    pub body: String,
    /// Whether the system prompt lists it: false with `disable-model-invocation: true`.
    pub listed: bool,
    /// Whether it is not listed because the user keeps it in the home folder for another agent.
    pub is_kept_back: bool,
}

impl Skill {
    /// Expands `/skill:name rest`.
    pub(super) fn expand(&self, rest: &str) -> ExpandedText {
        let arguments = as_typed(rest);
        let mut text = self.element();
        if !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        ExpandedText { text, used: Some(UsedExpansion::Skill(self.name.clone())), notes: Vec::new() }
    }

    /// The skill's entry in the system prompt's list.
    pub(super) fn listing_entry(&self) -> hardpan_context::Skill {
        hardpan_context::Skill {
            name: self.name.clone(),
            description: self.description.clone(),
            location: self.location.clone(),
        }
    }

    fn element(&self) -> String {
        let folder = match self.location.rsplit_once('/') {
            Some(("", _)) => "/",
            Some((folder, _)) => folder,
            None => ".",
        };
        format!(
            "<skill name=\"{}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
            attribute(&self.name),
            attribute(&self.location),
            within_element("skill", folder),
            within_element("skill", &self.body),
        )
    }
}

/// The arguments without surrounding blanks. Indentation after a line end is kept: the user typed
/// it.
fn as_typed(rest: &str) -> &str {
    rest.trim_start_matches([' ', '\t']).trim_start_matches(['\r', '\n']).trim_end()
}

/// Escapes a value for double quotes.
fn attribute(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a text for an element of this name: `</name` becomes `<\/name`, as in a script, so that
/// the text cannot end the element.
pub fn within_element(name: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        if is_closing(name, after) {
            out.push('\\');
        }
        rest = after;
    }
    out + rest
}

/// Whether the text after a `<` closes the element, however it is spaced and capitalised.
fn is_closing(name: &str, after: &str) -> bool {
    let closed = after.trim_start().strip_prefix('/').map(str::trim_start);
    closed.and_then(|closed| closed.get(..name.len())).is_some_and(|closed| closed.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(location: &str, body: &str) -> Skill {
        Skill {
            name: "sort".into(),
            description: "Sorts.".into(),
            location: location.into(),
            path: location.into(),
            body: body.into(),
            listed: true,
            is_kept_back: false,
        }
    }

    #[test]
    fn the_body_stands_in_an_element_and_the_arguments_after_it() {
        let sort = skill("/home/u/skills/sort/SKILL.md", "Run `sort.sh`.");
        let element = "<skill name=\"sort\" location=\"/home/u/skills/sort/SKILL.md\">\n\
                       References are relative to /home/u/skills/sort.\n\nRun `sort.sh`.\n</skill>";
        assert_eq!(sort.expand("").text, element);
        assert_eq!(sort.expand("  \n ").text, element);
        assert_eq!(sort.expand("  'a  b' $1 \"c\n d\" \n").text, format!("{element}\n\n'a  b' $1 \"c\n d\""));
        assert_eq!(sort.expand(" \n  indented").text, format!("{element}\n\n  indented"));
        assert_eq!(sort.expand("").used, Some(UsedExpansion::Skill("sort".into())));
    }

    #[test]
    fn a_body_cannot_end_its_element() {
        let body = "a </skill> b </ SKILL\n> c < /skill> d </s> <skill> e </skil";
        let text = skill("s/x.md", body).expand("").text;
        let inside = "a <\\/skill> b <\\/ SKILL\n> c <\\ /skill> d </s> <skill> e </skil";
        let expected = "<skill name=\"sort\" location=\"s/x.md\">\nReferences are relative to s.\n\n";
        assert_eq!(text, format!("{expected}{inside}\n</skill>"));
    }

    #[test]
    fn attributes_are_escaped() {
        let text = skill("a\"b<&>\n/x.md", "B").expand("").text;
        assert!(
            text.starts_with("<skill name=\"sort\" location=\"a&quot;b&lt;&amp;&gt;&#10;/x.md\">\n"),
            "{text}"
        );
    }

    #[test]
    fn a_file_at_the_top_is_relative_to_the_top() {
        assert!(skill("x.md", "B").expand("").text.contains("relative to .."));
        assert!(skill("/x.md", "B").expand("").text.contains("relative to /."));
    }
}
