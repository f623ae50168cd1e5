//! [`Theme`]: what the roles of colours look like on this terminal, and which glyphs it can show.
//!
//! Blocks name a [`Role`], never a colour. The default palette uses the 16 ANSI colours, so it
//! follows the user's own, light or dark. Each colour has a twin that works without it: a sign, a
//! glyph, or a word.
//!
//! ```
//! use hardpan_terminal::theme::{Role, Theme};
//!
//! let theme = Theme::from_environment(|name| (name == "NO_COLOR").then(|| "1".to_owned()));
//! assert_eq!(theme.style(Role::Danger).fg, None);
//! ```

mod glyphs;
mod palette;

use ratatui::style::{Color, Modifier, Style};

pub use self::glyphs::Glyphs;
pub use self::palette::Palette;

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The terminal's own text colour.
    Text,
    /// What can be skipped when reading: paths of links, counts, comments in code.
    Quiet,
    /// What can be acted on, and code within prose.
    Accent,
    /// Success, and what was added.
    Good,
    /// What deserves a look: costs that could be avoided, an uncertain state.
    Care,
    /// Failure, danger, and what was removed.
    Danger,
    /// Tokens that are sent without being needed.
    Garbage,
}

impl Role {
    /// All roles, in the order of their declaration.
    pub const ALL: [Role; 7] =
        [Role::Text, Role::Quiet, Role::Accent, Role::Good, Role::Care, Role::Danger, Role::Garbage];
}

/// A part of source code that is shown in its own style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRole {
    /// Names, operators, white space.
    Plain,
    /// Comments.
    Comment,
    /// Words of the language.
    Keyword,
    /// Strings and characters.
    String,
    /// Numbers, and constants such as `true`.
    Constant,
    /// Keys of JSON, YAML and TOML, attributes, variables of shells, preprocessor lines.
    Key,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

/// Colours and glyphs for one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The colours of the roles.
    pub palette: Palette,
    /// The glyphs that the terminal can show.
    pub glyphs: &'static Glyphs,
}

impl Default for Theme {
    fn default() -> Self {
        Theme { palette: Palette::Ansi, glyphs: &Glyphs::UNICODE }
    }
}

impl Theme {
    /// The theme that the variables of the environment ask for: no colours with `NO_COLOR`, ASCII on
    /// the Linux console and where the locale is not UTF-8.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let palette = if set("NO_COLOR").is_some() { Palette::None } else { Palette::Ansi };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        // A locale that is not set says nothing; terminals of today show UTF-8.
        let is_utf8 = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let is_console = set("TERM").is_some_and(|term| term == "linux");
        let glyphs = if is_utf8 && !is_console { &Glyphs::UNICODE } else { &Glyphs::ASCII };
        Theme { palette, glyphs }
    }

    /// Whether meaning has to be told without colours.
    pub fn is_colourless(&self) -> bool {
        self.palette == Palette::None
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.palette.style(role)
    }

    /// The style of a role in bold.
    pub fn bold(&self, role: Role) -> Style {
        // Bold and dim together mean neither on many terminals.
        let role = if role == Role::Quiet { Role::Text } else { role };
        self.style(role).add_modifier(Modifier::BOLD)
    }

    /// Emphasis within prose: italic, or underlined where colours are off.
    pub fn emphasis(&self) -> Style {
        let modifier = if self.is_colourless() { Modifier::UNDERLINED } else { Modifier::ITALIC };
        Style::new().add_modifier(modifier)
    }

    /// An address that can be opened.
    pub fn link(&self) -> Style {
        self.style(Role::Accent).add_modifier(Modifier::UNDERLINED)
    }

    /// Words that a change added or removed within a line: the only place with a background.
    pub fn changed_words(&self, role: Role) -> Style {
        match self.palette {
            Palette::None => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            // The background becomes the role's colour, and the letters what the background was.
            Palette::Ansi => self.style(role).add_modifier(Modifier::REVERSED),
            Palette::Light | Palette::Dark => Style::new().bg(self.palette.changed_background(role)),
        }
    }

    /// The style of a part of source code.
    pub fn code(&self, part: CodeRole) -> Style {
        match part {
            CodeRole::Plain => Style::new(),
            CodeRole::Comment => self.style(Role::Quiet),
            CodeRole::Keyword => self.style(Role::Accent),
            CodeRole::String | CodeRole::Added => self.style(Role::Good),
            CodeRole::Constant => self.style(Role::Care),
            CodeRole::Key => match self.palette {
                Palette::None => Style::new(),
                Palette::Ansi => Style::new().fg(Color::Blue),
                Palette::Light => Style::new().fg(Color::Rgb(0x1f, 0x4f, 0x9e)),
                Palette::Dark => Style::new().fg(Color::Rgb(0x8a, 0xb4, 0xf8)),
            },
            CodeRole::Removed => self.style(Role::Danger),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> Theme {
        Theme::from_environment(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides_about_colours_and_glyphs() {
        assert_eq!(theme(&[("LANG", "de_DE.UTF-8")]), Theme::default());
        assert_eq!(theme(&[("NO_COLOR", "")]), Theme::default());
        assert_eq!(theme(&[("NO_COLOR", "1")]).palette, Palette::None);
        assert_eq!(theme(&[("LANG", "C")]).glyphs, &Glyphs::ASCII);
        assert_eq!(theme(&[("LANG", "C"), ("LC_ALL", "C.utf8")]).glyphs, &Glyphs::UNICODE);
        assert_eq!(theme(&[("TERM", "linux")]).glyphs, &Glyphs::ASCII);
    }

    #[test]
    fn nothing_is_quiet_and_coloured_and_no_colour_means_none() {
        for palette in Palette::ALL {
            let theme = Theme { palette, ..Theme::default() };
            for role in Role::ALL {
                for style in [theme.style(role), theme.bold(role), theme.changed_words(role)] {
                    let is_quiet = style.add_modifier.contains(Modifier::DIM);
                    assert!(!is_quiet || style.fg.is_none(), "{palette:?} {role:?}");
                    if palette == Palette::None {
                        assert_eq!((style.fg, style.bg), (None, None));
                    }
                }
                assert_eq!(theme.style(role).bg, None);
            }
        }
    }
}
