//! [`SessionSummary`]: what a list of sessions shows about each of them. It is read without parsing
//! the messages, so that listing a thousand sessions stays fast.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_files::{RegularFile, UnreadableReason, read_lines};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::branch::GIT_BRANCH_RECORD;
use crate::entry::{Entry, Header};
use crate::message_text::{body_texts, truncate_to_line};
use crate::raw_fields::RawFields;
use crate::record::Record;
use crate::session::parse_header;

/// Longest first prompt in a summary, in characters.
const PROMPT_LIMIT: usize = 200;

/// One session as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionSummary {
    /// Path of the session file.
    pub path: PathBuf,
    /// The id from the header; where the header cannot be read, the file name without its
    /// extension.
    pub id: Arc<str>,
    /// The name the user gave it last; `None` if it was never named.
    pub name: Option<Arc<str>>,
    /// The working directory in which it was started.
    pub cwd: Arc<str>,
    /// The branch of git that was last checked out in it; `None` outside of a repository.
    pub git_branch: Option<Arc<str>>,
    /// Time of the header.
    pub began: Option<Timestamp>,
    /// Modification time of the file.
    pub last_activity: Option<Timestamp>,
    /// The start of the first user message, on one line.
    pub first_prompt: Option<String>,
    /// Number of messages on all branches together.
    pub messages: usize,
    /// The model that was last chosen, or last sent a request.
    pub model: Option<Arc<str>>,
    /// Sum of the recorded costs of its requests, in US dollars.
    pub dollars: f64,
    /// Lines that are visibly damaged. Opening the session finds every problem; this is only a
    /// quick count.
    pub problems: usize,
}

/// The part of a `request` line that a summary needs.
#[derive(Deserialize)]
struct RequestLine {
    request: RequestCost,
}

#[derive(Deserialize)]
struct RequestCost {
    model: Arc<str>,
    dollars: f64,
}

impl SessionSummary {
    /// Reads the summary of a session file. `None` for an empty or deleted file; a file that cannot
    /// be read gets a summary with one problem, and opening it tells which.
    pub(crate) fn read_file(path: &Path) -> Option<Self> {
        let modified = fs::metadata(path).and_then(|data| data.modified()).ok();
        let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
        let content = match RegularFile::open(path).and_then(|mut file| read_lines(&mut file)) {
            Ok(content) if content.file_bytes == 0 => return None,
            // Deleted in the meantime.
            Err(UnreadableReason::Missing) => return None,
            content => content.unwrap_or_default(),
        };
        let bytes = content.bytes;
        let mut lines = crate::lines(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes));
        let header = parse_header("", lines.next().unwrap_or_default()).ok();
        let mut summary = SessionSummary::from_header(path, header, modified);
        lines.for_each(|line| summary.add_line(line.trim_ascii()));
        summary.problems += content.left_out.len();
        Some(summary)
    }

    fn from_header(path: &Path, header: Option<Header>, last_activity: Option<Timestamp>) -> Self {
        let problems = usize::from(header.is_none());
        let git_branch = header.as_ref().and_then(Header::git_branch).map(Into::into);
        let (id, began, cwd) = match header {
            Some(Header { id, time, cwd, .. }) => (id, time, cwd),
            None => (path.file_stem().unwrap_or_default().to_string_lossy().into(), None, "".into()),
        };
        SessionSummary {
            path: path.to_owned(),
            id,
            name: None,
            cwd,
            git_branch,
            began,
            last_activity,
            first_prompt: None,
            messages: 0,
            model: None,
            dollars: 0.0,
            problems,
        }
    }

    fn add_line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let Some(kind) = line_type(line) else {
            self.problems += 1;
            return;
        };
        match &*kind {
            "message" => {
                self.messages += 1;
                if self.first_prompt.is_none() {
                    self.first_prompt = first_prompt(line);
                }
            }
            "request" => {
                if let Ok(RequestLine { request }) = serde_json::from_slice(line) {
                    self.dollars += request.dollars;
                    self.model = Some(request.model);
                }
            }
            "name" | "model_change" => match parse_record(line) {
                Some(Record::Name { name }) => self.name = Some(name),
                Some(Record::ModelChange { model, .. }) => self.model = Some(model),
                _ => {}
            },
            // Most of these are long and of no interest.
            "custom" if memchr::memmem::find(line, GIT_BRANCH_RECORD.as_bytes()).is_some() => {
                if let Some(Record::Custom { custom_type, data }) = parse_record(line)
                    && &*custom_type == GIT_BRANCH_RECORD
                {
                    self.git_branch = data.as_str().map(Into::into);
                }
            }
            _ => {}
        }
    }
}

/// The `type` of a line, which this crate always writes first. `None` if the line is visibly
/// damaged.
fn line_type(line: &[u8]) -> Option<Arc<str>> {
    if let Some(rest) = line.strip_prefix(br#"{"type":""#) {
        let end = rest.iter().position(|&byte| byte == b'"')?;
        let kind = std::str::from_utf8(&rest[..end]).ok()?;
        return line.ends_with(b"}").then(|| kind.into());
    }
    let mut fields = RawFields::parse(std::str::from_utf8(line).ok()?).ok()?;
    fields.take_text("type").ok()
}

fn parse_record(line: &[u8]) -> Option<Record> {
    let (entry, _) = Entry::parse(std::str::from_utf8(line).ok()?).ok()?;
    Some(entry.record)
}

fn first_prompt(line: &[u8]) -> Option<String> {
    let Some(Record::Message(message)) = parse_record(line) else { return None };
    if !matches!(*message.body, hardpan_prompt::MessageBody::User { .. }) {
        return None;
    }
    let prompt = truncate_to_line(&body_texts(&message.body).join(" "), PROMPT_LIMIT);
    Some(prompt).filter(|prompt| !prompt.is_empty())
}
