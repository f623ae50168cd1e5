use std::path::Path;

use hardpan_context::knowledge::count_lines;
use hardpan_prompt::{AgentMessage, MessagePart, Text};
use hardpan_session::{Header, Session};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::conversation::Conversation;

fn result_entry(tool: &str, is_error: bool, details: Value) -> Entry {
    let body = MessageBody::ToolResult {
        call_id: "c1".into(),
        tool_name: Some(tool.into()),
        content: vec![MessagePart::text("x")],
        is_error,
        not_run: None,
    };
    let mut entry = Entry::message(None, AgentMessage::new("m1", body));
    entry.extra.extend([(DETAILS_FIELD.to_owned(), details)]);
    entry
}

#[test]
fn an_old_entry_tells_what_its_details_say() {
    let hash = Hash::of(b"x");
    let observed = |tool: &str, details: Value| observations_of(&result_entry(tool, false, details));
    let observation = |kind, hash, lines, shown| {
        vec![FileObservation { path: "a.rs".into(), kind, hash, lines, shown, text: None }]
    };
    let read = json!({"path": "a.rs", "lines": 9, "shown": [2, 5], "bytes": 99, "hash": hash});
    assert_eq!(
        observed("read", read),
        observation(ObservationKind::Shown, Some(hash), Some(9), LineRanges::span(2, 5))
    );
    let huge = json!({"path": "a.rs", "lines": null, "shown": [1, 2000], "bytes": 99, "hash": null});
    assert_eq!(
        observed("read", huge),
        observation(ObservationKind::Shown, None, None, LineRanges::span(1, 2000))
    );
    let changed = json!({"path": "a.rs", "diff": "…", "hash": hash});
    let none = LineRanges::default;
    assert_eq!(
        observed("write", changed.clone()),
        observation(ObservationKind::Written, Some(hash), None, none())
    );
    assert_eq!(
        observed("edit", changed.clone()),
        observation(ObservationKind::Edited, Some(hash), None, none())
    );
    assert_eq!(observed("other", changed.clone()), []);
    assert_eq!(observed("read", json!({"exit_code": 1})), []);
    assert_eq!(observations_of(&result_entry("edit", true, changed)), [], "it failed");
}

#[test]
fn what_an_entry_says_itself_counts_before_its_details() {
    let mut entry = result_entry("read", false, json!({"path": "other", "hash": null}));
    let observation =
        FileObservation::of_text("a", ObservationKind::Shown, "one\ntwo\n", LineRanges::span(2, 2));
    ResultData { file_observations: vec![observation.clone()] }.store_in(&mut entry);
    assert_eq!(observations_of(&entry), [observation]);
    entry.extra.insert(FILE_OBSERVATIONS.to_owned(), json!([{"path": "a", "kind": "from the future"}]));
    assert_eq!(observations_of(&entry), []);
}

/// A step of a random conversation.
#[derive(Clone, Debug)]
enum Step {
    Result(FileObservation),
    Prompt,
    /// A summary replaces this share of the messages.
    Compact(prop::sample::Index),
    /// The session is closed and opened again.
    Resume,
    /// The conversation goes back to one of its messages.
    GoBack(prop::sample::Index),
}

fn some_step() -> impl Strategy<Value = Step> {
    use ObservationKind::{Confirmed, Diffed, Edited, Shown, Written};
    let kind = prop::sample::select(vec![Shown, Shown, Written, Edited, Edited, Diffed, Confirmed]);
    let observation = (prop::sample::select(vec!["a", "b"]), kind, 0..4_u64, 1..5_u64, 0..4_u64).prop_map(
        |(path, kind, number, first, length)| {
            let text: String = (0..number).map(|line| format!("line {line} of {number}\n")).collect();
            let all = LineRanges::all(count_lines(&text));
            let shown = if matches!(kind, Written | Confirmed) {
                all
            } else {
                LineRanges::span(first, first + length)
            };
            FileObservation::of_text(path, kind, &text, shown)
        },
    );
    prop_oneof![
        8 => observation.prop_map(Step::Result),
        2 => Just(Step::Prompt),
        1 => any::<prop::sample::Index>().prop_map(Step::Compact),
        1 => Just(Step::Resume),
        1 => any::<prop::sample::Index>().prop_map(Step::GoBack),
    ]
}

fn begin(path: &Path) -> Conversation {
    let header = Header { id: "s".into(), time: None, cwd: "/".into(), extra: Default::default() };
    Conversation::begin(path, header).unwrap()
}

fn add_message(conversation: &mut Conversation, body: MessageBody, data: ResultData) {
    let message = conversation.new_message(body, Timestamp::UNIX_EPOCH);
    conversation.add_message(message, data).wait().unwrap();
}

fn apply(mut conversation: Conversation, step: Step, path: &Path) -> Conversation {
    match step {
        Step::Result(observation) => {
            let body = MessageBody::ToolResult {
                call_id: "c".into(),
                tool_name: Some("any".into()),
                content: Vec::new(),
                is_error: false,
                not_run: None,
            };
            let data = ResultData { file_observations: vec![observation] };
            add_message(&mut conversation, body, data);
        }
        Step::Prompt => {
            let body = MessageBody::User { content: vec![MessagePart::text("Go on")] };
            add_message(&mut conversation, body, ResultData::default());
        }
        Step::Compact(share) if !conversation.messages.is_empty() => {
            let cut = share.index(conversation.messages.len());
            let summary = Text::new("summary");
            // A summary is no entry that could be kept: it is always replaced.
            let cut = cut.max(usize::from(matches!(
                *conversation.messages[0].body,
                MessageBody::CompactionSummary { .. }
            )));
            let first_kept = conversation.messages.get(cut).map(|message| message.id.0.clone());
            let record = Record::Compaction {
                summary: summary.clone(),
                first_kept,
                tokens_before: None,
                details: None,
            };
            conversation.record_compaction(record, summary, cut, Timestamp::UNIX_EPOCH).wait().unwrap();
        }
        Step::Resume if path.exists() => {
            drop(conversation);
            conversation = Conversation::resume(path, None).unwrap();
        }
        Step::GoBack(index) if !conversation.messages.is_empty() => {
            let entry = conversation.messages[index.index(conversation.messages.len())].id.0.clone();
            conversation.flush().wait().unwrap();
            conversation.go_to_entry(&Session::open(path).unwrap(), &entry).unwrap();
        }
        Step::Compact(_) | Step::Resume | Step::GoBack(_) => {}
    }
    conversation
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_resumed_conversation_knows_what_the_running_one_knew(
        steps in prop::collection::vec(some_step(), 0..16),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut conversation = begin(&path);
        for step in steps {
            conversation = apply(conversation, step, &path);
        }
        let here: BTreeSet<&MessageId> = conversation.messages.iter().map(|message| &message.id).collect();
        for file in conversation.knowledge.paths() {
            for recorded in conversation.knowledge.observations(file) {
                prop_assert!(here.contains(&recorded.message), "{} left the conversation", recorded.message.0);
            }
        }
        if path.exists() {
            let (knowledge, leaf) = (conversation.knowledge.clone(), conversation.leaf().cloned());
            drop(conversation);
            let resumed = Conversation::resume(&path, leaf.as_deref()).unwrap();
            prop_assert_eq!(resumed.knowledge, knowledge);
        }
    }
}
