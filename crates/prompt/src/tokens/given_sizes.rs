//! [`GivenSizes`]: sizes that are known from elsewhere, in place of counts.

#![expect(clippy::disallowed_types, reason = "sizes are looked up and never iterated")]

use std::collections::HashMap;

use crate::{Hash, Json, Text};

/// Token counts of texts that somebody else has measured, such as the bill of a recorded request. A
/// [`TokenCounter`](crate::TokenCounter) that is given them counts nothing that it finds here, and
/// scales its counts of everything else.
#[derive(Clone, Debug)]
pub struct GivenSizes {
    sizes: HashMap<Hash, u32>,
    scale: f64,
}

impl GivenSizes {
    /// No sizes yet. What is counted all the same is multiplied by `scale`.
    pub fn new(scale: f64) -> Self {
        GivenSizes { sizes: HashMap::new(), scale }
    }

    /// Gives the size of a text, wherever it is a segment of its own.
    pub fn set_text(&mut self, text: &Text, tokens: usize) {
        self.sizes.insert(text.hash(), clamp(tokens));
    }

    /// Gives the size of a call: its name and its arguments.
    pub fn set_call(&mut self, name: &str, arguments: &Json, tokens: usize) {
        self.sizes.insert(call_key(name, arguments.hash()), clamp(tokens));
    }

    pub(super) fn text(&self, hash: Hash) -> Option<u32> {
        self.sizes.get(&hash).copied()
    }

    pub(super) fn call(&self, name: &str, arguments: Hash) -> Option<u32> {
        self.sizes.get(&call_key(name, arguments)).copied()
    }

    pub(super) fn scale(&self, counted: usize) -> u32 {
        (counted as f64 * self.scale).round() as u32
    }
}

fn clamp(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

fn call_key(name: &str, arguments: Hash) -> Hash {
    Hash::chain([Hash::of(b"call"), Hash::of(name.as_bytes()), arguments])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemKind, Origin, Segment, TokenCounter, Vocabulary};

    #[test]
    fn a_given_size_counts_and_everything_else_is_scaled() {
        let known = Text::new("a text of some length");
        let other = Text::new("one two three four");
        let plain = TokenCounter::new(Vocabulary::O200k).count(&other);
        let mut sizes = GivenSizes::new(2.0);
        sizes.set_text(&known, 700);
        let counter = TokenCounter::with_sizes(Vocabulary::O200k, sizes);
        assert_eq!((counter.count(&known), counter.count(&other)), (700, 2 * plain));
        let segment = |text: &Text| Segment::new(text.clone(), Origin::rule(ItemKind::History, "test"));
        let counts = counter.count_segments(&[segment(&known), segment(&other)]);
        assert_eq!(*counts, [700, 2 * plain as u32], "each by itself, also side by side");
    }

    #[test]
    fn calls_have_given_sizes_too() {
        let arguments = Json::new(&serde_json::json!({"path": "a"}));
        let mut sizes = GivenSizes::new(1.0);
        sizes.set_call("read", &arguments, 90);
        let counter = TokenCounter::with_sizes(Vocabulary::O200k, sizes);
        let call = |name: &str| crate::Call {
            id: "c".into(),
            name: name.into(),
            arguments: arguments.clone(),
            origin: Origin::rule(ItemKind::History, "test"),
        };
        assert_eq!(*counter.count_call(&call("read")), [90]);
        assert!(counter.count_call(&call("write"))[0] < 20, "another call is counted");
    }
}
