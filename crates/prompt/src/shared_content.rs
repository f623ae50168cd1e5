//! The content of a block, shared by all the requests that send it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{Content, Hash, Vocabulary};

/// The content of a block behind a shared pointer. Cloning is cheap, and its hash and its token
/// counts are computed once and kept. A conversation of a thousand messages is sent a thousand
/// times; only what is new in it is hashed and counted.
#[derive(Clone)]
pub struct SharedContent(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    content: Content,
    hash: OnceLock<Hash>,
    counts: OnceLock<(Vocabulary, Arc<[u32]>)>,
}

impl SharedContent {
    /// Hash of everything the model sees; origins do not count. Computed once.
    pub fn hash(&self) -> Hash {
        *self.0.hash.get_or_init(|| self.0.content.hash())
    }

    /// Whether both share one allocation, which proves them equal without comparing.
    pub fn ptr_eq(&self, other: &SharedContent) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the allocation: identifies this content as long as a clone of it lives.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Takes the content out; copies it only if it is shared.
    pub fn into_content(self) -> Content {
        Arc::unwrap_or_clone(self.0).content
    }

    /// The content for editing. Others that share it keep the content as it was, and hash and
    /// counts are computed anew.
    pub fn edit(&mut self) -> &mut Content {
        let inner = Arc::make_mut(&mut self.0);
        (inner.hash, inner.counts) = Default::default();
        &mut inner.content
    }

    /// The token counts of its segments. Only those of the first vocabulary that asks are kept,
    /// because there is hardly ever a second one.
    pub(crate) fn counts(&self, by: Vocabulary, count: impl Fn() -> Arc<[u32]>) -> Cow<'_, [u32]> {
        match self.0.counts.get_or_init(|| (by, count())) {
            (vocabulary, counts) if *vocabulary == by => Cow::Borrowed(counts),
            _ => Cow::Owned(count().to_vec()),
        }
    }
}

impl Deref for SharedContent {
    type Target = Content;
    fn deref(&self) -> &Content {
        &self.0.content
    }
}

impl From<Content> for SharedContent {
    fn from(content: Content) -> Self {
        SharedContent(Arc::new(Inner { content, hash: OnceLock::new(), counts: OnceLock::new() }))
    }
}

impl PartialEq for SharedContent {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || **self == **other
    }
}

impl Eq for SharedContent {}

impl fmt::Debug for SharedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemKind, Origin, Segment};

    fn text(text: &str) -> Content {
        Content::Text(vec![Segment::new(text, Origin::rule(ItemKind::History, "test"))])
    }

    #[test]
    fn an_edit_changes_the_hash_and_nobody_elses_copy() {
        let held = SharedContent::from(text("one"));
        let before = held.hash();
        let mut edited = held.clone();
        assert!(edited.ptr_eq(&held));
        *edited.edit() = text("two");
        assert_eq!((held.hash(), &held), (before, &SharedContent::from(text("one"))));
        assert_eq!(edited.hash(), text("two").hash());
        assert_ne!(edited, held);
    }
}
