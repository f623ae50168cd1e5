//! Exports a session as Markdown, HTML, or a session file of one branch.

mod html; // one page, complete in itself
mod markdown;
mod markdown_html; // Markdown as HTML // with everything long folded

use std::borrow::Cow;
use std::str::FromStr;

use hardpan_prompt::figures::format_dollars;
use hardpan_prompt::{AgentMessage, Image, MessageBody, MessagePart, MessageState, WebSource};
use jiff::Timestamp;
use thiserror::Error;

use crate::entry::Entry;
use crate::message_text::truncate_to_line;
use crate::record::Record;
use crate::session::{Session, SessionError};

/// Longest heading, in characters.
const HEADING_LIMIT: usize = 120;

/// The formats in which a session can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Markdown with reasoning, calls and results in collapsed sections.
    Markdown,
    /// One self-contained HTML page without scripts.
    Html,
    /// The format of the session file itself.
    Jsonl,
}

/// The name of a format that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown format \"{0}\": use markdown, html or jsonl")]
pub struct UnknownExportFormat(pub String);

impl FromStr for ExportFormat {
    type Err = UnknownExportFormat;
    fn from_str(name: &str) -> Result<Self, UnknownExportFormat> {
        match name {
            "markdown" | "md" => Ok(ExportFormat::Markdown),
            "html" => Ok(ExportFormat::Html),
            "jsonl" | "json" => Ok(ExportFormat::Jsonl),
            _ => Err(UnknownExportFormat(name.into())),
        }
    }
}

/// How much of a session is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportScope<'a> {
    /// From the root to this entry; `None` for the last leaf.
    Branch(Option<&'a str>),
    /// Every branch, in file order.
    All,
}

/// A document, independent of the format it is rendered to.
struct Document<'a> {
    title: String,
    /// Id, folder, start and cost of the session, as names and values.
    facts: Vec<(&'static str, String)>,
    sections: Vec<Section<'a>>,
}

/// One message or change.
struct Section<'a> {
    heading: String,
    role: &'static str,
    id: &'a str,
    time: Option<Timestamp>,
    label: Option<&'a str>,
    /// Id of the parent, if that is not the previous entry: the start of another branch.
    after: Option<&'a str>,
    parts: Vec<SectionPart<'a>>,
}

enum SectionPart<'a> {
    /// Text that may be Markdown.
    Text(&'a str),
    /// Preformatted text that is shown on demand.
    Collapsed {
        title: String,
        text: Cow<'a, str>,
    },
    Image(&'a Image),
}

impl Session {
    /// Renders the session as a document. Every message for people is in it, also
    /// those a compaction replaced; `jsonl` is the file itself.
    pub fn export(&self, extent: ExportScope<'_>, format: ExportFormat) -> Result<String, SessionError> {
        let entries: Vec<&Entry> = match extent {
            ExportScope::Branch(leaf) => self.path_to(leaf)?,
            ExportScope::All => self.entries.iter().filter(|entry| entry.as_partial().is_none()).collect(),
        };
        Ok(match format {
            ExportFormat::Markdown => markdown::render(&self.document(&entries)),
            ExportFormat::Html => html::render(&self.document(&entries)),
            ExportFormat::Jsonl => {
                let lines = entries.iter().map(|entry| self.with_actual_parent(entry).to_line());
                self.header.to_line() + &lines.collect::<String>()
            }
        })
    }

    fn document<'a>(&'a self, entries: &[&'a Entry]) -> Document<'a> {
        let labels = self.labels();
        let mut sections: Vec<Section<'a>> = Vec::new();
        let mut before: Option<&str> = None;
        for entry in entries {
            if let Some(mut section) = entry_section(entry) {
                section.label = labels.get(&*entry.id).copied();
                section.after = entry.parent.as_deref().filter(|parent| Some(*parent) != before);
                sections.push(section);
            }
            before = Some(&entry.id);
        }
        Document { title: self.title(), facts: self.facts(entries), sections }
    }

    fn title(&self) -> String {
        truncate_to_line(self.name().unwrap_or(&format!("Session {}", self.header.id)), HEADING_LIMIT)
    }

    fn facts(&self, entries: &[&Entry]) -> Vec<(&'static str, String)> {
        let requests: Vec<f64> = entries
            .iter()
            .filter_map(|entry| match &entry.record {
                Record::Request(request) => Some(request.dollars),
                _ => None,
            })
            .collect();
        let mut facts =
            vec![("Session", self.header.id.to_string()), ("Folder", self.header.cwd.to_string())];
        facts.extend(self.header.time.map(|time| ("Began", time.to_string())));
        if !requests.is_empty() {
            let dollars: f64 = requests.iter().sum();
            facts.push(("Cost", format!("{} for {} requests", format_dollars(dollars), requests.len())));
        }
        facts.into_iter().map(|(name, value)| (name, truncate_to_line(&value, HEADING_LIMIT))).collect()
    }
}

/// The section for an entry; `None` for entries that only the program needs.
fn entry_section(entry: &Entry) -> Option<Section<'_>> {
    let (heading, role, parts) = match &entry.record {
        Record::Message(message) => message_section(message)?,
        Record::Compaction { summary, .. } => {
            ("Summary of what was said before".to_owned(), "summary", vec![SectionPart::Text(summary)])
        }
        Record::ModelChange { provider, model } => (format!("Model: {provider}/{model}"), "note", Vec::new()),
        Record::ThinkingChange { level } => (format!("Thinking: {level}"), "note", Vec::new()),
        _ => return None,
    };
    let heading = truncate_to_line(&heading, HEADING_LIMIT);
    Some(Section { heading, role, id: &entry.id, time: entry.time, label: None, after: None, parts })
}

/// `None` for a message that is not for people.
fn message_section(message: &AgentMessage) -> Option<(String, &'static str, Vec<SectionPart<'_>>)> {
    let words = |text| vec![SectionPart::Text(text)];
    let (mut heading, role, parts) = match &*message.body {
        MessageBody::User { content } => ("User".to_owned(), "user", section_parts(content)),
        MessageBody::Assistant { content, model, .. } => {
            let model = model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
            (format!("Assistant{model}"), "assistant", section_parts(content))
        }
        MessageBody::ToolResult { tool_name, content, is_error, not_run, .. } => {
            let name = tool_name.as_deref().unwrap_or("a tool");
            let title = match not_run {
                Some(reason) => format!("{name} {}", reason.summary()),
                None if *is_error => format!("Failure of {name}"),
                None => format!("Result of {name}"),
            };
            (title.clone(), "result", collapsed_parts(&title, content))
        }
        MessageBody::Custom { display: false, .. } => return None,
        MessageBody::Custom { custom_type, content, .. } => {
            (format!("Extension {custom_type}"), "custom", section_parts(content))
        }
        MessageBody::BashExecution { command, output, exit_code, .. } => {
            let code = exit_code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"));
            let text = Cow::Owned(format!("$ {command}\n{output}"));
            let title = truncate_to_line(&format!("{command} ({code})"), HEADING_LIMIT);
            ("Command".to_owned(), "result", vec![SectionPart::Collapsed { title, text }])
        }
        MessageBody::CompactionSummary { summary } => ("Summary".to_owned(), "summary", words(summary)),
        MessageBody::BranchSummary { summary } => {
            ("Summary of another branch".to_owned(), "summary", words(summary))
        }
    };
    if message.state == MessageState::Deleted {
        heading.push_str(", deleted");
    }
    Some((heading, role, parts))
}

fn section_parts(content: &[MessagePart]) -> Vec<SectionPart<'_>> {
    let mut parts = Vec::new();
    for part in content {
        match part {
            MessagePart::Text { text } => parts.push(SectionPart::Text(text)),
            MessagePart::Image(image) => parts.push(SectionPart::Image(image)),
            MessagePart::ProviderBlock(_) => {}
            MessagePart::Sources { sources } => {
                let lines: Vec<String> = sources.iter().map(WebSource::to_string).collect();
                let text = lines.join("\n").into();
                parts.push(SectionPart::Collapsed { title: "Sources".into(), text });
            }
            // A signature without text is nothing to read.
            MessagePart::Reasoning { text, redacted: None, .. } if text.is_empty() => {}
            MessagePart::Reasoning { text, redacted, .. } => {
                let shown = if redacted.is_some() { "(hidden by the provider)" } else { text.as_str() };
                parts.push(SectionPart::Collapsed { title: "Reasoning".into(), text: shown.into() });
            }
            MessagePart::ToolCall(call) => {
                let pretty = serde_json::to_string_pretty(&call.arguments.value());
                let text = pretty.map_or_else(|_| call.arguments.as_str().into(), Cow::Owned);
                let title = truncate_to_line(&format!("Call of {}", call.name), HEADING_LIMIT);
                parts.push(SectionPart::Collapsed { title, text });
                if let Some(result) = &call.result {
                    let what = if result.is_error { "Failure" } else { "Result" };
                    parts.extend(collapsed_parts(&format!("{what} of {}", call.name), &result.content));
                }
            }
        }
    }
    parts
}

/// The parts with all text collapsed under `title`.
fn collapsed_parts<'a>(title: &str, content: &'a [MessagePart]) -> Vec<SectionPart<'a>> {
    let title = truncate_to_line(title, HEADING_LIMIT);
    let fold = |part| match part {
        SectionPart::Text(text) => SectionPart::Collapsed { title: title.clone(), text: text.into() },
        other => other,
    };
    section_parts(content).into_iter().map(fold).collect()
}

/// Escapes text for HTML.
fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are invalid or invisible in a page.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The image as a `data:` URI; `None` if its data is not base64 and so could contain anything.
fn data_uri(image: &Image) -> Option<String> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_clean = image.data.bytes().all(is_base64);
    is_clean.then(|| format!("data:{};base64,{}", image.media_type.name(), image.data))
}

/// Whether a line opens or closes a code block.
fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

#[cfg(test)]
mod tests;
