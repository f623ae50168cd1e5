//! Which files the model knows whole, and the message that told it.
//!
//! A file that was read whole, written, or edited when it was known, is part of what the model goes by. `strata` keeps it true: a change
//! from outside is told as a diff, and a fold puts the current body in place of all the older ones.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, MessageId};
use serde_json::Value;

/// The files that the model knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knowledge(BTreeMap<String, Known>);

/// A file that the model knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The hash of the content it knows.
    pub hash: Hash,
    /// The message that told it; none where it stands in the context by itself.
    pub message: Option<MessageId>,
    /// Whether it has changed since the model first saw it.
    pub changed: bool,
}

impl Knowledge {
    /// Takes in what a call that went well left behind: the details of its result.
    pub fn note(&mut self, tool: &str, details: &Value, message: &MessageId) {
        let Some(path) = details["path"].as_str() else { return };
        let Ok(hash) = serde_json::from_value::<Hash>(details["hash"].clone()) else { return };
        let before = self.0.get(path);
        let knows = match tool {
            "read" => details["shown"][0] == 1 && details["shown"][1] == details["lines"],
            "write" => true,
            "edit" => before.is_some(),
            _ => false,
        };
        if knows {
            let changed = before.is_some_and(|known| known.changed || known.hash != hash);
            self.0.insert(path.to_owned(), Known { hash, message: Some(message.clone()), changed });
        }
    }

    /// Takes in that a file stands in the context: whoever edits it knows all of it.
    pub fn shown(&mut self, path: &str, hash: Hash) {
        let known = self.0.entry(path.to_owned());
        known.or_insert(Known { hash, message: None, changed: false });
    }

    /// What is known of a file.
    pub fn of(&self, path: &str) -> Option<&Known> {
        self.0.get(path)
    }

    /// The files that messages told of, by path.
    pub fn files(&self) -> impl Iterator<Item = (&String, &Known)> {
        self.0.iter().filter(|(_, known)| known.message.is_some())
    }

    /// Forgets what no message says any more.
    pub fn forget_lost(&mut self, messages: &BTreeSet<&MessageId>) {
        self.0.retain(|_, known| known.message.as_ref().is_some_and(|message| messages.contains(message)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn details(path: &str, content: &str, shown: [u32; 2]) -> Value {
        json!({"path": path, "hash": Hash::of(content.as_bytes()), "lines": 10, "shown": shown})
    }

    #[test]
    fn a_file_is_known_when_all_of_it_was_shown() {
        let mut knowledge = Knowledge::default();
        knowledge.note("read", &details("a", "x", [1, 5]), &"m1".into());
        assert!(knowledge.of("a").is_none());
        knowledge.note("read", &details("a", "x", [1, 10]), &"m2".into());
        assert_eq!(
            knowledge.of("a").map(|known| (known.message.clone(), known.changed)),
            Some((Some("m2".into()), false))
        );
        knowledge.note("edit", &details("a", "y", [1, 1]), &"m3".into());
        assert_eq!(
            knowledge.of("a").map(|known| (known.message.clone(), known.changed)),
            Some((Some("m3".into()), true))
        );
        knowledge.forget_lost(&BTreeSet::from([&"m2".into()]));
        assert!(knowledge.of("a").is_none());
    }

    #[test]
    fn an_edit_of_a_file_that_was_never_shown_does_not_make_it_known() {
        let mut knowledge = Knowledge::default();
        knowledge.note("edit", &details("a", "y", [1, 1]), &"m1".into());
        knowledge.note("grep", &details("b", "y", [1, 10]), &"m2".into());
        assert_eq!(knowledge.files().count(), 0);
        knowledge.shown("a", Hash::of(b"x"));
        knowledge.note("edit", &details("a", "y", [1, 1]), &"m3".into());
        assert_eq!(knowledge.of("a").map(|known| known.changed), Some(true), "it stood in the context");
        knowledge.note("write", &details("c", "y", [0, 0]), &"m3".into());
        assert!(knowledge.of("c").is_some());
    }
}
