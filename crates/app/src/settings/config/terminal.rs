//! Settings of the terminal face.

use serde::Deserialize;

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
