//! [`Notice`]: what the user should know although nothing failed. A library never prints: notices
//! go to the [`NoticeSink`] of a face, which shows them.

use std::fmt;
use std::io;
use std::path::PathBuf;

use hardpan_agent::expand::ExpansionProblem;
use hardpan_context::FoundSecret;
use hardpan_models::{ThinkingSubstitution, UnknownName, did_you_mean};
use hardpan_panels::GuardRail;
use hardpan_providers::UnsupportedFeature;
use hardpan_session::SessionProblem;
use hardpan_tools::JournalError;
use hardpan_workspace::{IndexNotReady, WatchError};
use jiff::Timestamp;

use crate::agents::UnknownAgent;
use crate::commit::CommitNotice;
use crate::error_text;
use crate::mentions::MentionNote;
use crate::settings::{BaseUrl, BaseUrlSource, ProjectFilesError};

/// Shows notices: one for each face.
pub trait NoticeSink: Send + Sync {
    /// Shows a notice. Its text may quote files, so a terminal must not get its control characters.
    fn notice(&self, notice: Notice);

    /// Shows how far the symbol index of a large folder is.
    fn index_progress(&self, _progress: IndexProgress) {}
}

/// A sink that drops every notice.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardNotices;

impl NoticeSink for DiscardNotices {
    fn notice(&self, _notice: Notice) {}
}

/// How far the symbol index of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexProgress {
    /// Files that are indexed, of all.
    Indexed {
        /// How many files are done.
        done: usize,
        /// How many files there are.
        total: usize,
    },
    /// The index is complete.
    Finished,
}

/// Why telemetry cannot be sent.
#[cfg(feature = "otel")]
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The settings or the variables have a mistake.
    Settings(#[from] hardpan_telemetry::TelemetrySettingsError),
    /// The collector cannot be reached, or refuses what it is sent.
    Export(#[from] hardpan_telemetry::ExportError),
    /// Nothing can be sent over HTTP.
    Transport(#[from] hardpan_providers::TransportError),
}

/// Something that the user should know. `Display` gives the sentence, with what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A command that waited until it cost nothing has run.
    Deferred {
        /// The command and what it said.
        text: String,
    },
    /// Nothing can be written where sessions are stored: this one ends with the program.
    SessionNotStored {
        /// Where they would be stored.
        folder: PathBuf,
        /// Why that is not possible.
        error: io::Error,
    },
    /// The folder has settings of its own, which the user has not trusted.
    ProjectNotTrusted,
    /// The folder has no settings, but extensions of its own, which the user has not trusted.
    ProjectExtensionsNotTrusted,
    /// The folder's own settings are no longer those that the user trusted.
    ProjectChanged {
        /// The files that differ, relative to the folder.
        files: Vec<PathBuf>,
    },
    /// The folder's own settings cannot be read as a whole.
    ProjectUntrustable(ProjectFilesError),
    /// A project's file names provider addresses, which are not used.
    ProjectProvidersIgnored {
        /// The project's file.
        path: PathBuf,
    },
    /// The settings ask for telemetry, which this build does not have.
    TelemetryNotBuilt,
    /// Telemetry that somebody asked for cannot be sent.
    #[cfg(feature = "otel")]
    TelemetryNotSent {
        /// Why not.
        error: TelemetryError,
    },
    /// The custom prompt cannot be found, or is empty: a minimal one is sent.
    PromptMissing {
        /// The file that should have it; none if none is named.
        path: Option<PathBuf>,
    },
    /// The settings configure a provider that does not exist.
    UnknownProviderIgnored {
        /// The id in the settings.
        id: String,
        /// Which providers may be meant.
        error: UnknownName,
    },
    /// A line of a session file cannot be read.
    SessionProblem {
        /// The session file.
        path: PathBuf,
        /// The line, and what is wrong with it.
        problem: SessionProblem,
    },
    /// A conversation from elsewhere names files outside of the workspace, which are not opened.
    OutsideFilesDropped {
        /// As the conversation names them.
        files: Vec<PathBuf>,
    },
    /// A conversation is continued in another folder than the one it began in.
    OtherFolder {
        /// Where it began.
        began_in: String,
        /// Where it continues.
        folder: PathBuf,
    },
    /// Requests, and the key, go to another address than the provider's own.
    OtherAddress {
        /// Provider id.
        provider: String,
        /// The address, and who chose it.
        address: BaseUrl,
        /// Whether a key goes there.
        with_key: bool,
    },
    /// The server has refused something before, so that requests leave it out from the start.
    FeaturesRefused {
        /// Provider and id of the model.
        model: String,
        /// Where the requests go.
        address: String,
        /// What is left out.
        features: Vec<UnsupportedFeature>,
        /// When the first of it is tried again.
        next_try: Timestamp,
    },
    /// A file that the prompt of a shown request mentions is not attached in full.
    Mention(MentionNote),
    /// No list has the model, so its limits and abilities are assumptions.
    UnlistedModel {
        /// Provider and id of the model.
        model: String,
        /// Ids of listed models that resemble it.
        similar: Vec<String>,
        /// The provider that it is sent to although its name does not tell one.
        fallback_provider: Option<String>,
        /// The window that is assumed, in tokens.
        context: u32,
    },
    /// The model cannot think as it was asked to, so that a request says something else.
    ThinkingSubstituted {
        /// Provider and id of the model.
        model: String,
        /// What a request says instead.
        substitution: ThinkingSubstitution,
    },
    /// The conversation's provider no longer exists.
    ProviderGone {
        /// Provider id.
        provider: String,
        /// Model id.
        model: String,
    },
    /// Several providers have a key, and nothing says which one to use.
    SeveralKeys {
        /// The provider that is used.
        used: String,
        /// The other ones.
        others: Vec<String>,
    },
    /// An extension is left out.
    ExtensionNotLoaded {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// A server, or a tool of it, cannot be used.
    McpServerFailed {
        /// Its name.
        server: String,
        /// What is wrong with it.
        error: String,
    },
    /// Requests take fewer tools than the settings would have them declare.
    McpToolsBeyondLimit {
        /// The servers whose tools searches find instead.
        servers: Vec<String>,
        /// How many tools a request takes.
        max: usize,
    },
    /// A server lists other tools than when the conversation began.
    McpToolsChanged {
        /// Its name.
        server: String,
        /// Tools that are new or another.
        changed: usize,
        /// Tools that are gone.
        removed: usize,
        /// Whether the model in use is told which tools are new and which are gone.
        is_told: bool,
    },
    /// A part of an extension has no effect here.
    ExtensionWarning {
        /// Name of the extension.
        extension: String,
        /// Which part, and why.
        warning: String,
    },
    /// The model that was asked for is not there.
    ModelMissing {
        /// Why.
        error: String,
    },
    /// No extension has this flag.
    UnknownExtensionFlag {
        /// Its name.
        name: String,
    },
    /// A skill or a prompt template is skipped.
    ExpansionSkipped(ExpansionProblem),
    /// The agent of the conversation is no longer there; the default one goes on.
    AgentGone(UnknownAgent),
    /// The settings want web searches, and the provider has none that Hardpan can ask for.
    NoWebSearch {
        /// The model, as `provider/model`.
        model: String,
    },
    /// A permission rule names no tool that exists.
    RuleWithoutEffect {
        /// The rule as written.
        rule: String,
        /// The tools that exist.
        tools: Vec<String>,
    },
    /// A rule that the user allowed for good is not stored.
    RuleNotStored {
        /// The file of the rules.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Changes are not recorded, so they cannot be undone.
    UndoUnavailable(JournalError),
    /// The agent goes on by itself.
    Continued {
        /// How many pieces of work are left.
        work: usize,
    },
    /// The agent does not go on by itself, although work is left.
    ContinuationStopped(GuardRail),
    /// Changes are still recorded in the journal of the conversation before.
    JournalNotSwitched(JournalError),
    /// The sandbox lacks some restrictions.
    SandboxIncomplete {
        /// Which ones, in words.
        missing: String,
    },
    /// Commands run without a sandbox, each after a question.
    NoSandbox {
        /// Why, in words.
        reason: String,
    },
    /// Commands do not run.
    CommandsRefused {
        /// Why, in words.
        reason: String,
    },
    /// A folder of `writable` cannot be opened.
    WritableSkipped {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is no key, so the simulator answers.
    SimulatorAnswers {
        /// The provider whose key is missing.
        provider: String,
        /// The environment variable that would hold the key.
        key_variable: Option<String>,
    },
    /// A request that is no part of a conversation held secrets.
    SecretsReplaced {
        /// What they are, without their values.
        secrets: Vec<String>,
    },
    /// The folder is not watched, so it is read again before each request.
    NotWatched(WatchError),
    /// The symbol index is not ready, so that a request does not describe the repository.
    IndexBehind(IndexNotReady),
    /// The folder has more files than are listed and indexed.
    FolderTooLarge {
        /// The folder.
        folder: PathBuf,
        /// Whether it is a repository or looks like a project.
        is_project: bool,
    },
    /// About a commit message that is being written.
    Commit(CommitNotice),
}

impl Notice {
    /// That these secrets were replaced, without their values.
    pub(crate) fn secrets_replaced(secrets: &[FoundSecret]) -> Self {
        Notice::SecretsReplaced { secrets: secrets.iter().map(FoundSecret::describe).collect() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Deferred { text } => f.write_str(text),
            Notice::SessionNotStored { folder, error } => write!(
                f,
                "this conversation is not stored: nothing can be written to {} ({error}); name another data folder in HARDPAN_DATA_DIR",
                folder.display()
            ),
            Notice::TelemetryNotBuilt => f.write_str(
                "config.toml asks for [telemetry], but this build of Hardpan has none: build it with `--features otel`, or remove the table",
            ),
            #[cfg(feature = "otel")]
            Notice::TelemetryNotSent { error } => {
                write!(f, "telemetry is not sent: {error}; the agent works on without it")
            }
            Notice::ProjectNotTrusted => f.write_str(
                "ignoring this folder's own settings (.hardpan): read them, then run `hardpan trust` to use them",
            ),
            Notice::ProjectExtensionsNotTrusted => f.write_str(
                "ignoring this folder's own extensions (.pi/extensions): read them, then run `hardpan trust` to use them",
            ),
            Notice::ProjectChanged { files } => {
                let names: Vec<String> = files.iter().take(3).map(|file| file.display().to_string()).collect();
                let more = if files.len() > names.len() { ", …" } else { "" };
                write!(
                    f,
                    "ignoring this folder's own settings: they are not those that you trusted ({}{more}), and its extensions run as you trusted them; run `hardpan trust` to see what changed and to use them",
                    names.join(", ")
                )
            }
            Notice::ExtensionNotLoaded { path, error } => {
                write!(f, "the extension {} was not loaded: {error}", path.display())
            }
            Notice::McpServerFailed { server, error } => write!(f, "the MCP server {server}: {error}"),
            Notice::McpToolsChanged { server, changed, removed, is_told } => {
                let told = match is_told {
                    true => "the model is told which are new or gone, as long as they are few, and ",
                    false => "",
                };
                write!(
                    f,
                    "the MCP server {server} has other tools now ({changed} new or changed, {removed} gone); {told}requests declare them from the next fold on, so that the cache stays"
                )
            }
            Notice::McpToolsBeyondLimit { servers, max } => write!(
                f,
                "requests to this provider take at most {max} tools: those of MCP servers ({}) are found by tool_search, although `mcp_tools` says \"all\"",
                servers.join(", ")
            ),
            Notice::ExtensionWarning { extension, warning } => write!(f, "extension {extension}: {warning}"),
            Notice::ModelMissing { error } => write!(f, "{error}; the conversation has another model"),
            Notice::UnknownExtensionFlag { name } => {
                write!(f, "no extension has the flag {name}; `hardpan extensions` lists those that there are")
            }
            Notice::ProjectUntrustable(error) => {
                write!(f, "ignoring this folder's own settings: {error}")
            }
            Notice::ProjectProvidersIgnored { path } => write!(
                f,
                "{}: ignoring the project's provider addresses, because your keys would go there; put them into your own settings",
                path.display()
            ),
            Notice::PromptMissing { path: Some(path) } => {
                write!(f, "{}: there is no prompt here, so a minimal one is sent", path.display())
            }
            Notice::PromptMissing { path: None } => {
                f.write_str("a minimal prompt is sent: name the file of your own with prompt_path")
            }
            Notice::UnknownProviderIgnored { id, error } => {
                write!(f, "ignoring [providers.{id}] in config.toml: {error}")
            }
            Notice::SessionProblem { path, problem: SessionProblem { line, kind } } => {
                write!(f, "{}:{line}: {kind}", path.display())
            }
            Notice::OutsideFilesDropped { files } => {
                let names: Vec<String> = files.iter().take(5).map(|file| file.display().to_string()).collect();
                let more = if files.len() > names.len() { ", …" } else { "" };
                write!(
                    f,
                    "this conversation comes from elsewhere, so the files that it had open outside of this folder stay closed: {}{more}",
                    names.join(", ")
                )
            }
            Notice::OtherFolder { began_in, folder } => write!(
                f,
                "this conversation began in {began_in} and continues here, in {}",
                folder.display()
            ),
            Notice::OtherAddress { provider, address, with_key } => {
                let source = match &address.source {
                    BaseUrlSource::Environment(name) => name,
                    BaseUrlSource::Settings | BaseUrlSource::Usual => "config.toml",
                };
                let key = if *with_key { ", with your key" } else { "" };
                write!(f, "requests to {provider} go to {}{key} (set by {source})", address.url)
            }
            Notice::FeaturesRefused { model, address, features, next_try } => {
                let features: Vec<String> = features.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "requests for {model} to {address} are sent without {}, because the server refused that; Hardpan tries again after {}, or at once after `hardpan providers --forget-refusals`",
                    features.join(" and without "),
                    next_try.strftime("%Y-%m-%d %H:%M UTC")
                )
            }
            Notice::Mention(note) => f.write_str(note.to_string().trim_start_matches("· ")),
            Notice::UnlistedModel { model, similar, fallback_provider, context } => {
                let similar = did_you_mean(similar);
                write!(f, "{model} is not in the list of models{similar}: ")?;
                if let Some(provider) = fallback_provider {
                    write!(f, "it goes to {provider} unless you name another with --provider; ")?;
                }
                write!(
                    f,
                    "assuming a window of {context} tokens, unknown prices and no settings for thinking; describe it in models.json, or check the name with `hardpan models --check`"
                )
            }
            Notice::ThinkingSubstituted { model, substitution } => write!(f, "{model}: {substitution}"),
            Notice::ProviderGone { provider, model } => write!(
                f,
                "this conversation used {provider}/{model}, and there is no provider {provider} any more; continuing with another model (choose one with --model)"
            ),
            Notice::SeveralKeys { used, others } => write!(
                f,
                "{used} is used, the first in the order of preference; there are keys for {}, too: choose with --provider, or set `provider` in config.toml",
                others.join(", ")
            ),
            Notice::ExpansionSkipped(problem) => problem.fmt(f),
            Notice::AgentGone(unknown) => write!(f, "{unknown}; the default agent goes on"),
            Notice::NoWebSearch { model } => {
                write!(f, "web_search has no effect: {model} has no search of its own that Hardpan can ask for")
            }
            Notice::RuleWithoutEffect { rule, tools } => {
                write!(f, "the rule {rule} has no effect: the tools are {}", tools.join(", "))
            }
            Notice::RuleNotStored { path, error } => {
                write!(f, "cannot write {}: {error}; allowed for this conversation only", path.display())
            }
            Notice::Continued { work: 1 } => f.write_str("going on by itself: 1 piece of work is left"),
            Notice::Continued { work } => write!(f, "going on by itself: {work} pieces of work are left"),
            Notice::ContinuationStopped(rail) => {
                write!(f, "stopped although work is left: {rail}; say \"go on\" to continue")
            }
            Notice::UndoUnavailable(error) => write!(f, "{}; /undo is not available", error_text(error)),
            Notice::JournalNotSwitched(error) => f.write_str(&error_text(error)),
            Notice::SandboxIncomplete { missing } => {
                write!(f, "the sandbox for commands is incomplete: {missing}")
            }
            Notice::NoSandbox { reason } => {
                write!(f, "commands run without a sandbox, so you are asked about each of them: {reason}")
            }
            Notice::CommandsRefused { reason } => write!(f, "commands do not run: {reason}"),
            Notice::WritableSkipped { path, error } => {
                write!(f, "commands cannot write in {}: {error}", path.display())
            }
            Notice::SimulatorAnswers { provider, key_variable } => write!(
                f,
                "no key for {provider}: the built-in simulator answers, not a language model. Set {}, or add the key to keys.toml.",
                key_variable.as_deref().unwrap_or("its key")
            ),
            Notice::SecretsReplaced { secrets } => write!(
                f,
                "replaced in the request, because it looks like a secret: {}; `secrets` in config.toml decides about that",
                secrets.join("; ")
            ),
            Notice::NotWatched(error) => {
                write!(f, "reading this folder again before each request, because {error}")
            }
            Notice::IndexBehind(IndexNotReady { done, total }) => {
                let so_far = total.map(|total| format!(" ({done} of {total} files)")).unwrap_or_default();
                write!(
                    f,
                    "the symbol index is still being built{so_far}: the overview of the repository comes with a later prompt (--no-map does without)"
                )
            }
            Notice::FolderTooLarge { folder, is_project: true } => {
                write!(f, "{}: only a part of its files is listed and indexed: it has too many", folder.display())
            }
            Notice::FolderTooLarge { folder, is_project: false } => write!(
                f,
                "{} is not a project: only a part of its files is listed and indexed. Start in a project's folder, or name it with --dir",
                folder.display()
            ),
            Notice::Commit(notice) => notice.fmt(f),
        }
    }
}
