use hardpan_prompt::Hash;
use serde_json::{Value, json};

use crate::test_snapshots::{
    assemble_for, assemble_for_claude, lines, result, snapshot, snapshot_with_state, tool, user,
};
use crate::{AssembledPrompt, FoldReason, LayoutName, LayoutState};

/// A file of so many lines, in its `n`th version.
fn body(n: usize) -> String {
    (0..200).map(|line| format!("version {n}, line {line}\n")).collect()
}

fn observation(message: &str, kind: &str, text: &str) -> Value {
    let lines = text.lines().count();
    let shown = if kind == "edited" { json!([[1, 1]]) } else { json!([[1, lines]]) };
    json!({"message": message, "path": "a.rs", "kind": kind, "hash": Hash::of(text.as_bytes()), "lines": lines, "shown": shown})
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
}

/// A tool round, from `a{n}` to the answer `d{n}` after it.
fn round(n: usize, name: &str, arguments: &Value, output: &str) -> Vec<Value> {
    let call_id = format!("c{n}");
    vec![
        user(&format!("u{n}"), "again"),
        json!({"id": format!("a{n}"), "role": "assistant", "content": [call(&call_id, name, arguments)]}),
        result(&format!("r{n}"), &call_id, output),
        json!({"id": format!("d{n}"), "role": "assistant", "content": "done"}),
    ]
}

/// A conversation in which the file is read again and again, a new version each time; `reads`
/// rounds are over.
fn messages(reads: usize) -> Vec<Value> {
    let arguments = json!({"path": "a.rs", "note": "x".repeat(300)});
    (0..reads).flat_map(|n| round(n, "read", &arguments, &body(n))).collect()
}

fn reads_snapshot(reads: usize) -> Value {
    let observed: Vec<Value> = (0..reads).map(|n| observation(&format!("r{n}"), "shown", &body(n))).collect();
    let mut json = json!({"messages": messages(reads), "tools": [tool("read")], "file_observations": observed,
        "prompt": {"id": format!("u{reads}"), "text": "again"}});
    if let Some(last) = reads.checked_sub(1) {
        json["files"] = json!([{"path": "a.rs", "content": body(last), "said_by": format!("r{last}")}]);
    }
    json
}

fn request(layout_state: &LayoutState, reads: usize, model: &str) -> AssembledPrompt {
    let snapshot = snapshot_with_state(layout_state, reads_snapshot(reads));
    assemble_for(&snapshot, LayoutName::Strata, model)
}

#[test]
fn a_fold_comes_by_itself_when_the_rent_has_reached_its_price() {
    let mut layout_state = LayoutState::default();
    let mut folded_at = Vec::new();
    for reads in 0..40 {
        let made = request(&layout_state, reads, "claude-sonnet-5");
        if let Some(fold) = made.fold {
            folded_at.push(reads);
            assert_eq!(fold.reason, FoldReason::RentPaid);
            assert!(fold.rent >= 0.75 * fold.price, "{fold:?}");
            let price = 1.25 * (fold.tokens as f64 - fold.garbage as f64) - 0.1 * fold.tokens as f64;
            assert!((fold.price - price).abs() < 1.0, "{fold:?}");
            assert!(fold.garbage > 0, "{fold:?}");
        }
        assert_eq!(made.fold.is_some(), made.layout_state.strata.folds > layout_state.strata.folds);
        layout_state = made.layout_state;
    }
    assert!((2..39).contains(&folded_at.len()), "{folded_at:?}");
}

#[test]
fn where_reading_costs_nothing_nothing_is_ever_folded() {
    let mut layout_state = LayoutState::default();
    for reads in 0..20 {
        layout_state = request(&layout_state, reads, "ollama/llama3.1").layout_state;
    }
    assert_eq!(layout_state.strata.folds, 0);
}

#[test]
fn older_copies_become_lines_that_can_be_recalled() {
    let json = Value::Object(
        reads_snapshot(3)
            .as_object()
            .cloned()
            .into_iter()
            .flatten()
            .chain([("fold".to_owned(), json!(true))])
            .collect(),
    );
    let first = assemble_for_claude(&snapshot(reads_snapshot(0)), LayoutName::Strata);
    let folded = assemble_for_claude(&snapshot_with_state(&first.layout_state, json), LayoutName::Strata);
    let lines = lines(&folded.prompt);
    let has = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(
        (has("version 0, line 9"), has("version 1, line 9"), has("version 2, line 9")),
        (0, 0, 1),
        "{lines:#?}"
    );
    // One line tells of both; the second went together with its call.
    assert_eq!((has("[older copies, each to recall by its id: a.rs r0 ("), has(" tokens), r1 (")), (1, 1));
    assert_eq!((has(r#""note":"[recall r0]""#), has("[c1 ")), (1, 0), "{lines:#?}");
    assert_eq!(folded.layout_state.strata.account.garbage_tokens, 0);
    // They stay so.
    let next = snapshot_with_state(&folded.layout_state, reads_snapshot(3));
    let again = assemble_for_claude(&next, LayoutName::Strata);
    assert_eq!(super::super::tests::texts(&again.prompt), super::super::tests::texts(&folded.prompt));
}

#[test]
fn edits_of_a_known_file_give_way_to_its_body() {
    let edit = json!({"path": "a.rs", "old": "x".repeat(3000), "new": "y".repeat(3000)});
    let mut messages = round(0, "read", &json!({"path": "a.rs"}), &body(0));
    (1..4).for_each(|n| messages.extend(round(n, "edit", &edit, "edited")));
    let mut observed = vec![observation("r0", "shown", &body(0))];
    observed.extend((1..4).map(|n| observation(&format!("r{n}"), "edited", &body(n))));
    let json = json!({"messages": messages, "tools": [tool("read")], "file_observations": observed, "fold": true,
        "files": [{"path": "a.rs", "content": body(3), "said_by": "r3"}], "prompt": {"id": "u4", "text": "go on"}});
    let first = assemble_for_claude(&snapshot(reads_snapshot(0)), LayoutName::Strata);
    let folded = assemble_for_claude(&snapshot_with_state(&first.layout_state, json), LayoutName::Strata);
    let lines = lines(&folded.prompt);
    let has = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((has("version 3, line 9\n"), has("yyyyyy"), has("version 0")), (1, 0, 0), "{lines:#?}");
    assert_eq!(has("[c3 answers Done: [file:a.rs as it is now:]"), 1, "{lines:#?}");
}

#[test]
fn an_output_gives_way_to_that_of_the_same_command() {
    let (mut layout_state, mut folds, mut stubs) = (LayoutState::default(), 0, 0);
    for runs in 0..30 {
        let output = |n: usize| format!("{}\nrun {n}", "ok\n".repeat(400));
        let messages: Vec<Value> =
            (0..runs).flat_map(|n| round(n, "bash", &json!({"command": "make test"}), &output(n))).collect();
        let json = json!({"messages": messages, "tools": [tool("bash")], "prompt": {"id": format!("u{runs}"), "text": "again"}});
        let made = assemble_for_claude(&snapshot_with_state(&layout_state, json), LayoutName::Strata);
        folds += usize::from(made.fold.is_some());
        let lines = lines(&made.prompt);
        let told = lines.iter().filter(|line| line.contains("[older copies, ") && line.contains("bash r"));
        stubs = told.map(|line| line.matches(" (").count()).sum::<usize>();
        assert!(
            runs == 0 || lines.iter().any(|line| line.contains(&format!("run {}]", runs - 1))),
            "{lines:#?}"
        );
        layout_state = made.layout_state;
    }
    assert!(folds > 0 && stubs > 10, "{folds} folds, {stubs} stubs");
}

#[test]
fn a_fold_at_a_later_place_keeps_what_is_before_it() {
    // A long beginning that is worth keeping, then a file that is read again and again.
    let long: String = (0..20_000).map(|n| format!("{n} ")).collect();
    let mut layout_state = LayoutState::default();
    let mut before: Vec<String> = Vec::new();
    let mut partial = 0;
    for reads in 0..12 {
        let mut json = reads_snapshot(reads);
        let mut with_long =
            vec![user("long", &long), json!({"id": "ok", "role": "assistant", "content": "read"})];
        with_long.extend(messages(reads));
        json["messages"] = json!(with_long);
        let made = assemble_for_claude(&snapshot_with_state(&layout_state, json), LayoutName::Strata);
        let texts = super::super::tests::texts(&made.prompt);
        if let Some(fold) = made.fold {
            let same = texts.iter().zip(&before).take_while(|(new, old)| new == old).count();
            partial += usize::from(same > 3);
            assert!(fold.tokens < 30_000, "{fold:?}");
        }
        before = texts;
        layout_state = made.layout_state;
    }
    assert!(partial > 0);
}

#[test]
fn what_the_model_has_not_answered_is_not_touched() {
    let mut json = reads_snapshot(2);
    json["messages"] = json!(messages(2)[..7]);
    json.as_object_mut().unwrap().remove("prompt");
    json["fold"] = json!(true);
    let first = assemble_for_claude(&snapshot(reads_snapshot(0)), LayoutName::Strata);
    let folded = assemble_for_claude(&snapshot_with_state(&first.layout_state, json), LayoutName::Strata);
    let lines = lines(&folded.prompt);
    assert!(lines.iter().any(|line| line.contains("version 1, line 9")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("version 0, line 9")), "{lines:#?}");
}

#[test]
fn a_context_in_which_nothing_changed_has_no_garbage() {
    let file = json!([{"path": "a.rs", "content": body(1)}]);
    let first = assemble_for_claude(
        &snapshot(json!({"files": file, "prompt": {"id": "m1", "text": "one"}})),
        LayoutName::Strata,
    );
    assert_eq!(first.layout_state.strata.account.garbage_tokens, 0);
    let closed = json!({"messages": [user("m1", "one"), {"id": "m2", "role": "assistant", "content": "ok"}],
        "prompt": {"id": "m3", "text": "two"}});
    let second = assemble_for_claude(&snapshot_with_state(&first.layout_state, closed), LayoutName::Strata);
    let fold = second.fold.expect("a closed file is garbage as a whole, and drops out at once");
    assert!(fold.garbage > 1000 && fold.price < 0.0, "{fold:?}");
}
