//! Splits the context of a request into lines with their source: file, URL, panel, tool result.

use super::hits::{SourceLine, is_path, numbered};

/// What kind of lines a section has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Section {
    /// Lines of a file or another named source; a fence may end it.
    Lines { name: String, next: usize, fenced: bool },
    /// Paths of a tree, or files of a symbol map with their symbols below them.
    Map { file: Option<String> },
}

/// All lines of a text with their source. Lines outside of sections have the source `label`.
pub fn lines_with_source(text: &str, label: &str) -> Vec<SourceLine> {
    let mut lines = Vec::new();
    let mut section = unnamed_section(label);
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        let fence = rest.peek().is_some_and(|next| next.starts_with("```"));
        if let Some(begun) = header(line, fence) {
            if fence && matches!(begun, Section::Lines { fenced: true, .. }) {
                rest.next(); // the fence itself
            }
            section = begun;
            continue;
        }
        match &mut section {
            Section::Lines { fenced: true, .. } if line.starts_with("```") => {
                section = unnamed_section(label);
            }
            Section::Lines { name, next, .. } => {
                let (number, text) = numbered(line).unwrap_or((*next, line));
                lines.push(SourceLine { source: name.clone(), number: Some(number), text: text.to_owned() });
                *next += 1;
            }
            Section::Map { file } => map(line, file, &mut lines),
        }
    }
    lines
}

fn unnamed_section(label: &str) -> Section {
    Section::Lines { name: label.to_owned(), next: 1, fenced: false }
}

/// The section that a header line opens.
fn header(line: &str, fence: bool) -> Option<Section> {
    let named = |name: &str| Section::Lines { name: name.to_owned(), next: 1, fenced: false };
    let by_key = |key: &str| match key.split_once(':') {
        Some(("file" | "url", name)) => named(name),
        Some(("symbols", file)) => Section::Map { file: Some(file.to_owned()) },
        _ if key == "tree" => Section::Map { file: None },
        _ => named(key),
    };
    let line = line.trim_end();
    if let Some(title) = line.strip_prefix("======= ").and_then(|rest| rest.strip_suffix(" =======")) {
        let name = title.split_once("] ").map_or(title, |(_, name)| name);
        return Some(match name.strip_prefix("File: ") {
            Some(path) => named(path),
            None if name == "Tree" => Section::Map { file: None },
            None => named(title), // another panel
        });
    }
    if let Some(key) = line.strip_prefix("=== ").and_then(|rest| rest.strip_suffix(" ===")) {
        return Some(by_key(key));
    }
    if let Some(key) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(" as it is now:]")) {
        return Some(by_key(key));
    }
    if let Some(path) = line.strip_prefix("Context from ").and_then(|rest| rest.strip_suffix(':')) {
        // An empty line comes first, which does not belong to the file.
        return Some(Section::Lines { name: path.to_owned(), next: 0, fenced: false });
    }
    if ["# Repository Structure", "# Repository Files", "# File Tree", "Directory structure"]
        .iter()
        .any(|title| line.starts_with(title))
    {
        return Some(Section::Map { file: None });
    }
    let path = line.trim_start_matches('#').trim();
    if fence && is_path(path) {
        return Some(Section::Lines { name: path.to_owned(), next: 1, fenced: true });
    }
    None
}

/// A line of a map or a tree: a path, or a symbol of the file above it.
fn map(line: &str, file: &mut Option<String>, lines: &mut Vec<SourceLine>) {
    let path =
        line.split('←').next().unwrap_or_default().trim().trim_end_matches(':').trim_start_matches("- ");
    let is_indented = line.starts_with(char::is_whitespace);
    if !is_indented && is_path(path) {
        *file = Some(path.to_owned());
        lines.push(SourceLine { source: path.to_owned(), number: None, text: String::new() });
    } else if let Some(file) = file.as_ref().filter(|_| !line.trim().is_empty()) {
        lines.push(SourceLine { source: file.clone(), number: None, text: line.trim().to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_lines(text: &str) -> Vec<String> {
        let number = |line: &SourceLine| line.number.map_or_else(|| "-".into(), |number| number.to_string());
        lines_with_source(text, "prompt")
            .iter()
            .map(|line| format!("{} {} {}", line.source, number(line), line.text))
            .collect()
    }

    #[test]
    fn files_of_every_layout_are_known_by_their_headers() {
        assert_eq!(
            render_lines("=== file:a.rs ===\nx\ny\n=== url:https://e.org ===\nz"),
            ["a.rs 1 x", "a.rs 2 y", "https://e.org 1 z"]
        );
        assert_eq!(
            render_lines("# Working Files\n\nHere:\n\nsrc/a.rs\n```\nx\n\ny\n```\nafter")[4..],
            ["src/a.rs 1 x", "src/a.rs 2 ", "src/a.rs 3 y", "prompt 1 after"]
        );
        assert_eq!(render_lines("Context from src/a.rs:\n\nx"), ["src/a.rs 0 ", "src/a.rs 1 x"]);
        assert_eq!(render_lines("======= [P3] Todo =======\n- buy milk"), ["[P3] Todo 1 - buy milk"]);
        assert_eq!(render_lines("======= [P4] File: a.rs =======\nx"), ["a.rs 1 x"]);
        assert_eq!(render_lines("[file:a.rs as it is now:]\nnew"), ["a.rs 1 new"]);
        assert_eq!(render_lines("just words"), ["prompt 1 just words"]);
    }

    #[test]
    fn maps_and_trees_name_files_without_lines() {
        assert_eq!(
            render_lines("=== symbols:a.rs ===\nc Budget\n  m spend"),
            ["a.rs - c Budget", "a.rs - m spend"]
        );
        assert_eq!(
            render_lines("# Repository Structure\n\nsrc/a.rs ←3\n  c Budget\nsrc/b.rs"),
            ["src/a.rs - ", "src/a.rs - c Budget", "src/b.rs - "]
        );
        assert_eq!(render_lines("# File Tree (2 files)\n\na.rs\nsrc/b.rs"), ["a.rs - ", "src/b.rs - "]);
    }
}
