//! [`HookOutput`]: what a hook wants, from its exit code and what it printed.

use hardpan_sandbox::{ProcessEnd, ProgramOutput};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The exit code that objects; the reason is on standard error.
const OBJECTS: i32 = 2;

/// What a hook wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// Why what it was asked about should not happen.
    pub objection: Option<String>,
    /// Why a person is to be asked about the call.
    pub reason_to_ask: Option<String>,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user.
    pub message: Option<String>,
    /// Why the run should end.
    pub stop: Option<String>,
    /// Arguments that the call should have instead of those that it has.
    pub updated_input: Option<Map<String, Value>>,
}

/// Why a hook said nothing that can be used.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It could not be started.
    #[error("it does not start: {0}")]
    Start(#[from] std::io::Error),
    /// It took too long.
    #[error("it was stopped after {0} s")]
    Timeout(u64),
    /// It printed too much.
    #[error("it was stopped: it printed more than {0} bytes")]
    TooMuch(usize),
    /// It failed.
    #[error("it ended with {end}{}", if .errors.is_empty() { String::new() } else { format!(": {errors}") })]
    Failed {
        /// Its exit code or signal.
        end: String,
        /// The end of what it printed to standard error.
        errors: String,
    },
    /// What it printed begins as JSON, and says nothing that is known.
    #[error("its JSON cannot be used: {0}")]
    InvalidJson(String),
    /// It wants other arguments that are none.
    #[error("its `updatedInput` is not an object with arguments")]
    InvalidInput,
    /// What waited for it was stopped.
    #[error("it was stopped")]
    Stopped,
}

/// The JSON that a hook may print.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Printed {
    r#continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Specific,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

impl HookOutput {
    /// What a hook that ran to its end wants.
    pub fn read(output: &ProgramOutput) -> Result<Self, HookError> {
        let (printed, errors) = (text(&output.stdout), text(&output.stderr));
        match output.end {
            ProcessEnd::Exit(0) => HookOutput::of_text(&printed),
            ProcessEnd::Exit(OBJECTS) => {
                let reason = if errors.is_empty() { "a hook objects".to_owned() } else { errors };
                Ok(HookOutput { objection: Some(reason), ..HookOutput::default() })
            }
            ProcessEnd::Exit(code) => {
                Err(HookError::Failed { end: format!("exit code {code}"), errors: last_line(&errors) })
            }
            ProcessEnd::Signal(signal) => {
                Err(HookError::Failed { end: format!("signal {signal}"), errors: last_line(&errors) })
            }
            ProcessEnd::Unknown => Err(HookError::Stopped),
        }
    }

    fn of_text(printed: &str) -> Result<Self, HookError> {
        if !printed.starts_with('{') {
            let context = (!printed.is_empty()).then(|| printed.to_owned());
            return Ok(HookOutput { context, ..HookOutput::default() });
        }
        let json: Value =
            serde_json::from_str(printed).map_err(|error| HookError::InvalidJson(error.to_string()))?;
        check_names(&json)?;
        let json: Printed =
            serde_json::from_value(json).map_err(|error| HookError::InvalidJson(error.to_string()))?;
        check_word("decision", json.decision.as_deref(), &["block", "approve"])?;
        let specific = json.hook_specific_output;
        let updated_input = match specific.updated_input {
            None => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(_) => return Err(HookError::InvalidInput),
        };
        let decision = specific.permission_decision.as_deref();
        check_word("permissionDecision", decision, &["allow", "deny", "ask"])?;
        let is_denied = decision == Some("deny");
        let objects = is_denied || json.decision.as_deref() == Some("block");
        let given = specific.permission_decision_reason;
        let reason_to_ask = (decision == Some("ask"))
            .then(|| given.clone().unwrap_or_else(|| "a hook wants you to decide".to_owned()));
        let reason = given.filter(|_| is_denied).or(json.reason);
        Ok(HookOutput {
            reason_to_ask,
            objection: objects.then(|| reason.unwrap_or_else(|| "a hook objects".to_owned())),
            context: specific.additional_context.filter(|text| !text.is_empty()),
            message: json.system_message,
            stop: (json.r#continue == Some(false))
                .then(|| json.stop_reason.unwrap_or_else(|| "a hook stopped it".to_owned())),
            updated_input,
        })
    }
}

/// A decision in another place or spelling may have been meant to object.
fn check_names(json: &Value) -> Result<(), HookError> {
    let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let names = json.as_object().into_iter().flat_map(Map::keys);
    for name in names.filter(|name| *name != "decision") {
        match &*plain(name) {
            "decision" | "block" | "blocked" | "deny" | "denied" => {
                return Err(HookError::InvalidJson(format!("{name:?} is no field; \"decision\" is one")));
            }
            "permissiondecision" => {
                return Err(HookError::InvalidJson(format!("{name:?} belongs into \"hookSpecificOutput\"")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A word that is not known may have been meant to object.
fn check_word(field: &str, word: Option<&str>, known: &[&str]) -> Result<(), HookError> {
    match word {
        Some(word) if !known.contains(&word) => {
            Err(HookError::InvalidJson(format!("{field} is {word:?}, and not {}", known.join(" or "))))
        }
        _ => Ok(()),
    }
}

fn text(bytes: &[u8]) -> String {
    // Some shells begin with a mark for the order of bytes.
    String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').trim().to_owned()
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> ProgramOutput {
        ProgramOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
            end: ProcessEnd::Exit(code),
            truncated: false,
            timed_out: false,
        }
    }

    fn objection(reason: &str) -> HookOutput {
        HookOutput { objection: Some(reason.into()), ..HookOutput::default() }
    }

    #[test]
    fn a_hook_objects_by_code_or_by_json() {
        assert_eq!(HookOutput::read(&ended(2, "", "no rm\n")).expect("read"), objection("no rm"));
        let old = r#"{"decision": "block", "reason": "no rm"}"#;
        assert_eq!(HookOutput::read(&ended(0, old, "")).expect("read"), objection("no rm"));
        let new = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "no rm"}}"#;
        assert_eq!(HookOutput::read(&ended(0, new, "")).expect("read"), objection("no rm"));
    }

    #[test]
    fn a_hook_that_allows_only_does_not_object() {
        let allow = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
        assert_eq!(HookOutput::read(&ended(0, allow, "")).expect("read"), HookOutput::default());
        assert_eq!(HookOutput::read(&ended(0, "", "chatter")).expect("read"), HookOutput::default());
    }

    #[test]
    fn a_hook_can_leave_the_decision_to_the_person() {
        let ask =
            r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "look"}}"#;
        let expected = HookOutput { reason_to_ask: Some("look".into()), ..HookOutput::default() };
        assert_eq!(HookOutput::read(&ended(0, ask, "")).expect("read"), expected);
        let ask = r#"{"hookSpecificOutput": {"permissionDecision": "ask"}}"#;
        assert!(HookOutput::read(&ended(0, ask, "")).expect("read").reason_to_ask.is_some());
    }

    #[test]
    fn text_is_context_and_failures_are_errors() {
        assert_eq!(
            HookOutput::read(&ended(0, "It rains.\n", "")).expect("read").context.as_deref(),
            Some("It rains.")
        );
        for printed in [
            "{ no JSON",
            r#"{"decision": "block""#,
            r#"{"decision": 7}"#,
            r#"{"decision": "deny"}"#,
            r#"{"hookSpecificOutput": "x", "decision": "block"}"#,
            r#"{"hookSpecificOutput": {"permissionDecision": "Deny"}}"#,
            r#"{"permissionDecision": "deny"}"#,
            r#"{"Decision": "block"}"#,
            r#"{"block": true}"#,
        ] {
            let read = HookOutput::read(&ended(0, printed, ""));
            assert!(matches!(read, Err(HookError::InvalidJson(_))), "{printed}: {read:?}");
        }
        let error = HookOutput::read(&ended(1, "", "first\nNameError: x")).expect_err("fails");
        assert_eq!(error.to_string(), "it ended with exit code 1: NameError: x");
        let changed = r#"{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": ["ls"]}}"#;
        assert!(matches!(HookOutput::read(&ended(0, changed, "")), Err(HookError::InvalidInput)));
    }
}
