//! [`Keymap`]: one table of what keys do, from which help, hints and `docs/keys.md` are made.
//!
//! An action belongs to one [`KeyLayer`]. A state of the face has a few layers, the most special one
//! first, and a key means what the first layer that knows it says. Within a layer a key has one
//! meaning: another is an error, also if a user's settings ask for it.

mod action; // Action: the table
mod docs; // docs/keys.md
mod key_press; // KeyPress: a key with its modifiers
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

pub use action::{Action, HelpGroup, KeyLayer};
pub use docs::keys_document;
pub use key_press::KeyPress;

/// One or two keys in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeySequence {
    first: KeyPress,
    second: Option<KeyPress>,
}

impl KeySequence {
    /// Reads what settings and the table contain: `ctrl-x m`, `alt-enter`, `f2`, `y`.
    pub fn parse(text: &str) -> Result<Self, KeymapError> {
        let invalid = || KeymapError::InvalidKey { text: text.to_owned() };
        let mut keys = text.split(' ').map(KeyPress::parse);
        let first = keys.next().flatten().ok_or_else(invalid)?;
        let second = keys.next().map(|key| key.ok_or_else(invalid)).transpose()?;
        if keys.next().is_some() {
            return Err(invalid());
        }
        Ok(KeySequence { first, second })
    }
}

impl std::fmt::Display for KeySequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.first)?;
        self.second.map_or(Ok(()), |second| write!(f, " {second}"))
    }
}

/// Why keys cannot be mapped as asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeymapError {
    /// No action has this name.
    #[error("there is no action \"{name}\" to give a key to; `/keys` lists them")]
    UnknownAction {
        /// The name as given.
        name: String,
    },
    /// The text names no key.
    #[error("\"{text}\" is no key: write for example ctrl-x m, alt-enter, f2 or y")]
    InvalidKey {
        /// The text as given.
        text: String,
    },
    /// A key would mean two things at once.
    #[error("{key} cannot mean both \"{first}\" and \"{second}\"")]
    Conflict {
        /// The key, or the key that the other sequence begins with.
        key: String,
        /// Name of an action.
        first: &'static str,
        /// Name of the other action.
        second: &'static str,
    },
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMeaning {
    /// It does something.
    Action(Action),
    /// It begins a sequence: the next key decides.
    Prefix,
    /// Nothing; a character is text.
    None,
}

/// Which keys do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    bindings: BTreeMap<(KeyLayer, KeySequence), Action>,
    /// The keys of each action, in the order given.
    keys: BTreeMap<Action, Vec<KeySequence>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap::new(&BTreeMap::new()).unwrap_or(Keymap { bindings: BTreeMap::new(), keys: BTreeMap::new() })
    }
}

impl Keymap {
    /// The default keys, with a user's own: the keys of an action by its name replace its defaults.
    pub fn new(own: &BTreeMap<String, Vec<String>>) -> Result<Self, KeymapError> {
        if let Some(name) = own.keys().find(|name| Action::by_name(name).is_none()) {
            return Err(KeymapError::UnknownAction { name: name.clone() });
        }
        let mut keymap = Keymap { bindings: BTreeMap::new(), keys: BTreeMap::new() };
        for action in Action::ALL {
            let keys: Vec<KeySequence> = match own.get(action.name()) {
                Some(keys) => keys.iter().map(|key| KeySequence::parse(key)).collect::<Result<_, _>>()?,
                None => action
                    .default_keys()
                    .iter()
                    .map(|key| KeySequence::parse(key))
                    .collect::<Result<_, _>>()?,
            };
            for key in &keys {
                keymap.bind(action, key)?;
            }
            keymap.keys.insert(action, keys);
        }
        Ok(keymap)
    }

    fn bind(&mut self, action: Action, key: &KeySequence) -> Result<(), KeymapError> {
        let layer = action.layer();
        let clashes = |(known_layer, known): &(KeyLayer, KeySequence)| {
            let is_prefix = known.first == key.first && (known.second.is_none() != key.second.is_none());
            *known_layer == layer && (known == key || is_prefix)
        };
        if let Some((_, other)) = self.bindings.iter().find(|(known, _)| clashes(known)) {
            let key = key.to_string();
            return Err(KeymapError::Conflict { key, first: other.name(), second: action.name() });
        }
        self.bindings.insert((layer, key.clone()), action);
        Ok(())
    }

    /// What a key means where these layers are active, the most special one first. `prefix` is the
    /// key before it, if that began a sequence.
    pub fn meaning(&self, layers: &[KeyLayer], prefix: Option<KeyPress>, key: KeyPress) -> KeyMeaning {
        let sequence = match prefix {
            Some(first) => KeySequence { first, second: Some(key) },
            None => KeySequence { first: key, second: None },
        };
        for layer in layers {
            if let Some(action) = self.bindings.get(&(*layer, sequence.clone())) {
                return KeyMeaning::Action(*action);
            }
            let begins = |(known, keys): &(KeyLayer, KeySequence)| {
                known == layer && keys.first == key && keys.second.is_some()
            };
            if prefix.is_none() && self.bindings.keys().any(begins) {
                return KeyMeaning::Prefix;
            }
        }
        KeyMeaning::None
    }

    /// The action that a key does or begins somewhere in the page or the full screen; none if it is free.
    pub fn action_of(&self, key: KeyPress) -> Option<Action> {
        let found = self.bindings.iter().find(|((_, keys), _)| keys.first == key);
        found.map(|(_, action)| *action)
    }

    /// The keys of an action, for people.
    pub fn keys(&self, action: Action) -> Vec<String> {
        self.keys.get(&action).into_iter().flatten().map(ToString::to_string).collect()
    }

    /// The first key of an action, for a hint; empty if it has none.
    pub fn hint(&self, action: Action) -> String {
        self.keys(action).into_iter().next().unwrap_or_default()
    }

    /// Each group with the keys and the words of its most used actions: the help of `?`.
    pub fn help(&self) -> Vec<(HelpGroup, Vec<(String, &'static str)>)> {
        let items = |group: HelpGroup| {
            let shown = Action::ALL.into_iter().filter(move |action| action.help_group() == Some(group));
            shown.map(|action| (self.hint(action), action.short_help())).collect()
        };
        HelpGroup::ALL.into_iter().map(|group| (group, items(group))).collect()
    }
}
