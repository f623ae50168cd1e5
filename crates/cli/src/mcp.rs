//! `hardpan mcp`: the servers of the Model Context Protocol that conversations here use, their tools, and
//! what these cost.

mod change; // add, adopt, remove
mod login; // login, logout
mod serve; // our own tools, for other agents

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hardpan_app::mcp::{FoundServer, LoadingPlan, ServerReport, declaration_tokens};
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionStorage};
use hardpan_app::{ConversationApp, FaceHooks};
use hardpan_context::Target;
use hardpan_economy::ToolLoading;
use hardpan_economy::format::{format_dollars, format_number};
use hardpan_mcp::ServerTool;
use hardpan_prompt::TokenCounter;
use hardpan_sandbox::SandboxLauncher;
use serde::Serialize;

use crate::chat::commands::{self, pluralize};
use crate::command_setup::{StderrNotices, working_folder};
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
    /// Add a server to config.toml: `hardpan mcp add files -- npx -y PACKAGE FOLDER`
    Add(change::AddArgs),
    /// Take over a server that is set up for another agent
    Adopt(change::AdoptArgs),
    /// Take a server out of config.toml
    Remove(change::RemoveArgs),
    /// Log in at a server that asks for it, with your browser
    Login(login::LoginArgs),
    /// Forget the login at a server
    Logout(login::LogoutArgs),
    /// Offer the map, symbols, audit and why to another agent, on standard input and output
    Serve(serve::ServeArgs),
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
        Some(McpCommand::Login(args)) => login::login(args),
        Some(McpCommand::Logout(args)) => login::logout(args),
        Some(McpCommand::Serve(args)) => serve::serve(args),
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
    /// The authorization server that the person has logged in at.
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_in_at: Option<String>,
    /// The file of another agent that names it, if only that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_in: Option<PathBuf>,
    /// The name that it would get here.
    #[serde(skip_serializing_if = "Option::is_none")]
    adopted_as: Option<String>,
    tools: Vec<ToolRow>,
    /// Its prompts, as commands of a conversation.
    prompts: Vec<String>,
    /// The addresses that it lists to read, templates included.
    resources: Vec<String>,
    tokens: usize,
    /// How a new conversation would load its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    loading: Option<ToolLoading>,
    /// What the tools cost in a session if requests declare them; none if no price is known.
    dollars_per_session: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ServerState {
    Ready,
    Failed,
    Disabled,
    NotUsed,
    /// No server, but a file of another agent that may name some.
    UnreadableFile,
}

#[derive(Serialize)]
struct ToolRow {
    name: String,
    server_name: String,
    description: String,
    read_only_hint: bool,
    tokens: usize,
}

/// Starts the servers of conversations in a folder, and says what each brings, how a conversation would load
/// the tools, and with which model.
pub fn start_servers(folder: &Path) -> Result<(Vec<ServerReport>, LoadingPlan, Target)> {
    let options = OpenOptions {
        storage: SessionStorage::Temporary,
        access: ProviderAccess::Simulator,
        symbol_map: false,
        sandbox_launcher: SandboxLauncher::installed(),
        reserved_names: commands::names(),
        ..OpenOptions::new(folder.to_owned())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let listed = runtime.block_on(async {
        let face = FaceHooks { prompter: None, notices: StderrNotices::shared() };
        let app = Arc::new(ConversationApp::open(&options, &face)?);
        let (reports, target) = (app.mcp.report().await, app.agent.target());
        anyhow::Ok((reports, app.mcp.plan(&target), target))
    });
    runtime.shutdown_background();
    listed
}

fn list(args: &ListArgs) -> Result<()> {
    let (reports, plan, target) = start_servers(&working_folder(args.dir.as_deref())?)?;
    let mut rows: Vec<ServerRow> =
        reports.into_iter().map(|report| server_row(report, &plan, &target)).collect();
    let found = change::servers_of_others(args.dir.as_deref())?;
    let is_known = |found: &FoundServer| {
        let here = found.server.as_ref().map_or(found.name.as_str(), |(name, _)| name.as_str());
        rows.iter().any(|row| row.name == here)
    };
    let new = found.servers.into_iter().filter(|found| !is_known(found));
    let new: Vec<ServerRow> = new.map(found_row).chain(found.unreadable.into_iter().map(file_row)).collect();
    rows.extend(new);
    if args.json {
        return output::print_json(&rows);
    }
    if rows.is_empty() {
        note!("no MCP servers: `hardpan mcp add NAME -- COMMAND` adds one (`hardpan docs mcp`)");
        return Ok(());
    }
    let servers: String = rows.iter().map(|row| describe(row, &plan, &target)).collect();
    Ok(output::print(servers + &describe_plan(&plan, &target))?)
}

/// How a new conversation would load the tools, and what that costs either way.
fn describe_plan(plan: &LoadingPlan, target: &Target) -> String {
    if plan.tools == 0 {
        return String::new();
    }
    let (tools, tokens) = (plan.tools, format_number(plan.declared_tokens as u64));
    let way = match plan.on_demand.is_empty() {
        true => "declared by every request",
        false => "loaded on demand",
    };
    let mut text = format!("{tools} tools, {tokens} tokens: {way}");
    if let (Some(at_once), Some(on_demand)) = (plan.at_once_dollars, plan.on_demand_dollars) {
        let (at_once, on_demand) = (format_dollars(at_once), format_dollars(on_demand));
        let (requests, model) = (plan.requests, safe(&target.model.id));
        text.push_str(&format!(
            "; all at once would cost {at_once}, on demand {on_demand} in a session of {requests} requests with {model}"
        ));
    }
    text + " (`mcp_tools` in config.toml)\n"
}

/// A server of another agent, which is not used.
fn found_row(found: FoundServer) -> ServerRow {
    let (place, adopted_as, error) = match found.server {
        Ok((name, config)) => (config.place(), Some(name.to_string()), None),
        Err(error) => (String::new(), None, Some(error.to_string())),
    };
    ServerRow { place, adopted_as, error, ..unused_row(found.name, found.file) }
}

/// A file of another agent that names nothing that can be read.
fn file_row((file, reason): (PathBuf, String)) -> ServerRow {
    ServerRow { state: ServerState::UnreadableFile, error: Some(reason), ..unused_row(String::new(), file) }
}

fn unused_row(name: String, file: PathBuf) -> ServerRow {
    ServerRow {
        name,
        place: String::new(),
        state: ServerState::NotUsed,
        error: None,
        logged_in_at: None,
        found_in: Some(file),
        adopted_as: None,
        tools: Vec::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        tokens: 0,
        loading: None,
        dollars_per_session: None,
    }
}

fn server_row(report: ServerReport, plan: &LoadingPlan, target: &Target) -> ServerRow {
    let (state, error, tools) = match report.tools {
        _ if !report.enabled => (ServerState::Disabled, None, Vec::new()),
        Ok(tools) => (ServerState::Ready, None, tools),
        Err(error) => (ServerState::Failed, Some(error.to_string()), Vec::new()),
    };
    let counter = TokenCounter::new(target.vocabulary());
    let tools: Vec<ToolRow> = tools.into_iter().map(|tool| tool_row(tool, &counter)).collect();
    let tokens = tools.iter().map(|tool| tool.tokens).sum();
    let loading = (state == ServerState::Ready).then(|| match plan.on_demand.contains(&report.name) {
        true => ToolLoading::OnDemand,
        false => ToolLoading::AtOnce,
    });
    let (name, place) = (report.name.to_string(), report.place);
    let dollars_per_session = session_price(tokens, plan.requests, target);
    let prompts = report.prompts.iter().map(|prompt| format!("/{name}:{}", prompt.name)).collect();
    let resources = report.resources.into_iter().map(|resource| resource.uri).collect();
    ServerRow {
        name,
        place,
        state,
        error,
        logged_in_at: report.login.map(|login| login.issuer),
        found_in: None,
        adopted_as: None,
        tools,
        prompts,
        resources,
        tokens,
        loading,
        dollars_per_session,
    }
}

fn tool_row(tool: ServerTool, counter: &TokenCounter) -> ToolRow {
    ToolRow {
        tokens: declaration_tokens(&tool, counter),
        name: tool.exposed_name,
        server_name: tool.name,
        description: tool.description,
        read_only_hint: tool.read_only_hint,
    }
}

/// What tokens at the beginning of every request cost: they are written to the cache once, and read from
/// it by each further request.
fn session_price(tokens: usize, requests: u32, target: &Target) -> Option<f64> {
    let price = &target.model.price;
    let read = price.cache_read.unwrap_or(price.input);
    let per_million = price.write().max(price.input) + read * f64::from(requests.saturating_sub(1));
    price.is_known().then(|| tokens as f64 * per_million / 1e6)
}

fn describe(row: &ServerRow, plan: &LoadingPlan, target: &Target) -> String {
    let price = row.dollars_per_session.map_or_else(String::new, |dollars| {
        let (dollars, model) = (format_dollars(dollars), &target.model.id);
        format!(", {dollars} in a session of {} requests with {}", plan.requests, safe(model))
    });
    if let Some(file) = &row.found_in {
        let (name, file) = (safe(&row.name), safe(&file.to_string_lossy()));
        return match &row.error {
            Some(error) if row.state == ServerState::UnreadableFile => {
                format!("{file}\n  cannot be used: it {}\n", safe(error))
            }
            Some(error) => format!("{name} (in {file})\n  not used, and cannot be: {}\n", safe(error)),
            None => {
                let (place, here) = (safe(&row.place), row.adopted_as.as_deref().unwrap_or_default());
                format!(
                    "{name} ({place})\n  not used: it is in {file}; `hardpan mcp adopt {here}` takes it over\n"
                )
            }
        };
    }
    let state = match (&row.error, row.state) {
        (Some(error), _) => format!("failed: {}", safe(error)),
        (None, ServerState::Disabled) => "disabled".to_owned(),
        (None, _) => {
            let (count, tokens) = (row.tools.len(), format_number(row.tokens as u64));
            let others = [(row.prompts.len(), "prompt"), (row.resources.len(), "resource")];
            let others = others.into_iter().filter(|(count, _)| *count > 0);
            let others: String =
                others.map(|(count, what)| format!("; {}", pluralize(count, what))).collect();
            format!("{}, {tokens} tokens{price}{others}", pluralize(count, "tool"))
        }
    };
    let login = row.logged_in_at.as_ref().map(|issuer| format!("  logged in at {}\n", safe(issuer)));
    let login = login.unwrap_or_default();
    let mut text = format!("{} ({})\n  {state}\n{login}", safe(&row.name), safe(&row.place));
    for tool in &row.tools {
        let line = tool.description.lines().next().unwrap_or_default();
        let line: String = line.chars().take(80).collect();
        let claim = if tool.read_only_hint { "  (says that it only reads)" } else { "" };
        text.push_str(&format!("  {:>6}  {}  {}{claim}\n", tool.tokens, safe(&tool.name), safe(&line)));
    }
    text
}
