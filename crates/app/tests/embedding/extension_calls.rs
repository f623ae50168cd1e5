//! What extensions do to tool calls: change them, end the run with a result, and wait for a person.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::HandlerFailed;
use hardpan_agent::{ApprovalRequest, InputOutcome, RunEnd};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::options::{OpenOptions, SessionChoice};

use super::extensions::{FINE, TestConversation, calling, example};
use super::subagents::TaskHome;

/// An extension with a tool that says whether its result ends the run.
const ENDING: &str = "export default (pi) => pi.registerTool({ name: 'finish', label: 'Finish', description: 'Ends', parameters: { type: 'object', properties: { end: { type: 'boolean' } } },\n\
    async execute(id, { end }) { return { content: [{ type: 'text', text: 'done' }], details: {}, terminate: end }; } });";

#[tokio::test(flavor = "multi_thread")]
async fn a_result_ends_the_run_if_all_of_its_answer_say_so() {
    for (calls, requests) in [
        ("[{name: finish, arguments: {end: true}}, {name: finish, arguments: {end: true}}]", 1),
        ("[{name: finish, arguments: {end: false}}]", 2),
        ("[{name: finish, arguments: {end: true}}, {name: read, arguments: {path: notes.txt}}]", 2),
        ("[{name: finish, arguments: {end: true}}, {name: finish, arguments: {end: 7}}]", 2),
    ] {
        let script = format!("turns:\n- tool_calls: {calls}\n");
        let test = TestConversation::with_sources(&script, &[ENDING], None).await;
        assert_eq!(test.say("Go").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test.home.sent().len(), requests, "{calls}");
        // The provider accepts what comes after it.
        assert_eq!(test.say("And?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test.lines().last().unwrap(), "assistant: Fine.");
    }
}

/// Changes what a command does by changing the event.
fn changing(head: &str) -> String {
    format!(
        "// {head}\nexport default (pi) => {{ pi.on('tool_call', (e) => {{ if (e.toolName === 'bash') e.input.command = 'echo ' + e.input.command; if (e.toolName === 'edit') e.input.edits[0].newText = 'water'; }}); }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_extension_changes_a_call_in_place_and_the_person_is_asked_about_what_runs() {
    let script = calling("bash", "{command: rm notes.txt}");
    let newer = changing("for @earendil-works/pi-coding-agent");
    let test = TestConversation::with_sources(&script, &[&newer, &newer], None).await;
    test.say("Go").await;
    assert_eq!(
        test.questions(),
        ["Command(\"echo echo rm notes.txt\")"],
        "each sees what the one before it made"
    );
    let lines = test.lines();
    assert!(lines.iter().any(|line| line.contains("result: echo rm notes.txt")), "{lines:?}");
    let sent = test.home.sent().pop().unwrap().body["messages"].to_string();
    assert!(
        sent.contains("\"command\":\"rm notes.txt\""),
        "the transcript keeps what the model wrote: {sent}"
    );

    // Under the names that extensions know, and back.
    let script = calling("edit", "{path: notes.txt, edits: [{old_text: milk, new_text: wine}]}");
    let test = TestConversation::with_sources(
        &format!(
            "turns:\n- tool_calls: [{{name: read, arguments: {{path: notes.txt}}}}]\n{}",
            &script["turns:\n".len()..]
        ),
        &[&newer],
        None,
    )
    .await;
    test.say("Go").await;
    let notes = test.home.home.folder.path().join("work/notes.txt");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "Remember the water.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn for_an_older_extension_the_arguments_are_a_copy() {
    let test =
        TestConversation::with_sources(&calling("bash", "{command: echo hi}"), &[&changing("")], None).await;
    test.say("Go").await;
    assert_eq!(test.questions(), ["Command(\"echo hi\")"]);
}

/// How long handlers may take here.
const HANDLER_LIMIT: Duration = Duration::from_millis(200);

/// Answers a guard's question when every limit of handlers and of scripts (2 seconds) is long over.
struct LatePerson(&'static str);

impl UserPrompter for LatePerson {
    fn ask_approval<'a>(
        &'a self,
        _question: &'a ApprovalRequest,
        _rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(std::future::ready(ApprovalVerdict::Once))
    }

    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async {
            tokio::time::sleep(HANDLER_LIMIT * 15).await;
            Some(self.0.to_owned())
        })
    }
}

async fn run_guarded(guard: &str, source: Option<&str>, answer: &'static str) -> TestConversation {
    let script = calling("bash", "{command: rm -rf build && echo gone}");
    let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
    let mut extensions = vec![example(guard)];
    if let Some(source) = source {
        home.home.write("extensions/ext1.ts", source);
        extensions = vec![home.home.folder.path().join("extensions/ext1.ts")];
    }
    let options =
        OpenOptions { extensions, handler_timeout: Some(HANDLER_LIMIT), ..home.options(SessionChoice::New) };
    let test = TestConversation::with_prompter(home, options, Arc::new(LatePerson(answer))).await;
    assert_eq!(test.say("Clean up").await, InputOutcome::Ran(RunEnd::Done));
    test
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_waits_for_a_person_longer_than_any_limit_and_the_answer_counts() {
    for (answer, expected) in [("1", "result: gone"), ("2", "Blocked by the user")] {
        let mut test = run_guarded("permission-gate.ts", None, answer).await;
        let lines = test.lines();
        assert!(lines.iter().any(|line| line.contains(expected)), "{lines:?}");
        let events = test.take_events();
        assert!(events.iter().all(|event| event.payload::<HandlerFailed>().is_none()), "{events:?}");
    }
    // The limit holds for a guard that waits for anything else.
    let hanging = "export default (pi) => { pi.on('tool_call', () => new Promise(() => {})); }";
    let mut test = run_guarded("permission-gate.ts", Some(hanging), "1").await;
    let events = test.take_events();
    assert!(events.iter().any(|event| event.payload::<HandlerFailed>().is_some()), "{events:?}");
    assert!(!test.lines().iter().any(|line| line.contains("result: gone")), "{:?}", test.lines());
}
