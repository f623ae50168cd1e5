//! Renders a document as Markdown, with everything long collapsed.

use super::{Document, Section, SectionPart, data_uri, escape_html, is_fence};

/// Renders the whole document.
pub(super) fn render(document: &Document<'_>) -> String {
    let mut out = format!("# {}\n\n", escape_markdown(&document.title));
    for (name, value) in &document.facts {
        out += &format!("- {name}: {}\n", escape_markdown(value));
    }
    for part in &document.sections {
        out += &section(part);
    }
    out
}

fn section(section: &Section<'_>) -> String {
    let label = section.label.map_or_else(String::new, |label| format!(" [{}]", escape_markdown(label)));
    let mut out = match section.role {
        "note" => format!("\n*{}*{label}\n", escape_markdown(&section.heading)),
        _ => format!("\n## {}{label}\n", escape_markdown(&section.heading)),
    };
    if let Some(after) = section.after {
        out = format!("\n---\n\n*another branch, after {}*\n{out}", escape_markdown(after));
    }
    for part in &section.parts {
        out.push('\n');
        match part {
            SectionPart::Text(text) => out += &render_text(text),
            SectionPart::Collapsed { title, text } => {
                let fence = fence_for(text);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                let title = escape_html(title);
                out += &format!(
                    "<details><summary>{title}</summary>\n\n{fence}\n{text}{end}{fence}\n\n</details>\n"
                );
            }
            SectionPart::Image(image) => match data_uri(image) {
                Some(uri) => out += &format!("![image]({uri})\n"),
                None => out += "(an image that cannot be shown)\n",
            },
        }
    }
    out
}

/// The text as written, with an open code block closed: an answer that was cut off must not swallow
/// what follows.
fn render_text(text: &str) -> String {
    let fences = text.lines().filter(|line| is_fence(line)).count();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let fence = if fences.is_multiple_of(2) { "" } else { "```\n" };
    format!("{text}{end}{fence}")
}

/// A code fence that is longer than any in the text.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Escapes a short text for Markdown.
fn escape_markdown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    out
}
