//! `hardpan mcp`: the servers of the Model Context Protocol that conversations here use, their tools, and
//! what these cost.

mod change; // add, adopt, remove

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use hardpan_app::mcp::{FoundServer, ServerReport};
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionStorage};
use hardpan_app::{ConversationApp, FaceHooks};
use hardpan_context::Target;
use hardpan_economy::format::{format_dollars, format_number};
use hardpan_mcp::ServerTool;
use hardpan_prompt::{Text, TokenCounter};
use hardpan_sandbox::SandboxLauncher;
use serde::Serialize;

use crate::chat::commands;
use crate::command_setup::{StderrNotices, working_folder};
use crate::output::{self, safe};

/// The length of the session that prices are for, in requests.
const SESSION_REQUESTS: u32 = 100;

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
    /// Add a server to config.toml: `hardpan mcp add files -- npx -y PACKAGE FOLDER`
    Add(change::AddArgs),
    /// Take over a server that is set up for another agent
    Adopt(change::AdoptArgs),
    /// Take a server out of config.toml
    Remove(change::RemoveArgs),
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
        Some(McpCommand::Add(args)) => change::add(args),
        Some(McpCommand::Adopt(args)) => change::adopt(args),
        Some(McpCommand::Remove(args)) => change::remove(args),
    }
}

/// A server, as it is listed.
#[derive(Serialize)]
struct ServerRow {
    name: String,
    place: String,
    state: ServerState,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The file of another agent that names it, if only that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_in: Option<PathBuf>,
    tools: Vec<ToolRow>,
    tokens: usize,
    /// What the tools cost in a session of 100 requests; none if no price is known.
    dollars_per_session: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ServerState {
    Ready,
    Failed,
    Disabled,
    NotUsed,
}

#[derive(Serialize)]
struct ToolRow {
    name: String,
    server_name: String,
    description: String,
    read_only_hint: bool,
    tokens: usize,
}

fn list(args: &ListArgs) -> Result<()> {
    let options = OpenOptions {
        storage: SessionStorage::Temporary,
        access: ProviderAccess::Simulator,
        symbol_map: false,
        sandbox_launcher: SandboxLauncher::installed(),
        reserved_names: commands::names(),
        ..OpenOptions::new(working_folder(args.dir.as_deref())?)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let listed = runtime.block_on(async {
        let face = FaceHooks { prompter: None, notices: StderrNotices::shared() };
        let app = Arc::new(ConversationApp::open(&options, &face)?);
        anyhow::Ok((app.mcp.report().await, app.agent.target()))
    });
    runtime.shutdown_background();
    let (reports, target) = listed?;
    let mut rows: Vec<ServerRow> = reports.into_iter().map(|report| server_row(report, &target)).collect();
    let found = change::servers_of_others(args.dir.as_deref())?;
    let new = found.into_iter().filter(|found| !rows.iter().any(|row| row.name == found.name));
    let new: Vec<ServerRow> = new.map(found_row).collect();
    rows.extend(new);
    if args.json {
        return output::print_json(&rows);
    }
    if rows.is_empty() {
        note!("no MCP servers: `hardpan mcp add NAME -- COMMAND` adds one (`hardpan docs mcp`)");
        return Ok(());
    }
    Ok(output::print(rows.iter().map(|row| describe(row, &target)).collect::<String>())?)
}

/// A server of another agent, which is not used.
fn found_row(found: FoundServer) -> ServerRow {
    let (place, error) = match found.server {
        Ok((_, config)) => (config.place(), None),
        Err(error) => (String::new(), Some(error.to_string())),
    };
    ServerRow {
        name: found.name,
        place,
        state: ServerState::NotUsed,
        error,
        found_in: Some(found.file),
        tools: Vec::new(),
        tokens: 0,
        dollars_per_session: None,
    }
}

fn server_row(report: ServerReport, target: &Target) -> ServerRow {
    let (state, error, tools) = match report.tools {
        _ if !report.enabled => (ServerState::Disabled, None, Vec::new()),
        Ok(tools) => (ServerState::Ready, None, tools),
        Err(error) => (ServerState::Failed, Some(error.to_string()), Vec::new()),
    };
    let counter = TokenCounter::new(target.vocabulary());
    let tools: Vec<ToolRow> = tools.into_iter().map(|tool| tool_row(tool, &counter)).collect();
    let tokens = tools.iter().map(|tool| tool.tokens).sum();
    let (name, place) = (report.name.to_string(), report.place);
    let dollars_per_session = session_price(tokens, target);
    ServerRow { name, place, state, error, found_in: None, tools, tokens, dollars_per_session }
}

fn tool_row(tool: ServerTool, counter: &TokenCounter) -> ToolRow {
    let text = format!("{}\n{}\n{}", tool.exposed_name, tool.description, tool.parameters);
    ToolRow {
        tokens: counter.count(&Text::new(text)),
        name: tool.exposed_name,
        server_name: tool.name,
        description: tool.description,
        read_only_hint: tool.read_only_hint,
    }
}

/// What tokens at the beginning of every request cost: they are written to the cache once, and read from
/// it by each further request.
fn session_price(tokens: usize, target: &Target) -> Option<f64> {
    let price = &target.model.price;
    let read = price.cache_read.unwrap_or(price.input);
    let per_million = price.write().max(price.input) + read * f64::from(SESSION_REQUESTS - 1);
    price.is_known().then(|| tokens as f64 * per_million / 1e6)
}

fn describe(row: &ServerRow, target: &Target) -> String {
    let price = row.dollars_per_session.map_or_else(String::new, |dollars| {
        let (dollars, model) = (format_dollars(dollars), &target.model.id);
        format!(", {dollars} in a session of {SESSION_REQUESTS} requests with {}", safe(model))
    });
    if let Some(file) = &row.found_in {
        let (name, file) = (safe(&row.name), safe(&file.to_string_lossy()));
        return match &row.error {
            Some(error) => format!("{name} (in {file})\n  not used, and cannot be: {}\n", safe(error)),
            None => {
                let place = safe(&row.place);
                format!(
                    "{name} ({place})\n  not used: it is in {file}; `hardpan mcp adopt {name}` takes it over\n"
                )
            }
        };
    }
    let state = match (&row.error, row.state) {
        (Some(error), _) => format!("failed: {}", safe(error)),
        (None, ServerState::Disabled) => "disabled".to_owned(),
        (None, _) => {
            let (count, tokens) = (row.tools.len(), format_number(row.tokens as u64));
            format!("{count} tools, {tokens} tokens{price}")
        }
    };
    let mut text = format!("{} ({})\n  {state}\n", safe(&row.name), safe(&row.place));
    for tool in &row.tools {
        let line = tool.description.lines().next().unwrap_or_default();
        let line: String = line.chars().take(80).collect();
        text.push_str(&format!("  {:>6}  {}  {}\n", tool.tokens, safe(&tool.name), safe(&line)));
    }
    text
}
