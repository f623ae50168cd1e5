//! [`PanelIds`]: ids that stay the same for the life of a conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The first number for panels without a fixed id: P1 to P9 are for the kinds that have one.
pub const FIRST_FREE_NUMBER: u32 = 10;

/// Which id each panel and each open file has. An id is never given to another one, also after its
/// panel was closed; what is opened again gets its old id back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PanelIds(BTreeMap<Arc<str>, u32>);

impl PanelIds {
    /// The id of a key, which it has from now on: `P10`.
    pub fn assign(&mut self, key: &str) -> Arc<str> {
        let next = self.0.values().max().map_or(FIRST_FREE_NUMBER, |last| last + 1);
        let number = *self.0.entry(key.into()).or_insert(next);
        format!("P{number}").into()
    }

    /// The key that has an id.
    pub fn key_of(&self, id: &str) -> Option<&Arc<str>> {
        let number: u32 = id.strip_prefix(['P', 'p'])?.parse().ok()?;
        self.0.iter().find(|(_, known)| **known == number).map(|(key, _)| key)
    }

    /// Whether no id was given yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_with_its_key_and_is_never_given_again() {
        let mut ids = PanelIds::default();
        let given = ["file:a", "file:b", "console:1", "file:a"].map(|key| ids.assign(key).to_string());
        assert_eq!(given, ["P10", "P11", "P12", "P10"]);
        let stored = serde_json::to_string(&ids).unwrap();
        let mut restored: PanelIds = serde_json::from_str(&stored).unwrap();
        assert_eq!(&*restored.assign("file:c"), "P13");
        assert_eq!(&*restored.assign("file:b"), "P11");
        assert_eq!(restored.key_of("p11").map(|key| &**key), Some("file:b"));
        assert_eq!(restored.key_of("P9"), None);
        assert_eq!(restored.key_of("Pé"), None);
    }
}
