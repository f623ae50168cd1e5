//! [`Settings`]: the user's settings merged with those of the project, if the user trusts it.
//!
//! The user's settings are in the config folder (`~/.config/hardpan`), the project's in
//! `.hardpan/`. A project can only narrow what the user allows: see
//! `drop_unsafe_project_settings`.

mod base_url; // BaseUrl: where a provider's requests go
mod config; // Config: what config.toml can say
mod error; // SettingsError
mod folders; // where the user's settings, state, data and cache are
mod keys; // the providers' keys
mod trust; // which folders' own settings are used

use std::fs;
use std::path::{Path, PathBuf};

use hardpan_context::{EXTRA_INSTRUCTIONS_FILE, PROMPT_FILES, PromptTexts, TextOverride};
use hardpan_models::Catalogue;

use crate::notice::{Notice, NoticeSink};

pub use base_url::{BaseUrl, BaseUrlSource};
pub use config::{Config, ProviderConfig, RetryConfig};
pub use error::SettingsError;
pub use folders::{UserFolders, expand_home};
use trust::is_trusted;
pub use trust::{Trust, set_trust};

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
    /// Whether the user trusts the project's settings, skills and templates.
    pub trusted: bool,
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
        let mut layers: Vec<PathBuf> = folder.iter().cloned().collect();
        let project = root.join(".hardpan");
        let trusted = is_trusted(root, &user_folders)?;
        if project.is_dir() && folder.as_ref() != Some(&project) {
            if trusted {
                layers.push(project);
            } else {
                notices.notice(Notice::ProjectNotTrusted);
            }
        }
        let mut config = Config::default();
        let mut catalogue = Catalogue::builtin().clone();
        let mut overrides = Vec::new();
        for layer in &layers {
            let is_project = Some(layer) != folder.as_ref();
            let (path, models) = (layer.join("config.toml"), layer.join("models.json"));
            let mut above = read_config(&path)?;
            if is_project && drop_unsafe_project_settings(&mut above) == ProviderOverrides::Dropped {
                notices.notice(Notice::ProjectProvidersIgnored { path });
            }
            config = config.merged_with(above);
            if let Some(mut json) = read_optional(&models)? {
                if is_project && let Some(narrowed) = without_providers(&json) {
                    json = narrowed;
                    notices.notice(Notice::ProjectProvidersIgnored { path: models.clone() });
                }
                catalogue = catalogue.with_user_file(&models.display().to_string(), &json)?;
            }
            overrides.extend(read_overrides(&layer.join("prompts"))?);
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
            trusted,
            user_folders,
        })
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
        &mut project.keep_variables,
        &mut project.private_hosts,
    ] {
        list.clear();
    }
    project.sandbox = project.sandbox.filter(|on| *on);
    project.network = project.network.filter(|on| !*on);
    // The user's key goes where requests go.
    let routes =
        if project.providers.is_empty() { ProviderOverrides::NoneNamed } else { ProviderOverrides::Dropped };
    project.providers.clear();
    routes
}

/// A project's `models.json` without its providers, which name addresses and key variables. None if
/// it has no providers.
fn without_providers(json: &str) -> Option<String> {
    // Invalid JSON is reported where the catalogue reads it.
    let mut models: serde_json::Value = serde_json::from_str(json).ok()?;
    models.as_object_mut()?.remove("providers")?;
    Some(models.to_string())
}

fn read_config(path: &Path) -> Result<Config, SettingsError> {
    let Some(text) = read_optional(path)? else { return Ok(Config::default()) };
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        SettingsError::InvalidConfig { path: path.to_owned(), line, message: error.message().to_owned() }
    })
}

fn read_optional(path: &Path) -> Result<Option<String>, SettingsError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SettingsError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Reads the prompt files of a folder. Other files are ignored, except for unknown texts, which are
/// most likely misspelled and fail.
fn read_overrides(folder: &Path) -> Result<Vec<TextOverride>, SettingsError> {
    let mut overrides = Vec::new();
    for name in PROMPT_FILES.iter().map(|(name, _)| *name).chain([EXTRA_INSTRUCTIONS_FILE]) {
        let path = folder.join(name);
        if let Some(content) = read_optional(&path)? {
            overrides.push(TextOverride { path: path.display().to_string(), content });
        }
    }
    let known =
        |name: &str| PROMPT_FILES.iter().any(|(known, _)| *known == name) || name == EXTRA_INSTRUCTIONS_FILE;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_text = name.ends_with(".md") || name.ends_with(".toml");
        if is_text && !known(&name) {
            // Most likely misspelled, and would otherwise be ignored silently.
            PromptTexts::with_overrides(&[TextOverride {
                path: entry.path().display().to_string(),
                content: "x".into(),
            }])?;
        }
    }
    Ok(overrides)
}
