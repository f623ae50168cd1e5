//! Requests of extensions to a model: who allows them, what comes back, and who pays.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::ApprovalRule;
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::extensions::PermissionStore;
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::{ConversationApp, DiscardNotices, FaceHooks};
use hardpan_economy::ledger::Account;
use serde_json::{Value, json};

use super::extensions::{FINE, TestConversation};
use super::subagents::{TaskHome, prompt};

/// Gives every approval the same answer; without one, none ever comes.
struct Person {
    verdict: Option<ApprovalVerdict>,
    asked: Mutex<Vec<(ApprovalRequest, Option<String>)>>,
}

impl UserPrompter for Person {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        self.asked.lock().unwrap().push((question.clone(), rule.map(ToString::to_string)));
        match self.verdict.clone() {
            Some(verdict) => Box::pin(std::future::ready(verdict)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// An extension whose command `/ask` asks the conversation's model and says what it was answered.
const ASKING: &str = "import { complete } from '@mariozechner/pi-ai';\n\
    export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {\n\
      const auth = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);\n\
      const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is ' + args + '?' }], timestamp: Date.now() }];\n\
      const answer = await complete(ctx.model, { systemPrompt: 'Be short.', messages }, { apiKey: auth.apiKey, headers: auth.headers, maxTokens: 300, reasoning: 'low' });\n\
      ctx.ui.notify(JSON.stringify({ auth, answer })); } });";

async fn open(
    verdict: Option<ApprovalVerdict>,
    config: &str,
    source: &str,
) -> (TestConversation, Arc<Person>) {
    let home = TaskHome::new(FINE, config).await;
    home.home.write("extensions/ext1.ts", source);
    open_in(home, verdict).await
}

async fn open_in(home: TaskHome, verdict: Option<ApprovalVerdict>) -> (TestConversation, Arc<Person>) {
    let person = Arc::new(Person { verdict, asked: Mutex::default() });
    let extensions = vec![home.home.folder.path().join("extensions/ext1.ts")];
    let options = OpenOptions { extensions, ..home.options(SessionChoice::New) };
    (TestConversation::with_prompter(home, options, person.clone()).await, person)
}

/// What `/ask` said.
async fn ask(test: &mut TestConversation) -> Value {
    test.take_events();
    test.say("/ask life").await;
    serde_json::from_str(&test.notes().pop().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_asks_a_model_and_the_conversation_pays_in_its_name() {
    let (mut test, person) = open(Some(ApprovalVerdict::Once), "", ASKING).await;
    let found = ask(&mut test).await;
    let answer = &found["answer"];
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "Fine." }]));
    assert_eq!((&answer["role"], &answer["stopReason"]), (&json!("assistant"), &json!("stop")));
    assert_eq!((&answer["provider"], &answer["model"]), (&json!("anthropic"), &json!("claude-sonnet-5")));
    assert!(answer["usage"]["output"].as_u64().unwrap() > 0, "{answer}");
    assert!(answer["usage"]["cost"]["total"].as_f64().unwrap() > 0.0, "{answer}");
    assert_eq!(found["auth"], json!({ "ok": true, "apiKey": "hardpan-keeps-this-key", "headers": {} }));

    let sent = test.home.sent();
    let body = &sent[0].body;
    assert_eq!((sent.len(), &body["max_tokens"]), (1, &json!(300)));
    assert!(body["system"].to_string().contains("Be short."), "{body}");
    assert!(body["messages"].to_string().contains("What is life?"), "{body}");
    assert!(body.get("tools").is_none(), "{body}");
    assert_eq!(body["output_config"]["effort"], "low", "{body}");

    let asked = person.asked.lock().unwrap();
    let (question, rule) = &asked[0];
    assert_eq!(
        (&*question.tool_name, question.agent.as_deref()),
        ("extension-models", Some("extension ext1"))
    );
    assert_eq!(rule.as_deref(), Some("extension-models(ext1)"));
    let args = &question.args;
    assert_eq!((&args["model"], &args["max_tokens"]), (&json!("anthropic/claude-sonnet-5"), &json!(300)));
    assert!(args["tokens"].as_u64().unwrap() > 3, "{args}");
    assert!(args["costs_at_most"].as_str().unwrap().starts_with("$0.0"), "{args}");
    assert_eq!(args["prompt"], "(system) Be short.\nWhat is life?");
    let ledger = test.app.agent.ledger();
    assert_eq!(ledger.by_key[&Account::task("extension:ext1")].requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_longer_is_kept_with_the_extensions_permissions() {
    let (mut test, person) = open(Some(ApprovalVerdict::Session), "", ASKING).await;
    ask(&mut test).await;
    ask(&mut test).await;
    assert_eq!((person.asked.lock().unwrap().len(), test.home.sent().len()), (1, 2));
    let store = PermissionStore::new(&test.home.home.user_folders());
    assert!(store.read().is_empty());

    let (mut test, _) = open_in(test.home, Some(ApprovalVerdict::Always)).await;
    ask(&mut test).await;
    assert!(store.read()[0].models && store.read()[0].name == "ext1");
    let (mut test, person) = open_in(test.home, None).await;
    assert_eq!(ask(&mut test).await["answer"]["stopReason"], "stop");
    assert_eq!(person.asked.lock().unwrap().len(), 0, "it was allowed before");
    assert!(test.app.extensions.list()[0].granted.models);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_yes_the_answer_is_an_error_and_nothing_is_sent() {
    let no = Some(ApprovalVerdict::No("not today".into()));
    let deny = "deny = [\"extension-models(ext1)\"]";
    for (verdict, config, expected) in [
        (no, "", "the extension may not ask a model: not today"),
        (Some(ApprovalVerdict::Once), deny, "the settings deny it (extension-models(ext1))"),
    ] {
        let (mut test, _) = open(verdict, config, ASKING).await;
        let answer = ask(&mut test).await["answer"].take();
        assert_eq!((&answer["stopReason"], &answer["content"]), (&json!("error"), &json!([])));
        assert!(answer["errorMessage"].as_str().unwrap().contains(expected), "{answer}");
        assert_eq!(test.home.sent().len(), 0);
    }
    // A rule can allow it, and a declaration that does not name models forbids it.
    let (mut test, person) = open(None, "allow = [\"extension-models(ext1)\"]", ASKING).await;
    assert_eq!(test.notices(), [""; 0]);
    assert_eq!(ask(&mut test).await["answer"]["stopReason"], "stop");
    assert_eq!(person.asked.lock().unwrap().len(), 0);
    test.home.home.write("extensions/package.json", r#"{"hardpan": {"permissions": {"network": []}}}"#);
    let (mut test, _) = open_in(test.home, Some(ApprovalVerdict::Once)).await;
    let answer = ask(&mut test).await["answer"].take();
    assert!(answer["errorMessage"].as_str().unwrap().contains("does not declare \"models\""), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_be_asked_the_answer_says_how_to_allow_it() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("user/config/extensions/ext1.ts", &ASKING.replace("ctx.ui.notify", "pi.setSessionName"));
    let face = FaceHooks { prompter: None, notices: Arc::new(DiscardNotices) };
    let app = Arc::new(ConversationApp::open(&home.options(SessionChoice::New), &face).unwrap());
    app.load_extensions().await.unwrap();
    prompt(&app, "hello").await;
    app.agent.commands()["ask"].clone().run("life", &app.agent).await.unwrap();
    let said = app.read_session().unwrap().name().unwrap().to_owned();
    let found: Value = serde_json::from_str(&said).unwrap();
    let message = found["answer"]["errorMessage"].as_str().unwrap();
    assert!(message.contains("nobody is there to ask; `hardpan extensions allow` can allow it"), "{message}");
    assert_eq!(home.sent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_models_that_hardpan_can_reach_are_asked() {
    let source = "export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {\n\
        const registry = ctx.modelRegistry; const context = { messages: [{ role: 'user', content: 'Hi' }] };\n\
        const other = registry.getAll().find((model) => model.provider === 'openai');\n\
        const error = async (model, given) => (await registry.complete(model, given ?? context)).errorMessage;\n\
        ctx.ui.notify(JSON.stringify({ auth: await registry.getApiKeyAndHeaders(other), keys: [await registry.getApiKey(other) ?? null, await registry.getApiKeyForProvider('anthropic')], configured: [registry.hasConfiguredAuth(other), registry.hasConfiguredAuth(ctx.model)],\n\
          errors: [await error(other), await error({ provider: 'anthropic', id: 'no-such', baseUrl: 'http://127.0.0.1:9' }), await error(undefined), await error(ctx.model, { messages: [] })], google: registry.find('google', 'gemini-2.5-flash')?.provider ?? null })); } });";
    let (mut test, person) = open(Some(ApprovalVerdict::Once), "", source).await;
    let found = ask(&mut test).await;
    assert_eq!(found["auth"], json!({ "ok": false, "error": "No API key found for \"openai\"" }));
    assert_eq!(found["keys"], json!([null, "hardpan-keeps-this-key"]));
    assert_eq!((&found["configured"], &found["google"]), (&json!([false, true]), &json!("gemini")));
    let errors: Vec<&str> = found["errors"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (error, expected) in errors.iter().zip([
        "there is no key for openai",
        "there is no model anthropic/no-such",
        "there is no model ?/?",
        "the context has no message with a text",
    ]) {
        assert!(error.starts_with(expected), "{error}");
    }
    assert_eq!((errors.len(), person.asked.lock().unwrap().len(), test.home.sent().len()), (4, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_read_event_by_event_and_has_a_result() {
    let source = "import { streamSimple } from '@earendil-works/pi-ai/compat';\n\
        export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {\n\
          const read = async (events) => { const seen = []; for await (const event of events) seen.push(event.type + (event.delta ?? event.content ?? event.reason ?? '')); return [seen.join(' '), (await events.result()).stopReason]; };\n\
          const context = { messages: [{ role: 'user', content: 'Hi' }] };\n\
          ctx.ui.notify(JSON.stringify([await read(streamSimple(ctx.model, context)), await read(ctx.modelRegistry.stream({ provider: 'x', id: 'y' }, context)), (await ctx.modelRegistry.streamSimple(ctx.model, context).result()).content[0].text])); } });";
    let (mut test, _) = open(Some(ApprovalVerdict::Once), "", source).await;
    let whole = "start text_start text_deltaFine. text_endFine. donestop";
    assert_eq!(ask(&mut test).await, json!([[whole, "stop"], ["start errorerror", "error"], "Fine."]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_question_and_the_request() {
    let source = "export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {\n\
        const context = { messages: [{ role: 'user', content: 'Hi' }] };\n\
        const early = await ctx.modelRegistry.complete(ctx.model, context, { signal: AbortSignal.abort() });\n\
        const late = await ctx.modelRegistry.complete(ctx.model, context, { signal: AbortSignal.timeout(300) });\n\
        ctx.ui.notify(JSON.stringify([early.stopReason, late.stopReason, late.errorMessage])); } });";
    let aborted = json!(["aborted", "aborted", "Request was aborted"]);
    let (mut test, person) = open(None, "", source).await;
    assert_eq!(ask(&mut test).await, aborted);
    assert_eq!((person.asked.lock().unwrap().len(), test.home.sent().len()), (1, 0));

    // A model that speaks for hours: the command is back long before, and what it read is paid.
    let script = format!("default: {{text: \"{}\", pace: 100ms}}\n", "word ".repeat(100_000));
    let home = TaskHome::new(&script, "").await;
    home.home.write("extensions/ext1.ts", &source.replace("timeout(300)", "timeout(3000)"));
    let (mut test, _) = open_in(home, Some(ApprovalVerdict::Once)).await;
    let asking = tokio::time::timeout(Duration::from_secs(60), ask(&mut test));
    assert_eq!(asking.await.unwrap(), aborted);
    let account = Account::task("extension:ext1");
    for _ in 0..2_000 {
        if test.app.agent.ledger().by_key.contains_key(&account) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(test.app.agent.ledger().by_key[&account].tokens.input > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_has_ten_requests_of_an_extension() {
    let source = "export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {\n\
        const errors = []; for (let n = 0; n < 11; n++) errors.push((await ctx.modelRegistry.completeSimple(ctx.model, { messages: [{ role: 'user', content: String(n) }] })).errorMessage ?? 'fine');\n\
        ctx.ui.notify(JSON.stringify(errors)); } });";
    let (mut test, _) = open(Some(ApprovalVerdict::Session), "", source).await;
    let mut expected = vec![json!("fine"); 10];
    expected.push(json!("it asked models more than 10 times in a minute"));
    assert_eq!(ask(&mut test).await, json!(expected));
    assert_eq!(test.home.sent().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_of_the_conversation_has_the_word_that_extensions_compare() {
    let source = "export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => ctx.ui.notify(JSON.stringify(ctx.sessionManager.getBranch().findLast((entry) => entry.message?.role === 'assistant').message.stopReason)) });";
    let (mut test, _) = open(None, "", source).await;
    test.say("Hello").await;
    assert_eq!(ask(&mut test).await, "stop");
}
