//! The list in the description of a tool that finds tools of servers: how it is written, and how it is taken
//! apart again, to tell whose part of it changed.

/// The tool whose description lists the tools that no request declares.
pub const SEARCH_TOOL: &str = "tool_search";

/// What stands between the name of a server and that of its tool.
const SEPARATOR: &str = "__";

/// The line that begins a server's part of the list; more may follow on it.
pub fn listing_heading(server: &str) -> String {
    format!("{server}{SEPARATOR}")
}

/// The line about a tool in a server's part of the list.
pub fn listing_line(tool: &str, summary: &str) -> String {
    if summary.is_empty() { format!("- {tool}") } else { format!("- {tool}: {summary}") }
}

/// The parts of the list in a description: the name of each server, and what is said about its tools.
pub fn listing_parts(description: &str) -> Vec<(&str, &str)> {
    let mut parts: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    for line in description.split_inclusive('\n') {
        if let Some(server) = heading_of(line) {
            parts.push((server, at));
        }
        at += line.len();
    }
    let ends = parts.iter().skip(1).map(|(_, start)| *start).chain([description.len()]);
    parts
        .iter()
        .zip(ends)
        .map(|((server, start), end)| (*server, description[*start..end].trim_end()))
        .collect()
}

/// The server that a line begins the part of.
fn heading_of(line: &str) -> Option<&str> {
    let (server, _) = line.split_once(SEPARATOR)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let begins_well = server.starts_with(|c: char| c.is_ascii_alphanumeric());
    (begins_well && server.chars().all(is_name)).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_part_for_each_server() {
        let list = format!(
            "Find tools.\n\nThe tools, by name:\n{}\n{}\n{}\n{} (still starting)\n{} open, close",
            listing_heading("files"),
            listing_line("read_file", "Reads a file, see other__tool"),
            listing_line("write", ""),
            listing_heading("late"),
            listing_heading("tickets"),
        );
        assert_eq!(
            listing_parts(&list),
            [
                ("files", "files__\n- read_file: Reads a file, see other__tool\n- write"),
                ("late", "late__ (still starting)"),
                ("tickets", "tickets__ open, close"),
            ]
        );
        assert_eq!(listing_parts("Runs a command."), []);
    }
}
