//! A session as a document: Markdown, HTML, or a session file of one branch.

mod html; // one page, complete in itself
mod markdown; // with everything long folded

use std::borrow::Cow;
use std::str::FromStr;

use hardpan_prompt::{AgentMessage, Body, Image, Part, State};
use jiff::Timestamp;
use thiserror::Error;

use crate::entry::Entry;
use crate::record::Record;
use crate::said::in_one_line;
use crate::session::{Session, SessionError};

/// So many characters of a heading are shown.
const HEADING_LIMIT: usize = 120;

/// The forms in which a session can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, in plain text.
    Markdown,
    /// One page that needs nothing else, and runs nothing.
    Html,
    /// The same format as the session's file.
    Jsonl,
}

/// A form that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown format \"{0}\": known are markdown, html and jsonl")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "markdown" | "md" => Ok(Format::Markdown),
            "html" => Ok(Format::Html),
            "jsonl" => Ok(Format::Jsonl),
            _ => Err(UnknownFormat(name.into())),
        }
    }
}

/// How much of a session is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    /// From the root to this entry, or to the last one.
    Branch(Option<&'a str>),
    /// Every branch, in the order of the file.
    All,
}

/// A document before it has a form.
struct Document<'a> {
    title: String,
    /// Where and when, by whom, for how much.
    facts: Vec<(&'static str, String)>,
    sections: Vec<Section<'a>>,
}

/// Something that was said or done.
struct Section<'a> {
    heading: String,
    role: &'static str,
    id: &'a str,
    time: Option<Timestamp>,
    label: Option<&'a str>,
    /// The entry it follows, where that is not the section before.
    after: Option<&'a str>,
    pieces: Vec<Piece<'a>>,
}

enum Piece<'a> {
    /// Words, which may hold Markdown.
    Words(&'a str),
    /// What is shown as it is, and only when asked for.
    Folded {
        title: String,
        text: Cow<'a, str>,
    },
    Image(&'a Image),
}

impl Session {
    /// The session as a document. Everything that was said is in it, also what a compaction replaced.
    pub fn export(&self, extent: Extent<'_>, format: Format) -> Result<String, SessionError> {
        let entries: Vec<&Entry> = match extent {
            Extent::Branch(leaf) => self.path_to(leaf)?,
            Extent::All => self.entries.iter().filter(|entry| entry.as_partial().is_none()).collect(),
        };
        Ok(match format {
            Format::Markdown => markdown::render(&self.document(&entries)),
            Format::Html => html::render(&self.document(&entries)),
            Format::Jsonl => {
                let lines = entries.iter().map(|entry| self.rooted(entry).to_line());
                self.header.to_line() + &lines.collect::<String>()
            }
        })
    }

    fn document<'a>(&'a self, entries: &[&'a Entry]) -> Document<'a> {
        let labels = self.labels();
        let mut sections: Vec<Section<'a>> = Vec::new();
        let mut before: Option<&str> = None;
        for entry in entries {
            if let Some(mut section) = section(entry) {
                section.label = labels.get(&*entry.id).copied();
                section.after = entry.parent.as_deref().filter(|parent| Some(*parent) != before);
                sections.push(section);
            }
            before = Some(&entry.id);
        }
        Document { title: self.title(), facts: self.facts(entries), sections }
    }

    fn title(&self) -> String {
        in_one_line(self.name().unwrap_or(&format!("Session {}", self.header.id)), HEADING_LIMIT)
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
            facts.push(("Cost", format!("${dollars:.4} for {} requests", requests.len())));
        }
        facts.into_iter().map(|(name, value)| (name, in_one_line(&value, HEADING_LIMIT))).collect()
    }
}

/// What of an entry is shown; nothing of what only the program needs.
fn section(entry: &Entry) -> Option<Section<'_>> {
    let (heading, role, pieces) = match &entry.record {
        Record::Message(message) => said(message),
        Record::Compaction { summary, .. } => {
            ("Summary of what was said before".to_owned(), "summary", vec![Piece::Words(summary)])
        }
        Record::ModelChange { provider, model } => (format!("Model: {provider}/{model}"), "note", Vec::new()),
        Record::ThinkingChange { level } => (format!("Thinking: {level}"), "note", Vec::new()),
        _ => return None,
    };
    let heading = in_one_line(&heading, HEADING_LIMIT);
    Some(Section { heading, role, id: &entry.id, time: entry.time, label: None, after: None, pieces })
}

fn said(message: &AgentMessage) -> (String, &'static str, Vec<Piece<'_>>) {
    let words = |text| vec![Piece::Words(text)];
    let (mut heading, role, pieces) = match &*message.body {
        Body::User { content } => ("User".to_owned(), "user", pieces(content)),
        Body::Assistant { content, model, .. } => {
            let model = model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
            (format!("Assistant{model}"), "assistant", pieces(content))
        }
        Body::ToolResult { tool_name, content, is_error, .. } => {
            let name = tool_name.as_deref().unwrap_or("a tool");
            let title = if *is_error { format!("Failure of {name}") } else { format!("Result of {name}") };
            (title.clone(), "result", folded(&title, content))
        }
        Body::Custom { custom_type, content, .. } => {
            (format!("Extension {custom_type}"), "custom", pieces(content))
        }
        Body::BashExecution { command, output, exit_code, .. } => {
            let code = exit_code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"));
            let text = Cow::Owned(format!("$ {command}\n{output}"));
            let title = in_one_line(&format!("{command} ({code})"), HEADING_LIMIT);
            ("Command".to_owned(), "result", vec![Piece::Folded { title, text }])
        }
        Body::CompactionSummary { summary } => ("Summary".to_owned(), "summary", words(summary)),
        Body::BranchSummary { summary } => {
            ("Summary of another branch".to_owned(), "summary", words(summary))
        }
    };
    if message.state == State::Deleted {
        heading.push_str(", deleted");
    }
    (heading, role, pieces)
}

fn pieces(content: &[Part]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for part in content {
        match part {
            Part::Text { text } => pieces.push(Piece::Words(text)),
            Part::Image(image) => pieces.push(Piece::Image(image)),
            Part::Reasoning { text, redacted, .. } => {
                let shown = if redacted.is_some() { "(hidden by the provider)" } else { text.as_str() };
                pieces.push(Piece::Folded { title: "Reasoning".into(), text: shown.into() });
            }
            Part::ToolCall(call) => {
                let pretty = serde_json::to_string_pretty(&call.arguments.value());
                let text = pretty.map_or_else(|_| call.arguments.as_str().into(), Cow::Owned);
                let title = in_one_line(&format!("Call of {}", call.name), HEADING_LIMIT);
                pieces.push(Piece::Folded { title, text });
                if let Some(result) = &call.result {
                    let what = if result.is_error { "Failure" } else { "Result" };
                    pieces.extend(folded(&format!("{what} of {}", call.name), &result.content));
                }
            }
        }
    }
    pieces
}

/// The same with its words folded.
fn folded<'a>(title: &str, content: &'a [Part]) -> Vec<Piece<'a>> {
    let title = in_one_line(title, HEADING_LIMIT);
    let fold = |piece| match piece {
        Piece::Words(text) => Piece::Folded { title: title.clone(), text: text.into() },
        other => other,
    };
    pieces(content).into_iter().map(fold).collect()
}

/// Text that means nothing to HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What a page cannot hold, or would hide.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The image in an address of its own; none where its data is not base64, which could say anything.
fn data_uri(image: &Image) -> Option<String> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_clean = image.data.bytes().all(is_base64);
    is_clean.then(|| format!("data:{};base64,{}", image.media_type.name(), image.data))
}

/// Whether a line opens or closes a block of code.
fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

#[cfg(test)]
mod tests;
