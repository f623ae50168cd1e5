//! What tests of blocks share: lines as text, and a block at every size.

use ratatui::style::{Color, Style};
use ratatui::text::Line;

use crate::text::{is_unsafe, line_width};
use crate::theme::{Glyphs, Palette, Theme};

/// The sizes of terminals that drawings are made for.
pub(crate) const SIZES: [(usize, usize); 4] = [(40, 20), (80, 24), (100, 32), (160, 50)];

/// The lines as text, without white space at their ends.
pub(crate) fn drawing(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.to_string().trim_end().to_owned() + "\n").collect()
}

/// A block at every size, and in ASCII at 80 columns. No line is wider than the terminal, and none
/// steers it; colours change no text except marks of Markdown, and ASCII holds nothing else of ours.
pub(crate) fn drawings(draw: impl Fn(usize, usize, &Theme) -> Vec<Line<'static>>) -> String {
    let mut out = String::new();
    for (columns, rows) in SIZES {
        let lines = draw(columns, rows, &Theme::default());
        for line in &lines {
            assert!(line_width(line) <= columns, "{columns}: {line}");
            assert!(!line.to_string().contains(is_unsafe), "{line}");
        }
        for palette in Palette::ALL {
            let other = draw(columns, rows, &Theme { palette, ..Theme::default() });
            assert_eq!(drawing(&other), drawing(&lines), "{palette:?}");
            let has_colour = |line: &Line<'_>| {
                line.spans.iter().any(|span| span.style.fg.is_some() || line.style.fg.is_some())
            };
            assert!(palette != Palette::None || !other.iter().any(has_colour));
        }
        out.push_str(&format!("── {columns}×{rows}\n{}", drawing(&lines)));
    }
    let ascii = Theme { glyphs: &Glyphs::ASCII, ..Theme::default() };
    out + &format!("── 80×24, ASCII\n{}", drawing(&draw(80, 24, &ascii)))
}

/// The lines with their styles: `‹cyan bold|text›`.
pub(crate) fn styled(lines: &[Line<'_>]) -> String {
    let mut out = String::new();
    for line in lines {
        for span in &line.spans {
            let style = line.style.patch(span.style);
            let colour = |colour: Option<Color>, kind: &str| {
                colour.map(|colour| format!("{kind}{colour}").to_lowercase())
            };
            let modifiers = style.add_modifier.iter_names().map(|(name, _)| name.to_lowercase());
            let colours = [colour(style.fg, ""), colour(style.bg, "on ")];
            let names: Vec<String> = colours.into_iter().flatten().chain(modifiers).collect();
            match names.is_empty() {
                true => out.push_str(&span.content),
                false => out.push_str(&format!("‹{}|{}›", names.join(" "), span.content)),
            }
        }
        out.push('\n');
    }
    out
}

/// The lines with their styles in every palette.
pub(crate) fn palettes(draw: impl Fn(&Theme) -> Vec<Line<'static>>) -> String {
    let draw = |palette| format!("── {palette:?}\n{}", styled(&draw(&Theme { palette, ..Theme::default() })));
    Palette::ALL.map(draw).concat()
}

/// The parts with everything that a style sets.
pub(crate) fn marked(lines: &[Line<'_>], style: Style) -> Vec<String> {
    let has_style = |other: Style| {
        (style.bg.is_none() || other.bg == style.bg)
            && (style.fg.is_none() || other.fg == style.fg)
            && other.add_modifier.contains(style.add_modifier)
    };
    let spans = lines.iter().flat_map(|line| &line.spans);
    spans.filter(|span| has_style(span.style)).map(|span| span.content.to_string()).collect()
}
