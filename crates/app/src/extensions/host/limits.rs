//! How much of what an extension asks for is kept: [`RateLimit`], [`FaceQueue`], [`StoredBytes`], and the limits of
//! what it registers. The engine's own limits end where the host keeps something for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::events::{FaceChange, WidgetPlace};
use hardpan_extensions::HostError;
use serde_json::Value;
use tokio::time::Instant;

use super::lock;

/// How many commands an extension may register, and how many tools, flags and shortcuts: each is listed
/// somewhere, and the largest published extensions have some dozens.
pub const MAX_REGISTERED: usize = 200;

/// How many handlers of events an extension may have.
pub const MAX_HANDLERS: usize = 1_000;

/// The longest description of something that is registered, in bytes.
pub const MAX_DESCRIPTION: usize = 8 << 10;

/// How many statuses an extension may show at a time, and how many widgets.
const MAX_FACE_KEYS: usize = 20;

/// The longest text in the face, in bytes: a line of a widget, a status, a title.
const MAX_FACE_TEXT: usize = 4 << 10;

/// How many lines of a widget are kept; faces show fewer.
const MAX_WIDGET_LINES: usize = 100;

/// The longest text that is put into the input line, in bytes.
const MAX_EDITOR_TEXT: usize = 256 << 10;

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 32 << 10;

/// How many notes, faults or changes of the face an extension may have in [`RATE_TIME`].
const MAX_IN_TIME: u32 = 100;

/// The time that [`MAX_IN_TIME`] is about.
const RATE_TIME: Duration = Duration::from_secs(5);

/// How often the face is told of what changes faster than that.
pub const FACE_INTERVAL: Duration = Duration::from_millis(100);

/// The largest entry that an extension may store, as JSON.
pub const MAX_ENTRY_BYTES: usize = 256 << 10;

/// How much an extension may store in one session, as JSON: it is read at every start.
pub const MAX_STORED_BYTES: usize = 16 << 20;

/// The largest message of an extension, as JSON: room for a few images.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How much an extension may send to a conversation, as JSON: it stays in memory.
pub const MAX_SENT_BYTES: usize = 128 << 20;

/// Bytes of an extension's messages that wait for the next prompt, as JSON.
pub const MAX_ATTACHED_BYTES: usize = 16 << 20;

/// Bytes of an extension's texts for the next request alone.
pub const MAX_EPHEMERAL_BYTES: usize = 256 << 10;

/// The largest update of a running tool, as JSON: faces show 50 kB of its text.
pub const MAX_UPDATE_BYTES: usize = 1 << 20;

/// How many events of other extensions may wait for one that does not take them.
pub const MAX_BUS_EVENTS: usize = 1_000;

/// Length of all these, as JSON.
pub const MAX_BUS_BYTES: usize = 64 << 20;

/// The longest name of something that is registered, in bytes.
pub const MAX_NAME: usize = 200;

/// The largest provider, as JSON: several hundred models.
pub const MAX_PROVIDER_BYTES: usize = 1 << 20;

/// An error if an extension has registered as many as it may.
pub fn check_count(what: &str, count: usize, most: usize) -> Result<(), HostError> {
    if count < most { Ok(()) } else { Err(HostError(format!("an extension has at most {most} {what}"))) }
}

/// An error if a name is longer than it may be.
pub fn check_name(what: &str, name: &str) -> Result<(), HostError> {
    let problem = || HostError(format!("{what} has at most {MAX_NAME} bytes; this one has {}", name.len()));
    if name.len() <= MAX_NAME { Ok(()) } else { Err(problem()) }
}

/// An error if something is larger than it may be, as JSON.
pub fn check_size(what: &str, value: &Value, most: usize) -> Result<(), HostError> {
    let bytes = json_bytes(value);
    let problem = || HostError(format!("{what} has at most {} kB; this one has {}", most >> 10, bytes >> 10));
    if bytes <= most { Ok(()) } else { Err(problem()) }
}

/// Length of a value as JSON.
pub fn json_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting does not fail, and a value is always JSON.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// At most so many bytes of a text, at the end of a character. Says how much is missing.
pub fn cut_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{}… [{} more bytes]", &text[..end], text.len() - end)
}

/// Lets so much pass in a time, and counts the rest.
#[derive(Default)]
pub struct RateLimit {
    began: Option<Instant>,
    passed: u32,
    left_out: u64,
}

/// Whether something passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateDecision {
    Passes,
    /// It is the first that does not: what is left out is told after this time.
    FirstLeftOut(Duration),
    LeftOut,
}

impl RateLimit {
    pub fn count(&mut self, now: Instant) -> RateDecision {
        let began = *self.began.get_or_insert(now);
        if now.duration_since(began) >= RATE_TIME && self.left_out == 0 {
            (self.began, self.passed) = (Some(now), 0);
        }
        if self.passed < MAX_IN_TIME {
            self.passed += 1;
            return RateDecision::Passes;
        }
        self.left_out += 1;
        let rest = RATE_TIME.saturating_sub(now.duration_since(self.began.unwrap_or(now)));
        if self.left_out == 1 { RateDecision::FirstLeftOut(rest) } else { RateDecision::LeftOut }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.began.is_some_and(|began| now.duration_since(began) >= RATE_TIME)
    }

    /// How much was left out; the time begins anew.
    pub fn take_left_out(&mut self) -> u64 {
        (self.began, self.passed) = (None, 0);
        std::mem::take(&mut self.left_out)
    }
}

/// What a change of the face is about: of several changes of one part, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FacePart {
    Status(String),
    Widget(String),
    Title,
    WorkingMessage,
    EditorText,
}

/// Changes of the face by one extension that wait because there were too many.
#[derive(Default)]
pub struct FaceQueue {
    rate: RateLimit,
    waiting: BTreeMap<FacePart, FaceChange>,
    statuses: Vec<String>,
    widgets: Vec<String>,
}

/// What becomes of a change of the face.
#[derive(Debug, PartialEq)]
pub enum FaceDecision {
    Shown(FaceChange),
    /// It waits; the first that does has the others shown with it.
    Waits {
        is_first: bool,
    },
}

impl FaceQueue {
    /// Takes a change. An error if the extension shows too much already.
    pub fn take(&mut self, change: FaceChange, now: Instant) -> Result<FaceDecision, HostError> {
        let change = cut_change(change);
        let part = match &change {
            FaceChange::Status { key, text } => {
                note_key(&mut self.statuses, key, text.is_some(), "statuses")?;
                FacePart::Status(key.clone())
            }
            FaceChange::Widget { key, lines, .. } => {
                note_key(&mut self.widgets, key, lines.is_some(), "widgets")?;
                FacePart::Widget(key.clone())
            }
            FaceChange::Title { .. } => FacePart::Title,
            FaceChange::WorkingMessage { .. } => FacePart::WorkingMessage,
            FaceChange::EditorText { .. } => FacePart::EditorText,
            FaceChange::Cleared | FaceChange::Reloaded => return Ok(FaceDecision::Shown(change)),
        };
        if self.waiting.is_empty() && self.rate.count(now) == RateDecision::Passes {
            return Ok(FaceDecision::Shown(change));
        }
        let is_first = self.waiting.is_empty();
        let before = self.waiting.remove(&part);
        self.waiting.insert(part, join_texts(before, change));
        Ok(FaceDecision::Waits { is_first })
    }

    /// What waits.
    pub fn take_waiting(&mut self, now: Instant) -> Vec<FaceChange> {
        if self.rate.is_over(now) {
            self.rate.take_left_out();
        }
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// Nothing of the extension is shown any more.
    pub fn clear(&mut self) {
        *self = FaceQueue::default();
    }
}

/// Text that is put into the line follows what is put there before it.
fn join_texts(before: Option<FaceChange>, change: FaceChange) -> FaceChange {
    match (before, change) {
        (
            Some(FaceChange::EditorText { text: mut before, insert }),
            FaceChange::EditorText { text, insert: true },
        ) => {
            before.push_str(&text);
            FaceChange::EditorText { text: cut_text(&before, MAX_EDITOR_TEXT), insert }
        }
        (_, change) => change,
    }
}

fn note_key(keys: &mut Vec<String>, key: &str, is_shown: bool, what: &str) -> Result<(), HostError> {
    if key.len() > MAX_FACE_TEXT {
        return Err(HostError("the key is too long".into()));
    }
    match keys.iter().position(|known| known == key) {
        Some(at) if !is_shown => drop(keys.swap_remove(at)),
        None if is_shown && keys.len() >= MAX_FACE_KEYS => {
            return Err(HostError(format!(
                "an extension has at most {MAX_FACE_KEYS} {what}; remove one first"
            )));
        }
        None if is_shown => keys.push(key.to_owned()),
        _ => {}
    }
    Ok(())
}

fn cut_change(change: FaceChange) -> FaceChange {
    let cut = |text: String| cut_text(&text, MAX_FACE_TEXT);
    match change {
        FaceChange::Status { key, text } => FaceChange::Status { key, text: text.map(cut) },
        FaceChange::Widget { key, lines, place } => {
            let lines = lines.map(|lines: Vec<String>| {
                lines.into_iter().take(MAX_WIDGET_LINES).map(cut).collect::<Vec<String>>()
            });
            let place: WidgetPlace = place;
            FaceChange::Widget { key, lines, place }
        }
        FaceChange::Title { text } => FaceChange::Title { text: cut(text) },
        FaceChange::WorkingMessage { text } => FaceChange::WorkingMessage { text: text.map(cut) },
        FaceChange::EditorText { text, insert } => {
            FaceChange::EditorText { text: cut_text(&text, MAX_EDITOR_TEXT), insert }
        }
        change @ (FaceChange::Cleared | FaceChange::Reloaded) => change,
    }
}

/// How much an extension has sent to its conversation.
#[derive(Default)]
pub struct SentBytes {
    messages: usize,
    pub attached: WaitingBytes,
    pub ephemeral: WaitingBytes,
}

impl SentBytes {
    /// Counts a message; an error if it is too much.
    pub fn count_message(&mut self, bytes: usize) -> Result<(), HostError> {
        if self.messages + bytes > MAX_SENT_BYTES {
            return Err(HostError(format!(
                "the extension has sent {} MB of messages in this conversation; at most {} MB are taken",
                self.messages >> 20,
                MAX_SENT_BYTES >> 20
            )));
        }
        self.messages += bytes;
        Ok(())
    }
}

/// What waits for the next message of a kind in the conversation, which takes it.
#[derive(Default)]
pub struct WaitingBytes {
    /// The last such message when it was counted.
    since: Option<Arc<str>>,
    bytes: usize,
}

impl WaitingBytes {
    /// Counts what is to wait. `last` is the last message of the kind. An error if it is too much.
    pub fn count(
        &mut self,
        last: Option<Arc<str>>,
        bytes: usize,
        most: usize,
        what: &str,
    ) -> Result<(), HostError> {
        if self.since != last {
            *self = WaitingBytes { since: last, bytes: 0 };
        }
        if self.bytes + bytes > most {
            let kilobytes = (self.bytes + bytes) >> 10;
            return Err(HostError(format!(
                "{what} have at most {} kB; with this one, they have {kilobytes}",
                most >> 10
            )));
        }
        self.bytes += bytes;
        Ok(())
    }
}

/// An extension and a session.
type ExtensionSession = (Arc<str>, Arc<str>);

/// How much each extension has stored in each session.
#[derive(Default)]
pub struct StoredBytes(Mutex<BTreeMap<ExtensionSession, usize>>);

impl StoredBytes {
    /// Counts what an extension wants to store in a session; an error if it is too much.
    pub fn count(&self, extension: &Arc<str>, session: &Arc<str>, bytes: usize) -> Result<(), HostError> {
        if bytes > MAX_ENTRY_BYTES {
            return Err(HostError(format!(
                "an entry has at most {} kB; this one has {}",
                MAX_ENTRY_BYTES >> 10,
                bytes >> 10
            )));
        }
        let mut all = lock(&self.0);
        let stored = all.entry((extension.clone(), session.clone())).or_default();
        if *stored + bytes > MAX_STORED_BYTES {
            return Err(HostError(format!(
                "the extension has stored {} MB in this session; no more is taken",
                MAX_STORED_BYTES >> 20
            )));
        }
        *stored += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(key: &str, text: &str) -> FaceChange {
        FaceChange::Status { key: key.into(), text: Some(text.into()) }
    }

    #[test]
    fn what_is_left_out_is_counted_and_told_once() {
        let (mut rate, now) = (RateLimit::default(), Instant::now());
        for _ in 0..MAX_IN_TIME {
            assert_eq!(rate.count(now), RateDecision::Passes);
        }
        assert_eq!(rate.count(now), RateDecision::FirstLeftOut(RATE_TIME));
        assert_eq!(rate.count(now + RATE_TIME * 2), RateDecision::LeftOut);
        assert_eq!(rate.take_left_out(), 2);
        assert_eq!(rate.count(now + RATE_TIME * 2), RateDecision::Passes);
    }

    #[test]
    fn of_many_changes_of_the_face_the_last_of_each_part_counts() {
        let (mut queue, now) = (FaceQueue::default(), Instant::now());
        for number in 0..MAX_IN_TIME {
            let change = status("a", &number.to_string());
            assert_eq!(queue.take(change.clone(), now), Ok(FaceDecision::Shown(change)));
        }
        for number in 0..1_000 {
            for key in ["a", "b"] {
                let decision = queue.take(status(key, &number.to_string()), now);
                let is_first = number == 0 && key == "a";
                assert_eq!(decision, Ok(FaceDecision::Waits { is_first }));
            }
        }
        assert_eq!(queue.take_waiting(now), [status("a", "999"), status("b", "999")]);
        assert!(queue.take_waiting(now + RATE_TIME).is_empty());
        let change = status("a", "again");
        assert_eq!(queue.take(change.clone(), now + RATE_TIME), Ok(FaceDecision::Shown(change)));
    }

    #[test]
    fn an_extension_has_so_many_statuses_at_a_time() {
        let (mut queue, now) = (FaceQueue::default(), Instant::now());
        for number in 0..MAX_FACE_KEYS {
            assert!(queue.take(status(&number.to_string(), "x"), now).is_ok());
        }
        assert!(queue.take(status("one more", "x"), now).is_err());
        queue.take(FaceChange::Status { key: "0".into(), text: None }, now).unwrap();
        assert!(queue.take(status("one more", "x"), now).is_ok());
    }

    #[test]
    fn what_is_stored_has_a_limit_for_each_entry_and_each_session() {
        let (stored, extension, session) = (StoredBytes::default(), "a".into(), "s1".into());
        assert!(stored.count(&extension, &session, MAX_ENTRY_BYTES + 1).is_err());
        for _ in 0..MAX_STORED_BYTES / MAX_ENTRY_BYTES {
            stored.count(&extension, &session, MAX_ENTRY_BYTES).unwrap();
        }
        assert!(stored.count(&extension, &session, 1).is_err());
        assert!(stored.count(&extension, &"s2".into(), 1).is_ok());
    }

    #[test]
    fn what_waits_has_a_limit_until_it_is_taken() {
        let mut waiting = WaitingBytes::default();
        waiting.count(None, 6, 10, "texts").unwrap();
        assert!(waiting.count(None, 6, 10, "texts").is_err());
        waiting.count(None, 4, 10, "texts").unwrap();
        waiting.count(Some("m1".into()), 10, 10, "texts").unwrap();
        assert!(waiting.count(Some("m1".into()), 1, 10, "texts").is_err());
        let mut sent = SentBytes::default();
        sent.count_message(MAX_SENT_BYTES).unwrap();
        assert!(sent.count_message(1).is_err());
    }

    #[test]
    fn a_text_is_cut_at_the_end_of_a_character() {
        assert_eq!(cut_text("äöü", 3), "ä… [4 more bytes]");
        assert_eq!(cut_text("äöü", 6), "äöü");
    }
}
