//! What the settings say about colours, signs and motion.

use std::io::{self, Write};

use hardpan_app::settings::{Config, GlyphSetting, ThemeSetting};
use hardpan_terminal::input::TerminalInput;
use hardpan_terminal::screen::{RawMode, SystemRawMode};
use hardpan_terminal::theme::{Glyphs, Palette, Theme};

/// Asks the terminal for the colour of its background.
const ASK_BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";

/// The theme of the environment, with what the settings change. `NO_COLOR` is stronger than they are.
pub fn theme(config: &Config) -> Theme {
    let mut theme = Theme::from_environment(|name| std::env::var(name).ok());
    match config.glyphs {
        Some(GlyphSetting::Unicode) => theme.glyphs = &Glyphs::UNICODE,
        Some(GlyphSetting::Ascii) => theme.glyphs = &Glyphs::ASCII,
        None => {}
    }
    if !theme.is_colourless() {
        theme.palette = match config.theme.unwrap_or_default() {
            ThemeSetting::Ansi => Palette::Ansi,
            ThemeSetting::Auto => palette_of_terminal(),
            ThemeSetting::Light => Palette::Light,
            ThemeSetting::Dark => Palette::Dark,
            ThemeSetting::None => Palette::None,
        };
    }
    theme
}

/// The fixed palette for the terminal's background; a terminal that does not tell gets its own colours.
fn palette_of_terminal() -> Palette {
    let mut raw = SystemRawMode;
    if raw.enable().is_err() {
        return Palette::Ansi;
    }
    let ask = || {
        let mut out = io::stdout();
        out.write_all(ASK_BACKGROUND).and_then(|()| out.flush())
    };
    let background = TerminalInput::default().background(ask);
    let _ = raw.disable();
    background.map_or(Palette::Ansi, |(red, green, blue)| Palette::for_background(red, green, blue))
}
