//! [`Settings`]: the user's settings merged with those of the project, if the user trusts it.
//!
//! The user's settings are in the config folder (`~/.config/hardpan`), the project's in
//! `.hardpan/`. A project can only narrow what the user allows: see
//! [`drop_unsafe_project_settings`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::QueueMode;
use hardpan_context::{EXTRA_INSTRUCTIONS_FILE, PROMPT_FILES, PromptTexts, TextOverride};
use hardpan_models::{Catalogue, ProviderProfile};
use hardpan_providers::{ApiKey, RetryPolicy};
use serde::Deserialize;

/// `config.toml`: the defaults that flags override.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Provider id, as `hardpan providers` lists it.
    pub provider: Option<String>,
    /// Model, as `hardpan models` lists it.
    pub model: Option<String>,
    /// The model for small work, such as commit messages.
    pub small_model: Option<String>,
    /// `strata`, `panels`, `tiers` or `inline`.
    pub layout: Option<String>,
    /// Token limit of an answer.
    pub max_tokens: Option<u32>,
    /// Text to append to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the model edits files with edit blocks in its answer.
    pub edit_blocks: Option<bool>,
    /// Token limit of the symbol map in a prompt; 0 leaves the map out.
    pub map_tokens: Option<usize>,
    /// Folders outside of the workspace that the agent may read.
    pub readable: Vec<String>,
    /// Rules for calls that run without asking: `edit(src/**)`, `bash(cargo test)`.
    pub allow: Vec<String>,
    /// Rules for calls that never run, whatever else allows them.
    pub deny: Vec<String>,
    /// Whether commands run in a sandbox, if the system supports one. Default: true.
    pub sandbox: Option<bool>,
    /// Whether commands in the sandbox may use the network. Default: false.
    pub network: Option<bool>,
    /// Folders outside of the workspace that commands may write to.
    pub writable: Vec<String>,
    /// Environment variables that commands see although their names look like secrets.
    pub keep_variables: Vec<String>,
    /// Hosts at private addresses that `fetch` may reach.
    pub private_hosts: Vec<String>,
    /// Whether to keep the provider's cache warm during a pause while that is likely to save money.
    /// Default: true.
    pub keep_alive: Option<bool>,
    /// Compact a conversation that fills this fraction of the window (0 to 1); 0 means never.
    #[serde(deserialize_with = "deserialize_fraction")]
    pub compact_at: Option<f64>,
    /// How to deliver messages typed while the agent works: `one_at_a_time` or `all`.
    pub steering: Option<QueueMode>,
    /// How to deliver follow-ups: `one_at_a_time` or `all`.
    pub follow_up: Option<QueueMode>,
    /// Whether read-only tool calls of one answer run in parallel.
    pub parallel_reads: Option<bool>,
    /// How to reach providers, by provider id.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// When to retry requests.
    #[serde(rename = "patience")]
    pub retry: RetryConfig,
}

fn deserialize_fraction<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if !(0.0..=1.0).contains(&share) {
        let why = format!("{share} is out of range: expected a number from 0 (never) to 1 (a full window)");
        return Err(serde::de::Error::custom(why));
    }
    Ok(Some(share))
}

/// `[providers.ID]`: how to reach a provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// Replaces the built-in address.
    pub base_url: Option<String>,
    /// Proxy URL; replaces the one from the environment.
    pub proxy: Option<String>,
    /// Headers to add to every request.
    pub headers: BTreeMap<String, String>,
    /// Fields to merge into the body of every request.
    pub extras: serde_json::Map<String, serde_json::Value>,
}

/// `[patience]`: how often to retry a request, and how long to wait.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Attempts in total, the first one included.
    pub tries: Option<u32>,
    /// The longest wait between two tries, in seconds.
    pub longest_wait_seconds: Option<f64>,
    /// How long an answer may be silent before it counts as broken, in seconds.
    pub silence_seconds: Option<f64>,
}

impl RetryConfig {
    /// The retry policy: these values, with defaults for those that are not set.
    pub fn retry_policy(&self) -> RetryPolicy {
        let seconds = |seconds: Option<f64>, default: Duration| {
            let given = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
            given.map_or(default, |seconds| Duration::from_secs_f64(seconds.min(86_400.0)))
        };
        let default = RetryPolicy::default();
        RetryPolicy {
            tries: self.tries.unwrap_or(default.tries).max(1),
            longest_wait: seconds(self.longest_wait_seconds, default.longest_wait),
            silence: seconds(self.silence_seconds, default.silence),
            ..default
        }
    }
}

/// Everything that the user and the project configure.
pub struct Settings {
    /// `config.toml` of the user and of the project, merged.
    pub config: Config,
    /// The built-in models and providers, and those of `models.json`.
    pub catalogue: Catalogue,
    /// The texts that a model reads, with the overrides from `prompts/`.
    pub texts: PromptTexts,
    /// The user's config folder; none if neither `HOME` nor a variable names one.
    pub folder: Option<PathBuf>,
    /// Whether the user trusts the project's settings, skills and templates.
    pub trusted: bool,
    /// Messages for the user about settings that are not used.
    pub notes: Vec<String>,
}

/// The folder of the user's settings.
pub fn config_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")
}

/// The files of the config folder that no tool may read: keys and permissions.
pub fn private_files(folder: &Path) -> Vec<PathBuf> {
    ["config.toml", "keys.toml", "allowed", "trusted"].iter().map(|name| folder.join(name)).collect()
}

/// The folder for what is learned from run to run.
pub fn state_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_STATE_DIR", "XDG_STATE_HOME", ".local/state")
}

/// The folder for data that the user would miss: sessions and journals.
pub fn data_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_DATA_DIR", "XDG_DATA_HOME", ".local/share")
}

/// Where what can be made again is kept.
pub fn cache_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
}

/// Our own variable names the folder itself; else it is `hardpan` in the usual place.
fn user_folder(own: &str, usual: &str, below_home: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || of(usual).or_else(|| of("HOME").map(|home| home.join(below_home)));
    of(own).or_else(|| usual().map(|folder| folder.join("hardpan")))
}

/// A folder of the settings; `~` at its start is the home folder, as in a shell.
pub fn expand_home(folder: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (folder.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(folder),
    }
}

impl Settings {
    /// Reads the user's settings, and those of the project at `root` if the user trusts it.
    pub fn load(root: &Path) -> Result<Self> {
        let folder = config_folder();
        let mut notes = Vec::new();
        let mut layers: Vec<PathBuf> = folder.iter().cloned().collect();
        let project = root.join(".hardpan");
        let trusted = is_trusted(root)?;
        if project.is_dir() && folder.as_ref() != Some(&project) {
            if trusted {
                layers.push(project);
            } else {
                let note = "ignoring this folder's own settings (.hardpan): read them, then run `hardpan trust` \
                            to use them";
                notes.push(note.to_owned());
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
                notes.push(ignored_providers_note(&path));
            }
            config = merge_configs(config, above);
            if let Some(mut json) = read_optional(&models)? {
                if is_project && let Some(narrowed) = without_providers(&json) {
                    json = narrowed;
                    notes.push(ignored_providers_note(&models));
                }
                catalogue = catalogue.with_user_file(&models.display().to_string(), &json)?;
            }
            overrides.extend(read_overrides(&layer.join("prompts"))?);
        }
        for id in config.providers.keys() {
            // Most likely misspelled, and would otherwise be ignored silently.
            if let Err(error) = catalogue.provider(id) {
                notes.push(format!("ignoring [providers.{id}] in config.toml: {error}"));
            }
        }
        Ok(Settings {
            config,
            catalogue,
            texts: PromptTexts::with_overrides(&overrides)?,
            folder,
            trusted,
            notes,
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

fn ignored_providers_note(path: &Path) -> String {
    format!(
        "{}: ignoring the project's provider addresses, because your keys would go there; put them into your own settings",
        path.display()
    )
}

fn merge_configs(below: Config, above: Config) -> Config {
    Config {
        provider: above.provider.or(below.provider),
        model: above.model.or(below.model),
        small_model: above.small_model.or(below.small_model),
        layout: above.layout.or(below.layout),
        max_tokens: above.max_tokens.or(below.max_tokens),
        append_system_prompt: above.append_system_prompt.or(below.append_system_prompt),
        edit_blocks: above.edit_blocks.or(below.edit_blocks),
        map_tokens: above.map_tokens.or(below.map_tokens),
        readable: below.readable.into_iter().chain(above.readable).collect(),
        allow: below.allow.into_iter().chain(above.allow).collect(),
        deny: below.deny.into_iter().chain(above.deny).collect(),
        sandbox: above.sandbox.or(below.sandbox),
        network: above.network.or(below.network),
        writable: below.writable.into_iter().chain(above.writable).collect(),
        keep_variables: below.keep_variables.into_iter().chain(above.keep_variables).collect(),
        private_hosts: below.private_hosts.into_iter().chain(above.private_hosts).collect(),
        keep_alive: above.keep_alive.or(below.keep_alive),
        compact_at: above.compact_at.or(below.compact_at),
        steering: above.steering.or(below.steering),
        follow_up: above.follow_up.or(below.follow_up),
        parallel_reads: above.parallel_reads.or(below.parallel_reads),
        providers: below.providers.into_iter().chain(above.providers).collect(),
        retry: RetryConfig {
            tries: above.retry.tries.or(below.retry.tries),
            longest_wait_seconds: above.retry.longest_wait_seconds.or(below.retry.longest_wait_seconds),
            silence_seconds: above.retry.silence_seconds.or(below.retry.silence_seconds),
        },
    }
}

impl Settings {
    /// The provider's key: from the environment, else from `keys.toml` in the config folder.
    pub fn key(&self, provider: &str, wire: &ProviderProfile) -> Result<Option<ApiKey>> {
        let from_environment =
            wire.key_env.iter().find_map(|name| std::env::var(name).ok().filter(|key| !key.is_empty()));
        if let Some(key) = from_environment {
            return Ok(Some(ApiKey::new(&key)));
        }
        let Some(path) = self.folder.as_ref().map(|folder| folder.join("keys.toml")) else { return Ok(None) };
        let Some(text) = read_optional(&path)? else { return Ok(None) };
        check_private(&path)?;
        // The parser's own message would quote the line, and with it a key.
        let keys: BTreeMap<String, String> = toml::from_str(&text).map_err(|_| {
            anyhow::anyhow!("{}: expected lines like anthropic = \"your key\"", path.display())
        })?;
        Ok(keys.get(provider).map(|key| ApiKey::new(key)))
    }
}

/// Fails if others than the owner can read the file with the keys.
fn check_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            bail!("other users can read {}: run `chmod 600 {}`", path.display(), path.display());
        }
    }
    Ok(())
}

fn read_config(path: &Path) -> Result<Config> {
    let Some(text) = read_optional(path)? else { return Ok(Config::default()) };
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })
}

fn read_optional(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Reads the prompt files of a folder. Other files are ignored, except for unknown texts, which are
/// most likely misspelled and fail.
fn read_overrides(folder: &Path) -> Result<Vec<TextOverride>> {
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

fn trust_file() -> Result<PathBuf> {
    let folder = config_folder().context("no config folder: set HOME or HARDPAN_CONFIG_DIR")?;
    Ok(folder.join("trusted"))
}

fn is_trusted(root: &Path) -> Result<bool> {
    if config_folder().is_none() {
        return Ok(false);
    }
    let list = read_optional(&trust_file()?)?.unwrap_or_default();
    let name = canonical(root)?;
    Ok(list.lines().any(|line| line == name))
}

fn canonical(root: &Path) -> Result<String> {
    let root = root.canonicalize().with_context(|| format!("cannot find {}", root.display()))?;
    let name = root.to_str().context("cannot trust a folder whose name is not UTF-8: rename it")?;
    if name.contains('\n') {
        bail!("cannot trust a folder whose name contains a line break: rename it");
    }
    Ok(name.to_owned())
}

/// Adds a folder to the list of trusted ones, or removes it. Returns its full path.
pub fn trust(root: &Path, remove: bool) -> Result<String> {
    let file = trust_file()?;
    let name = canonical(root)?;
    let list = read_optional(&file)?.unwrap_or_default();
    let mut names: Vec<&str> = list.lines().filter(|line| *line != name && !line.is_empty()).collect();
    if !remove {
        names.push(&name);
    }
    let folder = file.parent().context("the config folder has no parent")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Written beside it and renamed, so that a crash leaves the old list and never half of one.
    let beside = folder.join(format!("trusted.{}", std::process::id()));
    let text = names.iter().map(|name| format!("{name}\n")).collect::<String>();
    fs::write(&beside, text).with_context(|| format!("cannot write {}", beside.display()))?;
    fs::rename(&beside, &file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(name)
}
