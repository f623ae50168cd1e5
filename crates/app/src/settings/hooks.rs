//! `[hooks]` of `config.toml`: shell commands that take part in a conversation.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// The hooks of a conversation, by what they wait for.
pub type HooksConfig = BTreeMap<HookEvent, Vec<HookConfig>>;

/// What a hook waits for. The names are those that hooks of Claude Code have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum HookEvent {
    /// A tool call is about to run.
    PreToolUse,
    /// A tool call has a result.
    PostToolUse,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// The model has nothing more to do.
    Stop,
    /// A conversation begins or is resumed.
    SessionStart,
    /// A conversation is left.
    SessionEnd,
    /// A conversation is about to be compacted.
    PreCompact,
}

impl HookEvent {
    /// Its name in settings and in what hooks read.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::UserPromptSubmit => "UserPromptSubmit",
            HookEvent::Stop => "Stop",
            HookEvent::SessionStart => "SessionStart",
            HookEvent::SessionEnd => "SessionEnd",
            HookEvent::PreCompact => "PreCompact",
        }
    }
}

/// One command, and when it runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The command, for `sh`.
    pub command: String,
    /// The tools that it is about; without one, all of them.
    #[serde(default)]
    pub matcher: ToolMatcher,
    /// After how many seconds it is stopped. Default: 60.
    #[serde(default = "default_timeout", deserialize_with = "deserialize_timeout")]
    pub timeout: Duration,
    /// Whether it runs in the sandbox of the model's commands. Default: true.
    #[serde(default = "default_sandbox")]
    pub sandbox: bool,
}

fn default_timeout() -> Duration {
    Duration::from_secs(60)
}

fn default_sandbox() -> bool {
    true
}

fn deserialize_timeout<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match u64::deserialize(deserializer)? {
        seconds @ 1..=600 => Ok(Duration::from_secs(seconds)),
        seconds => {
            let why = format!("{seconds} is out of range: expected a number of seconds from 1 to 600");
            Err(serde::de::Error::custom(why))
        }
    }
}

/// The names of tools, separated by `|`. `*` stands for any characters, and so does `.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolMatcher(Vec<String>);

/// A matcher that is no list of names.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no list of tools: write names separated by `|`, with `*` for any characters")]
pub struct InvalidMatcher(String);

impl TryFrom<String> for ToolMatcher {
    type Error = InvalidMatcher;

    fn try_from(text: String) -> Result<Self, InvalidMatcher> {
        let names: Vec<String> = text.split('|').map(|name| name.trim().replace(".*", "*")).collect();
        let is_name = |name: &String| name.chars().all(|c| c.is_alphanumeric() || "_-*:/".contains(c));
        if text.trim().is_empty() {
            return Ok(ToolMatcher::default());
        }
        match names.iter().all(|name| !name.is_empty() && is_name(name)) {
            true => Ok(ToolMatcher(names)),
            false => Err(InvalidMatcher(text)),
        }
    }
}

impl ToolMatcher {
    /// Whether a tool with one of these names is meant.
    pub fn matches(&self, names: &[&str]) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| names.iter().any(|name| fits(pattern, name)))
    }
}

/// Whether a pattern with `*` describes a name, whatever their case.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(text: &str) -> ToolMatcher {
        ToolMatcher::try_from(text.to_owned()).expect("a matcher")
    }

    #[test]
    fn a_matcher_names_tools_by_either_name() {
        assert!(matcher("").matches(&["bash", "Bash"]));
        assert!(matcher("*").matches(&["bash"]));
        assert!(matcher("Edit|Write").matches(&["write", "Write"]));
        assert!(matcher("mcp__.*__write*").matches(&["mcp__files__write_file"]));
        assert!(matcher("a*b*a").matches(&["aba"]));
        for (pattern, name) in [("Edit", "edits"), ("Edit|Write", "bash"), ("a*ba", "aba2"), ("ab*ba", "aba")]
        {
            assert!(!matcher(pattern).matches(&[name]), "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_list_of_names_is_an_error() {
        for text in ["Edit|", "(Edit|Write)", "Bash(git *)", "^Bash$"] {
            assert!(ToolMatcher::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
