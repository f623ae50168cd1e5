//! What handlers decide: guards that are removed, replies that mean nothing, questions that a stop ends, and work
//! that extensions make for the model.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::events::{Dialog, DialogAnswer, HandlerFailed};
use hardpan_agent::{ApprovalRequest, ShellVisibility};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::options::{OpenOptions, SessionChoice};

use super::extensions::{FINE, TestConversation, calling};
use super::hostile_extensions::until;
use super::subagents::{TaskHome, results};

fn faults(test: &mut TestConversation) -> Vec<String> {
    let events = test.take_events();
    let faults = events.iter().filter_map(|event| event.payload::<HandlerFailed>());
    faults.map(|failed| format!("{}: {}", failed.0.event, failed.0.message)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_whose_file_is_removed_blocks_until_the_person_loads_anew() {
    let turn = "- tool_calls: [{name: read, arguments: {path: notes.txt}}]\n- text: Fine.\n";
    let home = TaskHome::new(&format!("turns:\n{}{FINE}", turn.repeat(5)), "").await;
    home.home
        .write("user/config/extensions/guard.ts", "export default (pi) => pi.on('tool_call', () => {});");
    let again = "export default (pi) => pi.registerCommand('again', { handler: (_, ctx) => ctx.reload() });";
    home.home.write("user/config/extensions/other.ts", again);
    let test = TestConversation::open_in(home, &[], None).await;
    let guard = test.home.home.folder.path().join("user/config/extensions/guard.ts");
    test.say("go").await;
    assert!(!results(&test.app).pop().unwrap().1, "nothing is against it");

    let content = fs::read_to_string(&guard).unwrap();
    fs::remove_file(&guard).unwrap();
    test.say("/again").await;
    until("it is loaded anew", || test.app.extensions.list().len() == 1).await;
    until("it is told", || test.notices().iter().any(|told| told.contains("its file is gone"))).await;
    test.say("go").await;
    let (result, is_error) = results(&test.app).pop().unwrap();
    assert!(is_error && result.contains("guard is missing"), "{result}");
    // Another change takes no block away.
    test.say("/again").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    test.say("go").await;
    assert!(results(&test.app).pop().unwrap().1);
    // The file is back, or the person goes on without it.
    fs::write(&guard, &content).unwrap();
    test.say("/again").await;
    until("it is back", || test.app.extensions.list().len() == 2).await;
    test.say("go").await;
    assert!(!results(&test.app).pop().unwrap().1);
    fs::remove_file(&guard).unwrap();
    test.app.reload_extensions().await;
    test.say("go").await;
    assert!(!results(&test.app).pop().unwrap().1);
}

/// Never answers dialogs, and says yes to calls.
#[derive(Default)]
struct Absent {
    asked: Mutex<Vec<String>>,
    approvals: Mutex<Vec<String>>,
}

impl UserPrompter for Absent {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        _rule: Option<&'a hardpan_agent::approval::ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        self.approvals.lock().unwrap().push(format!("{:?}", question.subject));
        Box::pin(std::future::ready(ApprovalVerdict::Once))
    }

    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn ask_dialog<'a>(&'a self, owner: &'a str, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogAnswer>> {
        self.asked.lock().unwrap().push(format!("{owner}: {dialog:?}"));
        Box::pin(std::future::pending())
    }
}

async fn with_absent(script: &str, source: &str) -> (TestConversation, Arc<Absent>) {
    let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
    home.home.write("user/config/extensions/one.ts", source);
    let absent = Arc::new(Absent::default());
    let options: OpenOptions = home.options(SessionChoice::New);
    (TestConversation::with_prompter(home, options, absent.clone()).await, absent)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_questions_of_the_run_and_the_next_run_asks_its_own() {
    let script = "turns:\n- {when: {contains: go}, repeat: always, tool_calls: [{name: read, arguments: {path: notes.txt}}]}\n";
    let gate = "export default (pi) => pi.on('tool_call', async (event, ctx) => { while (!(await ctx.ui.confirm('Sure?', 'm'))) await 0; });";
    let (test, absent) = with_absent(script, gate).await;
    for count in 1..=2 {
        let app = test.app.clone();
        let run = tokio::spawn(async move { super::subagents::prompt(&app, "go").await });
        until("it asks", || absent.asked.lock().unwrap().len() == count).await;
        test.app.agent.stop();
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("the run has ended").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_person_typed_runs_in_an_extension_without_a_question() {
    let source = "import { createLocalBashOperations } from '@mariozechner/pi-coding-agent'; export default (pi) => { pi.on('user_bash', () => ({ operations: createLocalBashOperations() })); pi.registerCommand('later', { handler: async () => { await pi.exec('sh', ['-c', 'echo typed > made.txt']); } }); };";
    let (test, absent) = with_absent("", source).await;
    let command = "echo typed > made.txt".to_owned();
    test.app.agent.run_shell_command(command, ShellVisibility::Model).await.unwrap();
    let made = test.home.home.folder.path().join("work/made.txt");
    assert_eq!(fs::read_to_string(made).unwrap(), "typed\n");
    assert_eq!(*absent.approvals.lock().unwrap(), [""; 0]);
    // Once, and not what the extension wants later.
    test.say("/later").await;
    assert_eq!(absent.approvals.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn git_in_the_folder_of_the_conversation_is_the_command_that_rules_know() {
    let source = "export default (pi) => pi.registerCommand('look', { handler: async (_, ctx) => { for (const folder of [ctx.cwd, '.', '..']) await pi.exec('git', ['-C', folder, 'log', '--oneline']); } });";
    let (test, absent) = with_absent("", source).await;
    test.say("/look").await;
    let asked = absent.approvals.lock().unwrap().clone();
    let here = r#"Command("git log --oneline")"#;
    assert_eq!(asked, [here, here, r#"Command("git -C .. log --oneline")"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_call_may_end_the_run() {
    let source = "export default (pi) => pi.on('tool_call', () => ({ block: true, terminate: true, reason: 'enough' }));";
    let test = TestConversation::with_sources(&calling("read", "{path: notes.txt}"), &[source], None).await;
    test.say("go").await;
    assert_eq!(results(&test.app), [("enough".to_owned(), true)]);
    assert_eq!(test.home.sent().len(), 1, "the model is not asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_means_nothing_is_told_and_changes_nothing() {
    let source = "export default (pi) => {\n\
        pi.on('input', () => ({ action: 'nope' })); pi.on('input', () => 'text'); pi.on('input', () => true);\n\
        pi.on('context', (event) => ({ messages: [...event.messages, { role: 'wizard', content: 'x' }] }));\n\
        pi.on('context', (event) => ({ messages: [...event.messages, { role: 'system', content: 'from a system message' }] }));\n\
        pi.on('agent_end', () => 'nobody asks'); };";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("The prompt").await;
    let faults = faults(&mut test);
    let starts: Vec<&str> = faults.iter().map(|fault| fault.split(", and").next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "input: what it returned is no reply to this event",
            "input: what it returned is no reply to this event",
            "context: number 1 of the messages that it returned (wizard) is none, so all stay as they were",
        ]
    );
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(body.contains("The prompt") && body.contains("from a system message"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_to_a_run_in_which_the_model_makes_no_call_have_a_limit() {
    let greedy = "export default (pi) => pi.on('agent_start', () => { for (let n = 0; n < 900; n++) pi.sendMessage({ customType: 'x', content: 'again ' + n, display: false }); });";
    let mut test = TestConversation::with_sources("", &[greedy], None).await;
    test.say("Hi").await;
    let most = hardpan_agent::MAX_EXTENSION_RUNS as usize;
    until("it is over", || !test.app.agent.status().is_working()).await;
    let sent = test.home.sent().len();
    assert!(sent <= 1 + most, "{sent} requests");
    let told = faults(&mut test);
    assert_eq!(told.iter().filter(|told| told.contains("times in a row")).count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_whose_parameters_are_no_object_is_left_out() {
    let source = "export default (pi) => { for (const [name, parameters] of Object.entries({ list: { type: 'array' }, odd: { type: 'strng' }, good: { type: 'object', properties: {} } })) pi.registerTool({ name, description: 'x', parameters, execute() {} }); };";
    let test = TestConversation::with_sources("", &[source], None).await;
    let told = test.notices();
    for name in ["list", "odd"] {
        let is_told = |told: &String| told.contains(&format!("the tool {name} is left out: its parameters"));
        assert!(told.iter().any(is_told), "{told:?}");
    }
    test.say("Hi").await;
    let tools = test.home.sent().pop().unwrap().body["tools"].to_string();
    assert!(tools.contains("\"good\"") && !tools.contains("\"odd\""), "{tools}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_asked_without_end_gets_no_answer_for_a_while() {
    let source = "export default (pi) => pi.registerCommand('flood', { handler: async (_, ctx) => { let n = 0; for (; n < 500; n++) await ctx.ui.confirm('Sure?', 'm'); ctx.ui.notify('asked ' + n); } });";
    let mut test = TestConversation::with_sources("", &[source], Some("no")).await;
    test.say("/flood").await;
    assert_eq!(test.notes(), ["asked 500"]);
    assert_eq!(test.questions().len(), 100);
}
