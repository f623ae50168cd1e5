//! [`Recording`]: reads sessions of pi, Claude Code, Codex, Qwen Code and Hardpan into one form.
//!
//! Only our own format is specified, so the others are read leniently: a line that is not
//! understood is skipped or reported as an [`ImportProblem`], and never costs the others. A file
//! that yields no billed request is refused by name.

mod claude_code; // Claude Code's projects/*/*.jsonl
mod codex; // Codex's rollout-*.jsonl
mod file_action; // FileAction: what a call does to files
mod hardpan; // our own sessions
mod json_fields; // fields of a JSON object, each possibly absent
mod pi; // pi's sessions, versions 1 to 3
mod qwen_code; // Qwen Code's projects/*/chats/*.jsonl
mod recording; // Recording and what it is made of
mod request_shape; // RequestShape: a request as an agent recorded it
#[cfg(test)]
mod tests;

use std::path::Path;

use hardpan_files::RegularFile;
use serde_json::Value;
use thiserror::Error;

pub use file_action::{FileAction, TextReplacement};
pub use recording::{
    AnswerStatus, BilledRequest, EntryContent, ImportProblem, RecordedCall, RecordedEntry, RecordedPart,
    RecordedResult, Recording, SideUsage, SourceAgent, Speaker, UnbilledRequest,
};
pub use request_shape::{RequestShape, ShapePart};

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
        "{name} is not a session of a known agent: give a session file (JSON lines) of pi, Claude Code, Codex, Qwen Code or Hardpan"
    )]
    Unknown {
        /// The file's name, as it was given.
        name: String,
    },
    /// The agent is known, but the file has no request with a bill.
    #[error(
        "{name} is a session of {agent} without a billed request: nothing was answered in it, or {agent} records its usage in a way that Hardpan does not know yet",
        agent = agent.title()
    )]
    NoRequests {
        /// The file's name, as it was given.
        name: String,
        /// The agent that wrote the file.
        agent: SourceAgent,
    },
    /// A session of Hardpan cannot be read.
    #[error(transparent)]
    Own(#[from] hardpan_session::SessionError),
}

/// One format of recordings. A new one is a file with such a value, and a line in [`FORMATS`].
struct RecordingFormat {
    agent: SourceAgent,
    /// Whether a line with this `type` is one that only this agent writes.
    recognizes: fn(kind: &str, line: &Value) -> bool,
    read: fn(&mut Recording, &[u8]) -> Result<(), ImportError>,
}

/// All formats. Each line belongs to the first that recognizes it.
const FORMATS: [RecordingFormat; 5] =
    [hardpan::FORMAT, pi::FORMAT, codex::FORMAT, qwen_code::FORMAT, claude_code::FORMAT];

/// How many lines are looked at to detect the agent: the first ones can be damaged, or say little.
const DETECTION_LINES: usize = 50;

impl Recording {
    /// Reads a session file of any known agent.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        Recording::open_conversation(path)?.with_requests()
    }

    /// Reads a session file, also one in which nothing was billed.
    pub fn open_conversation(path: &Path) -> Result<Self, ImportError> {
        let name = path.display().to_string();
        match RegularFile::open(path).and_then(|mut file| hardpan_files::read_lines(&mut file)) {
            Ok(lines) => {
                let mut recording = Recording::parse_conversation(&name, &lines.bytes)?;
                for line in &lines.left_out {
                    let problem = format!("left out: its {} bytes have {}", line.bytes, line.excess);
                    recording.report_problem(line.number, problem);
                }
                Ok(recording)
            }
            Err(reason) => Err(ImportError::Io { name, error: reason.into() }),
        }
    }

    /// Reads the bytes of a session file. `name` is used in errors and reports.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ImportError> {
        Recording::parse_conversation(name, bytes)?.with_requests()
    }

    /// Reads the bytes of a session file, also of one in which nothing was billed.
    pub fn parse_conversation(name: &str, bytes: &[u8]) -> Result<Self, ImportError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let format = detect_format(bytes).ok_or_else(|| ImportError::Unknown { name: name.into() })?;
        let mut recording = Recording::new(name, format.agent);
        (format.read)(&mut recording, bytes)?;
        recording.finish();
        Ok(recording)
    }

    fn with_requests(self) -> Result<Self, ImportError> {
        if self.requests.is_empty() {
            return Err(ImportError::NoRequests { name: self.file, agent: self.agent });
        }
        Ok(self)
    }
}

/// Passes each line that is JSON to `read`, with its number, and reports the others.
fn read_lines(recording: &mut Recording, bytes: &[u8], mut read: impl FnMut(&mut Recording, usize, Value)) {
    for (number, line) in (1..).zip(hardpan_session::lines(bytes)) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(line) => read(recording, number, line),
            Err(error) => recording.report_problem(number, format!("left out: it is not JSON ({error})")),
        }
    }
}

/// The agent that wrote a file, by its first lines; `None` if it is no session of a known one.
pub fn recording_agent(path: &Path) -> Option<SourceAgent> {
    let lines = RegularFile::open(path).and_then(|mut file| hardpan_files::read_lines(&mut file)).ok()?;
    Some(detect_format(&lines.bytes)?.agent)
}

/// The format of a file, recognized by its first lines.
fn detect_format(bytes: &[u8]) -> Option<&'static RecordingFormat> {
    let lines = hardpan_session::lines(bytes).filter(|line| !line.trim_ascii().is_empty());
    lines.take(DETECTION_LINES).find_map(|line| {
        let line: Value = serde_json::from_slice(line).ok()?;
        let kind = line.str("type")?;
        FORMATS.iter().find(|format| (format.recognizes)(kind, &line))
    })
}
