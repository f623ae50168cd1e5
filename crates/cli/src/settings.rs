//! The config folder, the project's own folder, and trust between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::QueueMode;
use hardpan_context::{EXTRA, FILES, Override, Texts};
use hardpan_models::{Catalogue, Wire};
use hardpan_providers::{Key, Patience};
use serde::Deserialize;

/// `config.toml`: what is used when no flag says otherwise.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The model for small work, such as commit messages.
    pub small_model: Option<String>,
    /// The layout.
    pub layout: Option<String>,
    /// The most tokens of answer.
    pub max_tokens: Option<u32>,
    /// Text that is appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether changes are made by edit blocks in the answer.
    pub edit_blocks: Option<bool>,
    /// The most tokens of the symbol map in a prompt; 0 leaves it out.
    pub map_tokens: Option<usize>,
    /// Folders outside of the workspace that the agent may read.
    pub readable: Vec<String>,
    /// What may be done without asking: `edit(src/**)`, `bash(cargo test)`.
    pub allow: Vec<String>,
    /// What is never done, whatever is allowed.
    pub deny: Vec<String>,
    /// Whether commands run in a sandbox where the system has one.
    pub sandbox: Option<bool>,
    /// Whether commands in the sandbox have the network.
    pub network: Option<bool>,
    /// Folders outside of the workspace that commands may write in.
    pub writable: Vec<String>,
    /// Variables that commands see although their names sound like secrets.
    pub keep_variables: Vec<String>,
    /// Hosts at private addresses that may be fetched from.
    pub private_hosts: Vec<String>,
    /// Whether the cache is kept warm in a pause while that is expected to save more than it costs.
    pub keep_alive: Option<bool>,
    /// The share of the window from which on a conversation is compacted; 0 for never.
    #[serde(deserialize_with = "share")]
    pub compact_at: Option<f64>,
    /// How messages typed while the agent works are delivered: `one_at_a_time` or `all`.
    pub steering: Option<QueueMode>,
    /// How follow-ups are delivered: `one_at_a_time` or `all`.
    pub follow_up: Option<QueueMode>,
    /// Whether the read-only calls of one answer run side by side.
    pub parallel_reads: Option<bool>,
    /// How providers are reached, by their id.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How patient to be with them.
    pub patience: PatienceConfig,
}

fn share<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if !(0.0..=1.0).contains(&share) {
        let why = format!("{share} is no share: expected a number from 0 (never) to 1 (a full window)");
        return Err(serde::de::Error::custom(why));
    }
    Ok(Some(share))
}

/// `[providers.ID]`: how a provider is reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// In place of the built-in address.
    pub base_url: Option<String>,
    /// In place of what the environment names.
    pub proxy: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// Fields merged into the body of every request.
    pub extras: serde_json::Map<String, serde_json::Value>,
}

/// `[patience]`: retries and silence.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PatienceConfig {
    /// The most tries, the first one included.
    pub tries: Option<u32>,
    /// The longest wait between two tries, in seconds.
    pub longest_wait_seconds: Option<f64>,
    /// How long no bytes may come, in seconds.
    pub silence_seconds: Option<f64>,
}

impl PatienceConfig {
    /// What is set, over the defaults.
    pub fn patience(&self) -> Patience {
        let seconds = |seconds: Option<f64>, default: Duration| {
            let given = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
            given.map_or(default, |seconds| Duration::from_secs_f64(seconds.min(86_400.0)))
        };
        let default = Patience::default();
        Patience {
            tries: self.tries.unwrap_or(default.tries).max(1),
            longest_wait: seconds(self.longest_wait_seconds, default.longest_wait),
            silence: seconds(self.silence_seconds, default.silence),
            ..default
        }
    }
}

/// Everything that is configured.
pub struct Settings {
    pub config: Config,
    pub catalogue: Catalogue,
    pub texts: Texts,
    /// The folder of the user's own settings, if there is a home at all.
    pub folder: Option<PathBuf>,
    /// Whether the person trusts the project's own settings, skills and templates.
    pub trusted: bool,
    /// Said to the person, not an error.
    pub notes: Vec<String>,
}

/// Where the user's settings are.
pub fn config_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")
}

/// The files of the config folder that are the person's alone: keys, and what is allowed.
pub fn own_files(folder: &Path) -> Vec<PathBuf> {
    ["config.toml", "keys.toml", "allowed", "trusted"].iter().map(|name| folder.join(name)).collect()
}

/// Where what is learned is kept.
pub fn state_folder() -> Option<PathBuf> {
    user_folder("HARDPAN_STATE_DIR", "XDG_STATE_HOME", ".local/state")
}

/// Where what a person would miss is kept: the sessions.
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
pub fn at_home(folder: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (folder.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(&home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(folder),
    }
}

impl Settings {
    /// Reads the user's settings, and those of the project at `root` if the person trusts it.
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
                let note = "this folder has settings of its own (.hardpan), which are not used: \
                            look at them, then run `hardpan trust`";
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
            if is_project && narrow(&mut above) == Routes::Dropped {
                notes.push(not_routed(&path));
            }
            config = lay_over(config, above);
            if let Some(mut json) = read_if_there(&models)? {
                if is_project && let Some(narrowed) = without_providers(&json) {
                    json = narrowed;
                    notes.push(not_routed(&models));
                }
                catalogue = catalogue.with_user(&models.display().to_string(), &json)?;
            }
            overrides.extend(read_overrides(&layer.join("prompts"))?);
        }
        for id in config.providers.keys() {
            // Most likely misspelled: what is said of it would be passed over in silence.
            if let Err(error) = catalogue.provider(id) {
                notes.push(format!("[providers.{id}] in config.toml is not used: {error}"));
            }
        }
        Ok(Settings { config, catalogue, texts: Texts::with(&overrides)?, folder, trusted, notes })
    }
}

/// Whether a project's settings said where requests go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Routes {
    Dropped,
    NoneNamed,
}

/// Takes from a project's settings what would widen what the person allowed, and where it would have requests sent: the key goes
/// with them, and a project changes with every pull.
fn narrow(project: &mut Config) -> Routes {
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
    // Where requests go, the person's key goes.
    let routes = if project.providers.is_empty() { Routes::NoneNamed } else { Routes::Dropped };
    project.providers.clear();
    routes
}

/// A project's models without its providers, which name addresses and the variables that hold keys; none where it has none.
fn without_providers(json: &str) -> Option<String> {
    // What cannot be read is told by who reads it next.
    let mut models: serde_json::Value = serde_json::from_str(json).ok()?;
    models.as_object_mut()?.remove("providers")?;
    Some(models.to_string())
}

fn not_routed(path: &Path) -> String {
    format!(
        "{}: how providers are reached is not taken from a project, since keys are sent there: put it in your own settings",
        path.display()
    )
}

fn lay_over(below: Config, above: Config) -> Config {
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
        patience: PatienceConfig {
            tries: above.patience.tries.or(below.patience.tries),
            longest_wait_seconds: above.patience.longest_wait_seconds.or(below.patience.longest_wait_seconds),
            silence_seconds: above.patience.silence_seconds.or(below.patience.silence_seconds),
        },
    }
}

impl Settings {
    /// The provider's key: from the environment, else from `keys.toml` in the config folder.
    pub fn key(&self, provider: &str, wire: &Wire) -> Result<Option<Key>> {
        let from_environment =
            wire.key_env.iter().find_map(|name| std::env::var(name).ok().filter(|key| !key.is_empty()));
        if let Some(key) = from_environment {
            return Ok(Some(Key::new(&key)));
        }
        let Some(path) = self.folder.as_ref().map(|folder| folder.join("keys.toml")) else { return Ok(None) };
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        check_private(&path)?;
        // The parser's own message would quote the line, and with it a key.
        let keys: BTreeMap<String, String> = toml::from_str(&text).map_err(|_| {
            anyhow::anyhow!("{}: expected lines such as anthropic = \"your key\"", path.display())
        })?;
        Ok(keys.get(provider).map(|key| Key::new(key)))
    }
}

/// Keys are for their owner alone.
fn check_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path)
            .with_context(|| format!("{} cannot be read", path.display()))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            bail!("{} can be read by others: run `chmod 600 {}`", path.display(), path.display());
        }
    }
    Ok(())
}

fn read_config(path: &Path) -> Result<Config> {
    let Some(text) = read_if_there(path)? else { return Ok(Config::default()) };
    toml::from_str(&text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })
}

fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// The prompt files of a folder, in the order of their names; other files are not ours.
fn read_overrides(folder: &Path) -> Result<Vec<Override>> {
    let mut overrides = Vec::new();
    for name in FILES.iter().map(|(name, _)| *name).chain([EXTRA]) {
        let path = folder.join(name);
        if let Some(content) = read_if_there(&path)? {
            overrides.push(Override { path: path.display().to_string(), content });
        }
    }
    let known = |name: &str| FILES.iter().any(|(known, _)| *known == name) || name == EXTRA;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_text = name.ends_with(".md") || name.ends_with(".toml");
        if is_text && !known(&name) {
            // Most likely a misspelled name, which would otherwise be ignored in silence.
            Texts::with(&[Override { path: entry.path().display().to_string(), content: "x".into() }])?;
        }
    }
    Ok(overrides)
}

fn trust_file() -> Result<PathBuf> {
    let folder = config_folder().context("there is no config folder: set HOME or HARDPAN_CONFIG_DIR")?;
    Ok(folder.join("trusted"))
}

fn is_trusted(root: &Path) -> Result<bool> {
    if config_folder().is_none() {
        return Ok(false);
    }
    let list = read_if_there(&trust_file()?)?.unwrap_or_default();
    let name = canonical(root)?;
    Ok(list.lines().any(|line| line == name))
}

fn canonical(root: &Path) -> Result<String> {
    let root = root.canonicalize().with_context(|| format!("{} cannot be found", root.display()))?;
    let name = root.to_str().context("a folder whose name is not UTF-8 cannot be trusted: rename it")?;
    if name.contains('\n') {
        bail!("a folder whose name holds a line break cannot be trusted: rename it");
    }
    Ok(name.to_owned())
}

/// Adds a folder to the trusted ones, or takes it away. Returns its full name.
pub fn trust(root: &Path, remove: bool) -> Result<String> {
    let file = trust_file()?;
    let name = canonical(root)?;
    let list = read_if_there(&file)?.unwrap_or_default();
    let mut names: Vec<&str> = list.lines().filter(|line| *line != name && !line.is_empty()).collect();
    if !remove {
        names.push(&name);
    }
    let folder = file.parent().context("the config folder has no parent")?;
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    // Written beside and moved into place: a crash leaves the old list, never half of one.
    let beside = folder.join(format!("trusted.{}", std::process::id()));
    let text = names.iter().map(|name| format!("{name}\n")).collect::<String>();
    fs::write(&beside, text).with_context(|| format!("{} cannot be written", beside.display()))?;
    fs::rename(&beside, &file).with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(name)
}
