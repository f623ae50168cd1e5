//! `hardpan mcp`: the servers of the Model Context Protocol that conversations here use.

use std::path::PathBuf;

use anyhow::Result;
use hardpan_app::settings::Settings;
use serde::Serialize;

use crate::command_setup::load_settings;
use crate::output::{self, safe};

/// Flags of `hardpan mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum McpCommand {
    /// List the servers, which is also what `hardpan mcp` does
    List(ListArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Folder to look at [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `hardpan mcp`.
pub fn run(args: &McpArgs) -> Result<()> {
    match &args.command {
        None => list(&args.list),
        Some(McpCommand::List(args)) => list(args),
    }
}

/// A server, as it is listed.
#[derive(Serialize)]
struct ServerRow {
    name: String,
    place: String,
    enabled: bool,
    sandbox: bool,
}

fn rows(settings: &Settings) -> Vec<ServerRow> {
    let servers = settings.config.mcp_servers.iter();
    let row = |(name, server): (&hardpan_mcp::ServerName, &hardpan_mcp::ServerConfig)| ServerRow {
        name: name.to_string(),
        place: server.place(),
        enabled: server.enabled,
        sandbox: server.sandbox,
    };
    servers.map(row).collect()
}

fn list(args: &ListArgs) -> Result<()> {
    let rows = rows(&*load_settings(args.dir.as_deref())?);
    if args.json {
        return output::print_json(&rows);
    }
    if rows.is_empty() {
        note!("no MCP servers: name one in config.toml (`hardpan docs mcp`)");
        return Ok(());
    }
    let line = |row: &ServerRow| {
        let state = if row.enabled { "" } else { " (disabled)" };
        format!("{}{state}  {}\n", safe(&row.name), safe(&row.place))
    };
    Ok(output::print(rows.iter().map(line).collect::<String>())?)
}
