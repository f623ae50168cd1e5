//! [`ToolLoadingSetting`]: how the model gets to know the tools of servers.

use serde::{Deserialize, Serialize};

/// `mcp_tools` of `config.toml`, and `tools` of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolLoadingSetting {
    /// Whatever costs less in a conversation of usual length.
    #[default]
    Auto,
    /// Requests declare all of them.
    All,
    /// Requests declare a tool that finds them, and one that calls them.
    Search,
}
