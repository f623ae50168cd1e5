//! Recorded sessions of this and other agents, in one form.
//!
//! None of the formats but our own is specified for reuse, so they are read leniently: what is not understood is skipped or
//! reported as a [`Problem`], and one bad line never costs the others.

mod act; // Act: what a call does to files
mod claude_code; // Claude Code's projects/*/*.jsonl
mod codex; // Codex's rollout-*.jsonl
mod own; // our own sessions
mod pi; // pi's sessions, versions 1 to 3
mod record; // Recording and what it is made of
#[cfg(test)]
mod tests;
mod value; // fields of a JSON object, each possibly absent

use std::path::Path;

use serde_json::Value;
use thiserror::Error;

pub use act::{Act, Change};
pub use record::{
    Agent, BilledRequest, Call, CallResult, Ending, Entry, Piece, Problem, Recording, Said, Speaker, Unbilled,
};

use value::Fields;

/// Why a recording cannot be read at all.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The system refuses, or it is no file.
    #[error("cannot read {name}: {error}")]
    Io {
        /// The file.
        name: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// No line of it is one that a known agent writes.
    #[error(
        "{name} is not a session that is known here: pi, Claude Code, Codex and Hardpan sessions (JSON lines) are"
    )]
    Unknown {
        /// The file.
        name: String,
    },
    /// Our own session that cannot be read.
    #[error(transparent)]
    Own(#[from] hardpan_session::SessionError),
}

/// How many lines are looked at to find out who wrote them: leading lines can be damaged, or say little.
const TELLING_LINES: usize = 50;

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

    /// Reads the bytes of a session file; `name` is what errors call it.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ImportError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let agent = detect(bytes).ok_or_else(|| ImportError::Unknown { name: name.into() })?;
        let mut recording = Recording::new(name, agent);
        match agent {
            Agent::Hardpan => own::read(&mut recording, bytes)?,
            Agent::Pi => pi::read(&mut recording, &lines(bytes)),
            Agent::ClaudeCode => claude_code::read(&mut recording, &lines(bytes)),
            Agent::Codex => codex::read(&mut recording, &lines(bytes)),
        }
        recording.settle();
        Ok(recording)
    }
}

/// A line's number, from 1, and what is on it, or why it cannot be read.
type Line = (usize, Result<Value, String>);

fn lines(bytes: &[u8]) -> Vec<Line> {
    let numbered = (1..).zip(bytes.split(|&byte| byte == b'\n'));
    let said = numbered.filter(|(_, line)| !line.trim_ascii().is_empty());
    said.map(|(number, line)| (number, serde_json::from_slice(line).map_err(|error| error.to_string())))
        .collect()
}

/// Who wrote it, by what is written.
fn detect(bytes: &[u8]) -> Option<Agent> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.take(TELLING_LINES).find_map(|line| writer_of(&serde_json::from_slice(line).ok()?))
}

fn writer_of(line: &Value) -> Option<Agent> {
    let kind = line.str("type")?;
    let has = |key| line.get(key).is_some();
    match kind {
        // Ours has a version and `time`; pi's first version has none, and its time is `timestamp`.
        "session" if has("version") && has("cwd") && !has("timestamp") => Some(Agent::Hardpan),
        "session" if has("id") => Some(Agent::Pi),
        "session_meta" | "response_item" | "turn_context" | "event_msg" if has("payload") => {
            Some(Agent::Codex)
        }
        // `summary` and snapshots can come first, and have neither id nor parent.
        "user" | "assistant" | "system" | "attachment" if has("sessionId") || has("uuid") => {
            Some(Agent::ClaudeCode)
        }
        "summary" if has("leafUuid") => Some(Agent::ClaudeCode),
        "message" if line.get("message").is_some_and(|message| message.str("role").is_some()) => {
            Some(if has("parent") { Agent::Hardpan } else { Agent::Pi })
        }
        _ => None,
    }
}
