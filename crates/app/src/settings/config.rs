//! [`Config`]: what `config.toml` can say.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use hardpan_agent::{QueueMode, SecretMode};
use hardpan_context::{AgentMode, DetachLimits, KeepLevel, LifetimeSetting, PromptType};
use hardpan_mcp::ServerConfigs;
use hardpan_panels::SpineLimits;
use hardpan_providers::RetryPolicy;
use hardpan_sandbox::{HostPattern, ResourceLimits};
use serde::Deserialize;

use super::conventions::ConventionsConfig;
use super::hooks::HooksConfig;
use crate::subagents::TaskLimits;

/// The most levels of sub-agents.
const MAX_DEPTH: u32 = 8;

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
    /// Name of the agent that new conversations have.
    pub agent: Option<String>,
    /// How much of a conversation requests keep: `all`, `history`, `current` or `lean`.
    pub keep: Option<KeepLevel>,
    /// For how long the provider is asked to keep what requests cache: `auto`, `5m` or `1h`.
    pub cache_lifetime: Option<LifetimeSetting>,
    /// Token limit of an answer.
    pub max_tokens: Option<u32>,
    /// Text to append to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Whether the model edits files with edit blocks in its answer.
    pub edit_blocks: Option<bool>,
    /// Whether the model may call tools: `on` or `off`. Default: `on`.
    pub agent_mode: Option<AgentMode>,
    /// `inline`: the system prompt to start from: `general`, `agent` or `custom`.
    pub prompt_type: Option<PromptType>,
    /// `inline`: the file of the prompt `custom`, relative to the config folder.
    pub prompt_path: Option<PathBuf>,
    /// `tiers`: whether the symbol map and the list of files are sent. Default: true.
    pub use_repo_map: Option<bool>,
    /// `inline`: whether the directory map is sent. Default: true.
    pub directory_map: Option<bool>,
    /// Token limit of the symbol map in a prompt; 0 leaves the map out.
    pub map_tokens: Option<usize>,
    /// Folders outside of the workspace that the agent may read.
    pub readable: Vec<String>,
    /// Rules for calls that run without asking: `edit(src/**)`, `bash(cargo test)`.
    pub allow: Vec<String>,
    /// Rules for calls that never run, whatever else allows them.
    pub deny: Vec<String>,
    /// Whether commands run in a sandbox. Default: `on`.
    pub sandbox: Option<SandboxMode>,
    /// Which network commands in the sandbox have. Default: none.
    pub network: Option<NetworkSetting>,
    /// Folders outside of the workspace that commands may write to.
    pub writable: Vec<String>,
    /// Environment variables that commands get besides the usual ones; `NAME_*` for all that begin so.
    #[serde(alias = "keep_variables")]
    pub pass_environment: Vec<String>,
    /// How much commands can use of the machine.
    pub limits: LimitsConfig,
    /// Hosts at private addresses that `fetch` may reach.
    pub private_hosts: Vec<String>,
    /// Whether pages that a prompt names are fetched: `ask`, `on` or `off`. Default: `ask`.
    pub pages: Option<PagesMode>,
    /// Whether the model may summarise and delete messages, with a tool that every request declares.
    /// Default: false.
    pub message_tool: Option<bool>,
    /// `panels`: when old messages leave the conversation for a frozen history panel.
    pub detach: Option<DetachLimits>,
    /// Whether the model may search the web with the provider's own tool, and the most searches in an
    /// answer, or results with a plugin: `true` (5), `false` or a number. Default: false.
    pub web_search: Option<WebSearchSetting>,
    /// What happens to secrets in requests: `ask`, `redact` or `send`.
    pub secrets: Option<SecretMode>,
    /// Whether to keep the provider's cache warm during a pause while that is likely to save money.
    /// Default: false.
    pub keep_alive: Option<bool>,
    /// Ask before a prompt is sent whose files, images and pasted text cost more than this, in dollars.
    /// Default: 0.10.
    pub ask_above: Option<f64>,
    /// Compact a conversation that fills this fraction of the window (0 to 1); 0 means never.
    #[serde(deserialize_with = "deserialize_fraction")]
    pub compact_at: Option<f64>,
    /// How to deliver messages typed while the agent works: `one_at_a_time` or `all`.
    pub steering: Option<QueueMode>,
    /// How to deliver follow-ups: `one_at_a_time` or `all`.
    pub follow_up: Option<QueueMode>,
    /// Whether read-only tool calls of one answer run in parallel.
    pub parallel_reads: Option<bool>,
    /// Which panels conversations have; by default all in the layout `panels`, none in others.
    pub panels: Option<Vec<PanelKind>>,
    /// Whether and how far the agent goes on by itself while work remains.
    pub spine: SpineConfig,
    /// The terminal face: `page`, `full` or `plain`. Default: `page`.
    pub screen: Option<ScreenKind>,
    /// Colours of the terminal face: `ansi`, `auto`, `light`, `dark` or `none`. Default: `ansi`.
    pub theme: Option<ThemeSetting>,
    /// Signs of the terminal face: `unicode` or `ascii`. Default: what the terminal can show.
    pub glyphs: Option<GlyphSetting>,
    /// Whether a sign turns while something runs: `on` or `off`. Default: `on`.
    pub motion: Option<MotionSetting>,
    /// Whether views of the terminal face take the mouse. Default: false.
    pub mouse: Option<bool>,
    /// The keys of the terminal face, by the names of actions in docs/keys.md.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Whether the model may give tasks to sub-agents: `auto`, `on` or `off`. Default: `auto`.
    pub subagents: Option<SubagentMode>,
    /// How much a sub-agent may use, and how many there may be.
    pub task: TaskConfig,
    /// Which files that were written for other agents are used.
    pub conventions: ConventionsConfig,
    /// Shell commands that take part in the conversation, by what they wait for.
    pub hooks: HooksConfig,
    /// Servers of the Model Context Protocol, by name.
    pub mcp_servers: ServerConfigs,
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

/// A kind of panel, as `panels` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelKind {
    /// P1: what is left to do.
    Todo,
    /// P2: skills and commands.
    Library,
    /// P3: what the conversation has used.
    Statistics,
    /// P4: which tools are on and off.
    Tools,
    /// P5: files, filtered and described.
    Tree,
    /// P6: what later conversations should know.
    Memories,
    /// P7: notifications, and going on by itself.
    Spine,
    /// P8: what happened.
    Logs,
    /// P9: named cells of text.
    Scratchpad,
    /// The tool `console`, whose programs are panels.
    Console,
    /// The tool `git`, whose outputs are panels.
    Git,
    /// The tool `gh`, whose outputs are panels.
    #[serde(rename = "gh")]
    GitHub,
}

impl PanelKind {
    /// All kinds, by their ids.
    pub const ALL: [PanelKind; 12] = [
        PanelKind::Todo,
        PanelKind::Library,
        PanelKind::Statistics,
        PanelKind::Tools,
        PanelKind::Tree,
        PanelKind::Memories,
        PanelKind::Spine,
        PanelKind::Logs,
        PanelKind::Scratchpad,
        PanelKind::Console,
        PanelKind::Git,
        PanelKind::GitHub,
    ];
}

/// `[spine]`: whether the agent goes on by itself while work remains, and how far: counted from your
/// last message on.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpineConfig {
    /// Whether it does. Default: false.
    pub auto_continue: Option<bool>,
    /// Turns.
    pub turns: Option<u32>,
    /// Tokens that the model writes.
    pub output_tokens: Option<u64>,
    /// Minutes.
    pub minutes: Option<u32>,
    /// Dollars.
    pub dollars: Option<f64>,
    /// Failures in a row.
    pub errors: Option<u32>,
}

impl SpineConfig {
    /// These limits, with defaults for those that are not set.
    pub fn limits(&self) -> SpineLimits {
        let default = SpineLimits::default();
        SpineLimits {
            auto_continue: self.auto_continue.unwrap_or(default.auto_continue),
            turns: self.turns.unwrap_or(default.turns),
            output_tokens: self.output_tokens.unwrap_or(default.output_tokens),
            minutes: self.minutes.unwrap_or(default.minutes),
            dollars: self.dollars.unwrap_or(default.dollars),
            errors: self.errors.unwrap_or(default.errors),
        }
    }
}

/// What an interactive session looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScreenKind {
    /// The page: printed text that stays, and a live area below it.
    #[default]
    Page,
    /// The full screen, which takes the alternate screen.
    Full,
    /// Lines without cursor movement, for screen readers and terminals that can do little.
    Plain,
}

/// Where the colours of the terminal face come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThemeSetting {
    /// The 16 colours of the terminal.
    #[default]
    Ansi,
    /// Fixed colours for the background that the terminal says it has.
    Auto,
    /// Fixed colours for a light background.
    Light,
    /// Fixed colours for a dark background.
    Dark,
    /// None: bold, dim and underlined text alone.
    None,
}

/// Which signs the terminal face uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GlyphSetting {
    /// Signs beyond ASCII.
    Unicode,
    /// ASCII alone.
    Ascii,
}

/// Whether anything in the terminal face moves by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MotionSetting {
    /// A sign turns while something runs.
    #[default]
    On,
    /// Only seconds are counted.
    Off,
}

/// Whether the model may give tasks to sub-agents, with a tool that every request declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentMode {
    /// Where you or the project have agents of your own.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What the requests of sub-agents begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixSetting {
    /// Whatever is cheaper.
    #[default]
    Auto,
    /// A prompt of their own.
    Own,
    /// What the conversation has cached, where the model is the same.
    Shared,
}

/// `[task]`: how much a sub-agent may use, and how many there may be.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskConfig {
    /// What their requests begin with: `auto`, `own` or `shared`. Default: `auto`.
    pub prefix: Option<PrefixSetting>,
    /// Levels of sub-agents: 1 for those that start no others.
    pub depth: Option<u32>,
    /// Sub-agents at the same time.
    pub parallel: Option<u32>,
    /// Requests to the model.
    pub requests: Option<u32>,
    /// Tokens that the model writes.
    pub output_tokens: Option<u64>,
    /// Dollars.
    pub dollars: Option<f64>,
    /// Minutes.
    pub minutes: Option<f64>,
}

impl TaskConfig {
    /// These limits, with defaults for those that are not set.
    pub fn limits(&self) -> TaskLimits {
        let default = TaskLimits::default();
        let at_least_0 = |set: Option<f64>, default: f64| set.map_or(default, |set| set.max(0.0));
        TaskLimits {
            depth: self.depth.unwrap_or(default.depth).min(MAX_DEPTH),
            parallel: self.parallel.unwrap_or(default.parallel),
            requests: self.requests.unwrap_or(default.requests),
            output_tokens: self.output_tokens.unwrap_or(default.output_tokens),
            dollars: at_least_0(self.dollars, default.dollars),
            minutes: at_least_0(self.minutes, default.minutes),
        }
    }
}

/// Whether pages that a prompt names are fetched; each is stricter than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagesMode {
    /// Without a question, unless a rule denies it.
    On,
    /// As the rules for `fetch` say; where none decides, the user is asked.
    #[default]
    Ask,
    /// Never.
    Off,
}

/// Whether commands run in a sandbox; each is stricter than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxMode {
    /// Commands have all the rights of the user.
    Off,
    /// In a sandbox. Where the system has none, the user is asked about each command.
    #[default]
    On,
    /// In a sandbox. Where the system has none, commands do not run.
    Required,
}

impl std::str::FromStr for SandboxMode {
    type Err = UnknownSandboxMode;

    fn from_str(name: &str) -> Result<Self, UnknownSandboxMode> {
        match name {
            "off" => Ok(SandboxMode::Off),
            "on" => Ok(SandboxMode::On),
            "required" => Ok(SandboxMode::Required),
            _ => Err(UnknownSandboxMode),
        }
    }
}

/// A value of `sandbox` that is none.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected `required`, `on` or `off`")]
pub struct UnknownSandboxMode;

impl<'de> Deserialize<'de> for SandboxMode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `required`, `on` or `off`")]
        enum Value {
            Switch(bool),
            Name(String),
        }
        match Value::deserialize(deserializer)? {
            Value::Switch(true) => Ok(SandboxMode::On),
            Value::Switch(false) => Ok(SandboxMode::Off),
            Value::Name(name) => name.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// `web_search`: `true`, `false`, or the most searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected `true`, `false` or a number from 1 on")]
pub enum WebSearchSetting {
    /// With the usual limit, or not at all.
    Switch(bool),
    /// The most searches in an answer, or results of a plugin.
    Most(NonZeroU32),
}

impl WebSearchSetting {
    /// The most searches in an answer; none if the web is not searched.
    pub fn most(self) -> Option<u32> {
        match self {
            WebSearchSetting::Switch(is_on) => is_on.then_some(5),
            WebSearchSetting::Most(most) => Some(most.get()),
        }
    }
}

/// Which network commands in the sandbox have: `false`, `true`, or a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkSetting {
    /// All of the user's, or none.
    Switch(bool),
    /// These hosts, through a proxy: `crates.io`, `*.npmjs.org`.
    Hosts(Vec<HostPattern>),
}

impl<'de> Deserialize<'de> for NetworkSetting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `true`, `false` or a list of hosts")]
        enum Value {
            Switch(bool),
            Hosts(Vec<String>),
        }
        match Value::deserialize(deserializer)? {
            Value::Switch(is_on) => Ok(NetworkSetting::Switch(is_on)),
            Value::Hosts(hosts) => {
                let hosts = hosts.iter().map(|host| host.parse()).collect::<Result<_, _>>();
                hosts.map(NetworkSetting::Hosts).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// `[limits]`: how much commands can use of the machine; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Megabytes of memory of each process.
    pub memory_mb: Option<u64>,
    /// Megabytes of each file that is written.
    pub file_size_mb: Option<u64>,
    /// Processes and threads at the same time.
    pub processes: Option<u64>,
}

impl LimitsConfig {
    /// These limits, with defaults for those that are not set.
    pub fn resource_limits(&self) -> ResourceLimits {
        let default = ResourceLimits::default();
        let limit = |set: Option<u64>, unit: u64, default: Option<u64>| match set {
            None => default,
            Some(0) => None,
            Some(count) => Some(count.saturating_mul(unit)),
        };
        ResourceLimits {
            memory: limit(self.memory_mb, 1 << 20, default.memory),
            file_size: limit(self.file_size_mb, 1 << 20, default.file_size),
            processes: limit(self.processes, 1, default.processes),
        }
    }
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
    /// How long an answer may go on without a word of the model, in seconds.
    pub progress_seconds: Option<f64>,
    /// The longest time for one answer, in seconds.
    pub answer_seconds: Option<f64>,
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
            tries: self.tries.unwrap_or(default.tries).clamp(1, 100),
            longest_wait: seconds(self.longest_wait_seconds, default.longest_wait),
            silence: seconds(self.silence_seconds, default.silence),
            progress: seconds(self.progress_seconds, default.progress),
            longest_answer: seconds(self.answer_seconds, default.longest_answer),
            ..default
        }
    }
}

impl Config {
    /// These settings with those of `above` laid over them. Lists are joined.
    pub(super) fn merged_with(self, above: Config) -> Config {
        let below = self;
        Config {
            provider: above.provider.or(below.provider),
            model: above.model.or(below.model),
            small_model: above.small_model.or(below.small_model),
            layout: above.layout.or(below.layout),
            agent: above.agent.or(below.agent),
            keep: above.keep.or(below.keep),
            cache_lifetime: above.cache_lifetime.or(below.cache_lifetime),
            max_tokens: above.max_tokens.or(below.max_tokens),
            secrets: above.secrets.or(below.secrets),
            append_system_prompt: above.append_system_prompt.or(below.append_system_prompt),
            edit_blocks: above.edit_blocks.or(below.edit_blocks),
            agent_mode: above.agent_mode.or(below.agent_mode),
            prompt_type: above.prompt_type.or(below.prompt_type),
            prompt_path: above.prompt_path.or(below.prompt_path),
            use_repo_map: above.use_repo_map.or(below.use_repo_map),
            directory_map: above.directory_map.or(below.directory_map),
            message_tool: above.message_tool.or(below.message_tool),
            detach: above.detach.or(below.detach),
            web_search: above.web_search.or(below.web_search),
            pages: above.pages.max(below.pages),
            screen: above.screen.or(below.screen),
            theme: above.theme.or(below.theme),
            glyphs: above.glyphs.or(below.glyphs),
            motion: above.motion.or(below.motion),
            mouse: above.mouse.or(below.mouse),
            keys: below.keys.into_iter().chain(above.keys).collect(),
            map_tokens: above.map_tokens.or(below.map_tokens),
            readable: below.readable.into_iter().chain(above.readable).collect(),
            allow: below.allow.into_iter().chain(above.allow).collect(),
            deny: below.deny.into_iter().chain(above.deny).collect(),
            sandbox: above.sandbox.max(below.sandbox),
            network: above.network.or(below.network),
            writable: below.writable.into_iter().chain(above.writable).collect(),
            pass_environment: below.pass_environment.into_iter().chain(above.pass_environment).collect(),
            limits: LimitsConfig {
                memory_mb: above.limits.memory_mb.or(below.limits.memory_mb),
                file_size_mb: above.limits.file_size_mb.or(below.limits.file_size_mb),
                processes: above.limits.processes.or(below.limits.processes),
            },
            private_hosts: below.private_hosts.into_iter().chain(above.private_hosts).collect(),
            keep_alive: above.keep_alive.or(below.keep_alive),
            ask_above: above.ask_above.or(below.ask_above),
            compact_at: above.compact_at.or(below.compact_at),
            steering: above.steering.or(below.steering),
            follow_up: above.follow_up.or(below.follow_up),
            parallel_reads: above.parallel_reads.or(below.parallel_reads),
            panels: above.panels.or(below.panels),
            spine: SpineConfig {
                auto_continue: above.spine.auto_continue.or(below.spine.auto_continue),
                turns: above.spine.turns.or(below.spine.turns),
                output_tokens: above.spine.output_tokens.or(below.spine.output_tokens),
                minutes: above.spine.minutes.or(below.spine.minutes),
                dollars: above.spine.dollars.or(below.spine.dollars),
                errors: above.spine.errors.or(below.spine.errors),
            },
            conventions: below.conventions.merged_with(above.conventions),
            subagents: above.subagents.or(below.subagents),
            task: TaskConfig {
                prefix: above.task.prefix.or(below.task.prefix),
                depth: above.task.depth.or(below.task.depth),
                parallel: above.task.parallel.or(below.task.parallel),
                requests: above.task.requests.or(below.task.requests),
                output_tokens: above.task.output_tokens.or(below.task.output_tokens),
                dollars: above.task.dollars.or(below.task.dollars),
                minutes: above.task.minutes.or(below.task.minutes),
            },
            hooks: above.hooks.into_iter().fold(below.hooks, |mut hooks, (event, added)| {
                hooks.entry(event).or_default().extend(added);
                hooks
            }),
            // A project does not replace a server of the user's.
            mcp_servers: above.mcp_servers.into_iter().chain(below.mcp_servers).collect(),
            providers: below.providers.into_iter().chain(above.providers).collect(),
            retry: RetryConfig {
                tries: above.retry.tries.or(below.retry.tries),
                longest_wait_seconds: above.retry.longest_wait_seconds.or(below.retry.longest_wait_seconds),
                silence_seconds: above.retry.silence_seconds.or(below.retry.silence_seconds),
                progress_seconds: above.retry.progress_seconds.or(below.retry.progress_seconds),
                answer_seconds: above.retry.answer_seconds.or(below.retry.answer_seconds),
            },
        }
    }
}
