//! [`FileKnowledge`]: which files the model has seen whole, and in which message.
//!
//! The model relies on a file that it read whole, wrote, or edited while it knew it. `strata` keeps
//! such a file true: an outside change is shown as a diff, and a fold puts the current content in
//! place of all older ones.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, MessageId};
use serde_json::Value;

/// The files that the model has seen whole, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileKnowledge(BTreeMap<String, KnownFile>);

/// What the model knows of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Hash of the content that the model has seen.
    pub hash: Hash,
    /// The tool result that showed it; `None` if it is in the context as an item.
    pub message: Option<MessageId>,
    /// Whether the content has changed since the model first saw the file.
    pub changed: bool,
}

impl FileKnowledge {
    /// Records what a successful tool call showed, from the details of its result. A partial read
    /// does not count.
    pub fn record_result(&mut self, tool: &str, details: &Value, message: &MessageId) {
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
            self.0.insert(path.to_owned(), KnownFile { hash, message: Some(message.clone()), changed });
        }
    }

    /// Records that a file is in the context as an item, so that an edit of it keeps it known.
    pub fn record_shown(&mut self, path: &str, hash: Hash) {
        let known = self.0.entry(path.to_owned());
        known.or_insert(KnownFile { hash, message: None, changed: false });
    }

    /// What the model knows of a file.
    pub fn get(&self, path: &str) -> Option<&KnownFile> {
        self.0.get(path)
    }

    /// The files that tool results showed, by path.
    pub fn files(&self) -> impl Iterator<Item = (&String, &KnownFile)> {
        self.0.iter().filter(|(_, known)| known.message.is_some())
    }

    /// Forgets files whose message is no longer in the conversation.
    pub fn retain_messages(&mut self, messages: &BTreeSet<&MessageId>) {
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
        let mut knowledge = FileKnowledge::default();
        knowledge.record_result("read", &details("a", "x", [1, 5]), &"m1".into());
        assert!(knowledge.get("a").is_none());
        knowledge.record_result("read", &details("a", "x", [1, 10]), &"m2".into());
        assert_eq!(
            knowledge.get("a").map(|known| (known.message.clone(), known.changed)),
            Some((Some("m2".into()), false))
        );
        knowledge.record_result("edit", &details("a", "y", [1, 1]), &"m3".into());
        assert_eq!(
            knowledge.get("a").map(|known| (known.message.clone(), known.changed)),
            Some((Some("m3".into()), true))
        );
        knowledge.retain_messages(&BTreeSet::from([&"m2".into()]));
        assert!(knowledge.get("a").is_none());
    }

    #[test]
    fn an_edit_of_a_file_that_was_never_shown_does_not_make_it_known() {
        let mut knowledge = FileKnowledge::default();
        knowledge.record_result("edit", &details("a", "y", [1, 1]), &"m1".into());
        knowledge.record_result("grep", &details("b", "y", [1, 10]), &"m2".into());
        assert_eq!(knowledge.files().count(), 0);
        knowledge.record_shown("a", Hash::of(b"x"));
        knowledge.record_result("edit", &details("a", "y", [1, 1]), &"m3".into());
        assert_eq!(knowledge.get("a").map(|known| known.changed), Some(true), "it stood in the context");
        knowledge.record_result("write", &details("c", "y", [0, 0]), &"m3".into());
        assert!(knowledge.get("c").is_some());
    }
}
