//! Extensions in a conversation: what they can do, and what they cannot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{AgentEvent, HandlerFailed, Note, NoteKind};
use hardpan_agent::{ApprovalRequest, EventStream, Input, InputOutcome, InputSource, RunEnd};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::extensions::ExtensionOrigin;
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::settings::TrustReview;
use hardpan_app::{ConversationApp, FaceHooks};
use hardpan_test_support::line;

use super::NoticeLog;
use super::subagents::TaskHome;

/// Answers every question with the same line, and every approval with yes.
pub struct Answers {
    line: Option<&'static str>,
    questions: Mutex<Vec<String>>,
}

impl UserPrompter for Answers {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        _rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        self.questions.lock().unwrap().push(format!("{:?}", question.subject));
        Box::pin(std::future::ready(ApprovalVerdict::Once))
    }

    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        self.questions.lock().unwrap().push(question.to_owned());
        Box::pin(std::future::ready(self.line.map(str::to_owned)))
    }
}

pub struct TestConversation {
    pub app: Arc<ConversationApp>,
    pub home: TaskHome,
    events: EventStream,
    notices: Arc<NoticeLog>,
    answers: Arc<Answers>,
}

pub(super) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions").join(name)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding/fixtures").join(name)
}

/// What the model answers when it has nothing else to say.
pub const FINE: &str = "default: {text: Fine.}\n";

impl TestConversation {
    pub async fn open(script: &str, extensions: &[PathBuf], answer: Option<&'static str>) -> Self {
        let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
        Self::open_in(home, extensions, answer).await
    }

    /// With extensions that are written here.
    pub async fn with_sources(script: &str, sources: &[&str], answer: Option<&'static str>) -> Self {
        let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
        let mut paths = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            let name = format!("extensions/ext{}.ts", at + 1);
            home.home.write(&name, source);
            paths.push(home.home.folder.path().join(name));
        }
        Self::open_in(home, &paths, answer).await
    }

    pub async fn open_in(home: TaskHome, extensions: &[PathBuf], answer: Option<&'static str>) -> Self {
        Self::open_session(home, SessionChoice::New, extensions, answer).await
    }

    pub async fn open_session(
        home: TaskHome,
        session: SessionChoice,
        extensions: &[PathBuf],
        answer: Option<&'static str>,
    ) -> Self {
        let (notices, questions) = (Arc::new(NoticeLog::default()), Mutex::default());
        let answers = Arc::new(Answers { line: answer, questions });
        let prompter: Option<Arc<dyn UserPrompter>> = Some(answers.clone());
        let options = OpenOptions { extensions: extensions.to_vec(), ..home.options(session) };
        Self::start(home, &options, FaceHooks { prompter, notices: notices.clone() }, notices, answers).await
    }

    /// With somebody else who is asked.
    pub async fn with_prompter(home: TaskHome, options: OpenOptions, person: Arc<dyn UserPrompter>) -> Self {
        let notices = Arc::new(NoticeLog::default());
        let answers = Arc::new(Answers { line: None, questions: Mutex::default() });
        let face = FaceHooks { prompter: Some(person), notices: notices.clone() };
        Self::start(home, &options, face, notices, answers).await
    }

    async fn start(
        home: TaskHome,
        options: &OpenOptions,
        face: FaceHooks,
        notices: Arc<NoticeLog>,
        answers: Arc<Answers>,
    ) -> Self {
        let app = Arc::new(ConversationApp::open(options, &face).unwrap());
        let events = app.agent.events().unbounded_stream();
        app.load_extensions().await.unwrap();
        app.agent.start().await;
        TestConversation { app, home, events, notices, answers }
    }

    pub async fn say(&self, text: &str) -> InputOutcome {
        let (text, source) = (text.to_owned(), InputSource::Interactive);
        let input = Input { text, below: None, images: Vec::new(), source, id: None };
        self.app.agent.prompt(input).await.unwrap()
    }

    pub fn lines(&self) -> Vec<String> {
        self.app.agent.messages().iter().map(line).collect()
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<AgentEvent> {
        std::iter::from_fn(|| self.events.try_recv()).collect()
    }

    /// What extensions told the user.
    pub fn notes(&mut self) -> Vec<String> {
        let events = self.take_events();
        let notes = events.into_iter().filter_map(|event| match event {
            AgentEvent::Note(Note { text, kind: NoteKind::Extension { .. } }) => Some(text),
            _ => None,
        });
        notes.collect()
    }

    pub fn notices(&self) -> Vec<String> {
        self.notices.0.lock().unwrap().clone()
    }

    pub fn questions(&self) -> Vec<String> {
        self.answers.questions.lock().unwrap().clone()
    }
}

pub fn calling(name: &str, arguments: &str) -> String {
    format!("turns:\n- tool_calls: [{{name: {name}, arguments: {arguments}}}]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_snippets_of_the_specification_run_as_they_stand() {
    let both = [fixture("pipeline-input.ts"), fixture("pipeline-before-agent-start.ts")];
    let test = TestConversation::open("", &both, None).await;
    assert_eq!(test.notices(), [""; 0]);
    assert_eq!(test.say("Hi").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.lines(), ["user: Hi", "custom: Context the LLM should see", "assistant: Fine."]);
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(body.contains("\\nExtra instructions"), "{body}");
    assert!(body.contains("Context the LLM should see"), "{body}");
    let listed = test.app.extensions.list();
    assert_eq!(listed[1].events, ["before_agent_start"]);
    assert_eq!(listed[1].origin, ExtensionOrigin::Argument);
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_of_several_extensions_chain_in_order() {
    let first = "export default (pi) => { pi.on('input', (e) => ({ action: 'transform', text: e.text + ' one' })); pi.on('context', (e) => { e.messages.pop(); e.messages.push({ role: 'user', content: 'changed in place' }); }); }";
    let second = "export default (pi) => { pi.on('input', (e) => e.text === 'stop one' ? { action: 'handled' } : { action: 'transform', text: e.text + ' two' }); pi.on('context', (e) => ({ messages: [...e.messages, { role: 'custom', customType: 'x', content: 'added', display: false }] })); }";
    let test = TestConversation::with_sources("", &[first, second], None).await;
    assert_eq!(test.say("stop").await, InputOutcome::Handled);
    test.say("go").await;
    // What handlers of `context` change is sent, and not stored.
    assert_eq!(test.lines(), ["user: go one two", "assistant: Fine."]);
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(!body.contains("go one two"), "{body}");
    let (changed, added) = (body.find("changed in place").unwrap(), body.find("added").unwrap());
    assert!(changed < added, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_an_extension_is_declared_and_called() {
    let script = "turns:\n- tool_calls: [{name: tasks, arguments: {action: add, text: Sleep}}]\n- when: {has_tool_result: tasks}\n  tool_calls: [{name: tasks, arguments: {action: fly}}]\n";
    let mut test = TestConversation::open(script, &[example("todo.ts")], None).await;
    test.say("Remember to sleep").await;
    let lines = test.lines();
    assert!(lines.contains(&"result: [ ] #1 Sleep".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("action: must be one of")), "{lines:?}");
    let first = test.home.sent().remove(0).body;
    assert!(first["tools"].to_string().contains("Keeps a list of tasks"), "{first}");
    test.take_events();
    assert_eq!(test.say("/tasks").await, InputOutcome::Command { output: None });
    assert_eq!(test.notes(), ["[ ] #1 Sleep"]);
    // The list is back when the conversation is opened again.
    test.app.agent.shutdown().await.unwrap();
    let TestConversation { app, home, .. } = test;
    drop(app);
    let session = SessionChoice::Latest;
    let mut test = TestConversation::open_session(home, session, &[example("todo.ts")], None).await;
    test.say("/tasks").await;
    assert_eq!(test.notes(), ["[ ] #1 Sleep"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_an_extension_are_stored_and_read_back() {
    let source = "export default (pi) => { pi.registerCommand('keep', { handler: async (args, ctx) => {\n\
        if (args) pi.appendEntry('mine', { args });\n\
        let refused = ''; try { pi.appendEntry('hardpan.around', {}); } catch (error) { refused = error.message; }\n\
        const kept = ctx.sessionManager.getEntries().filter((e) => e.type === 'custom').map((e) => e.customType + e.data.args);\n\
        ctx.ui.notify(kept.join() + '|' + refused); } }); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("Hi").await;
    test.say("/keep one").await;
    test.say("/keep two").await;
    let refused = "hardpan.around is a type of Hardpan's own entries";
    assert_eq!(test.notes(), [format!("mineone|{refused}"), format!("mineone,minetwo|{refused}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_asks_the_person_and_blocks_on_no() {
    let script = calling("bash", "{command: rm -rf build}");
    for (answer, is_blocked) in [(Some("2"), true), (Some("1"), false), (None, true)] {
        let test = TestConversation::open(&script, &[example("permission-gate.ts")], answer).await;
        test.say("Clean up").await;
        let asked = test.questions();
        assert!(asked[0].starts_with("permission-gate: This command is hard to undo"), "{asked:?}");
        let lines = test.lines();
        assert_eq!(lines.iter().any(|line| line.contains("Blocked by the user")), is_blocked, "{lines:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_hangs_or_throws_blocks_the_call_and_is_named() {
    let throwing = "export default (pi) => { pi.on('tool_call', () => { throw new Error('broken'); }); }";
    let looping = "export default (pi) => { pi.on('tool_call', () => { for (;;) {} }); }";
    for (guard, expected) in [(throwing, "Error: broken (ext1.ts:1:"), (looping, "without a pause")] {
        let mut test =
            TestConversation::with_sources(&calling("write", "{path: new.txt, content: x}"), &[guard], None)
                .await;
        assert_eq!(test.say("Write").await, InputOutcome::Ran(RunEnd::Done));
        assert!(!test.home.home.folder.path().join("work/new.txt").exists());
        let events = test.take_events();
        let faults: Vec<_> = events.iter().filter_map(|event| event.payload::<HandlerFailed>()).collect();
        assert_eq!((&*faults[0].0.owner, faults[0].0.event), ("ext1", "tool_call"));
        assert!(faults[0].0.message.contains(expected), "{faults:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_have_the_names_that_extensions_know() {
    let guard = "export default (pi) => { pi.on('tool_call', (e) => ({ block: true, reason: JSON.stringify(e.input) })); }";
    let script = calling("edit", "{path: a.txt, edits: [{old_text: a, new_text: b}]}");
    let test = TestConversation::with_sources(&script, &[guard], None).await;
    test.say("Edit").await;
    let lines = test.lines();
    assert!(lines.iter().any(|line| line.contains(r#""oldText":"a","newText":"b""#)), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_input_transform_rewrites_and_answers() {
    let mut test = TestConversation::open("", &[example("input-transform.ts")], None).await;
    assert_eq!(test.say("ping").await, InputOutcome::Handled);
    assert_eq!(test.notes(), ["pong"]);
    test.say("? why").await;
    assert_eq!(test.lines()[0], "user: why\n\nAnswer in one sentence.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_protected_paths_blocks() {
    let script = calling("write", "{path: .env, content: x}");
    let mut test = TestConversation::open(&script, &[example("protected-paths.ts")], None).await;
    test.say("Write").await;
    assert!(test.lines().iter().any(|line| line.contains(".env is protected")), "{:?}", test.lines());
    assert_eq!(test.notes(), ["Kept .env as it is"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_inline_bash_runs_commands_that_are_asked_about() {
    let test = TestConversation::open("", &[example("inline-bash.ts")], None).await;
    test.say("Say !{echo hello}").await;
    assert_eq!(test.lines()[0], "user: Say hello");
    assert_eq!(test.questions(), ["Command(\"sh -c 'echo hello'\")"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_plan_mode_switches_tools() {
    let mut test = TestConversation::open("", &[example("plan-mode.ts")], None).await;
    test.say("/plan").await;
    assert_eq!(test.notes(), ["Plan mode is on: only tools that read"]);
    test.say("Think").await;
    let body = test.home.sent().pop().unwrap().body;
    assert!(!body["tools"].to_string().contains("\"bash\""), "{body}");
    assert!(body.to_string().contains("Change nothing."), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_status_line_and_session_name_follow_a_run() {
    let mut test =
        TestConversation::open("", &[example("status-line.ts"), example("session-name.ts")], None).await;
    test.say("Name me").await;
    let notes = test.notes();
    assert!(notes[0].starts_with("1 turn in "), "{notes:?}");
    let found = test.app.store.find(Some(&test.app.folder), "Name me").unwrap();
    assert_eq!(found.id, test.app.agent.session().0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_compaction_summary_replaces_the_models() {
    let test = TestConversation::open("", &[example("compaction-summary.ts")], None).await;
    for prompt in ["First", "Second", "Third"] {
        // More than a compaction keeps.
        test.say(&format!("{prompt}\n{}", "word ".repeat(15_000))).await;
    }
    test.app.agent.compact(None).await.unwrap();
    let lines = test.lines();
    assert!(lines[0].contains("So far the user asked for:\n- First"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_git_checkpoint_runs_git() {
    let test = TestConversation::open("", &[example("git-checkpoint.ts")], None).await;
    test.say("Go").await;
    assert_eq!(test.questions(), ["Command(\"git stash create\")"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_uses_files_of_the_workspace_and_its_own_folder_and_no_others() {
    let source = "import { readFileSync, writeFileSync, existsSync, readdirSync } from 'node:fs';\nimport { join, dirname } from 'node:path';\nimport { fileURLToPath } from 'node:url';\n\
        const here = dirname(fileURLToPath(import.meta.url));\n\
        const attempt = (work) => { try { return work(); } catch (error) { return error.code ?? error.message; } };\n\
        export default (pi) => pi.registerCommand('try', { handler: async (args, ctx) => {\n\
          writeFileSync('made.txt', 'made'); writeFileSync(join(here, 'own.txt'), 'own');\n\
          ctx.ui.notify([readFileSync('notes.txt', 'utf8').trim(), readFileSync(join(here, 'own.txt'), 'utf-8'), existsSync('none'),\n\
            attempt(() => readFileSync('../user/config/keys.toml')), attempt(() => readFileSync('/etc/passwd')), attempt(() => writeFileSync('/tmp/hardpan-escape', 'x')),\n\
            attempt(() => readFileSync('missing')), readdirSync('.').includes('made.txt'), typeof process.env.ANTHROPIC_API_KEY, process.env.HOME !== undefined].join('|'));\n\
        } });";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("/try").await;
    assert_eq!(
        test.notes(),
        ["Remember the milk.|own|false|EACCES|EACCES|EACCES|ENOENT|true|undefined|true"]
    );
    assert!(!Path::new("/tmp/hardpan-escape").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_of_a_project_are_loaded_when_they_are_trusted_as_they_are() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write(
        "work/.hardpan/extensions/a.ts",
        "export default (pi) => { pi.registerCommand('a', { handler() {} }); }",
    );
    home.home.write("work/.pi/extensions/b/index.ts", "import { name } from './name';\nexport default (pi) => { pi.registerCommand(name, { handler() {} }); }");
    home.home.write("work/.pi/extensions/b/name.ts", "export const name: string = 'b';");
    home.home.write(
        "user/config/extensions/c.js",
        "export default (pi) => { pi.registerCommand('c', { handler() {} }); }",
    );
    home.home.write("user/config/extensions/d/package.json", r#"{"pi": {"extensions": ["./main.ts"]}}"#);
    home.home.write(
        "user/config/extensions/d/main.ts",
        "export default (pi) => { pi.registerCommand('d', { handler() {} }); }",
    );
    let commands = |test: &TestConversation| -> Vec<String> {
        test.app.extensions.list().into_iter().flat_map(|extension| extension.commands).collect()
    };
    let test = TestConversation::open_in(home, &[], None).await;
    assert_eq!(commands(&test), ["c", "d"]);
    let (home, work) = (test.home, test.app.folder.clone());
    TrustReview::read(&work, &home.home.user_folders()).unwrap().accept(&home.home.user_folders()).unwrap();
    let test = TestConversation::open_in(home, &[], None).await;
    assert_eq!(commands(&test), ["a", "b", "c", "d"]);
    let home = test.home;
    home.home.write("work/.pi/extensions/b/name.ts", "export const name: string = 'changed';");
    let test = TestConversation::open_in(home, &[], None).await;
    assert_eq!(commands(&test), ["a", "b", "c", "d"], "they go on as they were trusted");
    let told = "its extensions run as you trusted them; run `hardpan trust`";
    assert!(test.notices().iter().any(|notice| notice.contains(told)), "{:?}", test.notices());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_is_told_and_leaves_nothing_behind() {
    let broken = "import x from 'left-pad';\nexport default (pi) => { x(pi); };";
    let half =
        "export default (pi) => { pi.registerCommand('half', { handler() {} }); throw new Error('late'); }";
    let odd = "export default (pi) => { pi.on('no_such_event', () => {}); pi.registerTool({ name: 'recall', description: 'x', parameters: {}, execute() {} }); pi.registerCommand('ok', { handler() {} }); }";
    let test = TestConversation::with_sources("", &[broken, half, odd], None).await;
    let notices = test.notices();
    assert!(notices[0].contains("ext1.ts was not loaded") && notices[0].contains("left-pad"), "{notices:?}");
    assert!(notices[1].contains("Error: late (ext2.ts:1:"), "{notices:?}");
    assert!(
        notices.iter().any(|notice| notice.contains("there is no event \"no_such_event\" here")),
        "{notices:?}"
    );
    assert!(notices.iter().any(|notice| notice.contains("the tool recall is left out")), "{notices:?}");
    let commands = test.app.agent.commands();
    assert!(commands.contains_key("ok") && !commands.contains_key("half"));
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_send_messages_and_hear_each_other() {
    // Its own handler is asked about the message that it sends.
    let sender = "export default (pi) => { pi.on('message_start', () => {}); pi.registerCommand('send', { handler: async () => { pi.sendMessage({ customType: 'x', content: 'noted', display: true }); pi.sendUserMessage('/send is no command now'); pi.events.emit('hello', { n: 5 }); } }); }";
    let listener = "export default (pi) => { pi.events.on('hello', (data) => pi.registerCommand('heard-' + data.n, { handler() {} })); }";
    let test = TestConversation::with_sources("", &[sender, listener], None).await;
    test.say("/send").await;
    for _ in 0..1_000 {
        if test.lines().len() == 3 && test.app.agent.commands().contains_key("heard-5") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(test.lines(), ["custom: noted", "user: /send is no command now", "assistant: Fine."]);
    assert!(test.app.agent.commands().contains_key("heard-5"));
}
