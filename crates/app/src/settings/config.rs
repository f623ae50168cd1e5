//! [`Config`]: what `config.toml` can say.

mod isolation; // the sandbox, the network, resources, pages
mod panels; // PanelKind, SpineConfig
mod requests; // ProviderConfig, RetryConfig, WebSearchSetting
mod subagents; // SubagentMode, TaskConfig
mod terminal; // ScreenKind, ThemeSetting, GlyphSetting, MotionSetting

use std::collections::BTreeMap;
use std::path::PathBuf;

use hardpan_agent::{QueueMode, SecretMode};
use hardpan_context::{AgentMode, DetachLimits, KeepLevel, LifetimeSetting, PromptType};
use hardpan_mcp::{ServerConfigs, ToolLoadingSetting};
use serde::Deserialize;

use super::conventions::ConventionsConfig;
use super::hooks::HooksConfig;
use super::telemetry::TelemetryConfig;
pub use isolation::{LimitsConfig, NetworkSetting, PagesMode, SandboxMode, UnknownSandboxMode};
pub use panels::{PanelKind, SpineConfig};
pub use requests::{ProviderConfig, RetryConfig, WebSearchSetting};
pub use subagents::{PrefixSetting, SubagentMode, TaskConfig};
pub use terminal::{GlyphSetting, MotionSetting, ScreenKind, ThemeSetting};

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
    /// Whether and where OpenTelemetry data is sent.
    pub telemetry: TelemetryConfig,
    /// Shell commands that take part in the conversation, by what they wait for.
    pub hooks: HooksConfig,
    /// How the model gets to know the tools of servers: `auto`, `all` or `search`. Default: `auto`.
    pub mcp_tools: Option<ToolLoadingSetting>,
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
            telemetry: TelemetryConfig {
                enabled: above.telemetry.enabled.or(below.telemetry.enabled),
                endpoint: above.telemetry.endpoint.or(below.telemetry.endpoint),
                capture_content: above.telemetry.capture_content.or(below.telemetry.capture_content),
            },
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
            mcp_tools: above.mcp_tools.or(below.mcp_tools),
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
