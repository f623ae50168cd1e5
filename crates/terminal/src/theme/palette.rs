//! [`Palette`]: the colours of the roles.

use ratatui::style::{Color, Modifier, Style};

use super::Role;

/// Where colours come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// The 16 ANSI colours, as the user's terminal defines them.
    #[default]
    Ansi,
    /// Fixed colours for a light background.
    Light,
    /// Fixed colours for a dark background.
    Dark,
    /// No colours: bold, quiet and underline alone.
    None,
}

impl Palette {
    /// All palettes.
    pub const ALL: [Palette; 4] = [Palette::Ansi, Palette::Light, Palette::Dark, Palette::None];

    /// The fixed palette for a background of this colour, as the terminal answers to OSC 11.
    pub fn for_background(red: u8, green: u8, blue: u8) -> Self {
        // Perceived brightness (ITU-R BT.601), 0 to 255,000.
        let brightness = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
        if brightness > 127_500 { Palette::Light } else { Palette::Dark }
    }

    pub(super) fn style(self, role: Role) -> Style {
        let quiet = || Style::new().add_modifier(Modifier::DIM);
        let rgb = |light: u32, dark: u32| {
            let value = if self == Palette::Light { light } else { dark };
            Style::new().fg(Color::from_u32(value))
        };
        match (self, role) {
            (_, Role::Text) => Style::new(),
            (_, Role::Quiet) => quiet(),
            (Palette::None, _) => Style::new(),
            (Palette::Ansi, Role::Accent) => Style::new().fg(Color::Cyan),
            (Palette::Ansi, Role::Good) => Style::new().fg(Color::Green),
            (Palette::Ansi, Role::Care) => Style::new().fg(Color::Yellow),
            (Palette::Ansi, Role::Danger) => Style::new().fg(Color::Red),
            (Palette::Ansi, Role::Garbage) => Style::new().fg(Color::Magenta),
            (_, Role::Accent) => rgb(0x0b_6e_7f, 0x6c_c7_d8),
            (_, Role::Good) => rgb(0x1e_6e_2e, 0x8c_c9_8f),
            (_, Role::Care) => rgb(0x85_5a_00, 0xe0_b8_6a),
            (_, Role::Danger) => rgb(0xa8_2a_2a, 0xec_8f_86),
            (_, Role::Garbage) => rgb(0x85_3a_9c, 0xcf_9b_e0),
        }
    }

    /// The background of changed words.
    pub(super) fn changed_background(self, role: Role) -> Color {
        let (light, dark) = match role {
            Role::Danger => (0xf6_c9_c4, 0x6b_2a_28),
            _ => (0xbf_e6_c3, 0x23_54_2b),
        };
        Color::from_u32(if self == Palette::Light { light } else { dark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_follows_the_background() {
        assert_eq!(Palette::for_background(0xff, 0xff, 0xff), Palette::Light);
        assert_eq!(Palette::for_background(0xfd, 0xf6, 0xe3), Palette::Light);
        assert_eq!(Palette::for_background(0, 0x2b, 0x36), Palette::Dark);
    }
}
