//! [`ChoiceLists`]: what arguments can name that is read from disk: conversations, and messages of
//! this one.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use hardpan_app::ConversationApp;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{Record, Session, SessionSummary};

use super::arguments::{Choice, choice};
use crate::output::{dollars, safe};
use crate::sessions::day_and_minute;

/// Characters of a message that are shown beside its id.
const TEXT_CHARS: usize = 60;

/// Seconds for which a list of conversations is good.
const SESSIONS_AGE: i64 = 10;

/// How long a key may wait for a list.
const READ_WAIT: Duration = Duration::from_millis(15);

/// Lists for completion.
#[derive(Default)]
pub struct ChoiceLists {
    reading: Reading,
    sessions: Arc<KeptChoices>,
    entries: Arc<KeptChoices>,
}

/// When a list is read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    /// Whenever it is asked for.
    #[default]
    AtOnce,
    /// Elsewhere: whoever asks gets what was read last.
    Elsewhere,
}

impl ChoiceLists {
    /// Lists that never make a key wait.
    pub fn prepared() -> Self {
        ChoiceLists { reading: Reading::Elsewhere, ..ChoiceLists::default() }
    }

    /// This folder's other conversations, the newest first.
    pub fn sessions(&self, app: &ConversationApp) -> Vec<Choice> {
        let (here, _) = app.agent.session();
        let key = format!("{here} {}", app.agent.now().as_second() / SESSIONS_AGE);
        let (store, folder) = (app.store.clone(), app.folder.clone());
        let read = move || {
            let mut sessions = store.list(Some(&folder));
            sessions.retain(|session| session.id != here);
            sessions.iter().map(session_choice).collect()
        };
        self.sessions.get(self.reading, key, read).unwrap_or_default()
    }

    /// The messages of this conversation, the newest first: those of its branch, then others.
    pub fn entries(&self, app: &ConversationApp) -> Vec<Choice> {
        let here = branch_entries(app);
        let (_, path) = app.agent.session();
        let length = std::fs::metadata(&path).map_or(0, |found| found.len());
        let key = format!("{length} {}", path.display());
        let read = move || Session::open(&path).map_or_else(|_| Vec::new(), |session| all_entries(&session));
        let all = self.entries.get(self.reading, key, read).unwrap_or_default();
        let is_elsewhere = |known: &Choice| !here.iter().any(|choice| choice.text == known.text);
        let left = all.into_iter().filter(is_elsewhere);
        let left = left.map(|known| choice(known.text, format!("left: {}", known.detail)));
        here.iter().cloned().chain(left).collect()
    }
}

/// The messages that requests are made of, the newest first.
pub fn branch_entries(app: &ConversationApp) -> Vec<Choice> {
    app.agent.messages().iter().rev().filter_map(message_choice).collect()
}

fn all_entries(session: &Session) -> Vec<Choice> {
    let message = |record: &Record| match record {
        Record::Message(message) => message_choice(message),
        _ => None,
    };
    session.entries.iter().rev().filter_map(|entry| message(&entry.record)).collect()
}

/// A message of the person or the model, with how it begins.
fn message_choice(message: &AgentMessage) -> Option<Choice> {
    let (who, parts) = match &*message.body {
        MessageBody::User { content } => ("you", content),
        MessageBody::Assistant { content, .. } => ("model", content),
        _ => return None,
    };
    let word = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        MessagePart::ToolCall(call) => Some(format!("[{}]", call.name)),
        _ => None,
    };
    let words: Vec<String> = parts.iter().filter_map(word).collect();
    let line: String = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(TEXT_CHARS).collect();
    Some(choice(message.id.to_string(), format!("{who}: {}", safe(&line))))
}

fn session_choice(session: &SessionSummary) -> Choice {
    let about = session.name.as_deref().or(session.first_prompt.as_deref()).unwrap_or_default();
    let about: String = about.chars().take(TEXT_CHARS).collect();
    let mut facts = vec![day_and_minute(session.last_activity)];
    facts.extend(session.git_branch.as_deref().map(str::to_owned));
    facts.push(dollars(session.dollars));
    choice(&*session.id, format!("{} · {}", safe(&about), safe(&facts.join(" · "))))
}

/// A list, with what it was made of.
#[derive(Default)]
struct KeptChoices {
    state: Mutex<KeptState>,
    was_read: Condvar,
}

#[derive(Default)]
struct KeptState {
    key: String,
    choices: Option<Vec<Choice>>,
    is_reading: bool,
}

impl KeptChoices {
    /// The list; what it was before if reading it again takes long, and none while it never was read.
    fn get(
        self: &Arc<Self>,
        reading: Reading,
        key: String,
        read: impl FnOnce() -> Vec<Choice> + Send + 'static,
    ) -> Option<Vec<Choice>> {
        if reading == Reading::AtOnce {
            return Some(read());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.key != key && !state.is_reading {
            state.is_reading = true;
            let kept = self.clone();
            let reader = std::thread::Builder::new().name("choices".into()).spawn(move || {
                let choices = Some(read());
                *kept.state.lock().unwrap_or_else(PoisonError::into_inner) =
                    KeptState { key, choices, is_reading: false };
                kept.was_read.notify_all();
            });
            state.is_reading = reader.is_ok();
            // Most lists are short, and there before the key is echoed.
            let waited = self.was_read.wait_timeout_while(state, READ_WAIT, |state| state.is_reading);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.choices.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_list_that_takes_long_is_read_elsewhere_and_the_one_before_is_kept_meanwhile() {
        let kept = Arc::new(KeptChoices::default());
        // Reads when it is told to.
        let get = |key: &str, text: &'static str| {
            let (go, told) = mpsc::channel::<()>();
            let list = kept.get(Reading::Elsewhere, key.to_owned(), move || {
                let _ = told.recv();
                vec![choice(text, "")]
            });
            (list, go)
        };
        let until = |key: &str, text: &str| {
            let is_there = || get(key, "never read").0.is_some_and(|list| list[0].text == text);
            let found = (0..10_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                is_there()
            });
            assert!(found, "{text} never came");
        };
        let (list, go) = get("1", "one");
        assert_eq!(list, None);
        go.send(()).unwrap();
        until("1", "one");
        let (list, go) = get("2", "two");
        assert_eq!(list, Some(vec![choice("one", "")]), "while it is read");
        go.send(()).unwrap();
        until("2", "two");
        let at_once = kept.get(Reading::AtOnce, "3".to_owned(), || vec![choice("three", "")]);
        assert_eq!(at_once, Some(vec![choice("three", "")]));
    }
}
