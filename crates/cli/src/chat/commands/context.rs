//! What is sent: requests, what fills the context window, files, panels.

use std::io::IsTerminal;

use hardpan_app::ConversationApp;
use hardpan_app::context_items::{DOCUMENT_PREFIX, OpenedItem};
use hardpan_app::mentions::{self, MentionedFile, PromptSource};
use hardpan_app::symbol_map;
use hardpan_mcp::{ServerName, ServerResource};

use super::super::command_error::SlashCommandError;
use super::super::panels;
use super::arguments::{ArgumentQuery, Choice, choice, nothing};
use super::{CommandCall, CommandResult, SlashCommand, with_price};
use crate::command_setup::QuietNotices;
use crate::output::safe;
use crate::{context_layers, map, views};

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "context",
        arguments: "",
        help: "show what filled the context window in the last request; before the first, in the next",
        choices: nothing,
        run: |call| Box::pin(context(call)),
    },
    SlashCommand {
        name: "map",
        arguments: "[PATH]",
        help: "show the map of the code: an overview, or the definitions in a file or folder",
        choices: |query| if query.is_first() { paths(query) } else { Vec::new() },
        run: |call| Box::pin(map(call)),
    },
    SlashCommand {
        name: "open",
        arguments: "[PATH]",
        help: "add a file or an image to the context, or list what is open",
        choices: |query| if query.is_first() { paths(query) } else { Vec::new() },
        run: |call| Box::pin(async move { open_item(call.arguments, call.app) }),
    },
    SlashCommand {
        name: "doc",
        arguments: "ID",
        help: "attach a document that the server has",
        choices: nothing,
        run: |call| Box::pin(document(call)),
    },
    SlashCommand {
        name: "resource",
        arguments: "[SERVER:ADDRESS]",
        help: "add a resource of an MCP server to the context, or list what servers have",
        choices: |query| if query.is_first() { resource_names(query) } else { Vec::new() },
        run: |call| Box::pin(resource(call)),
    },
    SlashCommand {
        name: "close",
        arguments: "PATH, doc:ID, URL or ID",
        help: "remove a file, a document, a page, a resource, a panel or a history from the context",
        choices: |query| if query.is_first() { open_names(query) } else { Vec::new() },
        run: |call| Box::pin(panels::close(call.arguments, call.app)),
    },
    SlashCommand {
        name: "panels",
        arguments: "[ID [hide|show|PAGE]]",
        help: "list the panels, show one, or change how requests show it",
        choices: panel_choices,
        run: |call| Box::pin(panels::run(call.arguments, call.app)),
    },
];

async fn context(CommandCall { app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let breakdown = match agent.breakdown() {
        Some(breakdown) => breakdown,
        None => app.preview_request("").await?.breakdown(),
    };
    let folds = breakdown.layout.layout().folds();
    let keep = if folds { format!("keep: {}\n", agent.keep()) } else { String::new() };
    // A person sees the layers; a program gets every item.
    let view = match std::io::stdout().is_terminal() {
        true => context_layers::drawing(agent, &breakdown, views::width()),
        false => views::context(&breakdown, &agent.target().provider),
    };
    let unlisted =
        views::unlisted_skills(&agent.expansions().unlisted_home_skills(), &agent.target(), &breakdown);
    Ok(view + &unlisted + &keep)
}

/// The tokens of a map of a file or folder.
const MAP_TOKENS: usize = 4000;

async fn map(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    let (root, folders) = (app.scope.root.clone(), app.settings.user_folders.clone());
    let path = arguments.trim_end_matches('/').trim_start_matches("./").to_owned();
    let drawn = tokio::task::spawn_blocking(move || {
        let index = symbol_map::load_index(&root, &folders, &QuietNotices);
        if path.is_empty() {
            Some(map::overview_text(&index, "", None))
        } else {
            map::map_text(&index, &path, MAP_TOKENS)
        }
    });
    let drawn = drawn.await.ok().flatten();
    drawn.ok_or_else(|| SlashCommandError::NotMapped(arguments.to_owned()))
}

async fn document(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return Err(SlashCommandError::Usage("a document: /doc ID; /open lists what is open"));
    }
    let id = arguments.strip_prefix(DOCUMENT_PREFIX).unwrap_or(arguments);
    open_item(&format!("{DOCUMENT_PREFIX}{id}"), app)
}

fn open_item(name: &str, app: &ConversationApp) -> CommandResult {
    if name.is_empty() {
        let names = app.open_items();
        return Ok(if names.is_empty() { "no file is open".into() } else { names.join("\n") });
    }
    let path = mentions::resolve_mention(name, &app.scope, PromptSource::Typed);
    let cost = match path {
        Ok(MentionedFile::Text { path, .. }) => app.forecast_opening(&path).map(|forecast| forecast.sentence),
        _ => None,
    };
    Ok(match app.open_item(name)? {
        OpenedItem::File | OpenedItem::ContextImage => {
            with_price(&format!("{name} joins the context with the next prompt."), cost)
        }
        OpenedItem::PromptImage => format!("{name} goes with the next prompt."),
        OpenedItem::Document { problem: None } => {
            format!("{name} goes with the last prompt of each request.")
        }
        OpenedItem::Document { problem: Some(problem) } => {
            format!("{name} is attached, but requests do not name it: {problem}.")
        }
    })
}

async fn resource(CommandCall { arguments, app, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        let listed = app.mcp.list_resources().await;
        if listed.is_empty() {
            return Ok("no MCP server here has resources (`hardpan docs mcp`)".into());
        }
        let line = |(server, resource): &(ServerName, ServerResource)| {
            format!("{server}:{}  {}", safe(&resource.uri), safe(&resource.description))
        };
        return Ok(listed.iter().map(line).collect::<Vec<_>>().join("\n"));
    }
    let attached = app.attach_resource(arguments).await?;
    app.save_state().await;
    let name = safe(&attached.name);
    let images = match attached.images.len() {
        0 => None,
        1 => Some(format!("{name} goes with the next prompt as an image.")),
        count => Some(format!("{name} goes with the next prompt as {count} images.")),
    };
    let said = attached.sentence.map(|sentence| format!("{}.", safe(&sentence))).into_iter().chain(images);
    Ok(said.collect::<Vec<_>>().join("\n"))
}

/// The resources that servers have listed so far.
fn resource_names(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    let listed = query.app.mcp.resources().into_iter();
    let named = listed.filter(|(_, resource)| !resource.uri.contains(char::is_whitespace));
    named
        .map(|(server, resource)| choice(format!("{server}:{}", resource.uri), resource.description))
        .collect()
}

/// The most files that are offered of one folder.
const MAX_PATHS: usize = 500;

/// The files and folders in the folder that is typed, below the workspace.
pub fn paths(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    let folder = query.typed.rsplit_once('/').map_or("", |(folder, _)| folder);
    let entries = std::fs::read_dir(query.app.scope.root.join(folder)).into_iter().flatten().flatten();
    let path = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| !name.contains(' '))?;
        let ending = if entry.file_type().is_ok_and(|kind| kind.is_dir()) { "/" } else { "" };
        let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Some(choice(format!("{before}{name}{ending}"), ""))
    };
    let mut found: Vec<Choice> = entries.filter_map(path).take(MAX_PATHS).collect();
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found
}

/// What is open, by name.
pub fn open_names(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    query.app.open_items().into_iter().map(|name| choice(name, "")).collect()
}

fn panel_choices(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    let listed = || query.app.panels.registry.list(query.app.agent.now()).into_iter();
    match query.before {
        [] => listed().map(|panel| choice(panel.id.to_string(), panel.title)).collect(),
        [_] => vec![choice("hide", "requests leave it out"), choice("show", "requests show it again")],
        _ => Vec::new(),
    }
}
