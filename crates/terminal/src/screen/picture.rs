//! [`PictureProtocol`]: images as the bytes that make a terminal draw them.

use std::fmt::Write;

use hardpan_prompt::{Image, MediaType};

/// Rows that a picture takes at most.
const MAX_ROWS: u32 = 12;
/// The pixels of a character, about: terminals differ, and only the picture's size depends on it.
const CELL: (u32, u32) = (10, 20);
/// Larger pictures are not drawn, in bytes of base64: a slow connection would stand still.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// What kitty takes at once.
const CHUNK: usize = 4096;
/// What every PNG file begins with, as base64.
const PNG: &str = "iVBORw0KGgo";

/// How a terminal is told to draw a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureProtocol {
    /// Kitty's graphics protocol: kitty, Ghostty. PNG alone.
    Kitty,
    /// iTerm2's inline images: iTerm2, WezTerm. PNG, JPEG and GIF.
    Iterm,
}

/// A picture that stands between printed lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedPicture {
    /// How many of the lines come before it.
    pub after: usize,
    /// What draws it.
    pub bytes: String,
}

impl PictureProtocol {
    /// What the terminal understands, as its environment variables say; none if they do not, or if tmux,
    /// screen or Zellij stands between.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        if ["TMUX", "STY", "ZELLIJ"].into_iter().any(is_set)
            || ["screen", "tmux"].iter().any(|name| term.starts_with(name))
        {
            return None;
        }
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        if term == "xterm-kitty"
            || term == "xterm-ghostty"
            || is_set("KITTY_WINDOW_ID")
            || program == "ghostty"
        {
            return Some(PictureProtocol::Kitty);
        }
        let is_iterm = program == "iTerm.app" || program == "WezTerm";
        (is_iterm || variable("LC_TERMINAL").is_some_and(|name| name == "iTerm2"))
            .then_some(PictureProtocol::Iterm)
    }

    /// The bytes that draw an image on a terminal of this width, and leave the cursor in its last row.
    /// None for what the terminal cannot draw, and for what is too large.
    pub fn bytes(self, image: &Image, columns: usize) -> Option<String> {
        let data = &*image.data;
        // Whatever is no base64 could end the sequence, and steer the terminal.
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if data.is_empty() || data.len() > MAX_BYTES || !data.bytes().all(is_base64) {
            return None;
        }
        let is_png = image.media_type == MediaType::Png && data.starts_with(PNG);
        let cells = cells(image, columns);
        match (self, image.media_type) {
            (PictureProtocol::Kitty, _) if is_png => Some(kitty(data, cells)),
            (PictureProtocol::Iterm, MediaType::Jpeg | MediaType::Gif) => Some(iterm(data, cells)),
            (PictureProtocol::Iterm, _) if is_png => Some(iterm(data, cells)),
            _ => None,
        }
    }
}

/// The side of a picture that is set, in characters; the other one follows from its shape.
#[derive(Clone, Copy)]
enum Cells {
    Rows(u32),
    Columns(u32),
}

fn cells(image: &Image, columns: usize) -> Cells {
    let (Some(width), Some(height)) = (image.width, image.height) else { return Cells::Rows(MAX_ROWS) };
    let rows = height.div_ceil(CELL.1).clamp(1, MAX_ROWS);
    let wide = u64::from(rows * CELL.1) * u64::from(width.max(1)) / u64::from(height.max(1) * CELL.0);
    let room = u32::try_from(columns.saturating_sub(1)).unwrap_or(u32::MAX).max(1);
    if wide > u64::from(room) { Cells::Columns(room) } else { Cells::Rows(rows) }
}

fn kitty(data: &str, cells: Cells) -> String {
    let size = match cells {
        Cells::Rows(rows) => format!("r={rows}"),
        Cells::Columns(columns) => format!("c={columns}"),
    };
    let mut out = String::with_capacity(data.len() + data.len() / 64 + 64);
    let mut rest = data;
    // Transmit and display a PNG; answer nothing.
    let mut head = format!("a=T,f=100,q=2,{size},");
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK));
        let _ = write!(out, "\x1b_G{head}m={};{chunk}\x1b\\", u8::from(!after.is_empty()));
        rest = after;
        head.clear();
    }
    out
}

fn iterm(data: &str, cells: Cells) -> String {
    let size = match cells {
        Cells::Rows(rows) => format!("height={rows}"),
        Cells::Columns(columns) => format!("width={columns}"),
    };
    format!("\x1b]1337;File=inline=1;preserveAspectRatio=1;{size}:{data}\x07")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(media_type: MediaType, data: &str, size: (u32, u32)) -> Image {
        Image { media_type, data: data.into(), width: Some(size.0), height: Some(size.1) }
    }

    #[test]
    fn only_a_terminal_that_says_so_draws_pictures_and_never_through_another() {
        let detected = |variables: &[(&str, &str)]| {
            PictureProtocol::detect(|name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        for (variables, expected) in [
            (&[("TERM", "xterm-kitty")][..], Some(PictureProtocol::Kitty)),
            (&[("TERM", "xterm-ghostty")], Some(PictureProtocol::Kitty)),
            (&[("TERM_PROGRAM", "iTerm.app")], Some(PictureProtocol::Iterm)),
            (&[("TERM", "xterm-256color"), ("LC_TERMINAL", "iTerm2")], Some(PictureProtocol::Iterm)),
            (&[("TERM", "xterm-256color")], None),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], None),
            (&[("TERM", "tmux-256color"), ("LC_TERMINAL", "iTerm2")], None),
            (&[("TERM", "screen-256color"), ("KITTY_WINDOW_ID", "1")], None),
            (&[], None),
        ] {
            assert_eq!(detected(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn kitty_gets_a_png_in_pieces_and_other_formats_are_not_drawn() {
        let data = format!("{PNG}{}", "A".repeat(CHUNK));
        let png = image(MediaType::Png, &data, (640, 480));
        let bytes = PictureProtocol::Kitty.bytes(&png, 80).unwrap();
        assert!(bytes.starts_with(&format!("\x1b_Ga=T,f=100,q=2,r=12,m=1;{PNG}")), "{bytes}");
        assert!(bytes.ends_with(&format!("\x1b\\\x1b_Gm=0;{}\x1b\\", "A".repeat(PNG.len()))), "{bytes}");
        for media_type in [MediaType::Jpeg, MediaType::Gif, MediaType::Webp] {
            assert_eq!(PictureProtocol::Kitty.bytes(&image(media_type, &data, (1, 1)), 80), None);
        }
    }

    #[test]
    fn a_picture_is_never_wider_than_the_screen_nor_higher_than_its_limit() {
        let bytes =
            |size, columns| PictureProtocol::Iterm.bytes(&image(MediaType::Jpeg, "AAAA", size), columns);
        let shown =
            |size: &str| Some(format!("\x1b]1337;File=inline=1;preserveAspectRatio=1;{size}:AAAA\x07"));
        assert_eq!(bytes((16, 16), 80), shown("height=1"));
        assert_eq!(bytes((3000, 4000), 80), shown("height=12"));
        assert_eq!(bytes((4000, 300), 80), shown("width=79"));
        assert_eq!(bytes((u32::MAX, 1), 1), shown("width=1"));
    }

    #[test]
    fn data_that_could_end_the_sequence_and_data_that_is_too_much_are_not_drawn() {
        for data in ["", "AA\x1b\\", "AA\x07", "AA BB", &"A".repeat(MAX_BYTES + 1)] {
            for protocol in [PictureProtocol::Kitty, PictureProtocol::Iterm] {
                let data = format!("{}{data}", if data.is_empty() { "" } else { PNG });
                assert_eq!(protocol.bytes(&image(MediaType::Png, &data, (1, 1)), 80), None);
            }
        }
        // A file that only calls itself one.
        assert_eq!(PictureProtocol::Kitty.bytes(&image(MediaType::Png, "AAAA", (1, 1)), 80), None);
    }
}
