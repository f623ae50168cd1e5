//! [`TrackedKey`]: what the tracker follows.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hardpan_prompt::{ItemKind, MessageId, key_name};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Something that the tracker follows. In JSON and for people it is a string: `file:src/a.rs`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackedKey {
    /// A file, by its path: `file:PATH`.
    File(Arc<str>),
    /// An exchange of the conversation, by the id of its first message: `history:ID`.
    Exchange(Arc<str>),
    /// The symbol entry of a file, by the file's path: `symbol:PATH`.
    Symbols(Arc<str>),
}

impl TrackedKey {
    /// The key of an item, by its kind and its own key, if its kind is tracked.
    pub fn of_item(kind: ItemKind, key: &str) -> Option<Self> {
        match kind {
            ItemKind::File => Some(TrackedKey::File(key_name(key).into())),
            ItemKind::Symbols => Some(TrackedKey::Symbols(key_name(key).into())),
            _ => None,
        }
    }

    /// The key of the exchange that this message begins.
    pub fn of_exchange(first: &MessageId) -> Self {
        TrackedKey::Exchange(first.0.clone())
    }

    /// The path of a file; none for anything else.
    pub fn file_path(&self) -> Option<&str> {
        if let TrackedKey::File(path) = self { Some(path) } else { None }
    }

    /// The path of a symbol entry's file; none for anything else.
    pub fn symbols_path(&self) -> Option<&str> {
        if let TrackedKey::Symbols(path) = self { Some(path) } else { None }
    }

    /// Whether it is an exchange of the conversation.
    pub fn is_exchange(&self) -> bool {
        matches!(self, TrackedKey::Exchange(_))
    }
}

/// A tracker's key that is none of the known kinds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no key of the tracker: file:PATH, symbol:PATH or history:ID")]
pub struct UnknownTrackedKey(String);

impl FromStr for TrackedKey {
    type Err = UnknownTrackedKey;
    fn from_str(key: &str) -> Result<Self, Self::Err> {
        match key.split_once(':') {
            Some(("file", path)) => Ok(TrackedKey::File(path.into())),
            Some(("history", id)) => Ok(TrackedKey::Exchange(id.into())),
            Some(("symbol", path)) => Ok(TrackedKey::Symbols(path.into())),
            _ => Err(UnknownTrackedKey(key.to_owned())),
        }
    }
}

impl fmt::Display for TrackedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrackedKey::File(path) => write!(f, "file:{path}"),
            TrackedKey::Exchange(id) => write!(f, "history:{id}"),
            TrackedKey::Symbols(path) => write!(f, "symbol:{path}"),
        }
    }
}

impl Serialize for TrackedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TrackedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        key.parse().map_err(serde::de::Error::custom)
    }
}
