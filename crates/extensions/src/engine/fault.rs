//! What goes wrong in a script, and where.

use std::fmt;
use std::time::Duration;

use rquickjs::{Ctx, Value as JsValue};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An error that the script's code raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFault {
    /// `TypeError: x is not a function`
    pub message: String,
    /// The place in the extension's own source: `guard.ts:12:5`.
    #[serde(default)]
    pub place: Option<String>,
    /// The error's own message, without its class: `x is not a function`. Absent where it has none.
    #[serde(default)]
    pub text: Option<String>,
}

impl ScriptFault {
    /// A fault that no error of the script stands for.
    pub fn new(message: impl Into<String>) -> Self {
        ScriptFault { message: message.into(), place: None, text: None }
    }
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} ({place})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Why a script did not answer.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// Its code raised an error.
    #[error("{0}")]
    Raised(ScriptFault),
    /// A slice took longer than it may.
    #[error("it computed for more than {} s without a pause", .0.as_secs_f64())]
    TooLong(Duration),
    /// Its result is larger than it may be.
    #[error("its result has {bytes} bytes; at most {limit} are taken")]
    TooLarge {
        /// Length of the result as JSON.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Its result has more values than it may have.
    #[error("its result has {values} values; at most {limit} are taken")]
    TooManyValues {
        /// Objects, arrays and what they hold.
        values: usize,
        /// The limit.
        limit: usize,
    },
    /// Its result is no JSON.
    #[error("its result cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// It was stopped, or never began.
    #[error("it has been stopped")]
    Stopped,
    /// The engine could not be set up.
    #[error("the engine could not be started: {0}")]
    Engine(String),
    /// There is no thread for it.
    #[error("no thread can be started: {0}")]
    Thread(#[source] std::io::Error),
}

impl ScriptError {
    /// What a model is told of it: of an error that the script raised, the message alone.
    pub fn model_text(&self) -> String {
        match self {
            ScriptError::Raised(ScriptFault { text: Some(text), .. }) => text.clone(),
            ScriptError::Raised(fault) => fault.message.clone(),
            other => other.to_string(),
        }
    }
}

/// The error that the engine holds after a call failed.
pub fn caught_fault(ctx: &Ctx<'_>, error: &rquickjs::Error) -> ScriptFault {
    if error.is_exception() { fault_of(&ctx.catch()) } else { ScriptFault::new(error.to_string()) }
}

/// A value that was thrown, or that a promise was rejected with, in words.
pub fn fault_of(value: &JsValue<'_>) -> ScriptFault {
    // The engine has no memory for an error about its memory.
    if value.is_null() {
        return ScriptFault::new("null was thrown, as it is when there is no memory left");
    }
    let Some(object) = value.as_object() else {
        let text = value.as_string().and_then(|text| text.to_string().ok());
        let message = text.unwrap_or_else(|| format!("a {} was thrown", value.type_name()));
        return ScriptFault::new(message);
    };
    let text = |name: &str| object.get::<_, Option<String>>(name).ok().flatten();
    let name = text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| "Error".into());
    let own = text("message").filter(|message| !message.is_empty());
    let message = own.as_ref().map_or_else(|| name.clone(), |own| format!("{name}: {own}"));
    ScriptFault { message, place: text("stack").and_then(|stack| first_place(&stack)), text: own }
}

/// The first line of a stack that lies in a file: `    at run (/a/b/guard.ts:12:5)`.
fn first_place(stack: &str) -> Option<String> {
    stack.lines().find_map(|line| {
        let place = line.trim().strip_prefix("at ")?.trim_end_matches(')');
        let place = place.rsplit('(').next().unwrap_or(place);
        let name = place.strip_prefix('/')?.rsplit('/').next()?;
        name.contains(':').then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::first_place;

    #[test]
    fn the_place_of_a_fault_is_the_first_line_of_a_file() {
        let stack = "    at now (hardpan:api:3:1)\n    at run (/work/ext/guard.ts:12:5)\n    at <anonymous> (/work/ext/b.ts:1:1)\n";
        assert_eq!(first_place(stack).as_deref(), Some("guard.ts:12:5"));
        assert_eq!(first_place("    at /work/a.ts:2:7\n").as_deref(), Some("a.ts:2:7"));
        assert_eq!(first_place("    at now (native)\n"), None);
    }
}
