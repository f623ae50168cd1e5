//! [`Settings`]: the user's settings merged with those of the project, if the user trusts it.
//!
//! The user's settings are in the config folder (`~/.config/hardpan`), the project's in
//! `.hardpan/`. A project can only narrow what the user allows: see
//! `drop_unsafe_project_settings`.

mod base_url; // BaseUrl: where a provider's requests go
mod config; // Config: what config.toml can say
mod conventions; // ConventionsConfig: which files of other agents are used
mod error; // SettingsError
mod folders; // where the user's settings, state, data and cache are
mod hooks; // HooksConfig: shell commands that take part in a conversation
mod keys; // the providers' keys
mod project_files; // ProjectFiles: the project's own settings, read once
mod server_table; // adding servers to the text of config.toml, and taking them out
mod store; // what Hardpan itself writes into the settings
mod telemetry; // TelemetryConfig: where OpenTelemetry data goes
mod trust; // which projects' own settings are used

use std::fs;
use std::path::{Path, PathBuf};

use hardpan_context::{EXTRA_INSTRUCTIONS_FILE, PROMPT_FILES, PromptTexts, TextOverride};
use hardpan_files::{FileGuard, RegularFile, UnreadableReason};
use hardpan_models::Catalogue;

use crate::notice::{Notice, NoticeSink};

pub use base_url::{BaseUrl, BaseUrlSource};
pub use config::{
    Config, GlyphSetting, LimitsConfig, MotionSetting, NetworkSetting, PagesMode, PanelKind, PrefixSetting,
    ProviderConfig, RetryConfig, SandboxMode, ScreenKind, SpineConfig, SubagentMode, TaskConfig,
    ThemeSetting, UnknownSandboxMode, WebSearchSetting,
};
pub use conventions::ConventionsConfig;
pub use error::SettingsError;
pub(crate) use folders::EXTENSION_PERMISSIONS;
pub use folders::{UserFolders, expand_home};
pub use hooks::{HookConfig, HookEvent, HooksConfig, ToolMatcher};
pub use keys::KeySource;
pub use project_files::{ProjectFiles, ProjectFilesError};
pub use server_table::ServerTableError;
pub use telemetry::TelemetryConfig;
pub use trust::{TrustReview, TrustState, remove_trust};

/// The folder of a project's own settings, below its root.
const PROJECT_FOLDER: &str = ".hardpan";

/// The folder of a project's extensions that were written for another agent, below its root.
pub(crate) const FOREIGN_EXTENSIONS: &str = ".pi/extensions";

/// The folder of prompt texts, below a folder of settings.
const PROMPTS_FOLDER: &str = "prompts";

/// Everything that the user and the project configure.
pub struct Settings {
    /// `config.toml` of the user and of the project, merged.
    pub config: Config,
    /// The built-in models and providers, and those of `models.json`.
    pub catalogue: Catalogue,
    /// The texts that a model reads, with the overrides from `prompts/`.
    pub texts: PromptTexts,
    /// The folders that the settings were read from.
    pub user_folders: UserFolders,
    /// The project's settings, skills and templates, if the user trusts them as they are.
    pub project_files: Option<ProjectFiles>,
    /// What the user trusted of a project that has changed since; its extensions go on as they were.
    pub(crate) earlier_files: Option<ProjectFiles>,
    /// Whether the project had hooks that decide about tool calls when it was trusted, and they do not run because
    /// its files have changed.
    pub(crate) lost_guards: bool,
}

impl Settings {
    /// Reads the user's settings, and those of the project at `root` if the user trusts it.
    /// Settings that are not used become notices.
    pub fn load(
        root: &Path,
        user_folders: UserFolders,
        notices: &dyn NoticeSink,
    ) -> Result<Self, SettingsError> {
        let folder = &user_folders.config;
        let project = trusted_files(root, &user_folders, notices)?;
        let (project_files, earlier_files) = match project {
            TrustedProject::Current(files) => (Some(files), None),
            TrustedProject::Earlier(files) => (None, Some(files)),
            TrustedProject::None => (None, None),
        };
        let mut layers: Vec<SettingsLayer> =
            folder.iter().map(|folder| SettingsLayer::User(folder)).collect();
        layers.extend(project_files.as_ref().map(|files| SettingsLayer::Project { root, files }));
        let mut config = Config::default();
        let mut catalogue = Catalogue::builtin().clone();
        let mut overrides = Vec::new();
        for layer in &layers {
            let is_project = matches!(layer, SettingsLayer::Project { .. });
            let (path, models) = (layer.path("config.toml"), layer.path("models.json"));
            let mut above = read_config(layer)?;
            if is_project && drop_unsafe_project_settings(&mut above) == ProviderOverrides::Dropped {
                notices.notice(Notice::ProjectProvidersIgnored { path });
            }
            config = config.merged_with(above);
            if let Some(json) = layer.read("models.json")? {
                let name = models.display().to_string();
                if is_project {
                    let (above, has_providers) = catalogue.with_models_of(&name, &json)?;
                    catalogue = above;
                    if has_providers {
                        notices.notice(Notice::ProjectProvidersIgnored { path: models });
                    }
                } else {
                    catalogue = catalogue.with_user_file(&name, &json)?;
                }
            }
            overrides.extend(read_overrides(layer)?);
        }
        // A change takes no restriction away that the user trusted.
        let mut lost_guards = false;
        if let Some(files) = &earlier_files {
            match read_config(&SettingsLayer::Project { root, files }) {
                Ok(earlier) => {
                    lost_guards = earlier.hooks.contains_key(&HookEvent::PreToolUse);
                    config.deny.extend(earlier.deny);
                }
                Err(_) => lost_guards = true,
            }
        }
        for id in config.providers.keys() {
            // Most likely misspelled, and would otherwise be ignored silently.
            if let Err(error) = catalogue.provider(id) {
                notices.notice(Notice::UnknownProviderIgnored { id: id.clone(), error });
            }
        }
        Ok(Settings {
            config,
            catalogue,
            texts: PromptTexts::with_overrides(&overrides)?,
            project_files,
            earlier_files,
            lost_guards,
            user_folders,
        })
    }
}

impl Settings {
    /// A prompt file of the user's; none if there is no such file. Files with keys are no prompts.
    pub(crate) fn read_prompt(&self, path: &Path) -> Result<Option<String>, SettingsError> {
        let secrets = self.user_folders.config.as_deref().map(folders::secret_files).unwrap_or_default();
        optional_text(path, FileGuard::new(None, &[], &secrets).open_user_file(path))
    }
}

/// A folder of settings.
enum SettingsLayer<'a> {
    /// The user's config folder.
    User(&'a Path),
    /// `.hardpan` of the project, as it was when its trust was checked.
    Project { root: &'a Path, files: &'a ProjectFiles },
}

impl SettingsLayer<'_> {
    fn path(&self, name: &str) -> PathBuf {
        match self {
            SettingsLayer::User(folder) => folder.join(name),
            SettingsLayer::Project { root, .. } => root.join(PROJECT_FOLDER).join(name),
        }
    }

    fn read(&self, name: &str) -> Result<Option<String>, SettingsError> {
        let files = match self {
            SettingsLayer::User(folder) => {
                let path = self.path(name);
                // Prompts go to the model, the other settings do not.
                return match name.starts_with(PROMPTS_FOLDER) {
                    true => {
                        let guard = FileGuard::new(None, &[], &folders::secret_files(folder));
                        optional_text(&path, guard.open_user_file(&path))
                    }
                    false => read_optional(&path),
                };
            }
            SettingsLayer::Project { files, .. } => files,
        };
        let Some(content) = files.get(&Path::new(PROJECT_FOLDER).join(name)) else { return Ok(None) };
        let invalid = |error| SettingsError::Unreadable {
            path: self.path(name),
            source: std::io::Error::new(std::io::ErrorKind::InvalidData, error),
        };
        String::from_utf8(content.to_owned()).map(Some).map_err(invalid)
    }

    /// The names of the files in `prompts`.
    fn prompt_names(&self) -> Vec<String> {
        match self {
            SettingsLayer::User(_) => {
                let entries = fs::read_dir(self.path(PROMPTS_FOLDER)).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
            SettingsLayer::Project { files, .. } => {
                let folder = Path::new(PROJECT_FOLDER).join(PROMPTS_FOLDER);
                let below = files.files().keys().filter_map(|path| path.strip_prefix(&folder).ok());
                let direct = below.filter(|path| path.components().count() == 1);
                direct.map(|path| path.to_string_lossy().into_owned()).collect()
            }
        }
    }
}

/// The files of a project that the user trusted.
#[derive(Clone, Debug, Default)]
pub(crate) enum TrustedProject {
    /// They are as the user trusted them.
    Current(ProjectFiles),
    /// They have changed since; these are what the user trusted.
    Earlier(ProjectFiles),
    /// There are none.
    #[default]
    None,
}

impl TrustedProject {
    /// The files whose extensions run. A change takes no guard away: those that were trusted stay until the user
    /// has seen it.
    pub fn extension_files(&self) -> Option<&ProjectFiles> {
        match self {
            TrustedProject::Current(files) | TrustedProject::Earlier(files) => Some(files),
            TrustedProject::None => None,
        }
    }
}

/// The project's files if the user trusted them. Where they are not used as they are, a notice says why.
pub(crate) fn trusted_files(
    root: &Path,
    user_folders: &UserFolders,
    notices: &dyn NoticeSink,
) -> Result<TrustedProject, SettingsError> {
    let folder = root.join(PROJECT_FOLDER);
    // The user's own config folder may be there.
    let is_own = user_folders.config.as_ref() == Some(&folder);
    if !trust::is_listed(root, user_folders)? {
        if folder.is_dir() && !is_own {
            notices.notice(Notice::ProjectNotTrusted);
        } else if root.join(FOREIGN_EXTENSIONS).is_dir() {
            notices.notice(Notice::ProjectExtensionsNotTrusted);
        }
        return Ok(TrustedProject::None);
    }
    match TrustReview::read(root, user_folders) {
        Ok(_) if is_own => Ok(TrustedProject::None),
        Ok(TrustReview { state: TrustState::Trusted, current, .. }) => Ok(TrustedProject::Current(current)),
        Ok(review) => {
            notices.notice(Notice::ProjectChanged { files: review.changed_files() });
            Ok(match review.state {
                TrustState::Changed { before: Some(before) } => TrustedProject::Earlier(before),
                _ => TrustedProject::None,
            })
        }
        Err(SettingsError::ProjectFiles(error)) => {
            notices.notice(Notice::ProjectUntrustable(error));
            let earlier = trust::trusted_content(root, user_folders)?;
            Ok(earlier.filter(|_| !is_own).map_or(TrustedProject::None, TrustedProject::Earlier))
        }
        Err(error) => Err(error),
    }
}

/// Whether a project's settings say how to reach providers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProviderOverrides {
    Dropped,
    NoneNamed,
}

/// Removes from a project's settings what would widen the user's permissions, and the addresses
/// that requests go to: the user's key goes with them, and a project changes with every pull.
fn drop_unsafe_project_settings(project: &mut Config) -> ProviderOverrides {
    for list in [
        &mut project.readable,
        &mut project.allow,
        &mut project.writable,
        &mut project.pass_environment,
        &mut project.private_hosts,
    ] {
        list.clear();
    }
    project.secrets = None;
    // A file of the user's, whatever it holds, would go to the model.
    project.prompt_path = None;
    // What keys do in an approval is the user's own business.
    project.keys.clear();
    project.screen = None;
    // The stricter mode counts (`Config::merged_with`).
    project.network = project.network.take().filter(|network| *network == NetworkSetting::Switch(false));
    project.limits = LimitsConfig::default();
    // What goes on by itself costs the user's money.
    project.spine = SpineConfig::default();
    project.task = TaskConfig::default();
    project.ask_above = None;
    // What is sent where about the user's work is the user's own business.
    project.telemetry = TelemetryConfig::default();
    project.conventions = project.conventions.without_home();
    // The model can change the files of the project that a hook runs.
    project.hooks.values_mut().flatten().for_each(|hook| hook.sandbox = true);
    project.mcp_servers.values_mut().for_each(hardpan_mcp::ServerConfig::restrict_to_project);
    // The user's key goes where requests go.
    let routes =
        if project.providers.is_empty() { ProviderOverrides::NoneNamed } else { ProviderOverrides::Dropped };
    project.providers.clear();
    routes
}

fn read_config(layer: &SettingsLayer) -> Result<Config, SettingsError> {
    let path = layer.path("config.toml");
    let Some(text) = layer.read("config.toml")? else { return Ok(Config::default()) };
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        SettingsError::InvalidConfig { path, line, message: error.message().to_owned() }
    })
}

/// The largest file of settings, in bytes: many times what the catalogue of all models has.
const MAX_SETTINGS_BYTES: u64 = 4 * 1024 * 1024;

fn read_optional(path: &Path) -> Result<Option<String>, SettingsError> {
    optional_text(path, RegularFile::open(path))
}

fn optional_text(
    path: &Path,
    opened: Result<RegularFile, UnreadableReason>,
) -> Result<Option<String>, SettingsError> {
    match opened.and_then(|file| file.read_text(MAX_SETTINGS_BYTES)) {
        Ok(text) => Ok(Some(text)),
        Err(UnreadableReason::Missing) => Ok(None),
        Err(reason) => Err(SettingsError::Unreadable { path: path.to_owned(), source: reason.into() }),
    }
}

/// Reads the prompt files of a folder. Other files are ignored, except for unknown texts, which are
/// most likely misspelled and fail.
fn read_overrides(layer: &SettingsLayer) -> Result<Vec<TextOverride>, SettingsError> {
    let mut overrides = Vec::new();
    let path = |name: &str| format!("{PROMPTS_FOLDER}/{name}");
    for name in PROMPT_FILES.iter().map(|(name, _)| *name).chain([EXTRA_INSTRUCTIONS_FILE]) {
        if let Some(content) = layer.read(&path(name))? {
            overrides.push(TextOverride { path: layer.path(&path(name)).display().to_string(), content });
        }
    }
    let known =
        |name: &str| PROMPT_FILES.iter().any(|(known, _)| *known == name) || name == EXTRA_INSTRUCTIONS_FILE;
    for name in layer.prompt_names() {
        let is_text = name.ends_with(".md") || name.ends_with(".toml");
        if is_text && !known(&name) {
            // Most likely misspelled, and would otherwise be ignored silently.
            PromptTexts::with_overrides(&[TextOverride {
                path: layer.path(&path(&name)).display().to_string(),
                content: "x".into(),
            }])?;
        }
    }
    Ok(overrides)
}
