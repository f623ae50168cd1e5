//! `hardpan mcp serve`: the map, symbols, audit and why as tools of other agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_app::settings::UserFolders;
use hardpan_app::symbol_map;
use hardpan_audit::{Report, report};
use hardpan_mcp::{OfferedTool, ProgressFunction, ToolReply, serve_tools};
use hardpan_symbols::SymbolIndex;
use hardpan_workspace as workspace;
use serde_json::{Map, Value, json};

use crate::audit::{MAX_FOLDER_DEPTH, audit_files, catalogue, collect_session_files, session_places};
use crate::command_setup::{QuietNotices, session_store, working_folder};
use crate::map::{index_path, map_text, overview_text, symbols_text};
use crate::output::{error_text, safe_lines};
use crate::why::{Loss, explain_loss, find_losses};

const INSTRUCTIONS: &str = "Reads this repository and recorded agent sessions. symbol_map gives an overview of the code, \
symbols finds definitions and their users, why and audit explain what agent sessions cost and why prompt caches were lost.";

/// The tokens of a map of one folder or file, if the caller does not say.
const MAP_TOKENS: usize = 4000;

/// The most sessions of one audit.
const MAX_SESSIONS: usize = 1000;

/// Flags of `hardpan mcp serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  claude mcp add hardpan -- hardpan mcp serve
  codex mcp add hardpan -- hardpan mcp serve --sessions")]
pub struct ServeArgs {
    /// Folder to answer about [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Also audit what other agents recorded: Claude Code, Codex, pi, Qwen Code
    #[arg(long)]
    sessions: bool,
}

/// Carries out `hardpan mcp serve`.
pub fn serve(args: &ServeArgs) -> Result<()> {
    let here = working_folder(args.dir.as_deref())?;
    let place = Arc::new(ServedPlace {
        root: workspace::find_project_root(&here),
        here,
        sessions_of_others: args.sessions,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let served = runtime.block_on(serve_tools(tools(&place), INSTRUCTIONS));
    // A call that still computes does not keep the process.
    runtime.shutdown_background();
    Ok(served?)
}

/// What the tools read.
struct ServedPlace {
    root: PathBuf,
    /// The folder whose conversations are meant.
    here: PathBuf,
    sessions_of_others: bool,
}

type Arguments = Map<String, Value>;

fn tools(place: &Arc<ServedPlace>) -> Vec<OfferedTool> {
    let offer =
        |name,
         description,
         parameters,
         run: fn(&ServedPlace, &Arguments, ProgressFunction<'_>) -> Result<ToolReply>| {
            let place = place.clone();
            let run = Arc::new(move |arguments: &Arguments, progress: ProgressFunction<'_>| {
                run(&place, arguments, progress).unwrap_or_else(|error| ToolReply::error(error_text(&error)))
            });
            OfferedTool { name, description, parameters, run }
        };
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let tokens = json!({"type": "integer", "minimum": 100, "maximum": 50_000, "description": "About how many tokens the answer may have"});
    vec![
        offer(
            "symbol_map",
            "An overview of the repository's code: folders, files and their most used definitions. With a path, the definitions of that file or folder.",
            object(
                json!({"path": {"type": "string", "description": "File or folder, relative to the root of the repository"}, "tokens": tokens}),
                json!([]),
            ),
            symbol_map,
        ),
        offer(
            "symbols",
            "Where a symbol (function, type, method, constant) is defined, with its signature, and which files use it.",
            object(
                json!({"name": {"type": "string", "description": "Exact name of the symbol"}}),
                json!(["name"]),
            ),
            symbols,
        ),
        offer(
            "why",
            "Why a Hardpan conversation in this folder paid again for cached tokens: the cause of each loss, with tokens and dollars.",
            object(
                json!({
                    "session": {"type": "string", "description": "Id or name of the conversation; the last one by default"},
                    "all": {"type": "boolean", "description": "Every loss, not only the last"},
                }),
                json!([]),
            ),
            why,
        ),
        offer(
            "audit",
            "What recorded agent sessions cost, what was paid twice, and what caused each loss. By default the Hardpan conversations of this folder.",
            object(
                json!({
                    "file": {"type": "string", "description": "A session file or a folder of them (*.jsonl)"},
                    "top": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many of the most expensive losses to list"},
                }),
                json!([]),
            ),
            audit,
        ),
    ]
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn number(arguments: &Arguments, name: &str, range: (usize, usize)) -> Option<usize> {
    let number = arguments.get(name)?.as_u64()?;
    Some(usize::try_from(number).unwrap_or(range.1).clamp(range.0, range.1))
}

fn load_index(place: &ServedPlace) -> SymbolIndex {
    symbol_map::load_index(&place.root, &UserFolders::from_env(), &QuietNotices)
}

fn symbol_map(place: &ServedPlace, arguments: &Arguments, _: ProgressFunction<'_>) -> Result<ToolReply> {
    let tokens = number(arguments, "tokens", (100, 50_000));
    let path = text(arguments, "path").map(|path| index_path(&place.root, &place.root, path)).transpose()?;
    let index = load_index(place);
    match path.filter(|path| !path.is_empty()) {
        None => Ok(ToolReply::text(overview_text(&index, "", tokens))),
        Some(path) => {
            let map = map_text(&index, &path, tokens.unwrap_or(MAP_TOKENS));
            Ok(ToolReply::text(map.with_context(|| format!("{path} contains no file of the map"))?))
        }
    }
}

fn symbols(place: &ServedPlace, arguments: &Arguments, _: ProgressFunction<'_>) -> Result<ToolReply> {
    let index = load_index(place);
    let name = text(arguments, "name").unwrap_or_default();
    let places = index.find_definitions(name);
    let data = Some(json!({"definitions": serde_json::to_value(&places)?}));
    Ok(ToolReply { data, ..ToolReply::text(symbols_text(&index, name)?) })
}

fn why(place: &ServedPlace, arguments: &Arguments, _: ProgressFunction<'_>) -> Result<ToolReply> {
    let session = text(arguments, "session");
    if session.is_some_and(|name| name.contains(['/', '\\'])) {
        bail!("name a conversation of this folder by its id or name, not by a file");
    }
    let found = find_losses(&session_store()?, &place.here, session)?;
    let all = arguments.get("all").and_then(Value::as_bool).unwrap_or_default();
    let first = if all { 0 } else { found.losses.len().saturating_sub(1) };
    let losses = &found.losses[first..];
    let data = Some(
        json!({"requests": found.requests, "losses": losses.iter().map(Loss::to_json).collect::<Vec<_>>()}),
    );
    let text = match losses {
        [] => format!(
            "no losses in the {} requests of {}: nothing was paid twice\n",
            found.requests, found.session
        ),
        losses => losses.iter().map(explain_loss).collect(),
    };
    Ok(ToolReply { data, ..ToolReply::text(safe_lines(&text)) })
}

fn audit(place: &ServedPlace, arguments: &Arguments, progress: ProgressFunction<'_>) -> Result<ToolReply> {
    let mut files = match text(arguments, "file") {
        Some(file) => named_sessions(place, file)?,
        None => session_store()?.list(Some(&place.here)).into_iter().map(|summary| summary.path).collect(),
    };
    if files.is_empty() {
        bail!("there are no sessions; name a session file or a folder of them");
    }
    if files.len() > MAX_SESSIONS {
        bail!("these are {} sessions: name a folder with {MAX_SESSIONS} at most", files.len());
    }
    files.sort();
    let all = files.len();
    let audits = audit_files(&files, &catalogue(), true, &mut |done| progress(done, all));
    if audits.is_empty() {
        bail!("cannot read any of these sessions");
    }
    let top = number(arguments, "top", (1, 100)).unwrap_or(10);
    let data = serde_json::to_value(Report::from_audits(&audits))?;
    Ok(ToolReply { data: Some(data), ..ToolReply::text(safe_lines(&report::summary(&audits, top))) })
}

/// The session files at a path, which must be in the repository, or where agents keep their sessions if
/// that was allowed.
fn named_sessions(place: &ServedPlace, file: &str) -> Result<Vec<PathBuf>> {
    let path = place.root.join(expand_home(file));
    let path = path.canonicalize().with_context(|| format!("cannot find {file}"))?;
    let is_in = |folder: &Path| folder.canonicalize().is_ok_and(|folder| path.starts_with(folder));
    let is_recorded = || session_places().iter().any(|recorded| is_in(&recorded.folder));
    let is_allowed = path.starts_with(&place.root) || (place.sessions_of_others && is_recorded());
    if !is_allowed {
        let remedy = if place.sessions_of_others {
            ""
        } else {
            "; `hardpan mcp serve --sessions` also reads where agents keep their sessions"
        };
        bail!("{file} is outside of {}{remedy}", place.root.display());
    }
    let mut files = Vec::new();
    match path.is_dir() {
        true => collect_session_files(&path, MAX_FOLDER_DEPTH, &mut files),
        false => files.push(path),
    }
    Ok(files)
}

fn expand_home(file: &str) -> PathBuf {
    let home =
        file.strip_prefix("~/").and_then(|rest| Some(PathBuf::from(std::env::var_os("HOME")?).join(rest)));
    home.unwrap_or_else(|| file.into())
}
