//! Settings of sub-agents.

use serde::Deserialize;

use crate::subagents::TaskLimits;

/// The most levels of sub-agents.
const MAX_DEPTH: u32 = 8;

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
