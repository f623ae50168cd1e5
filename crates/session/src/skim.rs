//! What a list tells about a session, read without parsing what the list does not tell.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Header};
use crate::fields::Fields;
use crate::record::Record;
use crate::said::{in_one_line, texts};
use crate::session::header;

/// So many characters of the first prompt are shown.
const PROMPT_LIMIT: usize = 200;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Its file.
    pub path: PathBuf,
    /// Its id; where its first line cannot be read, the name of its file.
    pub id: Arc<str>,
    /// The name that it was given.
    pub name: Option<Arc<str>>,
    /// The folder that it began in.
    pub cwd: Arc<str>,
    /// When it began.
    pub began: Option<Timestamp>,
    /// When it was last written to.
    pub last_activity: Option<Timestamp>,
    /// The start of what the person said first, in one line.
    pub first_prompt: Option<String>,
    /// The messages of all its branches.
    pub messages: usize,
    /// The model that was last chosen or asked.
    pub model: Option<Arc<str>>,
    /// What its requests cost.
    pub dollars: f64,
    /// Lines that are damaged at first sight; opening the session tells all that is wrong.
    pub problems: usize,
}

/// Of a request, what a list tells.
#[derive(Deserialize)]
struct Billed {
    request: Bill,
}

#[derive(Deserialize)]
struct Bill {
    model: Arc<str>,
    dollars: f64,
}

impl Summary {
    /// Reads what a list tells about the session in this file. An empty file is none; one that cannot be read is one
    /// with a problem, and opening it tells which.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let modified = fs::metadata(path).and_then(|data| data.modified()).ok();
        let modified = modified.and_then(|time| Timestamp::try_from(time).ok());
        let bytes = match fs::read(path) {
            Ok(bytes) if bytes.is_empty() => return None,
            // Deleted in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            bytes => bytes.unwrap_or_default(),
        };
        let mut rest = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let header = header("", next_line(&mut rest)).ok();
        let mut summary = Summary::begin(path, header, modified);
        while !rest.is_empty() {
            summary.take(next_line(&mut rest).trim_ascii());
        }
        Some(summary)
    }

    fn begin(path: &Path, header: Option<Header>, last_activity: Option<Timestamp>) -> Self {
        let problems = usize::from(header.is_none());
        let (id, began, cwd) = match header {
            Some(Header { id, time, cwd, .. }) => (id, time, cwd),
            None => (path.file_stem().unwrap_or_default().to_string_lossy().into(), None, "".into()),
        };
        Summary {
            path: path.to_owned(),
            id,
            name: None,
            cwd,
            began,
            last_activity,
            first_prompt: None,
            messages: 0,
            model: None,
            dollars: 0.0,
            problems,
        }
    }

    fn take(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        let Some(kind) = kind(line) else {
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
                if let Ok(Billed { request }) = serde_json::from_slice(line) {
                    self.dollars += request.dollars;
                    self.model = Some(request.model);
                }
            }
            "name" | "model_change" => match record(line) {
                Some(Record::Name { name }) => self.name = Some(name),
                Some(Record::ModelChange { model, .. }) => self.model = Some(model),
                _ => {}
            },
            _ => {}
        }
    }
}

/// The next line with its end; the standard library looks for it faster than a loop over bytes.
fn next_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let all = *rest;
    // Reading from memory does not fail.
    let length = rest.skip_until(b'\n').unwrap_or(0);
    &all[..length]
}

/// The line's type, which this crate writes first; none where the line is damaged at first sight.
fn kind(line: &[u8]) -> Option<Arc<str>> {
    if let Some(rest) = line.strip_prefix(br#"{"type":""#) {
        let end = rest.iter().position(|&byte| byte == b'"')?;
        let kind = std::str::from_utf8(&rest[..end]).ok()?;
        return line.ends_with(b"}").then(|| kind.into());
    }
    let mut fields = Fields::of(std::str::from_utf8(line).ok()?).ok()?;
    fields.take_text("type").ok()
}

fn record(line: &[u8]) -> Option<Record> {
    let (entry, _) = Entry::read(std::str::from_utf8(line).ok()?).ok()?;
    Some(entry.record)
}

fn first_prompt(line: &[u8]) -> Option<String> {
    let Some(Record::Message(message)) = record(line) else { return None };
    if !matches!(*message.body, hardpan_prompt::Body::User { .. }) {
        return None;
    }
    let prompt = in_one_line(&texts(&message.body).join(" "), PROMPT_LIMIT);
    Some(prompt).filter(|prompt| !prompt.is_empty())
}
