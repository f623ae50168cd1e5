//! Searches in lists of tools: what a request says about them, and which of them a query means.

use std::collections::BTreeSet;

use hardpan_economy::tool_listing::{listing_heading, listing_line};
use hardpan_mcp::{ServerName, ServerTool};

/// The longest list of tools in a request, in bytes. A longer one leaves out what the tools do, then tools.
const MAX_LISTING: usize = 12 * 1024;

/// The longest line about a tool, in bytes.
const MAX_SUMMARY: usize = 72;

/// How many tools words find; exact names find more.
const MAX_FOUND: usize = 5;

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 40 * 1024;

/// The names of all tools, by server, each with what it does in a line. Servers that have listed nothing
/// yet are named.
pub(super) fn list_tools(servers: &[(ServerName, Option<Vec<ServerTool>>)]) -> String {
    let full = render(servers, true, usize::MAX);
    if full.len() <= MAX_LISTING {
        return full;
    }
    let names = render(servers, false, usize::MAX);
    if names.len() <= MAX_LISTING {
        return names;
    }
    render(servers, false, MAX_LISTING / servers.len().max(1))
}

fn render(servers: &[(ServerName, Option<Vec<ServerTool>>)], summaries: bool, max_bytes: usize) -> String {
    let mut text = String::from("The tools, by the beginning of their full names:");
    for (server, tools) in servers {
        let prefix = listing_heading(server.as_str());
        text.push_str(&format!("\n{prefix}"));
        let Some(tools) = tools else {
            text.push_str(" (still starting: search for its tools)");
            continue;
        };
        let end = text.len().saturating_add(max_bytes);
        for (index, tool) in tools.iter().enumerate() {
            if text.len() >= end {
                text.push_str(&format!(", and {} more", tools.len() - index));
                break;
            }
            let name = tool.exposed_name.strip_prefix(&prefix).unwrap_or(&tool.exposed_name);
            let summary = tool.summary(MAX_SUMMARY);
            match summaries {
                true => text.push_str(&format!("\n{}", listing_line(name, &summary))),
                false if index == 0 => text.push_str(&format!(" {name}")),
                false => text.push_str(&format!(", {name}")),
            }
        }
    }
    text
}

/// The tools that a query means, the best first: those that it names exactly, else those that have most of
/// its words.
pub(super) fn find_tools<'a>(query: &str, tools: &'a [ServerTool]) -> Vec<&'a ServerTool> {
    let separators = |c: char| c == ',' || c.is_whitespace();
    let parts: BTreeSet<&str> = query.split(separators).filter(|part| !part.is_empty()).collect();
    let is_meant =
        |tool: &&ServerTool| parts.contains(tool.exposed_name.as_str()) || parts.contains(tool.name.as_str());
    let exact: Vec<&ServerTool> = tools.iter().filter(|tool| parts.contains(&*tool.exposed_name)).collect();
    if !exact.is_empty() {
        return exact;
    }
    let named: Vec<&ServerTool> = tools.iter().filter(is_meant).collect();
    if !named.is_empty() && parts.len() == 1 {
        return named;
    }
    let words = words_of(query);
    let mut scored: Vec<(usize, &ServerTool)> =
        tools.iter().map(|tool| (score(tool, &words), tool)).filter(|(score, _)| *score > 0).collect();
    // Of equal ones the first of the list.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MAX_FOUND).map(|(_, tool)| tool).collect()
}

/// How well a tool fits: a word of its name counts more than one of its description or its arguments.
fn score(tool: &ServerTool, words: &BTreeSet<String>) -> usize {
    let name = words_of(&tool.exposed_name);
    let description = words_of(&tool.description);
    let properties = tool.parameters["properties"].as_object();
    let arguments: BTreeSet<String> =
        properties.into_iter().flatten().flat_map(|(name, _)| words_of(name)).collect();
    let points = |word: &String| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        let has = |words: &BTreeSet<String>| {
            words.iter().any(|other| other == word || other.strip_suffix('s').unwrap_or(other) == stem)
        };
        let in_name = tool.exposed_name.to_lowercase().contains(stem);
        match () {
            () if has(&name) => 8,
            () if in_name => 4,
            () if has(&description) => 2,
            () if has(&arguments) => 1,
            () => 0,
        }
    };
    words.iter().map(points).sum()
}

/// The words of a text in small letters; names in camel case and with underscores have several.
fn words_of(text: &str) -> BTreeSet<String> {
    const COMMON: [&str; 14] =
        ["an", "and", "the", "of", "to", "in", "for", "with", "tool", "tools", "on", "or", "is", "by"];
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars().chain([' ']) {
        let begins = c.is_uppercase() && was_small;
        if (!c.is_alphanumeric() || begins) && !word.is_empty() {
            words.insert(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| word.chars().count() > 1 && !COMMON.contains(&word.as_str()));
    words
}

/// Names, descriptions and schemas of tools.
pub(super) fn describe_tools(tools: &[&ServerTool]) -> String {
    let mut text = String::new();
    for (index, tool) in tools.iter().enumerate() {
        let entry =
            format!("{}\n{}\narguments: {}\n\n", tool.exposed_name, tool.description, tool.parameters);
        if index > 0 && text.len() + entry.len() > MAX_ANSWER {
            let left: Vec<&str> = tools[index..].iter().map(|tool| tool.exposed_name.as_str()).collect();
            text.push_str(&format!("Also found, search for them by name: {}", left.join(", ")));
            break;
        }
        text.push_str(&entry);
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(server: &str, name: &str, description: &str) -> ServerTool {
        ServerTool {
            name: name.into(),
            exposed_name: format!("{server}__{name}"),
            description: description.into(),
            parameters: json!({"type": "object", "properties": {"issueNumber": {"type": "integer"}}}),
            argument_names: Default::default(),
            read_only_hint: false,
        }
    }

    fn tools() -> Vec<ServerTool> {
        vec![
            tool("files", "read_file", "Read a file."),
            tool("files", "search_files", "Search for files by a pattern."),
            tool("tickets", "createIssue", "Open a new ticket. It gets a number."),
            tool("tickets", "list_issues", "List the tickets of a project."),
        ]
    }

    fn found(query: &str) -> Vec<String> {
        find_tools(query, &tools()).into_iter().map(|tool| tool.exposed_name.clone()).collect()
    }

    #[test]
    fn names_find_exactly_their_tools_and_words_the_best() {
        assert_eq!(
            found("tickets__list_issues, files__read_file"),
            ["files__read_file", "tickets__list_issues"]
        );
        assert_eq!(found("read_file"), ["files__read_file"]);
        assert_eq!(found("create an issue")[0], "tickets__createIssue");
        assert_eq!(found("find a file by pattern")[0], "files__search_files");
        assert_eq!(found("weather"), Vec::<String>::new());
        assert_eq!(found("the of"), Vec::<String>::new());
    }

    #[test]
    fn the_list_names_every_tool_and_is_bounded() {
        let name = |name: &str| ServerName::try_from(name.to_owned()).expect("a name");
        let (files, tickets) = (tools()[..2].to_vec(), tools()[2..].to_vec());
        let lists = [(name("files"), Some(files)), (name("late"), None), (name("tickets"), Some(tickets))];
        let expected = "The tools, by the beginning of their full names:
files__
- read_file: Read a file
- search_files: Search for files by a pattern
late__ (still starting: search for its tools)
tickets__
- createIssue: Open a new ticket
- list_issues: List the tickets of a project";
        assert_eq!(list_tools(&lists), expected);
        for count in [100, 400, 1000] {
            let many =
                (0..count).map(|n| tool("big", &format!("tool_number_{n}"), &"long ".repeat(20))).collect();
            let text = list_tools(&[(name("big"), Some(many))]);
            assert!(
                text.len() < MAX_LISTING + 200 && text.contains("tool_number_99"),
                "{count}: {}",
                text.len()
            );
        }
    }

    #[test]
    fn an_answer_has_schemas_and_is_bounded() {
        let all = tools();
        let text = describe_tools(&all.iter().collect::<Vec<_>>());
        assert!(
            text.contains("tickets__createIssue\nOpen a new ticket. It gets a number.\narguments: {\"type\"")
        );
        let large: Vec<ServerTool> =
            (0..30).map(|n| tool("s", &format!("t{n}"), &"x".repeat(4000))).collect();
        let text = describe_tools(&large.iter().collect::<Vec<_>>());
        assert!(text.len() < MAX_ANSWER + 1000 && text.ends_with("s__t29"), "{}", text.len());
    }
}
