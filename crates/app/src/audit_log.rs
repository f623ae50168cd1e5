//! [`AuditLog`]: what tools were allowed to do, by whom, and how it ended, as JSON lines in the data
//! folder. Lines are only ever appended; the oldest are dropped a file at a time.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::events::{AgentStart, MessageStart, ToolExecutionEnd, UserBash};
use hardpan_agent::{Agent, ApprovalRequest};
use hardpan_context::{KnownSecrets, Redactions, SecretScanner};
use hardpan_files::read_small_text;
use hardpan_prompt::MessageBody;
use hardpan_tools::CallSubject;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::now;

/// Below the data folder: the current file, and the one before it.
const FILES: [&str; 2] = ["log/audit.jsonl", "log/audit.1.jsonl"];

/// A file that is longer is put aside, and the one before it is dropped.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// What a command that the person typed (`!cmd`) has for a tool and a call.
const USER_COMMAND: &str = "user_bash";

/// Longer commands and reasons are cut.
const MAX_TEXT_CHARS: usize = 1000;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it happened.
    pub at: Timestamp,
    /// The conversation's id; empty before its first run.
    pub session: String,
    /// The root of the workspace.
    pub workspace: String,
    /// Name of the sub-agent that made the call, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id that the model gave the call.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// What happened.
    #[serde(flatten)]
    pub event: AuditEvent,
}

/// What happened to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent {
    /// It was allowed to run.
    Allowed {
        /// The command, path or URL; the arguments of other tools.
        subject: String,
        /// Who or what allowed it.
        by: AllowedBy,
        /// The rule, if one did, or what the person allowed for longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// It was not.
    Denied {
        /// The command, path or URL; the arguments of other tools.
        subject: String,
        /// Why not.
        reason: String,
    },
    /// A call that was allowed has ended.
    Ended {
        /// Whether its result is an error.
        failed: bool,
    },
}

/// Who or what allowed a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowedBy {
    /// A rule of the settings, or one that the person allowed before.
    Rule,
    /// The person, when asked.
    Person,
    /// `--yes`.
    Yes,
}

impl AllowedBy {
    /// The word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            AllowedBy::Rule => "rule",
            AllowedBy::Person => "person",
            AllowedBy::Yes => "yes",
        }
    }
}

/// Writes the log. What cannot be written is lost: work goes on.
pub struct AuditLog {
    folder: Option<PathBuf>,
    workspace: String,
    session: Mutex<String>,
    /// Calls that were allowed and have not ended.
    running: Mutex<BTreeSet<Arc<str>>>,
    scanner: SecretScanner,
}

impl AuditLog {
    /// A log in the data folder; none without one. `secrets` are never written.
    pub fn new(data: Option<&Path>, workspace: &Path, secrets: KnownSecrets) -> Self {
        AuditLog {
            folder: data.map(Path::to_owned),
            workspace: workspace.to_string_lossy().into_owned(),
            session: Mutex::default(),
            running: Mutex::default(),
            scanner: SecretScanner::new(secrets),
        }
    }

    /// Follows the agent: which session it works in, how calls end, and what the person runs.
    pub fn follow(self: &Arc<Self>, agent: &Agent) {
        let log = self.clone();
        agent.events().subscribe::<AgentStart, _>("hardpan", move |_, agent| {
            log.set_session(&agent);
            async { Ok(()) }
        });
        let log = self.clone();
        agent.events().subscribe::<UserBash, _>("hardpan", move |started, agent| {
            log.set_session(&agent);
            let subject = log.clean(&started.command);
            let event = AuditEvent::Allowed { subject, by: AllowedBy::Person, rule: None };
            log.write(None, USER_COMMAND, USER_COMMAND, event);
            async { Ok(None) }
        });
        let log = self.clone();
        agent.events().subscribe::<MessageStart, _>("hardpan", move |started, _| {
            if let MessageBody::BashExecution { exit_code, .. } = &*started.message.body {
                let failed = *exit_code != Some(0);
                log.write(None, USER_COMMAND, USER_COMMAND, AuditEvent::Ended { failed });
            }
            async { Ok(()) }
        });
        let log = self.clone();
        agent.events().subscribe::<ToolExecutionEnd, _>("hardpan", move |ended, _| {
            log.ended(None, &ended);
            async { Ok(()) }
        });
    }

    /// Follows a sub-agent: how its calls end. They belong to the session that started it.
    pub fn follow_subagent(self: &Arc<Self>, agent: &Agent, name: &str) {
        let (log, name): (_, Arc<str>) = (self.clone(), name.into());
        agent.events().subscribe::<ToolExecutionEnd, _>("hardpan", move |ended, _| {
            log.ended(Some(&name), &ended);
            async { Ok(()) }
        });
    }

    fn ended(&self, agent: Option<&str>, ended: &ToolExecutionEnd) {
        let key = running_key(agent, &ended.call_id);
        if self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&key) {
            let event = AuditEvent::Ended { failed: ended.is_error };
            self.write(agent, &ended.call_id, &ended.tool_name, event);
        }
    }

    fn set_session(&self, agent: &Agent) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = agent.session().0.to_string();
    }

    /// A call may run.
    pub fn allowed(&self, request: &ApprovalRequest, by: AllowedBy, rule: Option<String>) {
        let key = running_key(request.agent.as_deref(), &request.call_id);
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        let subject = self.clean(&subject_text(request));
        let rule = rule.map(|rule| self.clean(&rule));
        let event = AuditEvent::Allowed { subject, by, rule };
        self.write(request.agent.as_deref(), &request.call_id, &request.tool_name, event);
    }

    /// A call may not run.
    pub fn denied(&self, request: &ApprovalRequest, reason: &str) {
        let (subject, reason) = (self.clean(&subject_text(request)), self.clean(reason));
        let event = AuditEvent::Denied { subject, reason };
        self.write(request.agent.as_deref(), &request.call_id, &request.tool_name, event);
    }

    /// A text without secrets, cut to a length that fits a line.
    fn clean(&self, text: &str) -> String {
        let redactions: Redactions = self.scanner.find(text).iter().collect();
        let text = redactions.redact(text).unwrap_or_else(|| text.to_owned());
        match text.char_indices().nth(MAX_TEXT_CHARS) {
            Some((at, _)) => format!("{}… ({} characters)", &text[..at], text.chars().count()),
            None => text,
        }
    }

    fn write(&self, agent: Option<&str>, call: &str, tool: &str, event: AuditEvent) {
        let Some(folder) = &self.folder else { return };
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cut = |text: &str| text.chars().take(200).collect::<String>();
        let entry = AuditEntry {
            at: now(),
            session,
            workspace: self.workspace.clone(),
            agent: agent.map(cut),
            call: cut(call),
            tool: cut(tool),
            event,
        };
        if let Err(error) = append(folder, &entry) {
            tracing::warn!(%error, "the audit log cannot be written");
        }
    }
}

/// A call among those that run: sub-agents have calls of their own.
fn running_key(agent: Option<&str>, call_id: &Arc<str>) -> Arc<str> {
    agent.map_or_else(|| call_id.clone(), |agent| format!("{agent}/{call_id}").into())
}

/// What a call is about.
fn subject_text(request: &ApprovalRequest) -> String {
    match &request.subject {
        CallSubject::Command(text) | CallSubject::File(text) | CallSubject::Url(text) => text.clone(),
        CallSubject::ServerTool(name) => format!("{name} {}", request.args),
        CallSubject::Other => request.args.to_string(),
    }
}

/// Adds a line: one write at the end of the file, so that lines of several processes do not mix.
fn append(data: &Path, entry: &AuditEntry) -> io::Result<()> {
    let [path, before] = FILES.map(|name| data.join(name));
    path.parent().map_or(Ok(()), hardpan_files::create_private_folder)?;
    if fs::metadata(&path).is_ok_and(|file| file.len() > MAX_FILE_BYTES) {
        fs::rename(&path, before)?;
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let line = serde_json::to_string(entry)? + "\n";
    options.open(path)?.write_all(line.as_bytes())
}

/// The lines of the log, oldest first. Those that cannot be read are left out.
pub fn read_audit_log(data: &Path) -> Vec<AuditEntry> {
    let [path, before] = FILES.map(|name| data.join(name));
    let read = |path: &Path| read_small_text(path, 2 * MAX_FILE_BYTES).unwrap_or_default();
    let entries = |text: &str| -> Vec<AuditEntry> {
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    [read(&before), read(&path)].iter().flat_map(|text| entries(text)).collect()
}

#[cfg(test)]
mod tests {
    use hardpan_context::FoundSecret;

    use super::*;

    fn request(command: &str) -> ApprovalRequest {
        let args = serde_json::json!({ "command": command });
        let subject = CallSubject::Command(command.into());
        let (call_id, tool_name) = ("c1".into(), "bash".into());
        ApprovalRequest { call_id, tool_name, args, subject, claim: None, agent: None, handler_reason: None }
    }

    #[test]
    fn a_line_says_who_allowed_what_and_never_a_key() {
        let data = tempfile::tempdir().unwrap();
        let secret = FoundSecret { kind: "key of x".into(), value: "the-key-of-the-test".into() };
        let log = AuditLog::new(Some(data.path()), Path::new("/work"), [secret].into_iter().collect());
        log.allowed(&request("curl -H the-key-of-the-test"), AllowedBy::Rule, Some("bash(curl)".into()));
        log.denied(&request(&"x".repeat(5000)), "the person said no");
        let entries = read_audit_log(data.path());
        let AuditEvent::Allowed { subject, by, rule } = &entries[0].event else { panic!("{entries:?}") };
        assert!(subject.starts_with("curl -H [redacted: key of x "), "{subject}");
        assert_eq!(
            (*by, rule.as_deref(), &*entries[0].workspace),
            (AllowedBy::Rule, Some("bash(curl)"), "/work")
        );
        let AuditEvent::Denied { subject, reason } = &entries[1].event else { panic!("{entries:?}") };
        assert_eq!((subject.chars().count(), reason.as_str()), (MAX_TEXT_CHARS + 19, "the person said no"));
    }

    #[test]
    fn the_log_is_bounded() {
        let data = tempfile::tempdir().unwrap();
        let log = AuditLog::new(Some(data.path()), Path::new("/work"), KnownSecrets::default());
        for file in FILES {
            log.denied(&request("x"), "no");
            let path = data.path().join("log/audit.jsonl");
            fs::write(&path, " ".repeat(9 << 20)).unwrap();
            log.denied(&request(file), "no");
            assert!(fs::metadata(&path).unwrap().len() < 1000);
        }
        assert_eq!(fs::read_dir(data.path().join("log")).unwrap().count(), 2);
    }
}
