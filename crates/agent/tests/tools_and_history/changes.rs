use hardpan_agent::events::ToolExecutionEnd;
use hardpan_context::LayoutName;
use hardpan_test_support::{TestAgent, assert_calls_paired, line};
use hardpan_tools::UndoOutcome;

/// Every diagnosis of a failing edit, then one that succeeds.
const EDITS: &str = "
turns:
  - when: {equals: Read.}
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {equals: Edit.}
    tool_calls:
      - {name: edit, arguments: {path: a.txt, old_text: three hundred, new_text: x}}
      - {name: edit, arguments: {path: a.txt, old_text: '  two', new_text: x}}
      - {name: edit, arguments: {path: a.txt, old_text: same, new_text: x}}
      - {name: edit, arguments: {path: a.txt, old_text: four, new_text: one}}
      - {name: edit, arguments: {path: b.txt, old_text: a, new_text: b}}
      - {name: edit, arguments: {path: a.txt, old_text: one, new_text: ONE}}
  - when: {equals: Edit it once more.}
    tool_calls: [{name: edit, arguments: {path: a.txt, old_text: ONE, new_text: uno}}]
default: {text: Fine.}
";

const TEXT: &str = "one\n\ttwo\nsame\nsame\n";

#[tokio::test(flavor = "multi_thread")]
async fn each_failing_edit_is_told_why_and_what_succeeds_is_written() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::with_real_tools().layout(layout).script(EDITS).start().await;
        test_agent.write("a.txt", TEXT);
        test_agent.say("Edit.").await;
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        let results = &lines[2..8];
        let starts =
            |at: usize, start: &str| assert!(results[at].starts_with(start), "{layout}: {}", results[at]);
        (0..4).for_each(|at| starts(at, "failed: a.txt was not changed."));
        starts(4, "failed: ");
        starts(5, "result: Edited a.txt in 1 place");
        let distinct: std::collections::BTreeSet<&String> = results.iter().collect();
        assert_eq!(distinct.len(), 6, "each says something else: {results:#?}");
        assert_eq!(test_agent.read("a.txt"), TEXT.replace("one", "ONE"));
        assert!(!test_agent.file("b.txt").exists());
        assert_calls_paired(&test_agent.agent.messages());
        test_agent.assert_copy_sends_the_same().await;
    }
}

/// How often a text is in a request.
fn count(body: &str, text: &str) -> usize {
    body.matches(text).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_file_that_the_model_edits_is_not_shown_twice() {
    for layout in LayoutName::ALL {
        let setup = TestAgent::with_real_tools().layout(layout).script(EDITS).open("a.txt");
        let test_agent = setup.start().await;
        let filler: String = (0..400).map(|n| format!("line {n} of the file\n")).collect();
        test_agent.write("a.txt", &format!("{TEXT}{filler}"));
        // `inline` shows files beside the words of the person, not in the rounds of tools that
        // follow.
        let shown = usize::from(layout != LayoutName::Inline);
        for prompt in ["Edit.", "Edit it once more."] {
            test_agent.say(prompt).await;
            assert_eq!(count(&test_agent.last_sent().body, "line 399 of the file"), shown, "{layout}");
        }
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_model_has_read_and_edits_is_told_once() {
    let test_agent = TestAgent::with_real_tools().script(EDITS).open("a.txt").start().await;
    let filler: String = (0..400).map(|n| format!("line {n} of the file\n")).collect();
    test_agent.write("a.txt", &format!("{TEXT}{filler}"));
    for (prompt, change) in
        [("Read.", "line 0 of the file"), ("Edit.", "+ONE"), ("Edit it once more.", "+uno")]
    {
        test_agent.say(prompt).await;
        let body = test_agent.last_sent().body;
        assert_eq!(count(&body, "changed outside this conversation"), 0, "the call has said it: {prompt}");
        assert!(count(&body, change) > 0, "{prompt}");
    }
    assert_eq!(count(&test_agent.last_sent().body, "+uno"), 1);
    test_agent.write("a.txt", "somebody else\n");
    test_agent.say("Well?").await;
    let body = test_agent.last_sent().body;
    assert_eq!(count(&body, "somebody else"), 1, "what others change is told");
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_file_that_is_taken_back_is_told_with_the_next_prompt() {
    for layout in LayoutName::ALL {
        let setup = TestAgent::with_real_tools().layout(layout).script(EDITS).open("a.txt");
        let test_agent = setup.start().await;
        let filler: String = (0..50).map(|n| format!("line {n} of the file\n")).collect();
        test_agent.write("a.txt", &format!("{TEXT}{filler}"));
        test_agent.journal().begin_turn(1);
        test_agent.say("Edit.").await;
        let undone = test_agent.journal().undo(1).unwrap();
        assert_eq!(undone.len(), 1);
        assert_eq!(undone[0].outcome, UndoOutcome::Restored);
        assert_eq!(test_agent.read("a.txt"), format!("{TEXT}{filler}"));
        test_agent.say("Well?").await;
        if layout == LayoutName::Strata {
            let body = test_agent.last_sent().body;
            assert!(body.contains("changed outside this conversation") && body.contains("-ONE"), "{body}");
        }
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_is_too_long_can_be_read_where_it_is_kept() {
    let script = "
turns:
  - when: {equals: Count.}
    tool_calls: [{name: bash, arguments: {command: seq 1 30000}}]
default: {text: Fine.}
";
    let test_agent = TestAgent::with_real_tools().script(script).window(400_000).start().await;
    test_agent.say("Count.").await;
    let ended = test_agent.events_of::<ToolExecutionEnd>().pop().unwrap();
    let path = ended.details.unwrap()["full_output"].as_str().unwrap().to_owned();
    assert!(line(&test_agent.agent.messages()[2]).contains(&path), "the model is told where it is");
    let read = hardpan_tools::read_only_tools()
        .into_iter()
        .find(|tool| &*tool.declaration().name == "read")
        .unwrap();
    let arguments =
        hardpan_prompt::Json::new(&serde_json::json!({"path": path, "offset": 12_345, "limit": 1}));
    let mut scope = hardpan_tools::Scope::new(test_agent.file(""), test_agent.file(""));
    scope.readable.push(std::path::Path::new(&path).parent().unwrap().to_owned());
    let call = hardpan_tools::ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &scope,
        knowledge: &Default::default(),
        progress: &|_| {},
    };
    let outcome = read.run(call).await;
    assert!(!outcome.is_error && format!("{outcome:?}").contains("12345"), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_did_to_small_files_is_undone_and_the_rest_is_named() {
    let command =
        "printf new > a.txt; rm sub/b.txt; rmdir sub; printf x > c.txt; printf y >> big.txt; touch same.txt";
    let script = format!(
        "turns:\n  - tool_calls: [{{name: bash, arguments: {{command: {}}}}}]\ndefault: {{text: Fine.}}\n",
        serde_json::json!(command)
    );
    let files = [("a.txt", "old\n"), ("sub/b.txt", "kept\n"), ("same.txt", "same\n")];
    let test_agent = TestAgent::with_real_tools().script(script).files(&files).start().await;
    test_agent.write("big.txt", &"x".repeat(300_000));
    test_agent.say("Change things.").await;
    assert_eq!((test_agent.read("a.txt"), test_agent.read("c.txt")), ("new".into(), "x".into()));
    assert!(!test_agent.file("sub").exists());
    let undone = test_agent.journal().undo(0).expect("it was recorded");
    let name = |path: &std::path::Path| path.strip_prefix(test_agent.file("")).expect("in it").to_owned();
    let undone: Vec<_> = undone.into_iter().map(|file| (name(&file.path), file.outcome)).collect();
    let expected = [
        ("a.txt", UndoOutcome::Restored),
        ("c.txt", UndoOutcome::Removed),
        ("sub/b.txt", UndoOutcome::Restored),
        ("big.txt", UndoOutcome::NotKept),
    ];
    assert_eq!(undone, expected.map(|(path, outcome)| (path.into(), outcome)));
    assert_eq!((test_agent.read("a.txt"), test_agent.read("sub/b.txt")), ("old\n".into(), "kept\n".into()));
    assert!(!test_agent.file("c.txt").exists());
    assert!(test_agent.journal().undo(0).is_err(), "nothing is left to undo");
}
