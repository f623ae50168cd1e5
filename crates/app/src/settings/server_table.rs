//! Adding servers to the text of `config.toml` and taking them out. Everything else in the text stays as it
//! is, comments included.

use hardpan_mcp::{ServerConfig, ServerName};
use toml::{Table, Value};

use super::store::toml_key;

/// The table of the servers.
const SERVERS: &str = "mcp_servers";

/// Why the servers in `config.toml` cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum ServerTableError {
    /// A server of this name is there.
    #[error("there is a server {0} already: `hardpan mcp remove {0}` takes it out")]
    Exists(ServerName),
    /// No server has this name.
    #[error("config.toml names no server {0}: `hardpan mcp` lists those there are")]
    Unknown(ServerName),
    /// The text is written in a way that only a person can change.
    #[error("[{SERVERS}.{0}] is not written as a table of its own: change config.toml by hand")]
    NotSeparable(ServerName),
    /// The text is no TOML.
    #[error("config.toml has a mistake in line {line}: {message}")]
    Invalid {
        /// Counted from one.
        line: usize,
        /// In the parser's words.
        message: String,
    },
}

/// The text with one more server at its end.
pub(super) fn add_server(
    text: &str,
    name: &ServerName,
    config: &ServerConfig,
) -> Result<String, ServerTableError> {
    if servers(&parse(text)?).is_some_and(|servers| servers.contains_key(name.as_str())) {
        return Err(ServerTableError::Exists(name.clone()));
    }
    let before = text.trim_end();
    let gap = if before.is_empty() { "" } else { "\n\n" };
    let mut after = format!("{before}{gap}[{SERVERS}.{name}]\n");
    for (setting, value) in config.to_settings().as_object().into_iter().flatten() {
        after.push_str(&format!("{setting} = {}\n", toml_text(value)));
    }
    // An inline table takes no further entries.
    parse(&after).map_err(|_| ServerTableError::NotSeparable(name.clone()))?;
    Ok(after)
}

/// The text without a server.
pub(super) fn remove_server(text: &str, name: &ServerName) -> Result<String, ServerTableError> {
    let mut expected = parse(text)?;
    let removed = expected.get_mut(SERVERS).and_then(Value::as_table_mut);
    if removed.and_then(|servers| servers.remove(name.as_str())).is_none() {
        return Err(ServerTableError::Unknown(name.clone()));
    }
    let (mut kept, mut dropped): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(path) = table_path(line) {
            is_inside = path.len() >= 2 && path[0] == SERVERS && path[1] == name.as_str();
            // Comments above the next table are about that one.
            let is_about_next = |line: &&&str| line.trim().is_empty() || line.trim_start().starts_with('#');
            let comments = dropped.iter().rev().take_while(is_about_next).count();
            kept.extend(dropped.split_off(dropped.len() - comments));
            dropped.clear();
        }
        if is_inside { dropped.push(line) } else { kept.push(line) }
    }
    let mut after = kept.join("\n").trim_end().to_owned();
    if !after.is_empty() {
        after.push('\n');
    }
    // Lines of a text may look like the head of a table: the parser has the last word.
    let is_right = parse(&after).is_ok_and(|found| without_empty(found) == without_empty(expected));
    if is_right { Ok(after) } else { Err(ServerTableError::NotSeparable(name.clone())) }
}

/// A value as TOML has it. Texts, numbers and lists look as in JSON.
fn toml_text(value: &serde_json::Value) -> String {
    let Some(entries) = value.as_object() else { return value.to_string() };
    let entries = entries.iter().map(|(name, value)| format!("{} = {value}", toml_key(name)));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

fn without_empty(mut table: Table) -> Table {
    if servers(&table).is_some_and(Table::is_empty) {
        table.remove(SERVERS);
    }
    table
}

fn servers(table: &Table) -> Option<&Table> {
    table.get(SERVERS)?.as_table()
}

/// The names in the head of a table, `[a."b c"]`; `None` for any other line.
fn table_path(line: &str) -> Option<Vec<String>> {
    if !line.trim_start().starts_with('[') {
        return None;
    }
    let mut table: Table = toml::from_str(line).ok()?;
    let mut path = Vec::new();
    while let Some((name, value)) = table.into_iter().next() {
        path.push(name);
        table = match value {
            Value::Table(table) => table,
            _ => Table::new(),
        };
    }
    Some(path)
}

fn parse(text: &str) -> Result<Table, ServerTableError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
        ServerTableError::Invalid { line, message: error.message().to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name(name: &str) -> ServerName {
        ServerName::try_from(name.to_owned()).unwrap()
    }

    fn server(settings: serde_json::Value) -> ServerConfig {
        serde_json::from_value(settings).unwrap()
    }

    #[test]
    fn a_server_comes_and_goes_and_the_rest_stays() {
        let files = server(json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}));
        let tickets = server(json!({"url": "https://example.com/mcp"}));
        for before in
            ["", "# mine\nlayout = \"tiers\" # here\n", "[limits]\nturns = 3\n\n# about keys\n[keys]\n"]
        {
            let one = add_server(before, &name("files"), &files).unwrap();
            let two = add_server(&one, &name("tickets"), &tickets).unwrap();
            assert!(
                two.contains("[mcp_servers.files]\ncommand = \"npx\"") && two.starts_with(before.trim_end())
            );
            let read: Table = toml::from_str(&two).unwrap();
            let read = read["mcp_servers"]["files"].clone();
            assert_eq!(serde_json::from_value::<ServerConfig>(json!(read)).unwrap(), files);
            assert_eq!(remove_server(&two, &name("tickets")).unwrap(), one);
            let without = remove_server(&remove_server(&two, &name("files")).unwrap(), &name("tickets"));
            assert_eq!(without.unwrap(), before);
        }
    }

    #[test]
    fn comments_of_the_next_table_stay() {
        let text =
            "[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nB = \"c\"\n\n# about keys\n[keys]\n";
        assert_eq!(remove_server(text, &name("a")).unwrap(), "\n# about keys\n[keys]\n");
    }

    #[test]
    fn what_cannot_be_changed_is_left_alone() {
        let a = server(json!({"command": "a"}));
        let error = |result: Result<String, ServerTableError>| result.unwrap_err().to_string();
        let text = "[mcp_servers.a]\ncommand = \"a\"\n";
        assert!(error(add_server(text, &name("a"), &a)).starts_with("there is a server a already"));
        assert!(error(remove_server(text, &name("b"))).contains("names no server b"));
        for inline in
            ["mcp_servers = { a = { command = \"a\" } }\n", "[mcp_servers]\na = { command = \"a\" }\n"]
        {
            assert!(error(remove_server(inline, &name("a"))).contains("by hand"), "{inline}");
        }
        assert!(error(add_server("mcp_servers = { }\n", &name("a"), &a)).contains("by hand"));
        assert!(error(add_server("a = 1\nb =\n", &name("a"), &a)).contains("line 2"));
        let tricky = "[mcp_servers.a]\ncommand = \"a\"\nargs = [\"\"\"\n[keys]\nx\"\"\"]\n";
        assert!(error(remove_server(tricky, &name("a"))).contains("by hand"));
    }
}
