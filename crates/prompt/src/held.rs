//! What a block holds, shared by all the requests that send it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{Content, Hash, Vocabulary};

/// What a block holds. Cloning shares it, and what was found out about it once stays known: its hash, its tokens. A
/// conversation of a thousand messages is sent a thousand times; only what is new in it is to be looked at.
#[derive(Clone)]
pub struct Held(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    content: Content,
    hash: OnceLock<Hash>,
    counts: OnceLock<(Vocabulary, Arc<[u32]>)>,
}

impl Held {
    /// The hash of everything the model sees of it: not of its origin.
    pub fn hash(&self) -> Hash {
        *self.0.hash.get_or_init(|| self.0.content.hash())
    }

    /// Whether it is the very same: then nothing about it needs to be compared.
    pub fn is(&self, other: &Held) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where it is in memory: a name for it, as long as it is held.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The content by itself; copied only where somebody shares it.
    pub fn into_content(self) -> Content {
        Arc::unwrap_or_clone(self.0).content
    }

    /// The content, to be changed. Whoever shares it keeps it as it was.
    pub fn edit(&mut self) -> &mut Content {
        let inner = Arc::make_mut(&mut self.0);
        (inner.hash, inner.counts) = Default::default();
        &mut inner.content
    }

    /// The tokens of its segments. They are kept for the first vocabulary that asks: there is hardly ever another.
    pub(crate) fn counts(&self, by: Vocabulary, count: impl Fn() -> Arc<[u32]>) -> Cow<'_, [u32]> {
        match self.0.counts.get_or_init(|| (by, count())) {
            (vocabulary, counts) if *vocabulary == by => Cow::Borrowed(counts),
            _ => Cow::Owned(count().to_vec()),
        }
    }
}

impl Deref for Held {
    type Target = Content;
    fn deref(&self) -> &Content {
        &self.0.content
    }
}

impl From<Content> for Held {
    fn from(content: Content) -> Self {
        Held(Arc::new(Inner { content, hash: OnceLock::new(), counts: OnceLock::new() }))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.is(other) || **self == **other
    }
}

impl Eq for Held {}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Origin, Segment};

    fn text(text: &str) -> Content {
        Content::Text(vec![Segment::new(text, Origin::rule(Kind::History, "test"))])
    }

    #[test]
    fn an_edit_changes_the_hash_and_nobody_elses_copy() {
        let held = Held::from(text("one"));
        let before = held.hash();
        let mut edited = held.clone();
        assert!(edited.is(&held));
        *edited.edit() = text("two");
        assert_eq!((held.hash(), &held), (before, &Held::from(text("one"))));
        assert_eq!(edited.hash(), text("two").hash());
        assert_ne!(edited, held);
    }
}
