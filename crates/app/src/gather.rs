//! Gathers what a request is made of: [`collect_inputs`] for a request that is only shown, and
//! [`FolderReader`], which the agent uses, too.
//!
//! This is where the world is read; the engine below takes values only.

mod folder; // FolderReader: reads a folder into a snapshot

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_context::{
    LayoutName, PromptEntry, Snapshot, SnapshotError, SnapshotFile, Target, ThinkingEntry,
};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, Text};
use hardpan_session::{Session, SessionError};
use hardpan_workspace as workspace;
use hardpan_workspace::ImageFileError;
use jiff::Timestamp;

use crate::clock::now;
use crate::learned_state::LearnedState;
use crate::notice::{Notice, NoticeSink};
use crate::options::RequestOptions;
use crate::settings::Settings;
use crate::symbol_map::{MapState, default_map_tokens};
use crate::target::{
    SessionChoices, TargetError, apply_learned_factor, known_session_model, resolve_keep, resolve_layout,
    resolve_target,
};
use crate::tool_set;

pub use folder::FolderReader;
pub(crate) use folder::{add_refused_file, discover_expansions};

/// Why the inputs of a request cannot be gathered. A part of the folder that cannot be read is no
/// error: the snapshot lists it with the reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// The folder is not there.
    #[error("cannot find {}: {source}", path.display())]
    FolderNotFound {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The snapshot file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    UnreadableSnapshot {
        /// The snapshot file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The snapshot contradicts itself.
    #[error(transparent)]
    InvalidSnapshot(#[from] SnapshotError),
    /// The session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An image cannot be sent.
    #[error(transparent)]
    Image(#[from] ImageFileError),
    /// There is no such model or layout.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Everything that assembling a request needs.
pub struct RequestInputs {
    /// What the model should see.
    pub snapshot: Snapshot,
    /// The model that the request is for.
    pub target: Target,
    /// How to order the prompt.
    pub layout: LayoutName,
}

/// Collects the inputs of a request.
pub fn collect_inputs(
    request: &RequestOptions,
    settings: &Arc<Settings>,
    notices: &Arc<dyn NoticeSink>,
) -> Result<RequestInputs, GatherError> {
    let (file, session) = build_snapshot_file(request, settings, notices)?;
    let name = request.snapshot.as_ref().map_or_else(|| "snapshot".into(), |path| path.display().to_string());
    let snapshot = file.into_snapshot(&name)?;
    let layout = resolve_layout(&request.target, settings, session.layout.as_deref())?;
    let mut target = resolve_target(&request.target, settings, session.model)?;
    // A snapshot gives the same bytes everywhere, so what this machine learned must not count.
    if request.snapshot.is_none() {
        apply_learned_factor(&mut target, &LearnedState::load(&settings.user_folders));
    }
    Ok(RequestInputs { snapshot, target, layout })
}

/// Builds the snapshot in its file form, and returns what its session last used.
pub fn build_snapshot_file(
    request: &RequestOptions,
    settings: &Arc<Settings>,
    notices: &Arc<dyn NoticeSink>,
) -> Result<(SnapshotFile, SessionChoices), GatherError> {
    let folder = canonical_folder(&request.folder)?;
    let skills = if request.tools && request.snapshot.is_none() {
        let root = workspace::find_project_root(&folder);
        discover_expansions(&root, settings, &request.reserved_names).model_listing()
    } else {
        Vec::new()
    };
    let reader = FolderReader::new(folder, settings.clone(), skills, notices.clone());
    let mut file = match &request.snapshot {
        Some(path) => read_snapshot(path, request.now)?,
        None => {
            let mut file = reader.read(request.now.unwrap_or_else(now));
            if request.tools {
                file.tools = tool_set::declared_tools(settings);
            }
            file
        }
    };
    let session = match &request.session {
        Some(path) => add_session(&mut file, path, settings, &**notices)?,
        None => SessionChoices::default(),
    };
    for path in &request.files {
        reader.add_file(&mut file, path);
    }
    for path in &request.images {
        file.images.push(folder::image_entry(workspace::read_image(path)?, None));
    }
    if let Some(prompt) = &request.prompt {
        file.prompt = Some(PromptEntry::Text(Text::new(prompt.as_str())));
    }
    if let Some(setting) = request.target.thinking {
        file.thinking = ThinkingEntry::new(setting);
    }
    // A snapshot file says itself what to keep, unless a flag does.
    if request.snapshot.is_none() || request.target.keep.is_some() {
        file.keep = resolve_keep(&request.target, settings);
    }
    file.fold |= request.fold;
    if request.snapshot.is_none() && request.symbol_map {
        let model = resolve_target(&request.target, settings, session.model.clone())?.model;
        let usual = || default_map_tokens(model.context as usize, model.token_factor);
        let tokens = settings.config.map_tokens.unwrap_or_else(usual);
        file.symbols = reader.map_symbols(&file, tokens, &mut MapState::default());
    }
    if request.snapshot.is_none() {
        append_prompt_message(&mut file);
    }
    Ok((file, session))
}

/// The folder's full path, without links.
pub(crate) fn canonical_folder(folder: &Path) -> Result<PathBuf, GatherError> {
    let found = folder.canonicalize();
    found.map_err(|source| GatherError::FolderNotFound { path: folder.to_owned(), source })
}

fn read_snapshot(path: &Path, now: Option<Timestamp>) -> Result<SnapshotFile, GatherError> {
    let json = std::fs::read_to_string(path)
        .map_err(|source| GatherError::UnreadableSnapshot { path: path.to_owned(), source })?;
    let mut file = SnapshotFile::parse(&path.display().to_string(), &json)?;
    file.now = now.unwrap_or(file.now);
    Ok(file)
}

/// Adds the conversation of a session file, and returns what it last used.
fn add_session(
    file: &mut SnapshotFile,
    path: &Path,
    settings: &Settings,
    notices: &dyn NoticeSink,
) -> Result<SessionChoices, GatherError> {
    let session = Session::open(path)?;
    for problem in &session.problems {
        notices.notice(Notice::SessionProblem { path: path.to_owned(), problem: problem.clone() });
    }
    let branch = session.branch(None)?;
    file.messages = branch.messages;
    let switched_off = hardpan_agent::switched_off_tools(&branch.custom);
    file.tools.retain(|tool| !switched_off.contains(&tool.name));
    Ok(SessionChoices {
        model: known_session_model(settings, branch.model.as_ref(), notices),
        layout: branch.layout.map(|layout| layout.to_string()),
    })
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
