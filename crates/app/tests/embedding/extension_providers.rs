//! Providers that extensions bring: a script that answers, logins, and keys that go nowhere unasked.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Barrier, Mutex};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::{ApprovalRequest, InputOutcome, RunEnd};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::extensions::PermissionStore;
use hardpan_app::options::{OpenOptions, SessionChoice, TargetOptions};
use hardpan_app::settings::TrustReview;
use hardpan_app::{ConversationApp, DiscardNotices, FaceHooks};
use serde_json::{Value, json};

use hardpan_test_support::{TestResponse, TestServer};

use super::extensions::{FINE, TestConversation, example};
use super::subagents::{TaskHome, prompt, results};

/// What the providers below share: a message to fill, and a stream of events that is filled with it.
pub(super) const HELPERS: &str = "import { createAssistantMessageEventStream, calculateCost } from '@earendil-works/pi-ai';\n\
    const seen = globalThis.seen = [];\n\
    const models = [{ id: 'large', name: 'Large', reasoning: true, input: ['text'], cost: { input: 10, output: 20, cacheRead: 1, cacheWrite: 0 }, contextWindow: 64000, maxTokens: 8000 }];\n\
    const begin = (model) => ({ role: 'assistant', content: [], api: model.api, provider: model.provider, model: model.id, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } }, stopReason: 'stop', timestamp: Date.now() });\n\
    const end = (stream, output) => { Object.assign(output.usage, { input: 1000, output: 100, cacheRead: 0, totalTokens: 1100 }); stream.push({ type: 'done', reason: output.stopReason, message: output }); stream.end(); };\n\
    const fail = (stream, output, text) => { Object.assign(output, { stopReason: 'error', errorMessage: text }); stream.push({ type: 'error', reason: 'error', error: output }); stream.end(); };\n\
    const say = (stream, output, text) => { const at = output.content.length; output.content.push({ type: 'text', text: '' }); stream.push({ type: 'text_start', contentIndex: at, partial: output }); for (const piece of text.split(/(?= )/)) { output.content[at].text += piece; stream.push({ type: 'text_delta', contentIndex: at, delta: piece, partial: output }); } stream.push({ type: 'text_end', contentIndex: at, content: output.content[at].text, partial: output }); };\n";

/// An extension with a provider `birds` whose answers are the body of an async function of `stream`,
/// `output`, `model`, `context` and `options`.
fn birds(body: &str, more: &str) -> String {
    format!(
        "{HELPERS}\
        const answer = (model, context, options) => {{ const stream = createAssistantMessageEventStream(); const output = begin(model); (async () => {{ stream.push({{ type: 'start', partial: output }}); {body} }})().catch((error) => fail(stream, output, error.message)); return stream; }};\n\
        export default (pi) => {{ pi.registerProvider('birds', {{ api: 'carrier-pigeon', models, streamSimple: answer{more} }}); pi.registerCommand('seen', {{ handler: async (args, ctx) => ctx.ui.notify(JSON.stringify(seen)) }}); }}"
    )
}

async fn open_with_model(home: TaskHome, extensions: Vec<PathBuf>, model: &str) -> TestConversation {
    let person = Arc::new(Person::default());
    open_as(home, extensions, Some(model), person).await
}

pub(super) async fn open_as(
    home: TaskHome,
    extensions: Vec<PathBuf>,
    model: Option<&str>,
    person: Arc<Person>,
) -> TestConversation {
    let target = TargetOptions { model: model.map(str::to_owned), ..TargetOptions::default() };
    let options = OpenOptions { extensions, target, ..home.options(SessionChoice::New) };
    TestConversation::with_prompter(home, options, person).await
}

pub(super) async fn home_with(source: &str) -> (TaskHome, Vec<PathBuf>) {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("extensions/birds.ts", source);
    let path = home.home.folder.path().join("extensions/birds.ts");
    (home, vec![path])
}

/// What the extension noted in `seen`.
pub(super) async fn seen(test: &mut TestConversation) -> Value {
    test.take_events();
    test.say("/seen").await;
    serde_json::from_str(&test.notes().pop().unwrap()).unwrap()
}

/// Answers questions for a text in turn, and approvals with one verdict.
#[derive(Default)]
pub(super) struct Person {
    pub(super) verdict: Option<ApprovalVerdict>,
    pub(super) texts: Mutex<Vec<&'static str>>,
    pub(super) asked: Mutex<Vec<ApprovalRequest>>,
}

impl UserPrompter for Person {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        _rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        self.asked.lock().unwrap().push(question.clone());
        let verdict = self.verdict.clone().unwrap_or(ApprovalVerdict::Once);
        Box::pin(std::future::ready(verdict))
    }

    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(self.texts.lock().unwrap().pop().map(str::to_owned)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_answers_in_the_place_of_a_provider() {
    let body = "seen.push({ model, context, options: { ...options, signal: options.signal?.aborted } });\
        const last = context.messages.at(-1);\
        if (last.role === 'toolResult') { say(stream, output, 'It says: ' + last.content[0].text.split('\\n')[0]); return end(stream, output); }\
        const thought = { type: 'thinking', thinking: '', thinkingSignature: '' }; output.content.push(thought);\
        stream.push({ type: 'thinking_start', contentIndex: 0, partial: output }); thought.thinking = 'Hm.'; stream.push({ type: 'thinking_delta', contentIndex: 0, delta: 'Hm.', partial: output }); thought.thinkingSignature = 'sig'; stream.push({ type: 'thinking_end', contentIndex: 0, content: 'Hm.', partial: output });\
        const call = { type: 'toolCall', id: 'call_1|fc_0123456789012345678901234567890123456789012345678901234567890', name: 'read', arguments: {} }; output.content.push(call);\
        stream.push({ type: 'toolcall_start', contentIndex: 1, partial: output }); call.arguments = { path: 'notes.txt' }; stream.push({ type: 'toolcall_delta', contentIndex: 1, delta: '{\"path\":\"notes.txt\"}', partial: output }); stream.push({ type: 'toolcall_end', contentIndex: 1, toolCall: call, partial: output });\
        output.stopReason = 'toolUse'; end(stream, output);";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let mut test = open_with_model(home, extensions, "birds/large").await;
    assert_eq!(test.app.agent.target().model.name(), "birds/large");
    assert_eq!(test.notices(), [""; 0]);
    assert!(!test.app.is_offline(&test.app.agent.target()));
    assert_eq!(test.say("Read the notes.").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(results(&test.app).len(), 1);
    assert_eq!(test.lines().last().unwrap(), "assistant: It says: Remember the milk.");

    let seen = seen(&mut test).await;
    let [first, second] = &seen.as_array().unwrap()[..] else { panic!("{seen}") };
    let model = &first["model"];
    assert_eq!(
        (&model["id"], &model["api"], &model["name"]),
        (&json!("large"), &json!("carrier-pigeon"), &json!("Large"))
    );
    assert!(first["context"]["systemPrompt"].as_str().unwrap().len() > 100);
    let tools = first["context"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "read" && tool["parameters"]["type"] == "object"));
    let options = &first["options"];
    assert!(options["maxTokens"].as_u64().unwrap() > 0 && options["sessionId"].is_string(), "{options}");
    assert_eq!((&options["signal"], options.get("apiKey")), (&json!(false), None));
    let messages = second["context"]["messages"].as_array().unwrap();
    // Longer than any provider takes, and with other characters.
    let id = "call_1|fc_0123456789012345678901234567890123456789012345678901234567890";
    let [.., answer, result] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(
        answer["content"],
        json!([
            { "type": "thinking", "thinking": "Hm.", "thinkingSignature": "sig" },
            { "type": "toolCall", "id": id, "name": "read", "arguments": { "path": "notes.txt" } },
        ])
    );
    assert_eq!((&result["toolCallId"], &result["toolName"]), (&json!(id), &json!("read")));

    // Two requests of 1,000 and 100 tokens, at the price that the extension named.
    let ledger = test.app.agent.ledger();
    assert!((ledger.total.dollars - 2.0 * (0.01 + 0.002)).abs() < 1e-9, "{:?}", ledger.total);
    assert_eq!(test.home.sent().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_script_ends_the_request_and_a_passing_one_is_tried_again() {
    let body = "seen.push(context.messages.length); const said = JSON.stringify(context.messages.at(-1).content);\
        if (said.includes('twice') && seen.length < 2) return fail(stream, output, '503: service unavailable');\
        if (said.includes('throw')) throw new Error('no perch');\
        if (said.includes('silent')) return stream.end();\
        say(stream, output, 'There.'); end(stream, output);";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let mut test = open_with_model(home, extensions, "birds/large").await;
    assert_eq!(test.say("Do it twice").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(seen(&mut test).await.as_array().unwrap().len(), 2);
    let outcome = format!("{:?}", test.say("throw").await);
    assert!(
        outcome.contains("no perch") && outcome.contains("the extension that brings the provider"),
        "{outcome}"
    );
    assert_eq!(seen(&mut test).await.as_array().unwrap().len(), 3, "it was not tried again");
    assert_eq!(test.say("go on").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.lines().last().unwrap(), "assistant: There.");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_reaches_the_script() {
    let body = "say(stream, output, 'Wait'); await new Promise((resolve) => options.signal.addEventListener('abort', resolve)); seen.push('aborted'); fail(stream, output, 'late');";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let mut test = open_with_model(home, extensions, "birds/large").await;
    let agent = test.app.agent.clone();
    let mut events = agent.events().unbounded_stream();
    let aborting = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if format!("{event:?}").contains("Wait") {
                agent.abort();
                return;
            }
        }
    });
    let outcome = test.say("Now").await;
    aborting.await.unwrap();
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Aborted));
    for _ in 0..200 {
        if seen(&mut test).await == json!(["aborted"]) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the script did not learn of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_a_model_that_an_extension_brings() {
    let body = "say(stream, output, 'There.'); end(stream, output);";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let test = open_with_model(home, extensions.clone(), "birds/large").await;
    prompt(&test.app, "one").await;
    let home = test.home;
    drop(test.app);
    let test = TestConversation::open_session(home, SessionChoice::Latest, &extensions, None).await;
    assert_eq!(test.app.agent.target().model.name(), "birds/large");
    assert_eq!(test.notices(), [""; 0]);
    let home = test.home;
    drop(test.app);
    // Without the extension, another model goes on, and the person is told.
    let test = TestConversation::open_session(home, SessionChoice::Latest, &[], None).await;
    assert_eq!(test.app.agent.target().model.name(), "anthropic/claude-sonnet-5");
    assert!(test.notices().iter().any(|notice| notice.contains("birds")), "{:?}", test.notices());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_nobody_brings_is_an_error() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("user/config/extensions/other.ts", "export default () => {}");
    for (provider, model) in
        [(Some("birds"), Some("large")), (Some("birds"), None), (None, Some("birds/large"))]
    {
        let target = TargetOptions {
            provider: provider.map(str::to_owned),
            model: model.map(str::to_owned),
            ..TargetOptions::default()
        };
        let options = OpenOptions { target, ..home.options(SessionChoice::New) };
        let face = FaceHooks { prompter: None, notices: Arc::new(DiscardNotices) };
        let app = Arc::new(ConversationApp::open(&options, &face).unwrap());
        let error = app.load_extensions().await.unwrap_err().to_string();
        assert!(error.contains("birds"), "{error}");
    }
}

/// A login that takes a code, and whose tokens end at once.
const LOGIN: &str = ", oauth: { name: 'Bird House', \
    login: async (callbacks) => { callbacks.onAuth({ url: 'https://birds.test/login' }); const code = await callbacks.onPrompt({ message: 'Code?' }); return { access: 'access-of-' + code, refresh: 'refresh-0-of-birds', expires: Date.now() + 3600e3 }; }, \
    refreshToken: async (old) => { seen.push(old.refresh); return { access: 'renewed-access-of-birds', refresh: 'refresh-1-of-birds', expires: Date.now() + 3600e3 }; }, \
    getApiKey: (credentials) => credentials.access, \
    modifyModels: (all, credentials) => all.map((model) => ({ ...model, contextWindow: 32000 })) }";

fn login_files(home: &TaskHome) -> Vec<PathBuf> {
    let folder = home.home.folder.path().join("user/config/extension-logins");
    let files = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_log_in_where_the_extension_says() {
    let body = "if (JSON.stringify(context).includes('renewed-access-of-birds')) seen.push('leaked');\
        seen.push(options.apiKey ?? null); say(stream, output, 'There.'); end(stream, output);";
    let (home, extensions) = home_with(&birds(body, LOGIN)).await;
    let person = Arc::new(Person { texts: Mutex::new(vec!["four-five"]), ..Person::default() });
    let mut test = open_as(home, extensions.clone(), Some("birds/large"), person).await;
    prompt(&test.app, "hello").await;
    test.take_events();
    let said = format!("{:?}", test.say("/login").await);
    assert!(test.notes().contains(&"Open this address to log in: https://birds.test/login".to_owned()));
    assert!(!said.contains("four-five"), "{said}");
    prompt(&test.app, "hello").await;
    assert_eq!(seen(&mut test).await, json!([null, "access-of-four-five"]));
    assert_eq!(test.app.find_model(None, "birds/large".into()).unwrap().model.context, 32_000);
    let [file] = &login_files(&test.home)[..] else { panic!("one login is kept") };
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);

    // It is there the next time, and renewed once it has ended.
    let mut kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    kept["credentials"]["expires"] = json!(1);
    std::fs::write(file, kept.to_string()).unwrap();
    let mut test = open_as(test.home, extensions.clone(), Some("birds/large"), Arc::default()).await;
    assert_eq!(test.app.agent.target().model.context, 32_000);
    prompt(&test.app, "hello").await;
    prompt(&test.app, "hello").await;
    let renewed = json!(["refresh-0-of-birds", "renewed-access-of-birds", "renewed-access-of-birds"]);
    assert_eq!(seen(&mut test).await, renewed);
    let kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(kept["credentials"]["refresh"], "refresh-1-of-birds");
    // What a login gave is a secret like any other.
    test.say("my token is renewed-access-of-birds").await;
    assert!(!seen(&mut test).await.as_array().unwrap().contains(&json!("leaked")));

    test.say("/logout birds").await;
    assert!(login_files(&test.home).is_empty());
    prompt(&test.app, "hello").await;
    assert_eq!(seen(&mut test).await.as_array().unwrap().last(), Some(&Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_extension_of_the_name_does_not_get_the_login() {
    let body = "seen.push(options.apiKey ?? null); say(stream, output, 'There.'); end(stream, output);";
    let (home, extensions) = home_with(&birds(body, LOGIN)).await;
    let person = Arc::new(Person { texts: Mutex::new(vec!["four-five"]), ..Person::default() });
    let test = open_as(home, extensions, Some("birds/large"), person).await;
    test.say("/login birds").await;
    assert_eq!(login_files(&test.home).len(), 1);
    test.home.home.write("work/.hardpan/extensions/birds.ts", &birds(body, LOGIN));
    let folders = test.home.home.user_folders();
    TrustReview::read(&test.home.home.folder.path().join("work"), &folders)
        .unwrap()
        .accept(&folders)
        .unwrap();
    let mut test = open_as(test.home, Vec::new(), Some("birds/large"), Arc::default()).await;
    prompt(&test.app, "hello").await;
    assert_eq!(seen(&mut test).await, json!([null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_signs_the_requests_that_hardpan_sends() {
    let home = TaskHome::new(FINE, "").await;
    let config = std::fs::read_to_string(home.home.folder.path().join("user/config/config.toml")).unwrap();
    let address = config.split('"').find(|part| part.starts_with("http://")).unwrap().to_owned();
    let source = format!(
        "{HELPERS}export default (pi) => {{ pi.registerProvider('nest', {{ baseUrl: '{address}', api: 'anthropic-messages', headers: {{ 'x-team': 'owls' }}, models: models.map((model) => ({{ ...model, id: 'claude-sonnet-5' }})){LOGIN} }}); }}"
    );
    home.home.write("extensions/birds.ts", &source);
    let extensions = vec![home.home.folder.path().join("extensions/birds.ts")];
    let person = Arc::new(Person { texts: Mutex::new(vec!["four-five"]), ..Person::default() });
    let mut test = open_as(home, extensions, Some("nest/claude-sonnet-5"), person).await;
    let refused = format!("{:?}", test.say("hello").await);
    assert!(refused.contains("nobody is logged in at Bird House: type /login nest"), "{refused}");
    assert_eq!(test.home.sent().len(), 0);
    test.say("/login nest").await;
    test.take_events();
    assert_eq!(test.say("hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.home.sent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_goes_to_no_provider_unasked() {
    let body = "seen.push(options.apiKey === undefined); say(stream, output, 'There.'); end(stream, output);";
    // A variable that is always there.
    let (home, extensions) = home_with(&birds(body, ", apiKey: '$HOME'")).await;
    let no = Person { verdict: Some(ApprovalVerdict::No("not mine".into())), ..Person::default() };
    let no = Arc::new(no);
    let test = open_as(home, extensions.clone(), Some("birds/large"), no.clone()).await;
    let refused = format!("{:?}", test.say("hello").await);
    assert!(
        refused.contains("not mine") && refused.contains("`hardpan extensions allow birds --env HOME`"),
        "{refused}"
    );
    let question = no.asked.lock().unwrap()[0].clone();
    assert_eq!((&*question.tool_name, &question.args["keys"]), ("extension-keys", &json!(["$HOME"])));

    let yes = Arc::new(Person { verdict: Some(ApprovalVerdict::Always), ..Person::default() });
    let mut test = open_as(test.home, extensions.clone(), Some("birds/large"), yes.clone()).await;
    prompt(&test.app, "hello").await;
    prompt(&test.app, "hello").await;
    assert_eq!(seen(&mut test).await, json!([false, false]));
    assert_eq!(yes.asked.lock().unwrap().len(), 1);
    let store = PermissionStore::new(&test.home.home.user_folders());
    // The script has it for its provider; it does not see it in its environment.
    assert_eq!(store.read()[0].keys.iter().collect::<Vec<_>>(), ["$HOME@"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_projects_extension_answers_for_itself_and_takes_no_place() {
    let home = TaskHome::new(FINE, "").await;
    let body = "say(stream, output, 'There.'); end(stream, output);";
    home.home.write("work/.hardpan/extensions/birds.ts", &birds(body, ""));
    home.home.write("work/.hardpan/extensions/taker.ts", &birds(body, "").replace("'birds'", "'anthropic'"));
    let folders = home.home.user_folders();
    TrustReview::read(&home.home.folder.path().join("work"), &folders).unwrap().accept(&folders).unwrap();
    let test = open_with_model(home, Vec::new(), "birds/large").await;
    let notices = test.notices();
    assert!(
        notices.iter().any(|notice| notice.contains("cannot take the place of a provider")),
        "{notices:?}"
    );
    assert_eq!(test.say("hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.lines().last().unwrap(), "assistant: There.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_answers_while_its_server_still_writes() {
    let barrier = Arc::new(Barrier::new(2));
    let gate = barrier.clone();
    let server = TestServer::start(move |_, request| match (&*request.path, &request.body["messages"]) {
        ("/api/tags", _) => TestResponse::json(200, &json!({ "models": [{ "name": "qwen3:8b" }] })),
        (_, messages) if messages.to_string().contains("Remember the milk") => {
            let line = json!({ "message": { "content": "Milk." }, "done": true, "prompt_eval_count": 70, "eval_count": 3 });
            TestResponse::new(200, "application/x-ndjson", format!("{line}\n"))
        }
        _ => {
            let lines = [
                json!({ "message": { "thinking": "Hm." }, "done": false }),
                json!({ "message": { "content": "First" }, "done": false }),
            ];
            let call = json!({ "function": { "name": "read", "arguments": { "path": "notes.txt" } } });
            let rest = [
                json!({ "message": { "content": " and then.", "tool_calls": [call] }, "done": false }),
                json!({ "message": { "content": "" }, "done": true, "done_reason": "stop", "prompt_eval_count": 50, "eval_count": 9 }),
            ];
            let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            TestResponse::new(200, "application/x-ndjson", text(&lines)).with_rest(gate.clone(), text(&rest))
        }
    });
    let home = TaskHome::new(FINE, "private_hosts = [\"127.0.0.1\"]").await;
    let source = std::fs::read_to_string(example("ollama.ts")).unwrap();
    home.home.write("extensions/ollama.ts", &source.replace("http://127.0.0.1:11434", &server.url()));
    let extensions = vec![home.home.folder.path().join("extensions/ollama.ts")];
    let test = open_with_model(home, extensions, "ollama/qwen3:8b").await;
    assert_eq!(test.notices(), [""; 0]);
    let agent = test.app.agent.clone();
    let mut events = agent.events().unbounded_stream();
    let reading = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if format!("{event:?}").contains("First") {
                // The server goes on only now: what it had written was here already.
                tokio::task::spawn_blocking(move || barrier.wait()).await.unwrap();
                return;
            }
        }
    });
    assert_eq!(test.say("Read the notes.").await, InputOutcome::Ran(RunEnd::Done));
    reading.await.unwrap();
    assert_eq!(test.lines().last().unwrap(), "assistant: Milk.");
    let received = server.received();
    let [_, first, second] = &received[..] else { panic!("{} requests", received.len()) };
    assert_eq!(
        (&first.body["model"], &first.body["messages"][0]["role"]),
        (&json!("qwen3:8b"), &json!("system"))
    );
    let messages = second.body["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    assert!(
        result["content"].as_str().unwrap().contains("Remember the milk") && result["tool_name"] == "read"
    );
    let requests = test.app.agent.ledger().total;
    assert_eq!((requests.requests, requests.tokens.output), (2, 12));
}

/// A provider that Hardpan sends requests to, at a server of the test.
fn nest(server: &TestServer, name: &str, more: &str) -> String {
    format!(
        "{HELPERS}export default (pi) => {{ pi.registerProvider('{name}', {{ baseUrl: '{}/v1', api: 'openai-completions', models{more} }}); pi.on('before_agent_start', () => {{ if (globalThis.leaves) pi.unregisterProvider('{name}'); }}); pi.registerCommand('leave', {{ handler: async () => {{ globalThis.leaves = true; }} }}); }}",
        server.url()
    )
}

pub(super) fn fine_server() -> TestServer {
    TestServer::start(|_, _| {
        TestResponse::events(&[
            json!({ "choices": [{ "index": 0, "delta": { "content": "Fine." }, "finish_reason": "stop" }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 2 } }),
        ])
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_taken_away_takes_no_key_along() {
    let server = fine_server();
    let (home, extensions) = home_with(&nest(&server, "nest", ", apiKey: '$HOME'")).await;
    let no = Arc::new(Person { verdict: Some(ApprovalVerdict::No("no".into())), ..Person::default() });
    let test = open_as(home, extensions, Some("nest/large"), no).await;
    test.say("hello").await;
    test.say("/leave").await;
    let outcome = format!("{:?}", test.say("hello").await);
    assert!(outcome.contains("does not bring it any more"), "{outcome}");
    assert_eq!(server.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_keys_toml_goes_to_no_other_address_unasked() {
    let server = fine_server();
    // The address of a known provider, whose key is in the file.
    let (home, extensions) = home_with(&nest(&server, "anthropic", "").replace("models }", "}")).await;
    let (no, yes) = (ApprovalVerdict::No("no".into()), ApprovalVerdict::Once);
    for (verdict, expected) in [(no, 0), (yes, 1)] {
        let person = Arc::new(Person { verdict: Some(verdict), ..Person::default() });
        let target = TargetOptions { model: Some("claude-sonnet-5".into()), ..TargetOptions::default() };
        let options =
            OpenOptions { extensions: extensions.clone(), target, ..home.options(SessionChoice::New) };
        // Settings with an address of their own have the last word about it.
        let config = home.home.folder.path().join("user/config/config.toml");
        std::fs::write(&config, "sandbox = false\nmap_tokens = 0\n").unwrap();
        let face = FaceHooks { prompter: Some(person.clone()), notices: Arc::new(DiscardNotices) };
        let app = Arc::new(ConversationApp::open(&options, &face).unwrap());
        app.load_extensions().await.unwrap();
        app.agent.start().await;
        prompt(&app, "hello").await;
        let asked = person.asked.lock().unwrap();
        assert_eq!(asked[0].args["keys"], json!(["the key of anthropic in keys.toml"]), "{asked:?}");
        assert_eq!(server.received().len(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_says_too_late_is_in_no_other_answer() {
    let body = "const number = seen.push(1); for (let at = 1; at <= 4; at++) { say(stream, output, `[${number}-${at}]`); await new Promise((resolve) => setTimeout(resolve, 150)); } end(stream, output);";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let test = open_with_model(home, extensions, "birds/large").await;
    let agent = test.app.agent.clone();
    let mut events = agent.events().unbounded_stream();
    let aborting = tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if format!("{event:?}").contains("[1-1]") {
                return agent.abort();
            }
        }
    });
    assert_eq!(test.say("one").await, InputOutcome::Ran(RunEnd::Aborted));
    aborting.await.unwrap();
    assert_eq!(test.say("two").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.lines().last().unwrap(), "assistant: [2-1][2-2][2-3][2-4]");
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_that_are_cut_and_absurd_figures_do_no_harm() {
    let body = "output.content.push({ type: 'text', text: 'a\u{1F600}b' }); for (const delta of 'a\u{1F600}b'.split('')) stream.push({ type: 'text_delta', contentIndex: 0, delta, partial: output });\
        Object.assign(output.usage, { input: 1e300, output: Infinity, cacheRead: -5 }); stream.push({ type: 'done', reason: 'stop', message: output });";
    let (home, extensions) = home_with(&birds(body, "")).await;
    let test = open_with_model(home, extensions, "birds/large").await;
    prompt(&test.app, "hello").await;
    assert_eq!(test.lines().last().unwrap(), "assistant: a\u{1F600}b");
    let total = test.app.agent.ledger().total;
    assert_eq!((total.requests, total.tokens.input, total.dollars), (1, 0, 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_belongs_to_the_extension_that_brought_it_first() {
    let first = birds("say(stream, output, 'First.'); end(stream, output);", "");
    let (home, mut extensions) = home_with(&first).await;
    home.home.write("extensions/other.ts", &first.replace("First", "Second"));
    extensions.push(home.home.folder.path().join("extensions/other.ts"));
    let test = open_with_model(home, extensions, "birds/large").await;
    assert!(test.notices().iter().any(|it| it.contains("the extension birds brings one of this name")));
    prompt(&test.app, "hello").await;
    assert_eq!(test.lines().last().unwrap(), "assistant: First.");
}
