use serde_json::{Value, json};

use crate::test_snapshots::{
    assemble_for, assemble_for_claude, lines, result, snapshot, snapshot_with_state, tool, user,
};
use crate::{AssembledPrompt, Fold, FoldReason, LayoutName, LayoutState};

/// A file of so many lines, in its `n`th version.
fn body(n: usize) -> String {
    (0..200).map(|line| format!("version {n}, line {line}\n")).collect()
}

/// A conversation in which the file is read again and again, a new version each time; `reads`
/// rounds are over.
fn messages(reads: usize) -> Vec<Value> {
    let mut messages = Vec::new();
    for n in 0..reads {
        let arguments = json!({"path": "a.rs", "note": "x".repeat(300)});
        let call =
            json!({"type": "tool_call", "id": format!("c{n}"), "name": "read", "arguments": arguments});
        messages.push(user(&format!("u{n}"), "again"));
        messages.push(json!({"id": format!("a{n}"), "role": "assistant", "content": [call]}));
        messages.push(result(&format!("r{n}"), &format!("c{n}"), &body(n)));
        messages.push(json!({"id": format!("d{n}"), "role": "assistant", "content": "done"}));
    }
    messages
}

fn request(layout_state: &LayoutState, reads: usize, model: &str) -> AssembledPrompt {
    let mut json = json!({"messages": messages(reads), "tools": [tool("read")], "prompt": {"id": format!("u{reads}"), "text": "again"}});
    if let Some(last) = reads.checked_sub(1) {
        json["files"] = json!([{"path": "a.rs", "content": body(last), "said_by": format!("r{last}")}]);
    }
    assemble_for(&snapshot_with_state(layout_state, json), LayoutName::Strata, model)
}

#[test]
fn a_fold_comes_by_itself_when_the_rent_has_reached_its_price() {
    let mut layout_state = LayoutState::default();
    let mut folded_at = Vec::new();
    for reads in 0..40 {
        let account = layout_state.strata.account;
        let made = request(&layout_state, reads, "claude-sonnet-5");
        if made.layout_state.strata.folds > layout_state.strata.folds {
            folded_at.push(reads);
            let price = 1.25 * (account.tokens_after_system - account.garbage_tokens) as f64
                - 0.1 * account.tokens_after_system as f64;
            assert!(account.rent >= price, "{account:?}");
            let expected = Fold {
                reason: FoldReason::RentPaid,
                tokens: account.tokens_after_system,
                garbage: account.garbage_tokens,
                price,
                rent: account.rent,
            };
            assert_eq!(made.fold, Some(expected));
            assert!(made.layout_state.strata.account.rent < account.rent);
        }
        assert_eq!(made.fold.is_some(), made.layout_state.strata.folds > layout_state.strata.folds);
        layout_state = made.layout_state;
    }
    // Each version makes the one before it garbage: the rent grows with the square of the rounds.
    assert!((2..20).contains(&folded_at.len()), "{folded_at:?}");
    assert!(folded_at[0] > 2, "{folded_at:?}");
}

#[test]
fn where_reading_costs_nothing_nothing_is_ever_folded() {
    let mut layout_state = LayoutState::default();
    for reads in 0..20 {
        layout_state = request(&layout_state, reads, "ollama/llama3.1").layout_state;
    }
    assert_eq!((layout_state.strata.folds, layout_state.strata.account.rent), (0, 0.0));
}

#[test]
fn what_was_stubbed_stays_stubbed_and_its_calls_are_short() {
    let first = request(&LayoutState::default(), 0, "claude-sonnet-5");
    let mut layout_state = first.layout_state;
    for reads in 1..=3 {
        let mut made = request(&layout_state, reads, "claude-sonnet-5");
        layout_state = std::mem::take(&mut made.layout_state);
    }
    for fold in 1..=2 {
        let json = json!({"messages": messages(3), "tools": [tool("read")], "fold": true,
            "files": [{"path": "a.rs", "content": body(2), "said_by": "r2"}], "prompt": {"id": "u3", "text": "again"}});
        let folded = assemble_for_claude(&snapshot_with_state(&layout_state, json), LayoutName::Strata);
        let lines = lines(&folded.prompt);
        let stubs =
            lines.iter().filter(|line| line.contains("[file:a.rs: shown elsewhere, as it is now]")).count();
        let bodies = lines.iter().filter(|line| line.contains("version 2, line 100")).count();
        let old = lines
            .iter()
            .filter(|line| line.contains("version 1, line 100") || line.contains("xxxxx"))
            .count();
        assert_eq!((stubs, bodies, old), (3, 1, 0), "fold {fold}: {lines:#?}");
        assert_eq!(folded.layout_state.strata.account.garbage_tokens, 0);
        layout_state = folded.layout_state;
    }
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
    assert!(second.layout_state.strata.account.garbage_tokens > 1000, "a closed file is garbage as a whole");
}
