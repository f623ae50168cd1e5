//! From files, a folder and a session to a snapshot.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hardpan_agent::expand::{Expansions, Folder};
use hardpan_context::{
    FileEntry, ImageEntry, ItemEntry, LayoutName, ProjectFile, PromptEntry, Snapshot, SnapshotFile,
    SystemEntry, Target, ThinkingEntry, TreeEntry, Unavailable,
};
use hardpan_prompt::{AgentMessage, Body, Image, Kind, Part, Text, Volatility};
use hardpan_session::Session;
use hardpan_workspace as workspace;
use jiff::Timestamp;

use crate::args::{What, Whom};
use crate::chat::{commands, hands};
use crate::map;
use crate::settings::Settings;
use crate::state::State;

/// The longest list of files, in bytes: about 20,000 tokens, as much as the symbol map may take.
const TREE_BYTES: usize = 80_000;

/// A request about to be assembled.
pub struct Gathered {
    pub snapshot: Snapshot,
    pub target: Target,
    pub layout: LayoutName,
}

/// Where the command works: the folder it was started in, or the one it was given.
pub fn folder(dir: Option<&Path>) -> Result<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "this is the edge where the working directory enters")]
    let here = std::env::current_dir().context("the working directory cannot be found")?;
    let folder = dir.map_or(here.clone(), |dir| here.join(dir));
    folder.canonicalize().with_context(|| format!("{} cannot be found", folder.display()))
}

/// Everything a request needs.
pub fn gather(what: &What, settings: &Settings) -> Result<Gathered> {
    let (file, session) = snapshot_file(what, settings)?;
    let name = what.snapshot.as_ref().map_or_else(|| "snapshot".into(), |path| path.display().to_string());
    let snapshot = file.into_snapshot(&name)?;
    let layout = layout(&what.whom, settings, session.layout.as_deref())?;
    let mut target = target(&what.whom, settings, session.model)?;
    // A snapshot gives the same bytes everywhere: what this machine has learned must not count for it.
    if what.snapshot.is_none() {
        use_learned(&mut target, &State::load());
    }
    Ok(Gathered { snapshot, target, layout })
}

/// Puts the prompt where the agent has it: it is the newest message of the conversation.
fn say_prompt(file: &mut SnapshotFile) {
    let name = if file.messages.is_empty() { "e1" } else { "prompt" };
    let said = file.prompt.take_if(|_| file.images.is_empty());
    if let Some(PromptEntry::Text(text) | PromptEntry::WithId { text, .. }) = said {
        let body = Body::User { content: vec![Part::Text { text }] };
        let message = AgentMessage { time: Some(file.now), ..AgentMessage::new(name, body) };
        file.fresh = Some(message.id.clone());
        file.messages.push(message);
    }
}

/// What a session was last asked with.
#[derive(Default)]
pub struct Chosen {
    /// The provider and the model.
    pub model: Option<(String, String)>,
    pub layout: Option<String>,
}

/// Counts tokens by what earlier bills said, where the model's vocabulary is not public.
pub fn use_learned(target: &mut Target, state: &State) {
    if target.model.vocabulary.is_none() {
        target.factor = state.factor(&target.model.name()).unwrap_or(target.factor);
    }
}

/// How prompts are ordered: the flag, then the environment, then the session, then the settings.
pub fn layout(whom: &Whom, settings: &Settings, session: Option<&str>) -> Result<LayoutName> {
    let named = whom.layout.clone().or_else(|| env("HARDPAN_LAYOUT"));
    let session = session.and_then(|name| name.parse().ok()).filter(|_| named.is_none());
    let named = named.or(settings.config.layout.clone());
    Ok(session.map_or_else(|| named.map_or(Ok(LayoutName::default()), |name| name.parse()), Ok)?)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whom the request is for: flags, then the environment, then the session, then the settings, then the defaults.
pub fn target(whom: &Whom, settings: &Settings, session: Option<(String, String)>) -> Result<Target> {
    let config = &settings.config;
    let named = whom.model.clone().or_else(|| env("HARDPAN_MODEL"));
    let mut provider = whom.provider.clone().or_else(|| env("HARDPAN_PROVIDER"));
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
    if provider.is_none() && whom.model.is_none() && env("HARDPAN_MODEL").is_none() {
        provider = config.provider.clone();
    }
    if let Some(id) = &provider {
        settings.catalogue.provider(id)?;
    }
    let model = match (model, &provider) {
        (Some(model), _) => model,
        (None, Some(provider)) if provider != hardpan_models::DEFAULT_PROVIDER => {
            first_model(settings, provider)?
        }
        (None, _) => hardpan_models::DEFAULT_MODEL.to_owned(),
    };
    let mut target = Target::new(&settings.catalogue, provider.as_deref(), &model)?;
    if let Some(max_tokens) = whom.max_tokens.or(config.max_tokens) {
        let limit = target.model.max_tokens_limit();
        anyhow::ensure!(
            (1..=limit).contains(&max_tokens),
            "--max-tokens {max_tokens}: {} answers with 1 to {limit} tokens",
            target.model.id
        );
        target.max_tokens = max_tokens;
    }
    Ok(target)
}

/// The model of a session, if it is still known; where it is not, that is said.
pub fn still_known(settings: &Settings, model: Option<&(Arc<str>, Arc<str>)>) -> Option<(String, String)> {
    let (provider, model) = model?;
    let known = settings.catalogue.model(Some(provider), model).is_ok();
    if !known {
        let name = crate::output::safe(&format!("{provider}/{model}"));
        eprintln!(
            "hardpan: {name}, with which the conversation was held, is not known: another model goes on (--model)"
        );
    }
    known.then(|| (provider.to_string(), model.to_string()))
}

/// A provider without a default of its own: the model with the largest window, the latest name among equals.
fn first_model(settings: &Settings, provider: &str) -> Result<String> {
    let of_provider = settings.catalogue.models().filter(|model| model.provider == provider);
    let usable = of_provider.filter(|model| model.tools && model.deprecated.is_none());
    let best = usable.max_by(|a, b| (a.context, &a.id).cmp(&(b.context, &b.id)));
    let best = best.with_context(|| format!("no model of {provider} is known: name one with --model"))?;
    Ok(best.id.clone())
}

/// The snapshot's file form, and what its session was last asked with.
pub fn snapshot_file(what: &What, settings: &Settings) -> Result<(SnapshotFile, Chosen)> {
    let now = what.now.as_deref().map(parse_time).transpose()?;
    let mut chosen = Chosen::default();
    let mut file = match &what.snapshot {
        Some(path) => {
            let json = std::fs::read_to_string(path)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            let mut file = SnapshotFile::parse(&path.display().to_string(), &json)?;
            file.now = now.unwrap_or(file.now);
            file
        }
        None => {
            #[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
            let now = now.unwrap_or_else(Timestamp::now);
            let folder = folder(what.whom.dir.as_deref())?;
            let mut file = from_folder(&folder, settings, now);
            if !what.no_tools {
                let trusted = settings.trusted.then(|| workspace::root_of(&folder));
                let folders = Folder::usual(settings.folder.as_deref(), trusted.as_deref());
                file.system.skills = Expansions::discover(&folders, &commands::names()).listing();
                file.tools = hands::declared(settings);
            }
            file
        }
    };
    if let Some(path) = &what.session {
        let session = Session::open(path)?;
        for problem in &session.problems {
            let told = format!("{}:{}: {}", path.display(), problem.line, problem.what);
            eprintln!("hardpan: {}", crate::output::safe(&told));
        }
        let branch = session.branch(None)?;
        file.messages = branch.messages;
        chosen.model = still_known(settings, branch.model.as_ref());
        chosen.layout = branch.layout.map(|layout| layout.to_string());
    }
    let root = folder(what.whom.dir.as_deref())?;
    for path in &what.files {
        add_file(&mut file, &root, path);
    }
    for path in &what.whom.image {
        file.images.push(image_entry(workspace::read_image(path)?, None));
    }
    if let Some(prompt) = &what.prompt {
        file.prompt = Some(PromptEntry::Text(Text::new(read_prompt(prompt)?)));
    }
    if let Some(budget_tokens) = what.whom.thinking {
        file.thinking = Some(ThinkingEntry { budget_tokens });
    }
    file.fold |= what.fold;
    if what.snapshot.is_none() && !what.whom.no_map {
        let model = target(&what.whom, settings, chosen.model.clone())?.model;
        let usual = || map::usual_tokens(model.context as usize, model.token_factor);
        let tokens = settings.config.map_tokens.unwrap_or_else(usual);
        file.symbols = map::for_prompt(&root, &file, tokens, &mut map::Mapped::default());
    }
    if what.snapshot.is_none() {
        say_prompt(&mut file);
    }
    Ok((file, chosen))
}

fn parse_time(text: &str) -> Result<Timestamp> {
    text.parse().with_context(|| format!("--now {text}: expected a time such as 2026-02-19T14:00:00Z"))
}

fn read_prompt(prompt: &str) -> Result<String> {
    if prompt != "-" {
        return Ok(prompt.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("the prompt on standard input cannot be read as UTF-8")?;
    Ok(text.trim_end().to_owned())
}

pub fn from_folder(folder: &Path, settings: &Settings, now: Timestamp) -> SnapshotFile {
    let root = workspace::root_of(folder);
    let mut file = SnapshotFile::empty(now);
    file.working_directory = Some(folder.to_string_lossy().into());
    let instructions = workspace::instructions(&root, folder, settings.folder.as_deref());
    file.system = SystemEntry {
        append: settings.config.append_system_prompt.as_deref().map(Text::new),
        edit_blocks: settings.config.edit_blocks.unwrap_or(false),
        project_files: instructions
            .into_iter()
            .map(|(path, content)| ProjectFile { path: path.into(), content: Text::new(content) })
            .collect(),
        ..SystemEntry::default()
    };
    let tree = workspace::files(&root, workspace::TREE_LIMIT);
    let skipped = tree.skipped.iter();
    file.unavailable =
        skipped.map(|skipped| unavailable(format!("file:{}", skipped.path), &skipped.reason)).collect();
    if tree.truncated {
        let reason = format!("only the first {} files are listed", workspace::TREE_LIMIT);
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason));
    }
    let (files, hidden) = tree.outline(TREE_BYTES);
    if hidden > 0 {
        let reason = format!("{hidden} files are shown only as their folders: the list would be too long");
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason));
    }
    if !files.is_empty() {
        file.tree = Some(TreeEntry { files, last_refresh_ms: 0 });
    }
    if let Some(status) = workspace::git_status(&root) {
        file.items.push(ItemEntry {
            id: "git".into(),
            key: Some("git".into()),
            kind: Kind::Panel,
            header: "git status".into(),
            content: Text::new(status),
            last_refresh_ms: now.as_millisecond(),
            tier: None,
            n: None,
            volatility: Some(Volatility::Tail),
            said_by: None,
        });
    }
    file
}

fn unavailable(key: String, reason: &impl ToString) -> Unavailable {
    Unavailable { key, reason: reason.to_string() }
}

/// A file by name: text is shown, an image is attached, anything else is listed with the reason.
pub fn add_file(file: &mut SnapshotFile, root: &Path, path: &Path) {
    let shown = workspace::display_path(&workspace::root_of(root), &root.join(path));
    if file.files.iter().any(|entry| entry.path == shown) {
        return;
    }
    let path = root.join(path);
    // Named on purpose: what the walk said of it does not matter any more.
    file.unavailable.retain(|entry| entry.key != format!("file:{shown}"));
    let (content, reason) = match workspace::read_text(&path, workspace::TEXT_LIMIT) {
        Ok(text) => {
            if let Some(cut) = &text.cut {
                let reason =
                    format!("cut: the first {} of {} bytes are shown", cut.shown_bytes, cut.total_bytes);
                file.unavailable.push(unavailable(format!("file:{shown} (the rest)"), &reason));
            }
            (Some(Text::new(text.text)), None)
        }
        Err(unreadable) => match workspace::read_image(&path) {
            Ok(image) => {
                file.images.push(image_entry(image, Some(&shown)));
                return;
            }
            Err(workspace::ImageFileError::Refused { error, .. }) => (None, Some(error.to_string())),
            Err(_) => (None, Some(unreadable.reason.to_string())),
        },
    };
    let entry = FileEntry { last_refresh_ms: modified_ms(&path), content, reason, ..nothing_of(shown) };
    file.files.push(entry);
}

/// A file that must not be read, with the reason.
pub fn add_refused(file: &mut SnapshotFile, path: &str, reason: &str) {
    if !file.files.iter().any(|entry| entry.path == path) {
        file.files.push(FileEntry { reason: Some(reason.to_owned()), ..nothing_of(path.to_owned()) });
    }
}

fn nothing_of(path: String) -> FileEntry {
    FileEntry {
        path,
        content: None,
        reason: None,
        last_refresh_ms: 0,
        id: None,
        tier: None,
        n: None,
        volatility: None,
        said_by: None,
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
