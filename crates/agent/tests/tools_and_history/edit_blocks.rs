use hardpan_agent::RunEnd;
use hardpan_agent::events::{
    EditBlockFound, EditBlockResults, ToolCallEvent, ToolCallReply, ToolExecutionEnd,
};
use hardpan_context::LayoutName;
use hardpan_test_support::{TestAgent, TestAgentBuilder, TestApprovals, assert_calls_paired, line};
use hardpan_tools::EditBlockStatus::{self, *};
use hardpan_tools::UndoOutcome;

/// A model of the catalogue that takes no tools.
const TOOLLESS: &str = "codestral-mamba-latest";

/// A script of answers to prompts: what a text of the last message contains, and the answer.
fn script(turns: &[(&str, &str)]) -> String {
    let quoted = |text: &str| serde_json::to_string(text).expect("text");
    let turn = |(when, text): &(&str, &str)| {
        format!("  - when: {{contains: {}}}\n    text: {}\n", quoted(when), quoted(text))
    };
    let turns: String = turns.iter().map(turn).collect();
    format!("turns:\n{turns}default: {{text: Fine.}}\n")
}

fn block(path: &str, old: &str, new: &str) -> String {
    format!("{path}\n<<<<<<< EDIT\n{old}======= REPLACE\n{new}>>>>>>> END\n")
}

fn toolless(turns: &[(&str, &str)]) -> TestAgentBuilder {
    TestAgent::with_real_tools()
        .model(TOOLLESS)
        .script(script(turns))
        .file("a.txt", "one\ntwo\n")
        .open("a.txt")
}

/// How the blocks of each answer ended.
fn statuses(test_agent: &TestAgent) -> Vec<Vec<EditBlockStatus>> {
    let results = test_agent.events_of::<EditBlockResults>();
    results.iter().map(|event| event.results.iter().map(|result| result.status).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_tools_edits_by_blocks_in_every_layout() {
    let answer = format!(
        "I do both.\n\n{}\nAnd:\n\n{}Done.",
        block("a.txt", "two\n", "TWO\n"),
        block("new/b.txt", "", "hello\n")
    );
    for layout in LayoutName::ALL {
        let test_agent = toolless(&[("Edit.", &answer)]).layout(layout).start().await;
        test_agent.say("Edit.").await;
        assert_eq!(test_agent.read("a.txt"), "one\nTWO\n", "{layout}");
        assert_eq!(test_agent.read("new/b.txt"), "hello\n", "{layout}");
        let sent = test_agent.last_sent().body;
        assert!(sent.contains("# Edit protocol") && sent.contains("No tools can be called here"), "{sent}");
        assert!(!sent.contains("Use the declared tools") && !sent.contains("\"tools\""), "{sent}");
        assert_eq!(test_agent.request_count(), 1, "everything was applied: nothing more to ask");
        let found: Vec<_> = test_agent.events_of::<EditBlockFound>();
        let found: Vec<_> = found.iter().map(|found| (found.index, &*found.path)).collect();
        assert_eq!(found, [(1, "a.txt"), (2, "new/b.txt")]);
        assert_eq!(statuses(&test_agent), [[Applied, Created]]);
        let ends = test_agent.events_of::<ToolExecutionEnd>();
        assert!(ends[0].details.as_ref().expect("details")["diff"].to_string().contains("+TWO"), "{ends:?}");
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        assert_eq!(
            lines[2],
            "custom: [edit blocks]\n1. a.txt was changed (from line 2).\n2. new/b.txt was created (1 line)."
        );
        test_agent.assert_copy_sends_the_same().await;
        let undone = test_agent.journal().undo(0).expect("it was recorded");
        let undone: Vec<_> = undone.into_iter().map(|file| file.outcome).collect();
        assert_eq!(undone, [UndoOutcome::Restored, UndoOutcome::Removed]);
        assert_eq!(test_agent.read("a.txt"), "one\ntwo\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_applied_goes_back_to_the_model_and_is_corrected() {
    let wrong = [
        block("a.txt", "three\n", "x\n"),
        block("a.txt", "one\n", "ONE\n"),
        block("missing.txt", "one\n", "x\n"),
        "<<<<<<< EDIT\nno path\n======= REPLACE\nx\n>>>>>>> END\n".to_owned(),
    ]
    .concat();
    let right = block("a.txt", "two\n", "TWO\n");
    for layout in LayoutName::ALL {
        let turns = [("Edit.", &*wrong), ("[edit blocks]", &*right)];
        let test_agent = toolless(&turns).layout(layout).start().await;
        test_agent.say("Edit.").await;
        assert_eq!(statuses(&test_agent), [vec![NotFound, Applied, NotFound, Malformed], vec![Applied]]);
        assert_eq!(test_agent.read("a.txt"), "ONE\nTWO\n");
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        assert!(lines[2].starts_with("custom: [edit blocks]\n1. a.txt was not changed."), "{lines:#?}");
        assert!(lines[2].contains("4. Block 4 cannot be read: line 19"), "{lines:#?}");
        assert!(lines[2].ends_with("corrected, and only those."), "{lines:#?}");
        assert!(lines[4].ends_with("1. a.txt was changed (from line 2)."), "{lines:#?}");
        assert_eq!(test_agent.request_count(), 2);
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_not_shown_is_opened_and_asked_for_again() {
    let edit = block("c.txt", "secret word\n", "open word\n");
    for layout in LayoutName::ALL {
        let turns = [("Edit.", &*edit), ("[edit blocks]", &*edit)];
        let setup = toolless(&turns).file("c.txt", "secret word\nanother line\n");
        let test_agent = setup.layout(layout).start().await;
        test_agent.say("Edit.").await;
        assert_eq!(statuses(&test_agent), [[NotInContext], [Applied]], "{layout}");
        assert!(!test_agent.sent_bodies()[0].contains("another line"));
        assert!(test_agent.sent_bodies()[1].contains("another line"), "{layout}");
        assert_eq!(test_agent.read("c.txt"), "open word\nanother line\n");
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_keep_failing_end_the_run() {
    let wrong = block("a.txt", "three\n", "x\n");
    let turns = [("Edit.", &*wrong), ("[edit", &*wrong), ("[edit", &*wrong), ("[edit", &*wrong)];
    let test_agent = toolless(&turns).start().await;
    assert_eq!(test_agent.run("Edit.").await, RunEnd::Looping { tool: "edit".into() });
    assert_eq!(test_agent.request_count(), 4, "the first answer and three corrections");
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_need_what_calls_need() {
    let edit = block("a.txt", "one\n", "ONE\n");
    let turns = [("Edit.", &*edit)];
    let denied = toolless(&turns).approvals(TestApprovals::DenyAll).start().await;
    denied.say("Edit.").await;
    let blocked = toolless(&turns).start().await;
    blocked.agent.events().subscribe::<ToolCallEvent, _>("guard", |event, _| {
        assert_eq!(&*event.tool_name, "edit");
        async { Ok(ToolCallReply::Block { reason: "Not on a Sunday.".into() }) }
    });
    blocked.say("Edit.").await;
    let off = toolless(&turns).start().await;
    off.agent.switch_tool("edit", hardpan_tools::ToolState::Off).await.expect("there is one");
    off.say("Edit.").await;
    let outside = toolless(&[("Edit.", &block("../a.txt", "", "x\n"))]).start().await;
    outside.say("Edit.").await;
    for (test_agent, status) in
        [(&denied, NotAllowed), (&blocked, NotAllowed), (&off, NotAllowed), (&outside, Failed)]
    {
        assert_eq!(statuses(test_agent), [[status]]);
        assert_eq!(test_agent.read("a.txt"), "one\ntwo\n");
        assert_eq!(test_agent.request_count(), 2, "the model is told");
    }
    let told = line(&blocked.agent.messages()[2]);
    assert!(told.starts_with("custom: [edit blocks]\n1. Not on a Sunday.\n"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cut_changes_nothing() {
    let answer = format!("{}and more", block("a.txt", "one\n", "ONE\n"));
    let text = serde_json::to_string(&answer).expect("text");
    let script = format!("turns:\n  - text: {text}\n    stop: length\ndefault: {{text: Fine.}}\n");
    let test_agent = toolless(&[]).script(script).start().await;
    assert_eq!(test_agent.run("Edit.").await, RunEnd::Length);
    assert_eq!(statuses(&test_agent), [[NotAllowed]]);
    assert_eq!(test_agent.read("a.txt"), "one\ntwo\n");
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_tools_is_gone_on_with_by_edit_blocks() {
    let edit = block("a.txt", "one\n", "ONE\n");
    for layout in LayoutName::ALL {
        let test_agent = toolless(&[("Edit.", &edit)]).assume_tools().layout(layout).start().await;
        test_agent.say("Edit.").await;
        test_agent.say("Thanks.").await;
        assert_eq!(test_agent.read("a.txt"), "ONE\ntwo\n");
        let sent = test_agent.sent_requests();
        assert_eq!(sent.iter().map(|sent| sent.status).collect::<Vec<_>>(), [400, 200, 200], "{layout}");
        let system = |body: &str| -> serde_json::Value {
            let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
            body["messages"][0].clone()
        };
        assert!(sent[0].body.contains("\"tools\"") && !sent[0].body.contains("# Edit protocol"), "{layout}");
        assert!(sent[1].body.contains("# Edit protocol") && !sent[1].body.contains("\"tools\""), "{layout}");
        assert!(!sent[1].body.contains("Use the declared tools"), "{layout}");
        assert_eq!(system(&sent[1].body), system(&sent[2].body), "{layout}");
        // The request is the one that a model without tools gets.
        let plain = toolless(&[("Edit.", &edit)]).layout(layout).start().await;
        plain.say("Edit.").await;
        assert_eq!(sent[1].body, plain.last_sent().body, "{layout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_setting_a_model_with_tools_may_do_both_in_one_answer() {
    let edit = block("a.txt", "one\n", "ONE\n");
    let text = serde_json::to_string(&edit).expect("text");
    let script = format!(
        "turns:\n  - text: {text}\n    tool_calls:\n      - {{name: edit, arguments: {{path: a.txt, old_text: ONE, new_text: uno}}}}\n\
         \x20     - {{name: bash, arguments: {{command: cat a.txt}}}}\ndefault: {{text: Fine.}}\n"
    );
    for layout in LayoutName::ALL {
        let setup = TestAgent::with_real_tools().file("a.txt", "one\ntwo\n").open("a.txt").edit_blocks();
        let test_agent = setup.script(&script).layout(layout).start().await;
        test_agent.say("Edit.").await;
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        assert!(lines[2].starts_with("result: Edited a.txt in 1 place"), "{lines:#?}");
        assert!(lines[3].starts_with("result: uno\ntwo"), "the block came first: {lines:#?}");
        assert!(lines[4].starts_with("custom: [edit blocks]"), "{lines:#?}");
        assert_calls_paired(&test_agent.agent.messages());
        test_agent.assert_copy_sends_the_same().await;
    }
}
