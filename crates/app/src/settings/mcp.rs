//! `mcp_servers` and `mcp_tools` of `config.toml`.

use serde::{Deserialize, Serialize};

/// How requests tell the model of the tools of servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpToolsMode {
    /// Whatever is cheaper.
    #[default]
    Auto,
    /// Every request declares all of them.
    All,
    /// Requests have their names; the model asks for the rest with `tool_search`.
    Search,
}
