//! [`CallIds`]: which response answers which call. Ids are optional in this protocol: without them,
//! name and order decide.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

/// The calls of a conversation, as far as it has been read.
#[derive(Debug, Default)]
pub struct CallIds {
    used: BTreeSet<Arc<str>>,
    /// The calls of the last message with calls that no response has answered.
    open: Vec<OpenCall>,
    /// The responses to that message, as they came.
    responses: Vec<Value>,
}

#[derive(Debug)]
struct OpenCall {
    /// The id in the request; empty if it has none.
    given: String,
    id: Arc<str>,
    name: String,
}

impl CallIds {
    /// A new message of the model: responses belong to its calls from now on.
    pub fn begin_step(&mut self) {
        self.open.clear();
        self.responses.clear();
    }

    /// Whether a response with this id came before, word for word. Google's own client sends all
    /// responses twice after it resumed a session, and does not fail by it.
    pub fn is_repeated(&mut self, response: &Value) -> bool {
        let has_id = response["id"].as_str().is_some_and(|id| !id.is_empty());
        if has_id && self.responses.contains(response) {
            return true;
        }
        self.responses.push(response.clone());
        false
    }

    /// Adds a call, and returns an id that no other call has. `place`: message and part.
    pub fn add_call(&mut self, given: &str, name: &str, place: (usize, usize)) -> Arc<str> {
        let is_free = !given.is_empty() && !self.used.contains(given);
        let id: Arc<str> =
            if is_free { given.into() } else { format!("{given}call_{}_{}", place.0, place.1).into() };
        self.used.insert(id.clone());
        self.open.push(OpenCall { given: given.to_owned(), id: id.clone(), name: name.to_owned() });
        id
    }

    /// The id of the call that a response answers: the one with its id, or the first open one with
    /// its name. A response that answers nothing keeps its id, and the count will not be right.
    pub fn answer(&mut self, given: &str, name: &str) -> Arc<str> {
        let by_id = self.open.iter().position(|call| !given.is_empty() && call.given == given);
        match by_id.or_else(|| self.open.iter().position(|call| call.name == name)) {
            Some(at) => self.open.remove(at).id,
            None => format!("{given}_unknown").into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_find_their_calls_by_id_or_by_name_and_order() {
        let mut ids = CallIds::default();
        let calls = [("a", "f"), ("", "f"), ("", "g")];
        let known: Vec<Arc<str>> =
            calls.iter().enumerate().map(|(part, (id, name))| ids.add_call(id, name, (1, part))).collect();
        assert_eq!(ids.answer("", "g"), known[2]);
        assert_eq!(ids.answer("a", "f"), known[0]);
        assert_eq!(ids.answer("foreign", "f"), known[1]);
        assert!(!known.contains(&ids.answer("", "f")));
    }

    #[test]
    fn only_the_same_response_is_a_repetition() {
        let mut ids = CallIds::default();
        let response = serde_json::json!({"id": "a", "name": "f", "response": {"output": "x"}});
        assert!(!ids.is_repeated(&response) && ids.is_repeated(&response));
        assert!(!ids.is_repeated(&serde_json::json!({"id": "a", "name": "f", "response": {"output": "y"}})));
        let nameless = serde_json::json!({"name": "f", "response": {}});
        assert!(!ids.is_repeated(&nameless) && !ids.is_repeated(&nameless));
        ids.begin_step();
        assert!(!ids.is_repeated(&response));
    }

    #[test]
    fn an_id_that_is_used_again_becomes_another() {
        let mut ids = CallIds::default();
        let first = ids.add_call("a", "f", (1, 0));
        ids.begin_step();
        let second = ids.add_call("a", "f", (3, 0));
        assert_ne!(first, second);
        assert_eq!(ids.answer("a", "f"), second);
    }
}
