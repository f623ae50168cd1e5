//! Odd and hostile content on the page and in the full screen: nothing steers the terminal, no row is
//! wider than the screen, and all of it is shown.

use super::*;
use crate::text::{is_unsafe, line_width};

/// Text that models, files and programs produce, by name.
fn odd_texts() -> Vec<(&'static str, String)> {
    let nested: String = (0..30).map(|depth| format!("{}- level {depth}\n", "  ".repeat(depth))).collect();
    let wide_table = format!(
        "| {} |\n|{}|\n| {} |\n",
        (0..12).map(|n| format!("column {n}")).collect::<Vec<_>>().join(" | "),
        "---|".repeat(12),
        (0..12).map(|n| format!("a long cell with words {n}")).collect::<Vec<_>>().join(" | "),
    );
    let texts: Vec<(&str, String)> = vec![
        ("right to left", "a שלום (עולם) 12 b مرحبا بالعالم.\n- فهرس\n".into()),
        ("joined emoji", "x👩\u{200d}👩\u{200d}👧y ❤\u{fe0f} 🇩🇪🇫🇷 1\u{fe0f}\u{20e3} e\u{301}\u{302}\u{303} \u{200d}\u{fe0f}".into()),
        ("directions", "safe\u{202e}txt.exe\u{2066}\u{2069}\u{200f}\u{61c}".into()),
        ("control characters", "a\u{0}b\u{7}c\u{8}d\u{b}e\u{c}f\u{7f}g\u{85}h\u{9b}2Ji\u{9d}0;t\u{9c}".into()),
        ("sequences", "\u{1b}[2J\u{1b}[3J\u{1b}[H\u{1b}]0;title\u{7}\u{1b}]8;;http://x\u{1b}\\x\u{1b}P$q\u{1b}\\\u{1b}[?1000h\u{1b}c".into()),
        ("unfinished sequences", "\u{1b}[\n\u{1b}]0;never ends\n\u{1b}\n\u{1b}[38;5".into()),
        ("tabs", "\tone\ttwo\n- \tthree\n\n\t\tcode\n".into()),
        ("line ends", "one\r\ntwo\rthree\n\rfour\r\n\r\n".into()),
        ("progress", (0..400).map(|n| format!("\r{n}% done")).collect()),
        ("nested lists", nested),
        ("unclosed fence", "text\n````rust\nfn f() {\n```\nstill code\n".into()),
        ("table in a fence", "```markdown\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n".into()),
        ("wide table", wide_table),
        ("broken table", "| a | b\n|---|\n| 1 | 2 | 3 | 4 |\n||||\n|\n".into()),
        ("unclosed marks", "**bold *both `code [link](http://x\n\n~~~\n> > > - 1) ***\n".into()),
        ("only marks", "***\n---\n===\n#\n######\n>\n- \n1.\n```\n```\n".into()),
        ("quotes in lists", "1. > a\n   > - b\n   >   ```\n   >   c\n2. d\n".into()),
        ("html", "<div onclick=x>\n<!-- a\n-->&nbsp;&#27;[2J&lt;\n".into()),
        ("combining", format!("z{}\n", "\u{300}".repeat(500))),
        ("wide", "世界".repeat(200)),
        ("invisible", "\u{200b}\u{feff}\u{ad}\u{2060}\u{180e}\u{e0001}".into()),
        ("long word", "x".repeat(5_000)),
        ("address", format!("see https://example.org/{} there", "a/".repeat(200))),
        ("blank", "\n\n   \n\t\n".into()),
    ];
    texts
}

/// Everything that can be said, with the same text in it.
fn say_everywhere(face: &mut FullFace, text: &str) {
    face.face.agent(AgentUpdate::RunStarted);
    face.face.agent(AgentUpdate::Delivered { text: text.to_owned() });
    face.face.agent(AgentUpdate::Reasoning(text.to_owned()));
    face.draw();
    // In two pieces, with a frame between them.
    let middle = text.floor_char_boundary(text.len() / 2);
    face.face.agent(AgentUpdate::Text(text[..middle].to_owned()));
    face.draw();
    face.face.agent(AgentUpdate::Text(text[middle..].to_owned()));
    face.draw();
    face.face.agent(AgentUpdate::Note(text.to_owned()));
    face.face.agent(AgentUpdate::Output(text.to_owned()));
    for (id, subject) in [("1", Subject::Text(text.to_owned())), ("2", Subject::Path(text.to_owned()))] {
        let name = text.chars().take(20).collect();
        face.face.agent(AgentUpdate::ToolStarted { id: id.into(), name, subject });
        face.face.agent(AgentUpdate::ToolOutput { id: id.into(), text: text.to_owned() });
        face.draw();
        let output = text.to_owned();
        let end = ToolEnd {
            id: id.into(),
            is_error: id == "2",
            output,
            facts: vec![text.to_owned()],
            ..ToolEnd::default()
        };
        face.face.agent(AgentUpdate::ToolEnded(end));
    }
    face.draw();
}

/// Panics if bytes hold anything but text, line ends, and what the page itself writes.
fn assert_harmless(name: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\r' | '\n')) {
        let found = &rest[at..];
        // A link to the address that it shows.
        if let Some(link) = found.strip_prefix("\u{1b}]8;;") {
            let (address, after) = link.split_once("\u{1b}\\").unwrap();
            assert!(address.is_empty() || address.starts_with("http"), "{name}: {address}");
            assert!(!address.contains(char::is_control), "{name}: {address:?}");
            rest = after;
            continue;
        }
        let parameters = found.strip_prefix("\u{1b}[").unwrap_or_else(|| panic!("{name}: {found:.20?}"));
        let end = parameters.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        let sequence = &parameters[..=end];
        let is_ours = match sequence.as_bytes()[end] {
            b'm' | b'A' | b'B' | b'C' | b'G' | b'K' => true,
            b'J' => sequence == "J",
            b'h' | b'l' => ["?2026", "?7"].contains(&&sequence[..end]),
            _ => false,
        };
        assert!(is_ours, "{name}: {sequence}");
        rest = &parameters[end + 1..];
    }
    let is_direction = |c| is_unsafe(c) && !matches!(c, '\u{2068}' | '\u{2069}') && !c.is_control();
    assert!(!text.contains(is_direction), "{name}");
}

#[test]
fn odd_text_steers_nothing_and_fits_at_every_width() {
    for (name, text) in odd_texts() {
        for columns in [1, 40, 80, 300] {
            let mut face = FullFace::new(columns, 24);
            say_everywhere(&mut face, &text);
            assert_harmless(name, face.face.bytes());
            face.open(FullScreen::at_last_call(None));
            for key in ["x", "pageup", "pageup", "g", "space", "n"] {
                let frame = face.draw().unwrap();
                for row in &frame.rows {
                    assert!(line_width(row) <= usize::from(columns).max(2), "{name} at {columns}: {row}");
                    assert!(!row.to_string().contains(is_unsafe), "{name} at {columns}: {row:?}");
                }
                face.press(key);
            }
        }
    }
}

#[test]
fn a_line_of_a_megabyte_is_shown_and_passed_quickly() {
    let text = format!("start {} end", "0123456789abcdef".repeat(65_536));
    let mut face = FullFace::new(80, 24);
    face.face.agent(AgentUpdate::RunStarted);
    face.face.agent(AgentUpdate::Text(text.clone()));
    face.draw();
    face.call("1", "cat", text, Vec::new());
    face.draw();
    let printed: usize = face.face.printed.iter().map(String::len).sum();
    assert!(printed > 1_000_000, "{printed}");
    face.open(FullScreen::at_last_call(None));
    assert!(face.screen().iter().any(|row| row.contains("start 0123")));
    face.press("space");
    assert!(face.screen().iter().any(|row| row == "  ▸ 1 line"));
}
