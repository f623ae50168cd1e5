use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;

fn own(action: &str, keys: &[&str]) -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([(action.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())])
}

fn key(text: &str) -> KeyPress {
    KeyPress::parse(text).unwrap()
}

#[test]
fn no_key_has_two_meanings_in_one_place_and_no_action_two_names() {
    Keymap::new(&BTreeMap::new()).unwrap();
    for (at, action) in Action::ALL.iter().enumerate() {
        assert_eq!(Action::by_name(action.name()), Some(*action));
        assert!(!Action::ALL[..at].iter().any(|other| other.name() == action.name()), "{}", action.name());
    }
}

#[test]
fn a_key_that_is_taken_or_begins_a_sequence_is_refused() {
    let conflict = |keys: &[&str]| Keymap::new(&own("stash", keys)).unwrap_err();
    assert_eq!(
        conflict(&["ctrl-r"]),
        KeymapError::Conflict { key: "Ctrl-R".into(), first: "search-history", second: "stash" }
    );
    assert!(matches!(conflict(&["ctrl-x"]), KeymapError::Conflict { .. }));
    assert!(matches!(conflict(&["ctrl-k q"]), KeymapError::Conflict { first: "kill-to-end", .. }));
    assert_eq!(conflict(&["hyper-q"]), KeymapError::InvalidKey { text: "hyper-q".into() });
    assert_eq!(
        Keymap::new(&own("fly", &["f3"])).unwrap_err(),
        KeymapError::UnknownAction { name: "fly".into() }
    );
}

#[test]
fn own_keys_replace_the_defaults_and_appear_in_hints() {
    let keymap = Keymap::new(&own("stash", &["f3", "ctrl-x z"])).unwrap();
    assert_eq!(keymap.keys(Action::Stash), ["F3", "Ctrl-X z"]);
    let editor = [KeyLayer::Editor];
    assert_eq!(keymap.meaning(&editor, None, key("ctrl-s")), KeyMeaning::None);
    assert_eq!(keymap.meaning(&editor, None, key("f3")), KeyMeaning::Action(Action::Stash));
    assert_eq!(keymap.meaning(&editor, None, key("ctrl-x")), KeyMeaning::Prefix);
    let second = keymap.meaning(&editor, Some(key("ctrl-x")), key("z"));
    assert_eq!(second, KeyMeaning::Action(Action::Stash));
}

#[test]
fn the_first_layer_that_knows_a_key_decides() {
    let keymap = Keymap::default();
    let layers = [KeyLayer::List, KeyLayer::Editor];
    assert_eq!(keymap.meaning(&layers, None, key("tab")), KeyMeaning::Action(Action::AcceptCompletion));
    assert_eq!(keymap.meaning(&layers, None, key("enter")), KeyMeaning::Action(Action::Submit));
    assert_eq!(
        keymap.meaning(&[KeyLayer::Approval], None, key("enter")),
        KeyMeaning::Action(Action::TakeChoice)
    );
    assert_eq!(keymap.meaning(&[KeyLayer::Approval], None, key("q")), KeyMeaning::None);
}

#[test]
fn terminals_encodings_of_a_key_are_the_same_key() {
    let press = |code, modifiers| KeyPress::from_event(KeyEvent::new(code, modifiers)).unwrap();
    assert_eq!(press(KeyCode::BackTab, KeyModifiers::SHIFT), key("shift-tab"));
    assert_eq!(press(KeyCode::BackTab, KeyModifiers::NONE), key("shift-tab"));
    assert_eq!(press(KeyCode::Tab, KeyModifiers::SHIFT), key("shift-tab"));
    assert_eq!(press(KeyCode::Char('7'), KeyModifiers::CONTROL), key("ctrl-_"));
    assert_eq!(press(KeyCode::Char('G'), KeyModifiers::SHIFT), key("G"));
    assert_eq!(press(KeyCode::Char('C'), KeyModifiers::CONTROL | KeyModifiers::SHIFT), key("ctrl-c"));
}

#[test]
fn what_is_shown_of_a_key_can_be_read() {
    for (text, shown) in [
        ("ctrl-x m", "Ctrl-X m"),
        ("alt-enter", "Alt-Enter"),
        ("shift-tab", "Shift-Tab"),
        ("alt-.", "Alt-."),
        ("f2", "F2"),
        ("space", "Space"),
        ("-", "-"),
        ("ctrl--", "Ctrl--"),
    ] {
        assert_eq!(KeySequence::parse(text).unwrap().to_string(), shown);
    }
    for text in ["", "ctrl-", "shift-a", "f25", "f0", "a b c", "enterr"] {
        assert!(KeySequence::parse(text).is_err(), "{text}");
    }
}

#[test]
fn nothing_needs_the_prefixes_of_screen_and_tmux_or_the_kitty_protocol() {
    let keymap = Keymap::default();
    let needs_more = |key: &str| matches!(key, "Ctrl-A" | "Ctrl-B" | "Shift-Enter");
    for action in Action::ALL {
        assert!(keymap.keys(action).iter().any(|key| !needs_more(key)), "{}", action.name());
    }
}

#[test]
fn the_document_is_made_from_the_table() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    if std::env::var_os("HARDPAN_UPDATE_DOCS").is_some() {
        std::fs::write(&path, keys_document()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == keys_document(), "docs/keys.md is out of date: run with HARDPAN_UPDATE_DOCS=1");
}
