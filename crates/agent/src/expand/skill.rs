//! What a skill is, and what the model reads of it.

use std::path::PathBuf;

use super::{Expanded, Used};

/// A skill: instructions for one sort of work, which the model reads when they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What it is called by.
    pub name: String,
    /// When to use it, in one line.
    pub description: String,
    /// The path the model is shown: a project's relative to the project, a user's as it is.
    pub location: String,
    /// Where its file is.
    pub path: PathBuf,
    /// Its text, without the front matter.
    pub body: String,
    /// Whether the model is told of it: not with `disable-model-invocation: true`.
    pub listed: bool,
}

impl Skill {
    /// The text of `/skill:name rest`.
    pub(super) fn expand(&self, rest: &str) -> Expanded {
        let arguments = as_typed(rest);
        let mut text = self.element();
        if !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        Expanded { text, used: Some(Used::Skill(self.name.clone())), notes: Vec::new() }
    }

    /// What the snapshot holds of it.
    pub(super) fn entry(&self) -> hardpan_context::Skill {
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

/// What follows the name, without the blanks around it. Indentation after a line end is the person's own.
fn as_typed(rest: &str) -> &str {
    rest.trim_start_matches([' ', '\t']).trim_start_matches(['\r', '\n']).trim_end()
}

/// A value between double quotes.
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

/// A text as it stands in an element of this name: with `</name` written `<\/name`, as in a script. It says the same, and
/// does not end the element.
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

/// Whether what follows a `<` closes an element, however it is spaced and spelled.
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
        assert_eq!(sort.expand("").used, Some(Used::Skill("sort".into())));
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
