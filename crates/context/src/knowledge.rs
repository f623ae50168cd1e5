//! [`FileKnowledge`]: what the model has seen of files.
//!
//! It is a plain value. Tools say what each call tells about files ([`FileObservation`]), and the
//! agent records that with the id of the message. Everything that asks what the model knows asks
//! here: `write` and `edit`, which refuse to change a file that the model has not seen as it is;
//! `strata`, which keeps the files true that the model knows; and the accounting of garbage, to
//! which an observation tells by which message it was superseded.
//!
//! ```
//! use hardpan_context::knowledge::{FileKnowledge, FileObservation, LineRanges, ObservationKind};
//!
//! let mut knowledge = FileKnowledge::default();
//! let read = |first, last| {
//!     let shown = LineRanges::span(first, last);
//!     FileObservation::of_text("a.rs", ObservationKind::Shown, "one\ntwo\nthree\n", shown)
//! };
//! knowledge.record(&"m1".into(), read(1, 2));
//! assert!(!knowledge.is_covered("a.rs"));
//! knowledge.record(&"m2".into(), read(2, 3));
//! assert!(knowledge.is_covered("a.rs"), "two messages show all of it");
//! ```

mod file_excerpt; // FileExcerpt: lines of a file in a tool's answer
mod line_ranges; // LineRanges: a set of lines
mod observation; // FileObservation: what one message tells about one file
mod shell_command; // what a shell command shows of files, and which it may change
mod shown_lines; // which lines of files a command prints
mod working_folder; // WorkingFolder: makes file names comparable

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_prompt::{Hash, MessageId, Text};

pub use file_excerpt::FileExcerpt;
pub use line_ranges::LineRanges;
pub use observation::{FileObservation, ObservationKind, count_lines};
pub use shell_command::{AffectedFiles, CommandEffect, ShownRange, analyze_command};
pub use shown_lines::{LineSelection, OutputPiece, ShownLines, output_of_command};
pub use working_folder::WorkingFolder;

/// What the model has seen of files, by path. Cloning shares everything; a change copies what it
/// changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileKnowledge(Arc<BTreeMap<Arc<str>, Arc<FileHistory>>>);

/// What the model has seen of one file.
#[derive(Clone, Debug, Default, PartialEq)]
struct FileHistory {
    /// Oldest first.
    observations: Vec<RecordedObservation>,
    last_seen: Option<SeenContent>,
    /// The content that the file has as an item of the context, as of the last request.
    item: Option<Hash>,
    /// See [`FileKnowledge::known_whole`].
    known: Option<KnownFile>,
    /// The current content as far as messages show it; `None` if the number of its lines is not
    /// known.
    coverage: Option<Coverage>,
}

/// An observation and its message.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedObservation {
    /// The tool result that the observation came with.
    pub message: MessageId,
    /// What the message tells about the file.
    pub observation: FileObservation,
    /// What made it superfluous; `None` while it is needed.
    pub superseded: Option<Superseded>,
    /// The lines that it shows and no later message shows again.
    pub only_here: LineRanges,
}

impl RecordedObservation {
    /// Whether later messages show all that this one shows, be it as it was or as it is now.
    pub fn is_shown_again(&self) -> bool {
        self.superseded.is_some() && self.only_here.is_empty() && !self.observation.shown.is_empty()
    }
}

/// Why an observation is no longer needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseded {
    /// The message after which it is no longer needed.
    pub by: MessageId,
    /// What that message did.
    pub how: SupersededHow,
}

/// How a message supersedes an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupersededHow {
    /// All that the earlier one shows is shown again.
    ShownAgain,
    /// The file has another content now.
    Outdated,
}

/// A content that the model has seen, at least in part.
#[derive(Clone, Debug)]
pub struct SeenContent {
    /// Hash of the file's whole text.
    pub hash: Hash,
    /// The text, where it is kept.
    pub text: Option<Text>,
}

impl PartialEq for SeenContent {
    /// The hash stands for the text.
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

/// A file that the model knows whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Hash of the content that the model knows.
    pub hash: Hash,
    /// The tool result that showed it; `None` if it stands in the context as an item.
    pub message: Option<MessageId>,
    /// Whether the content has changed since the model first knew the file.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Coverage {
    hash: Hash,
    lines: u64,
    shown: LineRanges,
}

impl FileKnowledge {
    /// Records what a message tells about a file.
    pub fn record(&mut self, message: &MessageId, observation: FileObservation) {
        let history = Arc::make_mut(&mut self.0).entry(observation.path.clone()).or_default();
        Arc::make_mut(history).record(message, observation);
    }

    /// Records that a request shows the file as an item of the context, with this body. An item that
    /// was shown before as it is tells nothing new: a message may have shown a newer content since.
    pub fn record_item(&mut self, path: &str, body: &Text) {
        let hash = body.hash();
        if !self.is_item(path, hash) {
            let history = self.history_mut(path);
            history.item = Some(hash);
            history.last_seen = Some(SeenContent { hash, text: Some(body.clone()) });
        }
    }

    /// Whether the last request that showed the file as an item showed this content.
    pub fn is_item(&self, path: &str, hash: Hash) -> bool {
        self.0.get(path).is_some_and(|history| history.item == Some(hash))
    }

    /// Records that the layout keeps an item of the file where requests do not repeat it, so that an
    /// edit of the file keeps it known. For a file that is known already nothing changes.
    pub fn record_kept_item(&mut self, path: &str, hash: Hash) {
        if self.known_whole(path).is_none() {
            self.history_mut(path).known = Some(KnownFile { hash, message: None, changed: false });
        }
    }

    /// The content of a file that the model has seen last, in a message or as an item, be it only in
    /// part.
    pub fn last_seen(&self, path: &str) -> Option<&SeenContent> {
        self.0.get(path)?.last_seen.as_ref()
    }

    /// The file if the model knows it whole, as `strata` counts it: shown whole by one message or by
    /// several together, written, or edited while it was known.
    pub fn known_whole(&self, path: &str) -> Option<&KnownFile> {
        self.0.get(path)?.known.as_ref()
    }

    /// The files that messages made known whole, by path.
    pub fn known_files(&self) -> impl Iterator<Item = (&Arc<str>, &KnownFile)> {
        let known = self.0.iter().filter_map(|(path, history)| Some((path, history.known.as_ref()?)));
        known.filter(|(_, known)| known.message.is_some())
    }

    /// Whether messages of the conversation show the file's current content whole, be it in parts or
    /// as a change of a content that they show whole.
    pub fn is_covered(&self, path: &str) -> bool {
        let coverage = self.0.get(path).and_then(|history| history.coverage.as_ref());
        coverage.is_some_and(Coverage::is_whole)
    }

    /// Everything that messages of the conversation told about a file, oldest first, with what is
    /// superseded.
    pub fn observations(&self, path: &str) -> &[RecordedObservation] {
        self.0.get(path).map_or(&[], |history| &history.observations)
    }

    /// The paths of all files that the model has seen something of, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// Forgets what the conversation no longer contains: everything but the observations of these
    /// messages. A file of which no message tells is forgotten as an item, too; the next request
    /// shows it again.
    pub fn retain_messages(&mut self, messages: &BTreeSet<&MessageId>) {
        let histories = Arc::make_mut(&mut self.0);
        for history in histories.values_mut() {
            history.retain_messages(messages);
        }
        histories.retain(|_, history| !history.observations.is_empty());
    }

    fn history_mut(&mut self, path: &str) -> &mut FileHistory {
        Arc::make_mut(Arc::make_mut(&mut self.0).entry(path.into()).or_default())
    }
}

impl FileHistory {
    fn record(&mut self, message: &MessageId, observation: FileObservation) {
        self.supersede_with(message, &observation);
        if let Some(hash) = observation.hash {
            let before = self.coverage.take();
            self.coverage =
                observation.lines.map(|lines| Coverage::after(before.as_ref(), &observation, hash, lines));
            self.last_seen = Some(SeenContent { hash, text: observation.text.clone() });
        }
        self.update_known(message, &observation);
        // One text is kept: that of the content which the model has seen last.
        self.observations.iter_mut().for_each(|earlier| earlier.observation.text = None);
        let (message, only_here) = (message.clone(), observation.shown.clone());
        self.observations.push(RecordedObservation { message, observation, superseded: None, only_here });
    }

    fn supersede_with(&mut self, message: &MessageId, new: &FileObservation) {
        let Some(hash) = new.hash else { return };
        for earlier in &mut self.observations {
            let Some(before) = earlier.observation.hash else { continue };
            earlier.only_here.remove(&new.shown);
            if earlier.superseded.is_some() {
                continue;
            }
            let is_shown_again =
                earlier.only_here.is_empty() && (new.shows_all() || !earlier.observation.shown.is_empty());
            let how = match before == hash {
                false => SupersededHow::Outdated,
                true if is_shown_again => SupersededHow::ShownAgain,
                true => continue,
            };
            earlier.superseded = Some(Superseded { by: message.clone(), how });
        }
    }

    fn update_known(&mut self, message: &MessageId, observation: &FileObservation) {
        let Some(hash) = observation.hash else { return };
        let is_covered = self.coverage.as_ref().is_some_and(Coverage::is_whole);
        let knows = match observation.kind {
            ObservationKind::Shown => is_covered,
            ObservationKind::Written => true,
            ObservationKind::Edited => is_covered || self.known.is_some(),
            ObservationKind::Diffed | ObservationKind::Confirmed => false,
        };
        if knows {
            let changed = self.known.as_ref().is_some_and(|known| known.changed || known.hash != hash);
            self.known = Some(KnownFile { hash, message: Some(message.clone()), changed });
        }
    }

    fn retain_messages(self: &mut Arc<Self>, messages: &BTreeSet<&MessageId>) {
        let stays = |recorded: &RecordedObservation| messages.contains(&recorded.message);
        let mut kept = FileHistory::default();
        for recorded in self.observations.iter().filter(|recorded| stays(recorded)) {
            kept.record(&recorded.message, recorded.observation.clone());
        }
        kept.item = self.item;
        if self.last_seen.as_ref().map(|seen| seen.hash) == self.item {
            kept.last_seen.clone_from(&self.last_seen);
        }
        if **self != kept {
            *self = Arc::new(kept);
        }
    }
}

impl Coverage {
    /// What is covered of the new content, given what was covered of the former one.
    fn after(before: Option<&Coverage>, observation: &FileObservation, hash: Hash, lines: u64) -> Self {
        let mut shown = match observation.kind {
            ObservationKind::Written | ObservationKind::Confirmed => LineRanges::all(lines),
            // Whoever knows all of a content and what changed in it knows all of the new one.
            ObservationKind::Edited | ObservationKind::Diffed if before.is_some_and(Coverage::is_whole) => {
                LineRanges::all(lines)
            }
            ObservationKind::Shown | ObservationKind::Edited | ObservationKind::Diffed => {
                observation.shown.clone()
            }
        };
        if let Some(before) = before.filter(|before| before.hash == hash) {
            shown.add(&before.shown);
        }
        Coverage { hash, lines, shown }
    }

    fn is_whole(&self) -> bool {
        self.shown.covers(&LineRanges::all(self.lines))
    }
}

#[cfg(test)]
mod tests;
