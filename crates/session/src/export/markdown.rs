//! Markdown, with everything long folded.

use super::{Document, Piece, Section, data_uri, escape, is_fence};

/// The document.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut out = format!("# {}\n\n", plain(&document.title));
    for (name, value) in &document.facts {
        out += &format!("- {name}: {}\n", plain(value));
    }
    for part in &document.sections {
        out += &section(part);
    }
    out
}

fn section(section: &Section<'_>) -> String {
    let label = section.label.map_or_else(String::new, |label| format!(" [{}]", plain(label)));
    let mut out = match section.role {
        "note" => format!("\n*{}*{label}\n", plain(&section.heading)),
        _ => format!("\n## {}{label}\n", plain(&section.heading)),
    };
    if let Some(after) = section.after {
        out = format!("\n---\n\n*another branch, after {}*\n{out}", plain(after));
    }
    for piece in &section.pieces {
        out.push('\n');
        match piece {
            Piece::Words(text) => out += &words(text),
            Piece::Folded { title, text } => {
                let fence = fence(text);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                let title = escape(title);
                out += &format!(
                    "<details><summary>{title}</summary>\n\n{fence}\n{text}{end}{fence}\n\n</details>\n"
                );
            }
            Piece::Image(image) => match data_uri(image) {
                Some(uri) => out += &format!("![image]({uri})\n"),
                None => out += "(an image that cannot be shown)\n",
            },
        }
    }
    out
}

/// The text as it is, with its last block of code ended: an answer that was cut off must not swallow what follows.
fn words(text: &str) -> String {
    let fences = text.lines().filter(|line| is_fence(line)).count();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let fence = if fences.is_multiple_of(2) { "" } else { "```\n" };
    format!("{text}{end}{fence}")
}

/// A fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// A short text that means nothing to Markdown.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    out
}
