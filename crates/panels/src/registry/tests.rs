use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{Revision, Todo};

/// A panel of a kind with many that counts how often it is rendered and closed.
#[derive(Default)]
struct Note {
    key: String,
    text: Mutex<String>,
    revision: Revision,
    rendered: AtomicUsize,
    refreshed: AtomicUsize,
    closed: AtomicUsize,
}

impl Note {
    fn new(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Note { key: format!("note:{name}"), text: Mutex::new(text.into()), ..Note::default() })
    }

    fn set(&self, text: &str) {
        *self.text.lock().unwrap() = text.into();
        self.revision.bump();
    }
}

impl Panel for Note {
    fn key(&self) -> &str {
        &self.key
    }

    fn title(&self) -> String {
        "Note".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Timed { seconds: 120 }
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        self.rendered.fetch_add(1, Ordering::Relaxed);
        Some(self.text.lock().unwrap().clone())
    }

    fn refresh(&self, _context: &RefreshContext<'_>) {
        self.refreshed.fetch_add(1, Ordering::Relaxed);
    }

    fn save(&self) -> Option<Value> {
        Some(Value::String(self.text.lock().unwrap().clone()))
    }

    fn close(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn shown(registry: &PanelRegistry, now: Timestamp) -> Vec<(String, String, i64)> {
    let items = registry.items(now).into_iter();
    items.map(|item| (item.id.to_string(), item.body.to_string(), item.changed_at_ms)).collect()
}

fn row(id: &str, text: &str, changed_at_ms: i64) -> (String, String, i64) {
    (id.into(), text.into(), changed_at_ms)
}

#[test]
fn a_panel_is_rendered_when_it_changed_and_dated_when_its_bytes_did() {
    let registry = PanelRegistry::default();
    let note = Note::new("a", "one");
    registry.add(note.clone());
    assert_eq!(shown(&registry, at(1)), [row("P10", "one", 1000)]);
    let first = registry.items(at(2)).remove(0);
    assert_eq!(note.rendered.load(Ordering::Relaxed), 1);
    // A new revision with the same bytes is no change.
    note.set("one");
    assert_eq!(shown(&registry, at(3)), [row("P10", "one", 1000)]);
    assert_eq!(note.rendered.load(Ordering::Relaxed), 2);
    assert!(std::ptr::eq(registry.items(at(3))[0].body.as_str(), first.body.as_str()));
    note.set("two");
    assert_eq!(shown(&registry, at(4)), [row("P10", "two", 4000)]);
    assert_eq!(shown(&registry, at(9)), [row("P10", "two", 4000)]);
    assert_eq!(note.rendered.load(Ordering::Relaxed), 3);
}

#[test]
fn ids_stay_when_others_close() {
    let registry = PanelRegistry::default();
    let (a, b, c) = (Note::new("a", "a"), Note::new("b", "b"), Note::new("c", "c"));
    assert_eq!(&*registry.add(a.clone()), "P10");
    assert_eq!(&*registry.assign_id("file:src/a.rs"), "P11");
    assert_eq!(&*registry.add(b), "P12");
    assert_eq!(&*registry.close("p10").unwrap(), "P10");
    assert_eq!(a.closed.load(Ordering::Relaxed), 1);
    assert_eq!(&*registry.add(c), "P13");
    assert_eq!(shown(&registry, at(1)), [row("P12", "b", 1000), row("P13", "c", 1000)]);
    assert_eq!(registry.key_of("P11").as_deref(), Some("file:src/a.rs"));
    assert_eq!(registry.close("P10").unwrap_err().to_string(), "there is no panel P10; there is P12, P13");
    registry.add(Arc::new(Todo::default()));
    assert_eq!(
        registry.close("P1").unwrap_err().to_string(),
        "P1 cannot be closed; hide takes it out of view"
    );
}

#[test]
fn a_resumed_conversation_shows_the_same() {
    let opener: PanelOpener = Arc::new(|key, state| {
        let note = Note::new(key.strip_prefix("note:")?, state?.as_str()?);
        Some(note as Arc<dyn Panel>)
    });
    let registry = PanelRegistry::default();
    registry.register_opener("note", opener.clone());
    registry.add(Arc::new(Todo::default()));
    registry.add(Note::new("a", "a"));
    registry.add(Note::new("b", &"line\n".repeat(10_000)));
    let add = ActionCall { text: Some("test it"), ..ActionCall::new("todo_add", at(1)) };
    registry.act(&add).unwrap();
    registry.close("P10").unwrap();
    assert_eq!(registry.turn_page("P11", 3, at(2)).unwrap(), (3, 4));
    let before = registry.items(at(3));
    let stored = serde_json::to_string(&registry.save()).unwrap();

    let resumed = PanelRegistry::default();
    resumed.register_opener("note", opener);
    resumed.add(Arc::new(Todo::default()));
    resumed.restore(serde_json::from_str(&stored).unwrap());
    assert_eq!(resumed.items(at(500)), before);
    assert_eq!(resumed.save(), registry.save());
    assert_eq!(&*resumed.add(Note::new("c", "c")), "P12");

    // Another conversation starts from nothing.
    resumed.restore(SavedPanels::default());
    assert_eq!(resumed.items(at(600)), []);
    assert_eq!(&*resumed.add(Note::new("c", "c")), "P10");
}

#[test]
fn what_is_switched_off_keeps_its_state() {
    let registry = PanelRegistry::default();
    registry.add(Arc::new(Todo::default()));
    registry.act(&ActionCall { text: Some("later"), ..ActionCall::new("todo_add", at(1)) }).unwrap();
    let saved = registry.save();
    let without = PanelRegistry::default();
    without.restore(saved.clone());
    assert_eq!(without.items(at(2)), []);
    assert_eq!(without.save(), saved);
    without.add(Arc::new(Todo::default()));
    assert_eq!(shown(&without, at(3)), [row("P1", "1 [ ] later", 3000)]);
}

#[test]
fn hidden_panels_are_listed_but_not_sent() {
    let registry = PanelRegistry::default();
    registry.add(Note::new("a", "text"));
    registry.set_hidden("P10", true).unwrap();
    assert_eq!(registry.items(at(1)), []);
    let listed = registry.list(at(1)).remove(0);
    assert_eq!((listed.hidden, listed.page, listed.pages, listed.bytes), (true, 1, 1, 4));
    registry.set_hidden("note:a", false).unwrap();
    assert_eq!(registry.items(at(1)).len(), 1);
}

#[test]
fn a_timed_panel_is_refreshed_when_it_is_old_or_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let scope = hardpan_tools::Scope::new(folder.path(), folder.path());
    let registry = PanelRegistry::default();
    let note = Note::new("a", "text");
    registry.add(note.clone());
    for second in [0, 119, 120, 121, 100] {
        registry.refresh(&RefreshContext::new(&scope, at(second)));
    }
    assert_eq!(note.refreshed.load(Ordering::Relaxed), 3);
}

#[test]
fn a_file_is_no_panel_that_can_be_hidden_or_paged() {
    let registry = PanelRegistry::default();
    let id = registry.open_file("src/main.rs");
    let refused = registry.set_hidden(&id, true).unwrap_err().to_string();
    let expected = "P10 is the file src/main.rs, which is shown as a whole: close it to take it out of view";
    assert_eq!(refused, expected);
    registry.close_file("src/main.rs");
    assert!(registry.set_hidden(&id, true).unwrap_err().to_string().starts_with("there is no panel P10"));
}
