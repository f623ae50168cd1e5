//! [`CallView`]: what a client shows of a tool call: a title, a kind, the files that it is about, and
//! what it makes of them.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Content, ContentBlock, Diff, ImageContent, TextContent, ToolCallContent, ToolCallLocation, ToolKind,
};
use hardpan_prompt::MessagePart;
use hardpan_tools::Scope;
use hardpan_workspace::read_open_text;
use serde_json::Value;

/// Larger files are not sent as a diff: it shows the changed parts alone.
const MAX_COMPARED_BYTES: usize = 1024 * 1024;

/// The longest title, in characters.
const MAX_TITLE: usize = 200;

/// The end of a tool's output that a client gets, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// What a client shows of a call.
#[derive(Debug, PartialEq)]
pub struct CallView {
    pub title: String,
    pub kind: ToolKind,
    pub locations: Vec<ToolCallLocation>,
}

impl CallView {
    pub fn new(tool: &str, args: &Value, scope: &Scope) -> Self {
        let subject = ["path", "command", "pattern", "url", "query", "name", "description"]
            .into_iter()
            .find_map(|name| args[name].as_str().map(|text| (name, text)));
        let title = match (tool, subject) {
            ("bash", Some((_, command))) => command.to_owned(),
            (_, Some((_, text))) => format!("{tool} {text}"),
            (_, None) => tool.to_owned(),
        };
        let line = args["offset"].as_u64().and_then(|line| u32::try_from(line).ok());
        let locations = args["path"].as_str().and_then(|path| location(path, line, scope));
        CallView {
            title: first_line(&title),
            kind: tool_kind(tool),
            locations: locations.into_iter().collect(),
        }
    }
}

fn tool_kind(tool: &str) -> ToolKind {
    match tool {
        "read" | "ls" | "recall" => ToolKind::Read,
        "edit" | "write" => ToolKind::Edit,
        "grep" | "find" | "symbols" => ToolKind::Search,
        "bash" | "console" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        "task" | "panel" | "message" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// A file of the workspace that a call is about; none for a path that leads out of it.
pub fn location(path: &str, line: Option<u32>, scope: &Scope) -> Option<ToolCallLocation> {
    let place = scope.resolve_for_read(path).or_else(|_| scope.resolve_for_write(path)).ok()?;
    Some(ToolCallLocation::new(place).line(line))
}

/// The first line of a text, shortened.
pub fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if text.trim().lines().nth(1).is_some() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// What a call of `edit` or `write` makes of its file, as the file is now; none for other calls, and
/// for one that the tool will refuse.
pub fn file_change(tool: &str, args: &Value, scope: &Scope) -> Option<Diff> {
    if !matches!(tool, "edit" | "write") {
        return None;
    }
    let path = args["path"].as_str()?;
    let place: PathBuf = scope.resolve_for_write(path).ok()?;
    let file = scope.guard().open_named_by_user(&place).ok();
    let before = file.and_then(|file| read_open_text(&file, MAX_COMPARED_BYTES).ok());
    let before = before.filter(|read| read.truncation.is_none()).map(|read| read.text);
    if let Some(content) = args["content"].as_str() {
        return Some(Diff::new(place, content).old_text(before));
    }
    let pair =
        |edit: &Value| Some((edit["old_text"].as_str()?.to_owned(), edit["new_text"].as_str()?.to_owned()));
    let mut edits: Vec<(String, String)> = pair(args).into_iter().collect();
    edits.extend(args["edits"].as_array().into_iter().flatten().filter_map(pair));
    if edits.is_empty() {
        return None;
    }
    let parts = |part: fn(&(String, String)) -> &str| edits.iter().map(part).collect::<Vec<_>>().join("\n");
    let changed = before.and_then(|before| {
        let mut after = before.clone();
        for (old, new) in &edits {
            // The tool is lenient where this is not; the changed parts are shown alone then.
            if after.matches(old.as_str()).count() != 1 {
                return None;
            }
            after = after.replacen(old.as_str(), new, 1);
        }
        Some((before, after))
    });
    let (old, new) = changed.unwrap_or_else(|| (parts(|edit| &edit.0), parts(|edit| &edit.1)));
    Some(Diff::new(place, new).old_text(old))
}

/// A text as the content of a call: the end of it, if it is long.
pub fn text_content(text: &str) -> Vec<ToolCallContent> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut start = text.len().saturating_sub(MAX_OUTPUT_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let cut = if start > 0 { "[…]\n" } else { "" };
    vec![content(ContentBlock::Text(TextContent::new(format!("{cut}{}", &text[start..]))))]
}

/// The content of a result: its texts and images.
pub fn result_content(parts: &[MessagePart]) -> Vec<ToolCallContent> {
    let convert = |part: &MessagePart| match part {
        MessagePart::Text { text } => text_content(text.as_str()),
        MessagePart::Image(image) => {
            let image = ImageContent::new(&*image.data, image.media_type.name());
            vec![content(ContentBlock::Image(image))]
        }
        _ => Vec::new(),
    };
    parts.iter().flat_map(convert).collect()
}

fn content(block: ContentBlock) -> ToolCallContent {
    ToolCallContent::Content(Content::new(block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_the_whole_file_before_and_after() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.txt"), "one\ntwo\ntwo\n").unwrap();
        let scope = Scope::new(&root, &root);
        let change = |tool: &str, args: Value| {
            file_change(tool, &args, &scope).map(|diff| (diff.old_text.unwrap_or_default(), diff.new_text))
        };
        let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(
            change("edit", json!({"path": "a.txt", "old_text": "one", "new_text": "1"})),
            pair("one\ntwo\ntwo\n", "1\ntwo\ntwo\n")
        );
        // Which `two` is meant cannot be said here.
        assert_eq!(
            change("edit", json!({"path": "a.txt", "old_text": "two", "new_text": "2"})),
            pair("two", "2")
        );
        assert_eq!(change("write", json!({"path": "b.txt", "content": "new"})), pair("", "new"));
        assert_eq!(change("write", json!({"path": "/etc/passwd", "content": "new"})), None);
        assert_eq!(change("read", json!({"path": "a.txt"})), None);
    }

    #[test]
    fn a_title_is_one_line() {
        let scope = Scope::new("/", "/");
        let title = |tool: &str, args: Value| CallView::new(tool, &args, &scope).title;
        assert_eq!(title("bash", json!({"command": "cd a\nmake"})), "cd a …");
        assert_eq!(title("grep", json!({"pattern": "fn main"})), "grep fn main");
        assert_eq!(title("panel", json!({})), "panel");
    }
}
