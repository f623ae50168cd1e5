//! [`ServerTool`]: a tool of a server, with a name and a schema that every provider takes.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plain_text::plain_text;
use crate::schema::{normalise_schema, rename_arguments};

/// The longest name of a tool that all providers take.
const MAX_NAME: usize = 64;

/// The longest description, in bytes: what a request has to hold each time.
const MAX_DESCRIPTION: usize = 4096;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerTool {
    /// Its name, as the server knows it.
    pub name: String,
    /// The name that the model calls it by: `server__tool`.
    pub exposed_name: String,
    /// What the server says about it, shortened.
    pub description: String,
    /// The schema of its arguments, an object without references.
    pub parameters: Value,
    /// The server's names of those arguments that have other names in the schema, by these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub argument_names: BTreeMap<String, String>,
    /// Whether the server says that it only reads. Shown to the person, and never relied on.
    pub read_only_hint: bool,
}

impl ServerTool {
    /// What it does, in one line: the first sentence of its description, shortened.
    pub fn summary(&self, max: usize) -> String {
        let line = self.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let end = line.find(". ").unwrap_or(line.len());
        let sentence = line[..end].trim_end_matches('.');
        match sentence.len() <= max {
            true => sentence.to_owned(),
            false => {
                let kept = &sentence[..sentence.floor_char_boundary(max)];
                let end = kept.rfind(' ').filter(|end| *end > max / 2).unwrap_or(kept.len());
                format!("{}…", kept[..end].trim_end())
            }
        }
    }
}

/// Makes tools of what a server lists, in the order of their names: the order in which it lists them does
/// not matter. Of two with one name the first is kept.
pub(crate) fn make_tools(server: &str, listed: Vec<rmcp::model::Tool>) -> Vec<ServerTool> {
    let mut listed = listed;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    listed.dedup_by(|a, b| a.name == b.name);
    let mut taken = BTreeSet::new();
    let mut tools = Vec::new();
    for tool in listed {
        let exposed_name = exposed_name(server, &tool.name, &taken);
        taken.insert(exposed_name.clone());
        let mut parameters = normalise_schema(&Value::Object((*tool.input_schema).clone()));
        let argument_names = rename_arguments(&mut parameters);
        let hint = tool.annotations.as_ref().and_then(|annotations| annotations.read_only_hint);
        tools.push(ServerTool {
            exposed_name,
            description: cut_text(tool.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION),
            parameters,
            argument_names,
            read_only_hint: hint.unwrap_or(false),
            name: tool.name.into_owned(),
        });
    }
    tools
}

/// The name that the model calls a tool by. Other characters than letters, digits, `_` and `-` become `_`.
/// A name that is too long, or that another tool has, ends with a hash of the server's own name for it, and
/// so it is the same each time.
fn exposed_name(server: &str, tool: &str, taken: &BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = format!("{server}__{}", tool.chars().map(plain).collect::<String>());
    let is_exact = tool.chars().all(|c| plain(c) == c || c == '_') && !tool.is_empty();
    if is_exact && name.len() <= MAX_NAME && !taken.contains(&name) {
        return name;
    }
    let hash: String = Hash::of(tool.as_bytes()).to_string().chars().take(8).collect();
    let kept: String = name.chars().take(MAX_NAME - 9).collect();
    format!("{kept}_{hash}")
}

/// A plain text of at most `max` bytes, which ends with a whole sentence or word where it is cut.
pub(crate) fn cut_text(text: &str, max: usize) -> String {
    let text = plain_text(text, usize::MAX);
    if text.len() <= max {
        return text;
    }
    let kept = &text[..text.floor_char_boundary(max)];
    // Not much is given up for a whole sentence.
    let is_late = |end: &usize| *end > kept.len() * 3 / 4;
    let ends = [kept.rfind("\n\n"), kept.rfind(". ").map(|end| end + 1), kept.rfind('\n')];
    let word = || kept.rfind(char::is_whitespace).filter(is_late);
    let end = ends.into_iter().flatten().filter(is_late).max().or_else(word).unwrap_or(kept.len());
    format!("{} […]", kept[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_fit_every_provider_and_stay_the_same() {
        let none = BTreeSet::new();
        assert_eq!(exposed_name("files", "read_file", &none), "files__read_file");
        assert_eq!(exposed_name("files", "bash", &none), "files__bash");
        let long = exposed_name("files", &"x".repeat(100), &none);
        assert_eq!((long.len(), &long), (64, &exposed_name("files", &"x".repeat(100), &none)));
        assert_ne!(long, exposed_name("files", &"x".repeat(101), &none));
        assert_ne!(exposed_name("a", "b.c", &none), exposed_name("a", "b c", &none));
        let name = exposed_name("a", "ü/\u{1b}[31m", &none);
        assert!(
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
            "{name}"
        );
    }

    #[test]
    fn long_descriptions_end_with_a_whole_sentence() {
        let long = "It reads a file. ".repeat(400);
        let cut = cut_text(&long, MAX_DESCRIPTION);
        assert!(cut.len() <= MAX_DESCRIPTION + 6 && cut.ends_with("a file. […]"), "{}", cut.len());
        let words = cut_text(&"word ".repeat(2000), 1000);
        assert!(words.ends_with("word […]"), "{words}");
        let one = cut_text(&"ü".repeat(1000), 999);
        assert_eq!(one, format!("{} […]", "ü".repeat(499)));
        assert_eq!(cut_text("Short.", 10), "Short.");
    }

    #[test]
    fn summaries_are_one_line() {
        let summary = |text: &str| {
            let tool = ServerTool {
                name: "a".into(),
                exposed_name: "s__a".into(),
                description: text.into(),
                parameters: json!({}),
                argument_names: BTreeMap::new(),
                read_only_hint: false,
            };
            tool.summary(30)
        };
        assert_eq!(summary("Reads a file. It may be long.\nMore."), "Reads a file");
        assert_eq!(summary("\n  Reads v1.2 files\nMore"), "Reads v1.2 files");
        assert_eq!(summary("Reads one of the many files that there are"), "Reads one of the many files…");
        assert_eq!(summary(""), "");
    }
}
