//! Whose tools changed: a change of the tools in words that name the servers.
//!
//! Tools of MCP servers are known by their names: `server__tool` here, `mcp__server__tool` in the
//! recordings of other agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::format_list;
use crate::tool_listing::SEARCH_TOOL;

/// The server that a tool is of; none for other tools.
pub(super) fn server_of(tool: &str) -> Option<&str> {
    let name = tool.strip_prefix("mcp__").unwrap_or(tool);
    name.split_once("__")
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
        .map(|(server, _)| server)
}

/// What changed about the tools of one server, or of nobody's.
#[derive(Default)]
struct Changes {
    added: Vec<Arc<str>>,
    removed: Vec<Arc<str>>,
    changed: Vec<Arc<str>>,
    /// Whether its part changed of the list that searches find tools in.
    is_listed: bool,
}

impl Changes {
    fn lists(&self) -> impl Iterator<Item = (&'static str, &Vec<Arc<str>>)> {
        let lists = [("added", &self.added), ("removed", &self.removed), ("changed", &self.changed)];
        lists.into_iter().filter(|(_, names)| !names.is_empty())
    }

    fn counts(&self) -> String {
        let mut counts: Vec<String> =
            self.lists().map(|(what, names)| format!("{} {what}", names.len())).collect();
        if self.is_listed {
            counts.push(format!("in the list of {SEARCH_TOOL}"));
        }
        counts.join(", ")
    }

    fn names(&self) -> String {
        self.lists()
            .map(|(what, names)| format!("{what} {}", format_list(names)))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// A change of the tools, by server.
pub(super) struct ToolChanges<'a>(BTreeMap<Option<&'a str>, Changes>);

impl<'a> ToolChanges<'a> {
    /// `listed`: the servers whose part of the list of tools changed.
    pub fn new(
        added: &'a [Arc<str>],
        removed: &'a [Arc<str>],
        changed: &'a [Arc<str>],
        listed: &'a [Arc<str>],
    ) -> Self {
        let mut servers: BTreeMap<Option<&'a str>, Changes> = BTreeMap::new();
        let mut add = |names: &'a [Arc<str>], list: fn(&mut Changes) -> &mut Vec<Arc<str>>| {
            for name in names {
                list(servers.entry(server_of(name)).or_default()).push(name.clone());
            }
        };
        add(added, |changes| &mut changes.added);
        add(removed, |changes| &mut changes.removed);
        add(changed, |changes| &mut changes.changed);
        for server in listed {
            servers.entry(Some(server)).or_default().is_listed = true;
        }
        if !listed.is_empty()
            && let Some(own) = servers.get_mut(&None)
        {
            // The list changed because of the servers.
            own.changed.retain(|name| &**name != SEARCH_TOOL);
            if own.lists().next().is_none() {
                servers.remove(&None);
            }
        }
        ToolChanges(servers)
    }

    /// The server that made all of the change.
    pub fn only_server(&self) -> Option<&'a str> {
        let mut servers = self.0.keys();
        servers.next().copied().flatten().filter(|_| servers.next().is_none())
    }

    /// The change as the second half of a sentence.
    pub fn describe(&self) -> String {
        if self.0.is_empty() {
            return "the tools came in another order".into();
        }
        let describe = |(server, changes): (&Option<&str>, &Changes)| match server {
            Some(server) => format!("the MCP server {server} changed its tools ({})", changes.counts()),
            None if changes.names() == format!("changed {SEARCH_TOOL}") => {
                format!("the list of tools that {SEARCH_TOOL} finds changed")
            }
            None => format!("the tools changed ({})", changes.names()),
        };
        self.0.iter().map(describe).collect::<Vec<_>>().join(", and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn servers_are_named_with_the_number_of_their_tools() {
        let (added, changed) = (names(&["tickets__open", "tickets__close"]), names(&["tickets__list"]));
        let changes = ToolChanges::new(&added, &[], &changed, &[]);
        assert_eq!(changes.describe(), "the MCP server tickets changed its tools (2 added, 1 changed)");
        assert_eq!(changes.only_server(), Some("tickets"));
        let removed = names(&["bash", "mcp__github__list__all"]);
        let changes = ToolChanges::new(&[], &removed, &[], &[]);
        assert_eq!(
            changes.describe(),
            "the tools changed (removed bash), and the MCP server github changed its tools (1 removed)"
        );
        assert_eq!(changes.only_server(), None);
    }

    #[test]
    fn other_tools_are_of_no_server() {
        for name in ["bash", "__a", "a__", "mcp__a", "tool_search"] {
            assert_eq!(server_of(name), None, "{name}");
        }
        let changed = names(&["tool_search"]);
        let changes = ToolChanges::new(&[], &[], &changed, &[]);
        assert_eq!(changes.describe(), "the list of tools that tool_search finds changed");
    }

    #[test]
    fn a_server_is_named_for_its_part_of_a_list() {
        let (changed, tickets) = (names(&["tool_search"]), names(&["tickets"]));
        let changes = ToolChanges::new(&[], &[], &changed, &tickets);
        assert_eq!(
            changes.describe(),
            "the MCP server tickets changed its tools (in the list of tool_search)"
        );
        assert_eq!(changes.only_server(), Some("tickets"));
        let (both, others) = (names(&["files", "tickets"]), names(&["tool_search", "bash"]));
        let changes = ToolChanges::new(&[], &[], &others, &both);
        assert_eq!(changes.only_server(), None);
        assert!(changes.describe().starts_with("the tools changed (changed bash), and the MCP server files"));
    }
}
