//! Secrets on their way into a request: [`SecretScanner`] finds them, [`Redactions`] replaces them.
//!
//! A text is scanned once, when it first appears in a prompt ([`SecretScanner::scan_prompt`]). What is
//! replaced stays replaced by the same words in every later request, so that the provider's cache
//! keeps its use.

mod patterns; // the forms of keys, as data

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hardpan_prompt::{Content, Hash, Prompt, ResultPart, Segment, SharedContent};
use rustc_hash::FxHashSet;

use self::patterns::find_by_form;

/// The shortest value that is looked for because it is known: shorter ones occur by chance.
const MIN_KNOWN_BYTES: usize = 12;

/// How many texts are remembered as free of secrets before all are looked at again.
const MAX_REMEMBERED: usize = 200_000;

/// A secret that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundSecret {
    /// What it is, such as `Anthropic key` or `DB_PASSWORD of .env`.
    pub kind: Arc<str>,
    /// The secret itself.
    pub value: String,
}

impl FoundSecret {
    /// A name that tells secrets apart and says nothing about them.
    pub fn id(&self) -> String {
        secret_id(&self.value)
    }

    /// What stands in its place in requests.
    pub fn placeholder(&self) -> String {
        format!("[redacted: {} {}]", self.kind, &self.id()[..4])
    }

    /// What tells it from others: its length, and the beginning that all keys of its form have. Of a
    /// secret without a form, every character counts.
    pub fn hint(&self) -> String {
        let has_form = find_by_form(&self.value).into_iter().next().is_some();
        let shown: String = self.value.chars().take(if has_form { 6 } else { 0 }).collect();
        format!("{shown}… ({} characters)", self.value.chars().count())
    }

    /// What it is and its hint, for a person.
    pub fn describe(&self) -> String {
        format!("{}, {}", self.kind, self.hint())
    }
}

/// A name for a value that does not give it away.
pub fn secret_id(value: &str) -> String {
    let hash = Hash::of(format!("secret {value}").as_bytes()).to_string();
    hash.chars().filter(char::is_ascii_hexdigit).take(16).collect()
}

/// Values that are secret whatever they look like: the keys of this machine. Copies share them, so that a
/// value that becomes known later, such as a renewed token, is one to all scanners from then on.
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets(Arc<RwLock<Arc<Vec<FoundSecret>>>>);

impl KnownSecrets {
    /// Adds values. Those that are too short to be told from other text are left out.
    pub fn add(&self, secrets: impl IntoIterator<Item = FoundSecret>) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let known = Arc::make_mut(&mut held);
        known.extend(secrets.into_iter().filter(|secret| secret.value.len() >= MIN_KNOWN_BYTES));
        known.sort_by(|a, b| a.value.cmp(&b.value));
        known.dedup_by(|a, b| a.value == b.value);
    }

    fn list(&self) -> Arc<Vec<FoundSecret>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FromIterator<FoundSecret> for KnownSecrets {
    fn from_iter<I: IntoIterator<Item = FoundSecret>>(secrets: I) -> Self {
        let known = KnownSecrets::default();
        known.add(secrets);
        known
    }
}

/// Finds secrets: values that are known, and texts that have the form of a provider's key or of a
/// private key.
#[derive(Debug, Default)]
pub struct SecretScanner {
    known: KnownSecrets,
    /// How many values were known when prompts were scanned.
    scanned_for: usize,
    /// Contents of prompts that were scanned already.
    seen: FxHashSet<Hash>,
}

impl SecretScanner {
    /// A scanner that also looks for these values.
    pub fn new(known: KnownSecrets) -> Self {
        SecretScanner { known, scanned_for: 0, seen: FxHashSet::default() }
    }

    /// The secrets in a text, each once.
    pub fn find(&self, text: &str) -> Vec<FoundSecret> {
        let mut found: Vec<FoundSecret> =
            self.known.list().iter().filter(|secret| text.contains(&secret.value)).cloned().collect();
        for (kind, value) in find_by_form(text) {
            if !found.iter().any(|known| known.value == value) {
                found.push(FoundSecret { kind: kind.into(), value: value.to_owned() });
            }
        }
        found
    }

    /// The secrets in what is new in a prompt: texts that no prompt before had.
    pub fn scan_prompt(&mut self, prompt: &Prompt) -> Vec<FoundSecret> {
        let mut found = Vec::new();
        let known = self.known.list().len();
        if self.seen.len() > MAX_REMEMBERED || known != self.scanned_for {
            self.seen.clear();
            self.scanned_for = known;
        }
        for block in prompt.blocks() {
            if !is_scanned(&block.content) || !self.seen.insert(block.content.hash()) {
                continue;
            }
            for_each_text(&block.content, &mut |text| {
                for secret in self.find(text) {
                    if !found.contains(&secret) {
                        found.push(secret);
                    }
                }
            });
        }
        found
    }
}

/// What is replaced in prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redactions {
    /// Secrets and what stands in their place.
    replaced: BTreeMap<String, Arc<str>>,
}

impl<'a> FromIterator<&'a FoundSecret> for Redactions {
    fn from_iter<I: IntoIterator<Item = &'a FoundSecret>>(secrets: I) -> Self {
        let mut redactions = Redactions::default();
        secrets.into_iter().for_each(|secret| redactions.insert(secret));
        redactions
    }
}

impl Redactions {
    /// Replaces a secret from now on.
    pub fn insert(&mut self, secret: &FoundSecret) {
        self.replaced.insert(secret.value.clone(), secret.placeholder().into());
    }

    /// Replaces a secret no longer.
    pub fn remove(&mut self, secret: &FoundSecret) {
        self.replaced.remove(&secret.value);
    }

    /// Whether nothing is replaced.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty()
    }

    /// A text without the secrets.
    pub fn redact(&self, text: &str) -> Option<String> {
        let mut redacted: Option<String> = None;
        // Backwards: of two secrets where one begins with the other, the longer comes first.
        for (value, placeholder) in self.replaced.iter().rev() {
            let text = redacted.as_deref().unwrap_or(text);
            if text.contains(value) {
                redacted = Some(text.replace(value, placeholder));
            }
        }
        redacted
    }

    /// Replaces the secrets in a prompt. Returns whether there were any. What the model itself wrote
    /// stays: it knows that, and its reasoning is signed.
    pub fn apply(&self, prompt: &mut Prompt) -> bool {
        let mut changed = false;
        if self.is_empty() {
            return false;
        }
        for block in prompt.blocks_mut().filter(|block| is_scanned(&block.content)) {
            let mut has_secret = false;
            for_each_text(&block.content, &mut |text| has_secret |= self.redact(text).is_some());
            if has_secret {
                self.redact_content(&mut block.content);
                changed = true;
            }
        }
        changed
    }

    fn redact_content(&self, content: &mut SharedContent) {
        let redact = |segments: &mut Vec<Segment>| {
            for segment in segments.iter_mut() {
                if let Some(text) = self.redact(&segment.text) {
                    segment.text = text.into();
                }
            }
            // A secret may begin in one segment and end in the next.
            let joined: String = segments.iter().map(|segment| segment.text.as_str()).collect();
            if let (Some(text), Some(first)) = (self.redact(&joined), segments.first().cloned()) {
                *segments = vec![Segment::new(text, first.origin)];
            }
        };
        match content.edit() {
            Content::Text(segments) => redact(segments),
            Content::Result(result) => {
                for part in &mut result.parts {
                    if let ResultPart::Text(segments) = part {
                        redact(segments);
                    }
                }
            }
            Content::Image(..)
            | Content::Reasoning(_)
            | Content::Call(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => {}
        }
    }
}

fn is_scanned(content: &Content) -> bool {
    matches!(content, Content::Text(_) | Content::Result(_))
}

/// The texts of a block, each as one piece.
fn for_each_text(content: &Content, handle: &mut dyn FnMut(&str)) {
    let mut joined = |segments: &[Segment]| match segments {
        [only] => handle(&only.text),
        many => handle(&many.iter().map(|segment| segment.text.as_str()).collect::<String>()),
    };
    match content {
        Content::Text(segments) => joined(segments),
        Content::Result(result) => {
            for part in &result.parts {
                if let ResultPart::Text(segments) = part {
                    joined(segments);
                }
            }
        }
        Content::Image(..)
        | Content::Reasoning(_)
        | Content::Call(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => {}
    }
}

#[cfg(test)]
mod tests;
