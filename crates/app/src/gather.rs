//! [`RequestInputs`]: the snapshot, the target and the layout of a request, collected from files, a
//! folder, a session, flags, environment variables and settings.
//!
//! This is where the command line reads the world; the engine below takes values only.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hardpan_agent::expand::{Expansions, Folder};
use hardpan_context::{
    FileEntry, ImageEntry, ItemEntry, LayoutName, ProjectFile, PromptEntry, Snapshot, SnapshotFile,
    SystemEntry, Target, ThinkingEntry, TreeEntry, UnavailableEntry,
};
use hardpan_prompt::{
    AgentMessage, Image, ItemKind, MessageBody, MessagePart, Text, UnavailableCode, Volatility,
};
use hardpan_session::Session;
use hardpan_workspace as workspace;
use jiff::Timestamp;

use crate::learned_state::LearnedState;
use crate::options::{RequestOptions, TargetOptions};
use crate::settings::Settings;
use crate::{symbol_map, tool_set};

/// The longest file list in a prompt, in bytes: about 20,000 tokens, as much as the symbol map may
/// take.
const TREE_BYTES: usize = 80_000;

/// Everything that assembling a request needs.
pub struct RequestInputs {
    /// What the model should see.
    pub snapshot: Snapshot,
    /// The model that the request is for.
    pub target: Target,
    /// How to order the prompt.
    pub layout: LayoutName,
}

/// The folder to work in: `dir`, relative to the current folder, or the current folder itself.
pub fn working_folder(dir: Option<&Path>) -> Result<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "this is the edge where the working directory enters")]
    let here = std::env::current_dir().context("cannot determine the current folder")?;
    let folder = dir.map_or(here.clone(), |dir| here.join(dir));
    folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()))
}

/// Collects the inputs of a request.
pub fn collect_inputs(request: &RequestOptions, settings: &Settings) -> Result<RequestInputs> {
    let (file, session) = build_snapshot_file(request, settings)?;
    let name = request.snapshot.as_ref().map_or_else(|| "snapshot".into(), |path| path.display().to_string());
    let snapshot = file.into_snapshot(&name)?;
    let layout = resolve_layout(&request.target, settings, session.layout.as_deref())?;
    let mut target = resolve_target(&request.target, settings, session.model)?;
    // A snapshot gives the same bytes everywhere, so what this machine learned must not count.
    if request.snapshot.is_none() {
        apply_learned_factor(&mut target, &LearnedState::load());
    }
    Ok(RequestInputs { snapshot, target, layout })
}

/// Moves the prompt to where the agent has it: the newest message of the conversation.
fn append_prompt_message(file: &mut SnapshotFile) {
    let name = if file.messages.is_empty() { "e1" } else { "prompt" };
    let prompt = file.prompt.take_if(|_| file.images.is_empty());
    if let Some(PromptEntry::Text(text) | PromptEntry::WithId { text, .. }) = prompt {
        let body = MessageBody::User { content: vec![MessagePart::Text { text }] };
        let message = AgentMessage { time: Some(file.now), ..AgentMessage::new(name, body) };
        file.first_unsent = Some(message.id.clone());
        file.messages.push(message);
    }
}

/// The model and the layout that a session last used.
#[derive(Default)]
pub struct SessionChoices {
    /// Provider id and model id.
    pub model: Option<(String, String)>,
    /// A layout's name; may be one that this version does not know.
    pub layout: Option<String>,
}

/// Scales token counts by what earlier bills reported, for models whose vocabulary is not public.
pub fn apply_learned_factor(target: &mut Target, state: &LearnedState) {
    if target.model.vocabulary.is_none() {
        target.factor = state.factor(&target.model.name()).unwrap_or(target.factor);
    }
}

/// Chooses the layout: the flag, then the environment, then the session, then the settings.
pub fn resolve_layout(
    options: &TargetOptions,
    settings: &Settings,
    session: Option<&str>,
) -> Result<LayoutName> {
    let named = options.layout.clone().or_else(|| env_value("HARDPAN_LAYOUT"));
    let session = session.and_then(|name| name.parse().ok()).filter(|_| named.is_none());
    let named = named.or(settings.config.layout.clone());
    Ok(session.map_or_else(|| named.map_or(Ok(LayoutName::default()), |name| name.parse()), Ok)?)
}

fn env_value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Chooses provider and model: flags, then the environment, then the session, then the settings,
/// then the defaults.
pub fn resolve_target(
    options: &TargetOptions,
    settings: &Settings,
    session: Option<(String, String)>,
) -> Result<Target> {
    let config = &settings.config;
    let named = options.model.clone().or_else(|| env_value("HARDPAN_MODEL"));
    let mut provider = options.provider.clone().or_else(|| env_value("HARDPAN_PROVIDER"));
    let (session_provider, session_model) = session.unzip();
    let model = match named {
        Some(model) => Some(model),
        None if provider.is_none() && session_model.is_some() => {
            provider = session_provider;
            session_model
        }
        None => {
            let same = provider.is_none() || provider == config.provider || config.provider.is_none();
            config.model.clone().filter(|_| same && (provider.is_none() || config.provider.is_some()))
        }
    };
    if provider.is_none() && options.model.is_none() && env_value("HARDPAN_MODEL").is_none() {
        provider = config.provider.clone();
    }
    if let Some(id) = &provider {
        settings.catalogue.provider(id)?;
    }
    let model = match (model, &provider) {
        (Some(model), _) => model,
        (None, Some(provider)) if provider != hardpan_models::DEFAULT_PROVIDER => {
            largest_model_of(settings, provider)?
        }
        (None, _) => hardpan_models::DEFAULT_MODEL.to_owned(),
    };
    let mut target = Target::new(&settings.catalogue, provider.as_deref(), &model)?;
    if let Some(max_tokens) = options.max_tokens.or(config.max_tokens) {
        let limit = target.model.max_tokens_limit();
        anyhow::ensure!(
            (1..=limit).contains(&max_tokens),
            "--max-tokens {max_tokens} is out of range: {} answers with 1 to {limit} tokens",
            target.model.id
        );
        target.max_tokens = max_tokens;
    }
    Ok(target)
}

/// The model of a session, if the catalogue still has it; otherwise warns on standard error.
pub fn known_session_model(
    settings: &Settings,
    model: Option<&(Arc<str>, Arc<str>)>,
) -> Option<(String, String)> {
    let (provider, model) = model?;
    let known = settings.catalogue.model(Some(provider), model).is_ok();
    if !known {
        let name = crate::text::safe(&format!("{provider}/{model}"));
        eprintln!(
            "hardpan: this conversation used {name}, which is not in the list of models; continuing with another model (choose one with --model)"
        );
    }
    known.then(|| (provider.to_string(), model.to_string()))
}

/// The default for a provider that has none: its model with the largest window; among equals, the
/// one whose name sorts last.
fn largest_model_of(settings: &Settings, provider: &str) -> Result<String> {
    let of_provider = settings.catalogue.models().filter(|model| model.provider == provider);
    let usable = of_provider.filter(|model| model.tools && model.deprecated.is_none());
    let best = usable.max_by(|a, b| (a.context, &a.id).cmp(&(b.context, &b.id)));
    let best = best.with_context(|| format!("no known model of {provider}: name one with --model"))?;
    Ok(best.id.clone())
}

/// Builds the snapshot in its file form, and returns what its session last used.
pub fn build_snapshot_file(
    request: &RequestOptions,
    settings: &Settings,
) -> Result<(SnapshotFile, SessionChoices)> {
    let now = request.now.as_deref().map(parse_time).transpose()?;
    let mut chosen = SessionChoices::default();
    let mut file = match &request.snapshot {
        Some(path) => {
            let json =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut file = SnapshotFile::parse(&path.display().to_string(), &json)?;
            file.now = now.unwrap_or(file.now);
            file
        }
        None => {
            #[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
            let now = now.unwrap_or_else(Timestamp::now);
            let folder = working_folder(request.target.dir.as_deref())?;
            let mut file = snapshot_of_folder(&folder, settings, now);
            if !request.no_tools {
                let trusted = settings.trusted.then(|| workspace::find_project_root(&folder));
                let folders = Folder::defaults(settings.folder.as_deref(), trusted.as_deref());
                file.system.skills = Expansions::discover(&folders, &request.reserved_names).model_listing();
                file.tools = tool_set::declared_tools(settings);
            }
            file
        }
    };
    if let Some(path) = &request.session {
        let session = Session::open(path)?;
        for problem in &session.problems {
            let warning = format!("{}:{}: {}", path.display(), problem.line, problem.kind);
            eprintln!("hardpan: {}", crate::text::safe(&warning));
        }
        let branch = session.branch(None)?;
        file.messages = branch.messages;
        chosen.model = known_session_model(settings, branch.model.as_ref());
        chosen.layout = branch.layout.map(|layout| layout.to_string());
        let switched_off = hardpan_agent::switched_off_tools(&branch.custom);
        file.tools.retain(|tool| !switched_off.contains(&tool.name));
    }
    let root = working_folder(request.target.dir.as_deref())?;
    for path in &request.files {
        add_file(&mut file, &root, path);
    }
    for path in &request.target.image {
        file.images.push(image_entry(workspace::read_image(path)?, None));
    }
    if let Some(prompt) = &request.prompt {
        file.prompt = Some(PromptEntry::Text(Text::new(read_prompt(prompt)?)));
    }
    if let Some(budget_tokens) = request.target.thinking {
        file.thinking = Some(ThinkingEntry { budget_tokens });
    }
    file.fold |= request.fold;
    if request.snapshot.is_none() && !request.target.no_map {
        let model = resolve_target(&request.target, settings, chosen.model.clone())?.model;
        let usual = || symbol_map::default_map_tokens(model.context as usize, model.token_factor);
        let tokens = settings.config.map_tokens.unwrap_or_else(usual);
        file.symbols =
            symbol_map::symbols_for_prompt(&root, &file, tokens, &mut symbol_map::MapState::default());
    }
    if request.snapshot.is_none() {
        append_prompt_message(&mut file);
    }
    Ok((file, chosen))
}

fn parse_time(text: &str) -> Result<Timestamp> {
    text.parse().with_context(|| format!("--now {text}: expected a time, such as 2026-02-19T14:00:00Z"))
}

fn read_prompt(prompt: &str) -> Result<String> {
    if prompt != "-" {
        return Ok(prompt.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("cannot read the prompt on standard input as UTF-8")?;
    Ok(text.trim_end().to_owned())
}

/// A snapshot of what the folder holds: instructions, file list and git status, without files.
pub fn snapshot_of_folder(folder: &Path, settings: &Settings, now: Timestamp) -> SnapshotFile {
    let root = workspace::find_project_root(folder);
    let mut file = SnapshotFile::empty(now);
    file.working_directory = Some(folder.to_string_lossy().into());
    let instructions = workspace::read_instructions(&root, folder, settings.folder.as_deref());
    file.system = SystemEntry {
        append: settings.config.append_system_prompt.as_deref().map(Text::new),
        edit_blocks: settings.config.edit_blocks.unwrap_or(false),
        project_files: instructions
            .into_iter()
            .map(|(path, content)| ProjectFile { path: path.into(), content: Text::new(content) })
            .collect(),
        ..SystemEntry::default()
    };
    let tree = workspace::list_files(&root, workspace::TREE_LIMIT);
    let skipped = tree.skipped.iter();
    file.unavailable = skipped
        .map(|skipped| {
            unavailable(format!("file:{}", skipped.path), &skipped.reason, UnavailableCode::Unreadable)
        })
        .collect();
    if tree.truncated {
        let reason = format!("only the first {} files are listed", workspace::TREE_LIMIT);
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason, UnavailableCode::NotListed));
    }
    let (files, hidden) = tree.lines_within(TREE_BYTES);
    if hidden > 0 {
        let reason = format!("{hidden} files are shown only as their folders: the list would be too long");
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason, UnavailableCode::NotListed));
    }
    if !files.is_empty() {
        file.tree = Some(TreeEntry { files, last_refresh_ms: 0 });
    }
    if let Some(status) = workspace::git_status(&root) {
        file.items.push(ItemEntry {
            id: "git".into(),
            key: Some("git".into()),
            kind: ItemKind::Panel,
            header: "git status".into(),
            content: Text::new(status),
            last_refresh_ms: now.as_millisecond(),
            tier: None,
            unchanged_responses: None,
            volatility: Some(Volatility::Tail),
            shown_by: None,
        });
    }
    file
}

fn unavailable(key: String, reason: &impl ToString, code: UnavailableCode) -> UnavailableEntry {
    UnavailableEntry { key, reason: reason.to_string(), code: Some(code) }
}

/// Adds a file that was named: shows text, attaches an image, and lists anything else with the
/// reason why it is left out. Does nothing if the file is there already.
pub fn add_file(file: &mut SnapshotFile, root: &Path, path: &Path) {
    let shown = workspace::display_path(&workspace::find_project_root(root), &root.join(path));
    if file.files.iter().any(|entry| entry.path == shown) {
        return;
    }
    let path = root.join(path);
    // Named on purpose, so it no longer matters why the walk skipped it.
    file.unavailable.retain(|entry| entry.key != format!("file:{shown}"));
    let (content, reason) = match workspace::read_text(&path, workspace::TEXT_LIMIT) {
        Ok(text) => {
            if let Some(cut) = &text.truncation {
                let reason =
                    format!("cut: the first {} of {} bytes are shown", cut.shown_bytes, cut.total_bytes);
                let key = format!("file:{shown} (the rest)");
                file.unavailable.push(unavailable(key, &reason, UnavailableCode::Truncated));
            }
            (Some(Text::new(text.text)), None)
        }
        Err(unreadable) => match workspace::read_image(&path) {
            Ok(image) => {
                file.images.push(image_entry(image, Some(&shown)));
                return;
            }
            Err(workspace::ImageFileError::Refused { error, .. }) => (None, Some(error.to_string())),
            Err(_) => (None, Some(unreadable.reason.model_text())),
        },
    };
    let entry = FileEntry { last_refresh_ms: modified_ms(&path), content, reason, ..empty_file_entry(shown) };
    file.files.push(entry);
}

/// Lists a file that must not be read, with the reason.
pub fn add_refused_file(file: &mut SnapshotFile, path: &str, reason: &str) {
    if !file.files.iter().any(|entry| entry.path == path) {
        file.files.push(FileEntry {
            reason: Some(reason.to_owned()),
            code: Some(UnavailableCode::Refused),
            ..empty_file_entry(path.to_owned())
        });
    }
}

fn empty_file_entry(path: String) -> FileEntry {
    FileEntry {
        path,
        content: None,
        reason: None,
        code: None,
        last_refresh_ms: 0,
        id: None,
        tier: None,
        unchanged_responses: None,
        volatility: None,
        shown_by: None,
    }
}

fn modified_ms(path: &Path) -> i64 {
    let modified = std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

fn image_entry(image: Image, path: Option<&str>) -> ImageEntry {
    let Image { media_type, data, width, height } = image;
    ImageEntry { path: path.map(Into::into), media_type, data, width, height }
}
