use hardpan_prompt::{DeniedBy, Json, MediaType, NotRunReason, Text, ToolCall};
use serde_json::json;

use super::*;
use crate::Header;

const EVIL: &str = "<script>alert(1)</script>\" onload='x' & <img src=x onerror=y>";

fn user(id: &str, parent: Option<&str>, content: Vec<MessagePart>) -> Entry {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content }))
}

fn answer(id: &str, parent: &str, content: Vec<MessagePart>) -> Entry {
    let body = MessageBody::Assistant { content, provider: None, model: Some("x".into()), stop_reason: None };
    Entry::message(Some(parent), AgentMessage::new(id, body))
}

fn result(id: &str, parent: &str, text: &str) -> Entry {
    let (call_id, tool_name) = ("t".into(), Some("read".into()));
    let body = MessageBody::ToolResult {
        call_id,
        tool_name,
        content: vec![MessagePart::text(text)],
        is_error: false,
        not_run: None,
    };
    Entry::message(Some(parent), AgentMessage::new(id, body))
}

fn image(data: &str) -> MessagePart {
    MessagePart::Image(Image { media_type: MediaType::Png, data: data.into(), width: None, height: None })
}

fn call(arguments: &serde_json::Value) -> MessagePart {
    let arguments = Json::new(arguments);
    MessagePart::ToolCall(ToolCall { id: "t".into(), name: "read".into(), arguments, result: None })
}

fn session(entries: &[Entry]) -> Session {
    let time = Some("2026-03-01T09:00:00Z".parse().unwrap());
    let header = Header { id: "s1".into(), time, cwd: "/project".into(), extra: Default::default() };
    let lines: String = entries.iter().map(Entry::to_line).collect();
    Session::parse("s1.jsonl", (header.to_line() + &lines).as_bytes()).unwrap()
}

#[test]
fn markdown_is_what_a_person_would_write() {
    let session = session(&[
        user("u", None, vec![MessagePart::text("Why?"), image("iVBORw==")]),
        answer("a", "u", vec![MessagePart::text("I look."), call(&json!({"path": "a.rs"}))]),
        result("r", "a", "```\ncode\n```\n"),
        Entry::new("l", Some("r"), None, Record::Label { target: "u".into(), label: Some("start".into()) }),
        answer("b", "l", vec![MessagePart::text("Because:\n```rust\nlet x;")]),
    ]);
    let expected = "\
# Session s1

- Session: s1
- Folder: /project
- Began: 2026-03-01T09:00:00Z

## User [start]

Why?

![image](data:image/png;base64,iVBORw==)

## Assistant (x)

I look.

<details><summary>Call of read</summary>

```
{
  \"path\": \"a.rs\"
}
```

</details>

## Result of read

<details><summary>Result of read</summary>

````
```
code
```
````

</details>

## Assistant (x)

Because:
```rust
let x;
```
";
    assert_eq!(session.export(ExportScope::Branch(None), ExportFormat::Markdown).unwrap(), expected);
}

#[test]
fn nothing_foreign_is_markup_in_a_page() {
    let name = Entry::new("n", Some("r"), None, Record::Name { name: EVIL.into() });
    let label = Record::Label { target: "u".into(), label: Some(EVIL.into()) };
    let compaction =
        Record::Compaction { summary: Text::new(EVIL), first_kept: None, tokens_before: None, details: None };
    let model = Record::ModelChange { provider: EVIL.into(), model: EVIL.into() };
    let thought = MessagePart::Reasoning { text: EVIL.into(), signature: None, redacted: None };
    let session = session(&[
        user(
            "u",
            None,
            vec![MessagePart::text(format!("{EVIL}\n```\n{EVIL}\n```\n")), image("\" onerror=\"x")],
        ),
        answer("a", "u", vec![thought, call(&json!({"path": EVIL}))]),
        result("r", "a", EVIL),
        name,
        Entry::new("l", Some("n"), None, label),
        Entry::new("k", Some("l"), None, compaction),
        Entry::new("m", Some("k"), None, model),
        user(EVIL, Some("u"), vec![MessagePart::text("\u{1b}[2J")]),
    ]);
    let page = session.export(ExportScope::All, ExportFormat::Html).unwrap();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; &amp; "));
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'));
    assert!(!page.contains("onload='") && !page.contains("onerror=\""));
    let markdown = session.export(ExportScope::All, ExportFormat::Markdown).unwrap();
    assert!(markdown.starts_with("# \\<script\\>"));
    assert!(markdown.contains("(an image that cannot be shown)"));
}

#[test]
fn a_page_needs_nothing_else() {
    let session = session(&[
        user("u", None, vec![MessagePart::text("a\n```rust\nlet x = 1 < 2;\n```\nb"), image("iVBORw==")]),
        result("r", "u", "out"),
    ]);
    let page = session.export(ExportScope::Branch(None), ExportFormat::Html).unwrap();
    assert!(page.contains(
        "<div class=\"words\">\n<p>a</p>\n<pre title=\"rust\"><code>let x = 1 &lt; 2;\n</code></pre>\n<p>b</p>\n</div>\n\
         <img alt=\"image\" src=\"data:image/png;base64,iVBORw==\">\n"
    ));
    assert!(page.contains("<details><summary>Result of read</summary>\n<pre>out</pre>\n</details>"));
    assert!(page.contains("initial-scale=1") && page.contains("@media (max-width: 40rem)"));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("default-src 'none'"));
    assert!(!page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_branch_is_exported_whole_and_alone() {
    let compaction = Record::Compaction {
        summary: Text::new("short"),
        first_kept: None,
        tokens_before: None,
        details: None,
    };
    let session = session(&[
        user("u", None, vec![MessagePart::text("first")]),
        answer("a", "u", vec![MessagePart::text("left")]),
        answer("b", "u", vec![MessagePart::text("right")]),
        Entry::new("k", Some("b"), None, compaction),
    ]);
    let text = |extent, format| session.export(extent, format).unwrap();
    let right = text(ExportScope::Branch(None), ExportFormat::Markdown);
    assert!(right.contains("first") && right.contains("right") && right.contains("short"));
    assert!(!right.contains("left") && !right.contains("another branch"));
    assert!(text(ExportScope::Branch(Some("a")), ExportFormat::Markdown).contains("left"));
    assert!(text(ExportScope::All, ExportFormat::Markdown).contains("*another branch, after u*"));
    assert!(session.export(ExportScope::Branch(Some("z")), ExportFormat::Html).is_err());

    let copy =
        Session::parse("copy", text(ExportScope::Branch(None), ExportFormat::Jsonl).as_bytes()).unwrap();
    assert_eq!(copy.branch(None).unwrap(), session.branch(None).unwrap());
    assert_eq!(copy.entries.len(), 3);
    assert_eq!(
        Session::parse("copy", text(ExportScope::All, ExportFormat::Jsonl).as_bytes()).unwrap().entries.len(),
        4
    );
}

#[test]
fn a_format_is_named() {
    assert_eq!("markdown".parse(), Ok(ExportFormat::Markdown));
    let error = "pdf".parse::<ExportFormat>().unwrap_err().to_string();
    assert_eq!(error, "unknown format \"pdf\": use markdown, html or jsonl");
}

#[test]
fn a_call_that_was_not_run_is_headed_by_the_reason() {
    let body = MessageBody::ToolResult {
        call_id: "t".into(),
        tool_name: Some("bash".into()),
        content: vec![MessagePart::text("The call was not allowed: no")],
        is_error: true,
        not_run: Some(NotRunReason::Denied { by: DeniedBy::Rule, message: "no".into() }),
    };
    let session = session(&[
        user("u", None, vec![MessagePart::text("Go")]),
        answer("a", "u", vec![call(&json!({}))]),
        Entry::message(Some("a"), AgentMessage::new("r", body)),
    ]);
    let text = session.export(ExportScope::All, ExportFormat::Markdown).unwrap();
    assert!(text.contains("<summary>bash was not run: a rule denies it</summary>"), "{text}");
}
