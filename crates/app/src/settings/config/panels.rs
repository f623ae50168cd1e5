//! Settings of panels: which there are, and how far the agent goes on by itself.

use hardpan_panels::SpineLimits;
use serde::Deserialize;

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
