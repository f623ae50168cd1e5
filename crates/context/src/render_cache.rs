//! [`RenderCache`]: texts and token counts of earlier requests. It changes nothing but the time
//! that assembly takes.

#![expect(
    clippy::disallowed_types,
    reason = "texts are looked up; the order in which old ones are dropped does not matter"
)]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::{Hash, Prompt, SharedContent, Text, TokenCounter, Vocabulary};

use crate::history::ConversionCache;

/// Rendered texts and their token counts, kept from request to request.
///
/// Assembly is a pure function of its snapshot; the cache only saves work. A text is rendered, and
/// so hashed and counted, only when what it is made of has changed. Share one cache per
/// conversation.
pub struct RenderCache {
    /// Counts tokens, and remembers the counts by the hash of a text.
    pub counter: TokenCounter,
    /// The part of the conversation that is converted once and for all.
    pub(crate) conversion_cache: ConversionCache,
    texts: Mutex<RenderedTexts>,
    /// The contents of the last prompt's blocks, to be shared with the next one.
    last_blocks: Mutex<Vec<SharedContent>>,
}

#[derive(Default)]
struct RenderedTexts {
    texts: HashMap<RenderKey, (Text, u64)>,
    request: u64,
    rendered: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct RenderKey {
    form: &'static str,
    names: Box<str>,
    body: Hash,
}

/// A text that has not been used for this many requests is dropped.
const KEPT_REQUESTS: u64 = 4;

impl RenderCache {
    /// An empty cache that counts tokens with `vocabulary`.
    pub fn new(vocabulary: Vocabulary) -> Self {
        RenderCache {
            counter: TokenCounter::new(vocabulary),
            conversion_cache: ConversionCache::default(),
            texts: Mutex::default(),
            last_blocks: Mutex::default(),
        }
    }

    /// How many texts have been rendered since the cache was created; tests read it.
    pub fn rendered_count(&self) -> u64 {
        self.lock().rendered
    }

    /// Starts a request: drops texts that have not been used for a while.
    pub fn begin_request(&self) {
        let mut state = self.lock();
        state.request += 1;
        let oldest = state.request.saturating_sub(KEPT_REQUESTS);
        state.texts.retain(|_, (_, used)| *used >= oldest);
    }

    /// Returns the text that `make` renders from `names` and the body with hash `body`, from the
    /// cache where possible. `form` identifies `make`: use one form per rendering function.
    pub fn get_or_render(
        &self,
        form: &'static str,
        names: &[&str],
        body: Hash,
        make: impl FnOnce() -> String,
    ) -> Text {
        let key = RenderKey { form, names: names.join("\0").into(), body };
        let mut state = self.lock();
        let request = state.request;
        if let Some((text, used)) = state.texts.get_mut(&key) {
            *used = request;
            return text.clone();
        }
        let text = Text::new(make());
        state.rendered += 1;
        state.texts.insert(key, (text.clone(), request));
        text
    }

    /// Replaces block contents that equal those of the last prompt by the same allocation, so that
    /// their hashes and encodings are not computed again.
    pub(crate) fn reuse_unchanged_blocks(&self, prompt: &mut Prompt) {
        // A panic elsewhere leaves a cache that is still true.
        prompt.share_unchanged_content(&mut self.last_blocks.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, RenderedTexts> {
        // A panic elsewhere leaves a cache that is still true.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rendered_again_only_when_it_changed() {
        let render_cache = RenderCache::new(Vocabulary::O200k);
        let render = |body: &str| {
            render_cache.get_or_render("f", &["name"], Hash::of(body.as_bytes()), || format!("name: {body}"))
        };
        assert_eq!(&*render("a"), "name: a");
        render("a");
        assert_eq!(render_cache.rendered_count(), 1);
        assert_eq!(&*render("b"), "name: b");
        assert_eq!(render_cache.rendered_count(), 2);
        for _ in 0..6 {
            render_cache.begin_request();
            render("b");
        }
        assert_eq!(render_cache.rendered_count(), 2);
        render("a");
        assert_eq!(render_cache.rendered_count(), 3);
    }
}
