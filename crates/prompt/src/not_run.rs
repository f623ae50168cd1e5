//! [`NotRunReason`]: why a tool call has a result although its tool did not run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a tool did not run, or not to its end. It is stored with the call's result; the model reads
/// the result's text instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotRunReason {
    /// The person said something else while an earlier call of the same answer ran.
    Steered,
    /// The person stopped the run before the tool started.
    Aborted,
    /// The person stopped the run while the tool was running.
    Stopped,
    /// An event handler blocked the call.
    Blocked {
        /// The handler's words, or how it failed.
        message: String,
    },
    /// The call was not approved.
    Denied {
        /// Who or what decided.
        by: DeniedBy,
        /// Why, in the words that the model reads.
        message: String,
    },
    /// There is no tool of this name.
    UnknownTool,
    /// The tool belongs to the layout, which fills it in with every request.
    FilledByLayout,
    /// The person switched the tool off.
    SwitchedOff,
    /// The call was incomplete, or its arguments were not what a call needs.
    InvalidCall,
    /// The same call had failed too often.
    RepeatedFailure,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

/// Who or what denied a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeniedBy {
    /// The person who was asked.
    Person,
    /// A rule of the settings.
    Rule,
    /// Nobody was there to be asked, and no rule allows the call.
    Default,
}

impl NotRunReason {
    /// What became of the tool, after its name: "was not run: …".
    pub fn summary(&self) -> &'static str {
        match self {
            NotRunReason::Steered => "was not run: something else was said",
            NotRunReason::Aborted => "was not run: the agent was stopped before",
            NotRunReason::Stopped => "was stopped while it ran",
            NotRunReason::Blocked { .. } => "was not run: a handler blocked it",
            NotRunReason::Denied { by: DeniedBy::Person, .. } => "was not run: the user denied it",
            NotRunReason::Denied { by: DeniedBy::Rule, .. } => "was not run: a rule denies it",
            NotRunReason::Denied { by: DeniedBy::Default, .. } => "was not run: nobody was there to allow it",
            NotRunReason::UnknownTool => "was not run: there is no such tool",
            NotRunReason::FilledByLayout => "was not run: every request fills it in",
            NotRunReason::SwitchedOff => "was not run: it is switched off",
            NotRunReason::InvalidCall => "was not run: the call was not valid",
            NotRunReason::RepeatedFailure => "was not run: the same call had failed too often",
            NotRunReason::Other => "was not run",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reason_is_an_object_with_a_code_and_a_later_versions_reason_can_be_read() {
        let denied = NotRunReason::Denied { by: DeniedBy::Rule, message: "no rm".into() };
        let json = json!({"reason": "denied", "by": "rule", "message": "no rm"});
        assert_eq!(serde_json::to_value(&denied).unwrap(), json);
        assert_eq!(serde_json::from_value::<NotRunReason>(json).unwrap(), denied);
        assert_eq!(serde_json::to_value(NotRunReason::Steered).unwrap(), json!({"reason": "steered"}));
        let later = json!({"reason": "on_strike", "until": "noon"});
        assert_eq!(serde_json::from_value::<NotRunReason>(later).unwrap(), NotRunReason::Other);
    }
}
