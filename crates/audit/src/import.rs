//! [`Recording`]: reads sessions of pi, Claude Code, Codex and Hardpan into one form.
//!
//! Only our own format is specified, so the others are read leniently: a line that is not
//! understood is skipped or reported as an [`ImportProblem`], and never costs the others.

mod claude_code; // Claude Code's projects/*/*.jsonl
mod codex; // Codex's rollout-*.jsonl
mod file_action; // FileAction: what a call does to files
mod hardpan; // our own sessions
mod json_fields; // fields of a JSON object, each possibly absent
mod pi; // pi's sessions, versions 1 to 3
mod recording; // Recording and what it is made of
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;
use thiserror::Error;

pub use file_action::{FileAction, TextReplacement};
pub use recording::{
    AnswerStatus, BilledRequest, EntryContent, ImportProblem, RecordedCall, RecordedEntry, RecordedPart,
    RecordedResult, Recording, SourceAgent, Speaker, UnbilledRequest,
};

use json_fields::JsonFields;

/// Why a session cannot be read at all.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be opened, or is not a regular file.
    #[error("cannot read {name}: {error}")]
    Io {
        /// The file's name, as it was given.
        name: String,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
    /// None of its first lines is one that a known agent writes.
    #[error(
        "{name} is not a session of a known agent: give a session file (JSON lines) of pi, Claude Code, Codex or Hardpan"
    )]
    Unknown {
        /// The file's name, as it was given.
        name: String,
    },
    /// A session of Hardpan cannot be read.
    #[error(transparent)]
    Own(#[from] hardpan_session::SessionError),
}

/// How many lines are looked at to detect the agent: the first ones can be damaged, or say little.
const DETECTION_LINES: usize = 50;

impl Recording {
    /// Reads a session file of any known agent.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        let read = || {
            // Reading a pipe or a device would wait for ever.
            if !std::fs::metadata(path)?.is_file() {
                return Err(std::io::Error::other("it is not a regular file"));
            }
            std::fs::read(path)
        };
        match read() {
            Ok(bytes) => Recording::parse(&name, &bytes),
            Err(error) => Err(ImportError::Io { name, error }),
        }
    }

    /// Reads the bytes of a session file. `name` is used in errors and reports.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ImportError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let agent = detect_agent(bytes).ok_or_else(|| ImportError::Unknown { name: name.into() })?;
        let mut recording = Recording::new(name, agent);
        match agent {
            SourceAgent::Hardpan => hardpan::read(&mut recording, bytes)?,
            SourceAgent::Pi => pi::read(&mut recording, &parse_lines(bytes)),
            SourceAgent::ClaudeCode => claude_code::read(&mut recording, &parse_lines(bytes)),
            SourceAgent::Codex => codex::read(&mut recording, &parse_lines(bytes)),
        }
        recording.finish();
        Ok(recording)
    }
}

/// A line's number, from 1, and its JSON, or why it is none.
type ParsedLine = (usize, Result<Value, serde_json::Error>);

fn parse_lines(bytes: &[u8]) -> Vec<ParsedLine> {
    let numbered = (1..).zip(hardpan_session::lines(bytes));
    let said = numbered.filter(|(_, line)| !line.trim_ascii().is_empty());
    said.map(|(number, line)| (number, serde_json::from_slice(line))).collect()
}

/// The agent that wrote a file, recognized by its first lines.
fn detect_agent(bytes: &[u8]) -> Option<SourceAgent> {
    let lines = hardpan_session::lines(bytes).filter(|line| !line.trim_ascii().is_empty());
    lines.take(DETECTION_LINES).find_map(|line| agent_of_line(&serde_json::from_slice(line).ok()?))
}

fn agent_of_line(line: &Value) -> Option<SourceAgent> {
    let kind = line.str("type")?;
    let has = |key| line.get(key).is_some();
    match kind {
        // Ours has a version and `time`; pi's first version has none, and its time is `timestamp`.
        "session" if has("version") && has("cwd") && !has("timestamp") => Some(SourceAgent::Hardpan),
        "session" if has("id") => Some(SourceAgent::Pi),
        "session_meta" | "response_item" | "turn_context" | "event_msg" if has("payload") => {
            Some(SourceAgent::Codex)
        }
        // `summary` and snapshots can come first, and have neither id nor parent.
        "user" | "assistant" | "system" | "attachment" if has("sessionId") || has("uuid") => {
            Some(SourceAgent::ClaudeCode)
        }
        "summary" if has("leafUuid") => Some(SourceAgent::ClaudeCode),
        "message" if line.get("message").is_some_and(|message| message.str("role").is_some()) => {
            Some(if has("parent") { SourceAgent::Hardpan } else { SourceAgent::Pi })
        }
        _ => None,
    }
}
