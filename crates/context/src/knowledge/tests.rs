mod naive_model; // NaiveModel: the same answers, found by looking at everything again

use super::*;

fn observation(path: &str, kind: ObservationKind, text: &str, shown: LineRanges) -> FileObservation {
    FileObservation::of_text(path, kind, text, shown)
}

fn read(path: &str, text: &str, first: u64, last: u64) -> FileObservation {
    observation(path, ObservationKind::Shown, text, LineRanges::span(first, last))
}

fn known(knowledge: &FileKnowledge, path: &str) -> Option<(Option<String>, bool)> {
    let known = knowledge.known_whole(path)?;
    Some((known.message.as_ref().map(|message| message.0.to_string()), known.changed))
}

/// Each observation's message, and what superseded it.
fn superseded(knowledge: &FileKnowledge, path: &str) -> Vec<(String, Option<(String, SupersededHow)>)> {
    let of = |recorded: &RecordedObservation| {
        let by = recorded.superseded.as_ref();
        (recorded.message.0.to_string(), by.map(|superseded| (superseded.by.0.to_string(), superseded.how)))
    };
    knowledge.observations(path).iter().map(of).collect()
}

const TEXT: &str = "one\ntwo\nthree\nfour\n";
const OTHER: &str = "one\n2\nthree\nfour\nfive\n";

#[test]
fn a_file_is_known_when_messages_together_show_all_of_it() {
    let mut knowledge = FileKnowledge::default();
    knowledge.record(&"m1".into(), read("a", TEXT, 1, 2));
    assert_eq!((known(&knowledge, "a"), knowledge.is_covered("a")), (None, false));
    knowledge.record(&"m2".into(), read("a", TEXT, 3, 4));
    assert_eq!((known(&knowledge, "a"), knowledge.is_covered("a")), (Some((Some("m2".into()), false)), true));
    knowledge.record(&"m3".into(), read("a", TEXT, 1, 4));
    assert_eq!(known(&knowledge, "a"), Some((Some("m3".into()), false)));
    knowledge.record(&"m4".into(), observation("a", ObservationKind::Edited, OTHER, LineRanges::span(1, 5)));
    assert_eq!((known(&knowledge, "a"), knowledge.is_covered("a")), (Some((Some("m4".into()), true)), true));
    assert_eq!(knowledge.known_files().count(), 1);
}

#[test]
fn an_edit_of_a_file_that_was_never_shown_does_not_make_it_known() {
    let mut knowledge = FileKnowledge::default();
    let edit = || observation("a", ObservationKind::Edited, OTHER, LineRanges::span(1, 3));
    knowledge.record(&"m1".into(), edit());
    assert_eq!((known(&knowledge, "a"), knowledge.is_covered("a")), (None, false));
    knowledge.record_kept_item("a", Hash::of(b"x"));
    assert_eq!(known(&knowledge, "a"), Some((None, false)));
    assert_eq!(knowledge.known_files().count(), 0, "no message shows it");
    knowledge.record(&"m2".into(), edit());
    assert_eq!(known(&knowledge, "a"), Some((Some("m2".into()), true)));
    knowledge.record(&"m3".into(), observation("b", ObservationKind::Written, TEXT, LineRanges::all(4)));
    assert_eq!(known(&knowledge, "b"), Some((Some("m3".into()), false)));
}

#[test]
fn an_empty_file_is_known_once_it_was_read() {
    let mut knowledge = FileKnowledge::default();
    knowledge.record(&"m1".into(), read("a", "", 1, 0));
    assert_eq!((known(&knowledge, "a"), knowledge.is_covered("a")), (Some((Some("m1".into()), false)), true));
}

#[test]
fn what_is_shown_again_or_no_longer_true_is_superseded_and_stays_listed() {
    let mut knowledge = FileKnowledge::default();
    for (message, first, last) in [("m1", 1, 3), ("m2", 4, 4), ("m3", 1, 2), ("m4", 3, 4)] {
        knowledge.record(&message.into(), read("a", TEXT, first, last));
    }
    let by = |message: &str, how| Some((message.to_owned(), how));
    let again = |message: &str| by(message, SupersededHow::ShownAgain);
    let outdated = |message: &str| by(message, SupersededHow::Outdated);
    assert_eq!(
        superseded(&knowledge, "a"),
        [("m1".into(), again("m4")), ("m2".into(), again("m4")), ("m3".into(), None), ("m4".into(), None)]
    );
    knowledge.record(&"m5".into(), observation("a", ObservationKind::Edited, OTHER, LineRanges::span(2, 2)));
    knowledge.record(&"m6".into(), FileObservation::of_unknown("a", LineRanges::span(1, 9)));
    assert_eq!(
        superseded(&knowledge, "a")[2..],
        [
            ("m3".into(), outdated("m5")),
            ("m4".into(), outdated("m5")),
            ("m5".into(), None),
            ("m6".into(), None),
        ]
    );
    assert_eq!(knowledge.observations("a")[0].only_here, LineRanges::default());
    assert_eq!(knowledge.observations("a")[4].only_here, LineRanges::span(2, 2));
}

#[test]
fn what_the_model_has_seen_last_is_kept_with_its_text() {
    let mut knowledge = FileKnowledge::default();
    assert!(knowledge.last_seen("a").is_none());
    let seen = |knowledge: &FileKnowledge| {
        let seen = knowledge.last_seen("a").unwrap();
        (seen.hash, seen.text.as_ref().map(ToString::to_string))
    };
    knowledge.record(&"m1".into(), read("a", TEXT, 1, 1));
    assert_eq!(seen(&knowledge), (Hash::of(TEXT.as_bytes()), Some(TEXT.into())));
    knowledge.record_item("a", &OTHER.into());
    assert_eq!(seen(&knowledge), (Hash::of(OTHER.as_bytes()), Some(OTHER.into())));
    // The request after a message has the same item again, which is older.
    knowledge.record(&"m1b".into(), read("a", TEXT, 1, 1));
    knowledge.record_item("a", &OTHER.into());
    assert_eq!(seen(&knowledge), (Hash::of(TEXT.as_bytes()), Some(TEXT.into())));
    knowledge.record_item("a", &"newer\n".into());
    knowledge.retain_messages(&BTreeSet::from([&"m1".into()]));
    assert_eq!(seen(&knowledge), (Hash::of(b"newer\n"), Some("newer\n".into())), "it is still an item");
    knowledge.record_item("a", &OTHER.into());
    // A file of which only a part can be read says nothing about the whole.
    knowledge.record(&"m2".into(), FileObservation::of_unknown("a", LineRanges::span(1, 1)));
    assert_eq!(seen(&knowledge), (Hash::of(OTHER.as_bytes()), Some(OTHER.into())));
    let long = "x".repeat(2 * 1024 * 1024);
    knowledge.record(&"m3".into(), read("a", &long, 1, 1));
    assert_eq!(seen(&knowledge), (Hash::of(long.as_bytes()), None));
}

#[test]
fn what_left_the_conversation_is_forgotten() {
    let mut knowledge = FileKnowledge::default();
    knowledge.record(&"m1".into(), read("a", TEXT, 1, 4));
    knowledge.record(&"m2".into(), observation("a", ObservationKind::Edited, OTHER, LineRanges::span(2, 2)));
    knowledge.record(&"m3".into(), read("b", TEXT, 1, 4));
    knowledge.record_item("c", &TEXT.into());
    let before = knowledge.clone();
    knowledge.retain_messages(&BTreeSet::from([&"m2".into()]));
    assert_eq!(knowledge.paths().map(|path| &**path).collect::<Vec<_>>(), ["a"]);
    assert_eq!(superseded(&knowledge, "a"), [("m2".into(), None)]);
    assert_eq!(
        (known(&knowledge, "a"), knowledge.is_covered("a")),
        (None, false),
        "nothing shows the whole any more"
    );
    assert_eq!(knowledge.last_seen("a").unwrap().text.as_deref(), Some(OTHER));
    knowledge.retain_messages(&BTreeSet::new());
    assert_eq!(knowledge, FileKnowledge::default());
    assert_eq!(before.observations("a").len(), 2, "a clone keeps what it had");
}

#[test]
fn an_observation_is_stored_without_its_text() {
    let stored = serde_json::to_value(read("a", TEXT, 1, 2)).unwrap();
    let hash = Hash::of(TEXT.as_bytes());
    let expected =
        serde_json::json!({"path": "a", "kind": "shown", "hash": hash, "lines": 4, "shown": [[1, 2]]});
    assert_eq!(stored, expected);
    let back: FileObservation = serde_json::from_value(stored).unwrap();
    assert_eq!((back.text.is_none(), back), (true, read("a", TEXT, 1, 2)));
    let unknown = FileObservation::of_unknown("a", LineRanges::default());
    assert_eq!(serde_json::to_value(unknown).unwrap(), serde_json::json!({"path": "a", "kind": "shown"}));
}
