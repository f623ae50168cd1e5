//! Sub-agents: what they send, what they cost, what they may do, and how they end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{AgentEvent, TaskLimit, TaskPrefix, TaskStop, ToolCallEvent, ToolCallReply};
use hardpan_agent::{ApprovalRequest, EventStream, Input, InputOutcome, InputSource, RunEnd};
use hardpan_app::approval::{ApprovalMode, ApprovalVerdict, UserPrompter};
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionChoice};
use hardpan_app::{ConversationApp, DiscardNotices, FaceHooks};
use hardpan_economy::ledger::{Account, RequestPurpose};
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_simulator::{RequestLog, Server, ServerConfig, serve};
use hardpan_test_support::scripted_engine;
use serde_json::Value;

use super::TestHome;

const HELPER: &str =
    "---\nname: helper\ndescription: looks things up\ntools: [read, grep]\n---\nYou look things up.\n";

/// A home with a scripted server that writes every request down.
pub struct TaskHome {
    pub home: TestHome,
    _server: Server,
}

/// A request as the server saw it.
pub struct SentRequest {
    pub body: Value,
    cache_read: u64,
    input_units: f64,
}

impl TaskHome {
    pub async fn new(script: &str, config: &str) -> Self {
        let home = TestHome::new();
        let log = RequestLog::create(&home.folder.path().join("requests.jsonl")).unwrap();
        let config_with_log =
            ServerConfig { log: Some(log), ..ServerConfig::new(scripted_engine(script, "")) };
        let server = serve(config_with_log).await.unwrap();
        let provider = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", server.url());
        let always = "model = \"claude-sonnet-5\"\nsandbox = false\nmap_tokens = 0\n";
        home.write("user/config/config.toml", &format!("{always}{config}\n{provider}"));
        home.write("user/config/keys.toml", "anthropic = \"a-key-of-the-test\"\n");
        let keys = home.folder.path().join("user/config/keys.toml");
        std::fs::set_permissions(keys, std::fs::Permissions::from_mode(0o600)).unwrap();
        TaskHome { home, _server: server }
    }

    /// With the agent `helper`, and instructions that are long enough to be cached.
    async fn with_helper(script: &str, config: &str) -> Self {
        let home = TaskHome::new(script, config).await;
        home.home.write("user/config/agents/helper.md", HELPER);
        home.write_instructions(150);
        home
    }

    fn write_instructions(&self, lines: usize) {
        let rules: String =
            (0..lines).map(|n| format!("- Rule {n} of this project is to be kept.\n")).collect();
        self.home.write("work/AGENTS.md", &rules);
    }

    /// Options for a conversation that the server answers.
    pub fn options(&self, session: SessionChoice) -> OpenOptions {
        OpenOptions { access: ProviderAccess::ByKey, ..self.home.options(session) }
    }

    fn open_as(&self, approval: ApprovalMode, prompter: Option<Arc<dyn UserPrompter>>) -> ConversationApp {
        let options =
            OpenOptions { access: ProviderAccess::ByKey, approval, ..self.home.options(SessionChoice::New) };
        let face = FaceHooks { prompter, notices: Arc::new(DiscardNotices) };
        ConversationApp::open(&options, &face).unwrap()
    }

    fn open(&self) -> ConversationApp {
        self.open_as(ApprovalMode::AllowAll, None)
    }

    pub fn sent(&self) -> Vec<SentRequest> {
        let log = std::fs::read_to_string(self.home.folder.path().join("requests.jsonl")).unwrap();
        let request = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            SentRequest {
                cache_read: line["bill"]["usage"]["cache_read"].as_u64().unwrap_or(0),
                input_units: line["bill"]["input_units"].as_f64().unwrap_or(0.0),
                body: line["body"].clone(),
            }
        };
        log.lines().map(request).collect()
    }
}

fn input(text: &str) -> Input {
    Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Interactive, id: None }
}

pub async fn prompt(app: &ConversationApp, text: &str) -> RunEnd {
    match app.agent.prompt(input(text)).await.unwrap() {
        InputOutcome::Ran(end) => end,
        other => panic!("{other:?}"),
    }
}

/// The texts of the tool results, in order, and whether they are errors.
pub fn results(app: &ConversationApp) -> Vec<(String, bool)> {
    let result = |body: &MessageBody| match body {
        MessageBody::ToolResult { content, is_error, .. } => match &content[..] {
            [MessagePart::Text { text }] => Some((text.to_string(), *is_error)),
            other => panic!("{other:?}"),
        },
        _ => None,
    };
    app.agent.messages().iter().filter_map(|message| result(&message.body)).collect()
}

/// The events about sub-agents so far, as `start helper`, `update helper read a.txt`, `end helper done`.
fn task_events(events: &mut EventStream) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = events.try_recv() {
        match event {
            AgentEvent::TaskStart(start) => lines.push(format!("start {}", start.agent)),
            AgentEvent::TaskUpdate(update) => {
                lines.push(format!("update {} {}", update.agent, update.activity));
            }
            AgentEvent::TaskEnd(end) => {
                let why = match end.stop {
                    TaskStop::Done => "done".to_owned(),
                    TaskStop::Aborted => "aborted".to_owned(),
                    TaskStop::Budget { limit } => format!("budget {limit:?}"),
                    TaskStop::Failed { message } => format!("failed: {message}"),
                };
                lines.push(format!("end {} {why}", end.agent));
            }
            _ => {}
        }
    }
    lines
}

/// The prefixes of the sub-agents that started so far.
fn prefixes(events: &mut EventStream) -> Vec<TaskPrefix> {
    let mut found = Vec::new();
    while let Some(event) = events.try_recv() {
        if let AgentEvent::TaskStart(start) = event {
            found.push(start.prefix);
        }
    }
    found
}

/// The sessions of sub-agents, beside that of the conversation.
fn task_sessions(app: &ConversationApp) -> Vec<PathBuf> {
    let folder = app.agent.session().1.with_extension("tasks");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

const TWO_TASKS: &str = "
turns:
  - when: {contains: Find both}
    tool_calls:
      - {name: task, arguments: {agent: helper, task: Find the first.}}
      - {name: task, arguments: {agent: helper, task: Find the second.}}
  - {when: {contains: Find the first}, delay: 3s, tool_calls: [{name: read, arguments: {path: notes.txt}}]}
  - {when: {contains: Find the second}, delay: 3s, text: The second is here.}
  - {when: {contains: the milk}, text: The first is here.}
  - {when: {has_tool_result: task}, text: Both are found.}
";

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_one_answer_run_at_the_same_time_and_are_billed_apart() {
    let home = TaskHome::with_helper(TWO_TASKS, "").await;
    let app = home.open();
    let mut events = app.agent.events().unbounded_stream();
    assert_eq!(prompt(&app, "Find both").await, RunEnd::Done);
    let told = results(&app);
    assert_eq!(told, [("The first is here.".into(), false), ("The second is here.".into(), false)]);
    let lines = task_events(&mut events);
    assert_eq!(lines[..2], ["start helper", "start helper"], "{lines:?}");
    assert!(lines.contains(&"update helper read notes.txt".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "end helper done").count(), 2, "{lines:?}");

    // Two requests of its own, three of sub-agents: an account of their own within the same total.
    let (ledger, usage) = (app.agent.ledger(), app.agent.token_usage());
    let tasks = ledger.by_key[&Account::task("helper")];
    assert_eq!((tasks.requests, ledger.total.requests, usage.requests), (3, 5, 5));
    assert_eq!(ledger.by_purpose[&RequestPurpose::Task], tasks);
    assert_eq!(ledger.by_purpose[&RequestPurpose::Turn].requests, 2);
    assert!((usage.session.dollars - ledger.total.dollars).abs() < 1e-9);
    assert_eq!(home.sent().len(), 5);
    let prompt_tokens: u64 = ledger.by_key.values().map(|totals| totals.tokens.prompt()).sum();
    assert_eq!(prompt_tokens, ledger.total.tokens.prompt());

    // The conversations of the sub-agents are beside this one, and both survive.
    assert_eq!(task_sessions(&app).len(), 2);
    app.agent.shutdown().await.unwrap();
    let stored = hardpan_session::Session::open(&app.agent.session().1).unwrap();
    assert_eq!(hardpan_agent::session_ledger::ledger_from_entries(&stored.entries), ledger);
    let children = task_sessions(&app);
    let messages = children.iter().map(|path| {
        let session = hardpan_session::Session::open(path).unwrap();
        assert_eq!(session.header.extra["task_of"]["agent"], "helper");
        session.branch(None).unwrap().messages.len()
    });
    let mut messages: Vec<usize> = messages.collect();
    messages.sort_unstable();
    assert_eq!(messages, [2, 4]);
    assert_eq!(app.store.list(None).len(), 1, "they are listed with the conversation, not beside it");
    let child = children[0].file_stem().unwrap().to_string_lossy().rsplit_once('-').unwrap().1.to_owned();
    assert_eq!(app.store.find(None, &child).unwrap().path, children[0]);
    let summary = app.store.list(None).remove(0);
    let path = summary.path.with_extension("tasks");
    drop(app);
    let store = hardpan_session::SessionStore::new(home.home.user_folders().sessions().unwrap());
    store.delete(&summary).unwrap();
    assert!(!path.exists());
}

const ONE_TASK: &str = "
turns:
  - when: {contains: Find it}
    tool_calls: [{name: task, arguments: {agent: helper, task: Look for the milk.}}]
  - {when: {contains: Look for the milk}, tool_calls: [{name: edit, arguments: {path: notes.txt, old: Remember, new: Forget}}], undeclared: true}
  - {when: {has_tool_result: edit}, text: It is in notes.txt.}
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_reads_the_cached_prefix_where_that_is_cheaper() {
    let home = TaskHome::with_helper(ONE_TASK, "").await;
    let app = home.open();
    let mut events = app.agent.events().unbounded_stream();
    assert_eq!(prompt(&app, "Find it").await, RunEnd::Done);
    assert_eq!(prefixes(&mut events), [TaskPrefix::Shared]);
    let sent = home.sent();
    let (parent, child) = (&sent[0], &sent[1]);
    // The same bytes up to its own message.
    assert_eq!(child.body["tools"], parent.body["tools"]);
    assert_eq!(child.body["system"], parent.body["system"]);
    let messages = |request: &SentRequest| request.body["messages"].as_array().unwrap().clone();
    assert_ne!(messages(child).last(), messages(parent).last());
    assert!(child.cache_read > 1000, "{}", child.cache_read);
    let task = messages(child).last().unwrap().to_string();
    assert!(task.contains("you are the sub-agent helper") && task.contains("You look things up."), "{task}");
    // What its definition does not allow is declared, and refused.
    let [_, answered] = &messages(&sent[2])[messages(&sent[2]).len() - 2..] else { panic!() };
    assert!(answered.to_string().contains("has no tool edit. Its tools are: read, grep"), "{answered}");
    assert_eq!(results(&app), [("It is in notes.txt.".into(), false)]);
    let notes = std::fs::read_to_string(home.home.folder.path().join("work/notes.txt")).unwrap();
    assert_eq!(notes, "Remember the milk.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_has_a_prompt_of_its_own_where_that_is_cheaper() {
    let home = TaskHome::with_helper(ONE_TASK, "").await;
    // A large file is part of the beginning of every request.
    let lines: String = (0..6000).map(|n| format!("{n}: a line of the large file\n")).collect();
    home.home.write("work/large.txt", &lines);
    let app = home.open();
    app.context.open("large.txt".into());
    let mut events = app.agent.events().unbounded_stream();
    assert_eq!(prompt(&app, "Find it").await, RunEnd::Done);
    assert_eq!(prefixes(&mut events), [TaskPrefix::Own]);
    let sent = home.sent();
    let child = &sent[1].body;
    let names: Vec<&str> =
        child["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["context", "read", "grep"]);
    let text = child.to_string();
    assert!(text.contains("You look things up.") && text.contains("Rule 149 of this project"), "{text}");
    assert!(!text.contains("a line of the large file"));
    // Cheaper than the other way would have been, even once.
    assert!(sent[1].input_units < 0.1 * sent[0].input_units, "{}", sent[1].input_units);
    assert_eq!(results(&app)[0].0, "It is in notes.txt.");
}

const FORK: &str = "
turns:
  - {when: {contains: The word is}, text: I keep it in mind.}
  - when: {contains: Ask another}
    tool_calls: [{name: task, arguments: {agent: helper, task: What was the word?, context: fork}}]
  - {when: {contains: What was the word}, text: Sesame.}
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_sees_the_conversation_and_reads_all_of_it_from_the_cache() {
    for layout in ["strata", "panels", "tiers", "inline"] {
        let home = TaskHome::with_helper(FORK, &format!("layout = \"{layout}\"")).await;
        let app = home.open();
        assert_eq!(prompt(&app, "The word is sesame.").await, RunEnd::Done, "{layout}");
        let mut events = app.agent.events().unbounded_stream();
        assert_eq!(prompt(&app, "Ask another").await, RunEnd::Done, "{layout}");
        assert_eq!(prefixes(&mut events), [TaskPrefix::Fork]);
        assert_eq!(results(&app), [("Sesame.".into(), false)], "{layout}");
        let sent = home.sent();
        let child = sent[2].body.to_string();
        assert!(child.contains("The word is sesame.") && child.contains("I keep it in mind."), "{layout}");
        assert_eq!(sent[2].body["tools"], sent[1].body["tools"], "{layout}");
        assert_eq!(sent[2].body["system"], sent[1].body["system"], "{layout}");
        if layout == "strata" {
            let read = sent[2].cache_read;
            assert!(read > 0 && read >= sent[1].cache_read, "{read} of {}", sent[1].cache_read);
        }
        assert_eq!(app.agent.ledger().by_key[&Account::task("helper")].requests, 1, "{layout}");
        assert_eq!(app.agent.token_usage().requests, 4, "{layout}");
    }
}

const LOOP: &str = "
turns:
  - when: {contains: Find it}
    tool_calls: [{name: task, arguments: {agent: helper, task: Look for the milk.}}]
  - {when: {has_tool_result: task}, text: I go on without it.}
default: {text: I look once more., tool_calls: [{name: read, arguments: {path: notes.txt}}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_ends_the_sub_agent_and_not_the_one_that_started_it() {
    let cases = [
        ("requests = 2", TaskLimit::Requests, "it has sent 2 requests", 2),
        ("output_tokens = 3", TaskLimit::OutputTokens, "it has written 3 tokens", 1),
        ("dollars = 0.000001", TaskLimit::Dollars, "it has spent $0.000001", 1),
    ];
    for (setting, limit, words, requests) in cases {
        let home = TaskHome::with_helper(LOOP, &format!("[task]\n{setting}")).await;
        let app = home.open();
        let mut events = app.agent.events().unbounded_stream();
        assert_eq!(prompt(&app, "Find it").await, RunEnd::Done, "{setting}");
        let (text, is_error) = results(&app).remove(0);
        assert!(is_error && text.contains(words) && text.ends_with("I look once more."), "{setting}: {text}");
        let lines = task_events(&mut events);
        assert_eq!(lines.last().unwrap(), &format!("end helper budget {limit:?}"));
        assert_eq!(app.agent.ledger().by_key[&Account::task("helper")].requests, requests, "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_definition_has_a_budget_too_and_a_sub_agent_that_hangs_is_stopped() {
    let script = LOOP.replace("default: {text:", "default: {delay: 5m, text:");
    let home = TaskHome::with_helper(&script, "").await;
    let helper = HELPER.replace("tools:", "minutes: 0.005\ntools:");
    home.home.write("user/config/agents/helper.md", &helper);
    let app = home.open();
    assert_eq!(prompt(&app, "Find it").await, RunEnd::Done);
    let (text, is_error) = results(&app).remove(0);
    assert!(is_error && text.contains("it has worked for 0.005 minutes"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_that_cannot_begin_or_fails_is_a_failed_call() {
    let script = "
turns:
  - when: {contains: Find it}
    tool_calls:
      - {name: task, arguments: {agent: nobody, task: Look.}}
      - {name: task, arguments: {task: Fail at it.}}
      - {name: task, arguments: {agent: helper}}
  - {when: {has_tool_result: task}, text: I go on without them.}
  - {when: {contains: Fail at it}, stop: refusal, text: No.}
";
    let home = TaskHome::with_helper(script, "").await;
    let app = home.open();
    assert_eq!(prompt(&app, "Find it").await, RunEnd::Done);
    let told = results(&app);
    assert!(told.iter().all(|(_, is_error)| *is_error), "{told:?}");
    let known = "there is no agent \"nobody\": there are default, helper, pirate-coder, plan, reviewer";
    assert!(told[0].0.contains(known), "{told:?}");
    assert!(told[1].0.contains("the model refused to answer"), "{told:?}");
    assert!(told[2].0.contains("missing field `task`"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_the_sub_agents() {
    let script = LOOP.replace("default: {text:", "default: {delay: 5m, text:");
    let home = TaskHome::with_helper(&script, "").await;
    let app = home.open();
    let mut events = app.agent.events().unbounded_stream();
    let agent = app.agent.clone();
    let running = tokio::spawn(async move { agent.prompt(input("Find it")).await.unwrap() });
    while !matches!(events.recv().await.unwrap(), AgentEvent::TaskStart(_)) {}
    app.agent.abort();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
    let end = async {
        loop {
            if let AgentEvent::TaskEnd(end) = events.recv().await.unwrap() {
                break end;
            }
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(30), end).await.unwrap();
    assert_eq!(end.stop, TaskStop::Aborted);
    assert!(results(&app)[0].0.contains("stopped"), "{:?}", results(&app));
}

/// Says yes, and keeps who asked.
#[derive(Default)]
struct YesPrompter(Mutex<Vec<String>>);

impl UserPrompter for YesPrompter {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        _rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        let agent = question.agent.as_deref().unwrap_or("nobody");
        self.0.lock().unwrap().push(format!("{agent} {}", question.tool_name));
        Box::pin(std::future::ready(ApprovalVerdict::Once))
    }

    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

const WRITERS: &str = "
turns:
  - when: {contains: Write both}
    tool_calls:
      - {name: task, arguments: {agent: writer, task: Write one.}}
      - {name: task, arguments: {agent: writer, task: Write two.}}
  - {when: {contains: Write one}, tool_calls: [{name: write, arguments: {path: one.txt, content: one}}]}
  - {when: {contains: Write two}, tool_calls: [{name: write, arguments: {path: two.txt, content: two}}]}
  - {when: {has_tool_result: write}, text: It is written., repeat: always}
  - {when: {has_tool_result: task}, text: Both are written.}
";

#[tokio::test(flavor = "multi_thread")]
async fn what_sub_agents_change_is_asked_for_logged_and_undone() {
    let home = TaskHome::with_helper(WRITERS, "").await;
    home.home.write("user/config/agents/writer.md", "---\nname: writer\n---\nYou write.\n");
    let prompter = Arc::new(YesPrompter::default());
    let app = home.open_as(ApprovalMode::AskUser, Some(prompter.clone()));
    assert_eq!(prompt(&app, "Write both").await, RunEnd::Done);
    assert_eq!(*prompter.0.lock().unwrap(), ["writer write", "writer write"]);
    let work = home.home.folder.path().join("work");
    let text = |name: &str| std::fs::read_to_string(work.join(name)).ok();
    assert_eq!((text("one.txt").as_deref(), text("two.txt").as_deref()), (Some("one"), Some("two")));
    let entries = hardpan_app::audit_log::read_audit_log(&home.home.folder.path().join("user/data"));
    let session = app.agent.session().0.to_string();
    assert_eq!(entries.len(), 4, "{entries:?}");
    for entry in &entries {
        assert_eq!((&entry.session, entry.agent.as_deref()), (&session, Some("writer")), "{entry:?}");
    }
    app.undo().unwrap();
    assert_eq!((text("one.txt"), text("two.txt")), (None, None));
}

const ONE_FILE: &str = "
turns:
  - when: {contains: Write both}
    tool_calls:
      - {name: task, arguments: {agent: writer, task: Write one.}}
      - {name: task, arguments: {agent: writer, task: Write two.}}
  - {when: {contains: Write one}, tool_calls: [{name: write, arguments: {path: both.txt, content: one}}]}
  - {when: {contains: Write two}, tool_calls: [{name: write, arguments: {path: both.txt, content: two}}]}
  - {when: {contains: nothing was written}, text: Somebody else wrote both.txt.}
  - {when: {has_tool_result: write}, text: I wrote both.txt.}
  - {when: {has_tool_result: task}, text: One of them did.}
";

#[tokio::test(flavor = "multi_thread")]
async fn of_two_sub_agents_that_write_one_file_one_does_and_the_other_is_told() {
    let home = TaskHome::with_helper(ONE_FILE, "").await;
    home.home.write("user/config/agents/writer.md", "---\nname: writer\n---\nYou write.\n");
    let app = home.open();
    assert_eq!(prompt(&app, "Write both").await, RunEnd::Done);
    let told: Vec<String> = results(&app).into_iter().map(|(text, _)| text).collect();
    let text = std::fs::read_to_string(home.home.folder.path().join("work/both.txt")).unwrap();
    let (wrote, refused) = ("I wrote both.txt.".to_owned(), "Somebody else wrote both.txt.".to_owned());
    match &*text {
        "one" => assert_eq!(told, [wrote, refused]),
        "two" => assert_eq!(told, [refused, wrote]),
        other => panic!("{other}"),
    }
    // What the sub-agents said is in both their conversations.
    assert_eq!(task_sessions(&app).len(), 2);
}

const NESTED: &str = "
turns:
  - {when: {contains: Begin}, tool_calls: [{name: task, arguments: {task: Go deeper.}}]}
  - {when: {contains: Go deeper}, undeclared: true, tool_calls: [{name: task, arguments: {task: Go deepest.}}]}
  - {when: {contains: Go deepest}, undeclared: true, tool_calls: [{name: task, arguments: {task: Too deep.}}]}
  - {when: {contains: starts no others}, text: I do it here.}
  - {when: {contains: I do it here}, text: Done one level down., repeat: always}
default: {text: Done at the top.}
";

#[tokio::test(flavor = "multi_thread")]
async fn sub_agents_start_others_only_as_deep_as_the_settings_allow() {
    for (depth, requests) in [(1, 2), (2, 4)] {
        let home =
            TaskHome::with_helper(NESTED, &format!("subagents = \"on\"\n[task]\ndepth = {depth}")).await;
        let app = home.open();
        assert_eq!(prompt(&app, "Begin").await, RunEnd::Done, "depth {depth}");
        let tasks = app.agent.ledger().by_purpose[&RequestPurpose::Task];
        assert_eq!(tasks.requests, requests, "depth {depth}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_is_offered_when_it_is_asked_for() {
    let declares =
        |app: &ConversationApp| app.agent.tools().declarations().iter().any(|tool| &*tool.name == "task");
    for (config, with_file, expected) in [
        ("", false, false),
        ("", true, true),
        ("subagents = \"off\"", true, false),
        ("subagents = \"on\"", false, true),
    ] {
        let home = TaskHome::new("default: {text: Fine.}", config).await;
        if with_file {
            home.home.write("user/config/agents/helper.md", HELPER);
        }
        let app = home.open();
        assert_eq!(declares(&app), expected, "{config:?} {with_file}");
        // The dry run says the same.
        let mut options = hardpan_app::options::RequestOptions::new(home.home.folder.path().join("work"));
        options.prompt = Some("Hi".into());
        let notices: Arc<dyn hardpan_app::NoticeSink> = Arc::new(DiscardNotices);
        let settings = hardpan_app::settings::Settings::load(
            &home.home.folder.path().join("work"),
            home.home.user_folders(),
            &*notices,
        );
        let shown =
            hardpan_app::request::assemble(&options, &Arc::new(settings.unwrap()), &notices).await.unwrap();
        let body = String::from_utf8(shown.body().to_vec()).unwrap();
        assert_eq!(body.contains("\"name\":\"task\""), expected, "{config:?} {with_file}");
        // An agent whose definition does not list it has none.
        if with_file && expected {
            app.switch_agent("helper").await.unwrap();
            assert!(!declares(&app));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_guards_the_agent_guards_its_sub_agents() {
    let script = r#"turns:
- tool_calls: [{name: task, arguments: {agent: helper, task: "Read the notes."}}]
- tool_calls: [{name: read, arguments: {path: notes.txt}}]
- text: "I may not."
- text: "Done."
"#;
    let home = TaskHome::with_helper(script, "").await;
    let app = home.open();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    app.agent.events().subscribe::<ToolCallEvent, _>("guard", move |call, _| {
        names.lock().unwrap().push(call.tool_name.to_string());
        std::future::ready(Ok(match &*call.tool_name {
            "read" => ToolCallReply::Block { reason: "reading is forbidden".into() },
            _ => ToolCallReply::Allow,
        }))
    });
    app.agent.start().await;
    assert_eq!(prompt(&app, "Go.").await, RunEnd::Done);
    assert_eq!(*asked.lock().unwrap(), ["task", "read"]);
    let sent = home.sent();
    let last = sent[2].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("reading is forbidden"), "{last}");
}
