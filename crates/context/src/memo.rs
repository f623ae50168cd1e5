//! What has been rendered and counted already: a cache that changes nothing but the time taken.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::{Counter, Hash, Held, Prompt, Text, Vocabulary};

use crate::history::Past;

/// Rendered texts and their token counts, kept from request to request.
///
/// Assembly is a pure function of its snapshot; the memo only spares it work. A text is rendered (and so hashed) when
/// what it is made of has changed, and never otherwise.
pub struct Memo {
    /// The token counts.
    pub counter: Counter,
    /// The conversation, as far as it is settled.
    pub(crate) history: Past,
    texts: Mutex<Rendered>,
    /// What the blocks of the last prompt held.
    last: Mutex<Vec<Held>>,
}

#[derive(Default)]
struct Rendered {
    texts: HashMap<Key, (Text, u64)>,
    request: u64,
    rendered: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    form: &'static str,
    names: Box<str>,
    body: Hash,
}

/// A text that no request has used for this many requests is forgotten.
const KEPT_REQUESTS: u64 = 4;

impl Memo {
    /// An empty memo that counts with `vocabulary`.
    pub fn new(vocabulary: Vocabulary) -> Self {
        Memo {
            counter: Counter::new(vocabulary),
            history: Past::default(),
            texts: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// How many texts have been rendered, and so hashed, since the memo was made.
    pub fn rendered(&self) -> u64 {
        self.lock().rendered
    }

    /// Starts a request: texts that went unused for long are forgotten.
    pub fn next_request(&self) {
        let mut state = self.lock();
        state.request += 1;
        let oldest = state.request.saturating_sub(KEPT_REQUESTS);
        state.texts.retain(|_, (_, used)| *used >= oldest);
    }

    /// The text that `make` gives for `names` and `body`. `form` names the rendering: one form, one function.
    pub fn text(
        &self,
        form: &'static str,
        names: &[&str],
        body: Hash,
        make: impl FnOnce() -> String,
    ) -> Text {
        let key = Key { form, names: names.join("\0").into(), body };
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

    /// Lets a prompt hold what the one before held, where it is equal: what is known of it stays known.
    pub(crate) fn share(&self, prompt: &mut Prompt) {
        // A panic elsewhere leaves a cache that is still true.
        prompt.share(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Rendered> {
        // A panic elsewhere leaves a cache that is still true.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_rendered_again_only_when_it_changed() {
        let memo = Memo::new(Vocabulary::O200k);
        let render =
            |body: &str| memo.text("f", &["name"], Hash::of(body.as_bytes()), || format!("name: {body}"));
        assert_eq!(&*render("a"), "name: a");
        render("a");
        assert_eq!(memo.rendered(), 1);
        assert_eq!(&*render("b"), "name: b");
        assert_eq!(memo.rendered(), 2);
        for _ in 0..6 {
            memo.next_request();
            render("b");
        }
        assert_eq!(memo.rendered(), 2);
        render("a");
        assert_eq!(memo.rendered(), 3);
    }
}
