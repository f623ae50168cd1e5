use std::future::Ready;
use std::sync::{Arc, Mutex};

use hardpan_agent::events::{
    BeforeAgentStart, BeforeAgentStartReply, BeforeProviderRequest, ContextEvent, InputReply, MessageEnd,
    MessageStart, ToolCallEvent, ToolCallReply, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate,
    ToolResultEvent, ToolResultReply, TurnEnd, TurnStart,
};
use hardpan_agent::{
    Agent, AgentEvent, Event, EventStream, HandlerError, Input, InputOutcome, ReadCallMode, RunEnd,
    SessionSwitchKind,
};
use hardpan_context::LayoutName;
use hardpan_test_support::{NoteLog, TestAgent};
use serde_json::{Value, json};

/// Notes every handler call and emitted event in one order; of `message_update` only that it came.
#[derive(Clone)]
struct OrderLog {
    notes: NoteLog,
    stream: Arc<Mutex<EventStream>>,
}

impl OrderLog {
    fn new(test_agent: &TestAgent) -> Self {
        let stream = Arc::new(Mutex::new(test_agent.agent.events().unbounded_stream()));
        let log = OrderLog { notes: NoteLog::default(), stream };
        let events = test_agent.agent.events();
        events.subscribe::<Input, _>("order", log.handler(|_| "input".into(), InputReply::Continue));
        let reply = BeforeAgentStartReply::default();
        events.subscribe::<BeforeAgentStart, _>("order", log.handler(|_| "before_agent_start".into(), reply));
        events.subscribe::<ContextEvent, _>("order", log.handler(|_| "context".into(), None));
        events.subscribe::<BeforeProviderRequest, _>("order", |_, _| async { Ok(()) });
        let line = |call: &ToolCallEvent| format!("tool_call {}", call.call_id);
        events.subscribe::<ToolCallEvent, _>("order", log.handler(line, ToolCallReply::Allow));
        let line = |result: &ToolResultEvent| format!("tool_result {}", result.call_id);
        events.subscribe::<ToolResultEvent, _>("order", log.handler(line, ToolResultReply::default()));
        log
    }

    /// A handler that notes its call and gives this reply.
    fn handler<E: Event, L: Fn(&E) -> String>(
        &self,
        line: L,
        reply: E::Reply,
    ) -> impl Fn(E, Agent) -> Ready<Result<E::Reply, HandlerError>> + use<E, L>
    where
        E::Reply: Clone,
    {
        let log = self.clone();
        move |event, _| {
            // What was emitted before the handler was called comes first.
            log.note_events();
            log.notes.add(line(&event));
            std::future::ready(Ok(reply.clone()))
        }
    }

    fn note_events(&self) {
        let mut stream = self.stream.lock().expect("the stream");
        while let Some(event) = stream.try_recv() {
            let name = event.name();
            let line = match &event {
                AgentEvent::MessageStart(MessageStart { message, .. })
                | AgentEvent::MessageEnd(MessageEnd { message, .. }) => {
                    format!("{name} {}", json!(message)["role"].as_str().expect("a role"))
                }
                AgentEvent::ToolExecutionStart(ToolExecutionStart { call_id, .. })
                | AgentEvent::ToolExecutionUpdate(ToolExecutionUpdate { call_id, .. })
                | AgentEvent::ToolExecutionEnd(ToolExecutionEnd { call_id, .. }) => {
                    format!("{name} {call_id}")
                }
                AgentEvent::TurnStart(TurnStart { turn }) | AgentEvent::TurnEnd(TurnEnd { turn, .. }) => {
                    format!("{name} {turn}")
                }
                AgentEvent::CacheVerdict(_) => continue,
                _ => name.to_owned(),
            };
            let again = name == "message_update" && self.notes.all().last() == Some(&line);
            if !again {
                self.notes.add(line);
            }
        }
    }

    fn all(&self) -> Vec<String> {
        self.note_events();
        self.notes.all()
    }
}

const START: [&str; 5] =
    ["input", "message_start user", "message_end user", "before_agent_start", "agent_start"];
const SAID: [&str; 5] = [
    "context",
    "before_provider_request",
    "message_start assistant",
    "message_update",
    "message_end assistant",
];

/// The events of a run: its start, its turns with what happens between the answer and the end of
/// each, its end.
fn run(turns: &[&[&str]]) -> Vec<String> {
    let mut all: Vec<String> = START.map(str::to_owned).to_vec();
    for (n, tools) in turns.iter().enumerate() {
        all.push(format!("turn_start {}", n + 1));
        all.extend(SAID.iter().chain(*tools).map(|line| (*line).to_owned()));
        all.push(format!("turn_end {}", n + 1));
    }
    all.push("agent_end".into());
    all
}

const RESULT: [&str; 2] = ["message_start tool_result", "message_end tool_result"];

#[tokio::test(flavor = "multi_thread")]
async fn everything_around_one_call_happens_in_order() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - {text: Well., tool_calls: [{id: c1, name: slow, arguments: {ms: 1}}]}
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        let notes = OrderLog::new(&test_agent);
        assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
        let call = [
            "tool_call c1",
            "tool_execution_start c1",
            "tool_execution_update c1",
            "tool_execution_end c1",
            "tool_result c1",
            RESULT[0],
            RESULT[1],
        ];
        assert_eq!(notes.all(), run(&[&call, &[]]), "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_calls_are_answered_one_after_the_other() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: red}}]
  - tool_calls: [{id: c3, name: slow, arguments: {ms: 5}}, {id: c4, name: slow, arguments: {ms: 5}}]
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        let notes = OrderLog::new(&test_agent);
        assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
        let painted = [
            "tool_call c1",
            "tool_execution_start c1",
            "tool_execution_end c1",
            "tool_result c1",
            RESULT[0],
            RESULT[1],
            "tool_call c2",
            "tool_result c2",
            RESULT[0],
            RESULT[1], // refused: it never began
        ];
        let slept = [
            "tool_call c3",
            "tool_execution_start c3",
            "tool_execution_update c3",
            "tool_execution_end c3",
            "tool_result c3",
            RESULT[0],
            RESULT[1],
            "tool_call c4",
            "tool_execution_start c4",
            "tool_execution_update c4",
            "tool_execution_end c4",
            "tool_result c4",
            RESULT[0],
            RESULT[1],
        ];
        assert_eq!(notes.all(), run(&[&painted, &slept, &[]]), "{layout}");
        assert_eq!(test_agent.most_parallel_calls(), 1);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_run_side_by_side_and_are_told_and_answered_in_order() {
    for layout in LayoutName::ALL {
        // The first takes longest; the second may not run; the third is the fastest; the fourth
        // changes something.
        let script = "
turns:
  - tool_calls:
    - {id: c1, name: slow, arguments: {ms: 120}}
    - {id: c2, name: slow, arguments: {ms: 7}}
    - {id: c3, name: slow, arguments: {ms: 60}}
    - {id: c4, name: paint, arguments: {colour: blue}}
    - {id: c5, name: slow, arguments: {ms: 1}}
default: {text: Fine.}
";
        let test_agent = TestAgent::builder()
            .layout(layout)
            .script(script)
            .settings(|settings| settings.read_calls = ReadCallMode::Parallel)
            .start()
            .await;
        test_agent.agent.events().subscribe::<ToolCallEvent, _>("no seven", |call, _| async move {
            let block = ToolCallReply::Block { reason: "no seven".into() };
            Ok(if call.input["ms"] == 7 { block } else { ToolCallReply::Allow })
        });
        let notes = OrderLog::new(&test_agent);
        assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.most_parallel_calls(), 2, "c1 and c3 ran at the same time");
        let mut order = notes.all();
        order.retain(|line| line.contains(" c") && !line.contains("update"));
        let alone = |id: &str| {
            ["tool_call", "tool_execution_start", "tool_execution_end", "tool_result"]
                .map(|name| format!("{name} {id}"))
        };
        let mut expected: Vec<String> = [
            "tool_call c1",
            "tool_execution_start c1",
            "tool_call c3",
            "tool_execution_start c3",
            "tool_execution_end c1",
            "tool_execution_end c3",
            "tool_result c1",
            "tool_result c2",
            "tool_result c3",
        ]
        .map(str::to_owned)
        .to_vec();
        expected.extend(["c4", "c5"].map(alone).into_iter().flatten());
        assert_eq!(order, expected, "{layout}");
        assert_eq!(
            test_agent.transcript_lines()[2..],
            [
                "result: slept 120",
                "failed: no seven",
                "result: slept 60",
                "result: painted blue",
                "result: slept 1",
                "assistant: Fine.",
            ]
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_run_one_by_one_unless_the_settings_say_otherwise() {
    let script = "
turns:
  - tool_calls: [{name: slow, arguments: {ms: 30}}, {name: slow, arguments: {ms: 30}}, {name: slow, arguments: {ms: 30}}]
default: {text: Fine.}
";
    let test_agent = TestAgent::builder().script(script).start().await;
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.most_parallel_calls(), 1);
    test_agent.assert_continues().await;
}

/// The emitted events of one type, without what differs from run to run.
fn payloads(test_agent: &TestAgent, name: &str) -> Vec<Value> {
    let events = test_agent.events().into_iter().filter(|event| event.name() == name);
    let payload = |event: AgentEvent| {
        let mut json = json!(event);
        assert_eq!(json.as_object_mut().expect("an object").shift_remove("type"), Some(json!(name)));
        json
    };
    events.map(payload).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_what_the_documents_say() {
    let script = "
turns:
  - {text: Well., tool_calls: [{id: c1, name: slow, arguments: {ms: 1}}]}
default: {text: Fine.}
";
    let test_agent = TestAgent::builder().script(script).start().await;
    test_agent.agent.events().subscribe::<BeforeProviderRequest, _>("look", |event, _| async move {
        assert_eq!(&*event.prompt.model, "claude-sonnet-5");
        Ok(())
    });
    test_agent.agent.start().await;
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.agent.shutdown().await.unwrap();
    let messages: Vec<Value> = test_agent.agent.messages().iter().map(|message| json!(message)).collect();
    assert_eq!(payloads(&test_agent, "session_start"), [json!({"session": "s1", "resumed": false})]);
    assert_eq!(payloads(&test_agent, "session_shutdown"), [json!({"session": "s1"})]);
    assert_eq!(payloads(&test_agent, "agent_start"), [json!({})]);
    assert_eq!(payloads(&test_agent, "turn_start"), [json!({"turn": 1}), json!({"turn": 2})]);
    assert_eq!(
        payloads(&test_agent, "turn_end"),
        [
            json!({"turn": 1, "message": messages[1], "tool_results": [messages[2]]}),
            json!({"turn": 2, "message": messages[3], "tool_results": []}),
        ]
    );
    assert_eq!(
        payloads(&test_agent, "message_end"),
        [0, 1, 2, 3].map(|n: usize| json!({"message": messages[n]}))
    );
    let begin_session = payloads(&test_agent, "message_start");
    assert_eq!(begin_session[1]["message"]["id"], messages[1]["id"]);
    assert_eq!(begin_session[1]["message"]["content"], json!([]), "an answer is still empty when it begins");
    let (call_id, tool_name) = ("c1", "slow");
    assert_eq!(
        payloads(&test_agent, "tool_execution_start"),
        [json!({"call_id": call_id, "tool_name": tool_name, "args": {"ms": 1}})]
    );
    assert_eq!(
        payloads(&test_agent, "tool_execution_update"),
        [json!({"call_id": call_id, "tool_name": tool_name, "partial": "half"})]
    );
    assert_eq!(
        payloads(&test_agent, "tool_execution_end"),
        [json!({
            "call_id": call_id, "tool_name": tool_name, "content": [{"type": "text", "text": "slept 1"}],
            "details": {"ms": 1}, "is_error": false, "display": "brief",
        })]
    );
    let updates = payloads(&test_agent, "message_update");
    let joined = |kind: &str, field: &str, of: &Value| -> String {
        let ours = updates.iter().filter(|event| event["id"] == *of && event["delta"]["kind"] == kind);
        ours.map(|event| event["delta"][field].as_str().unwrap()).collect()
    };
    assert_eq!(joined("text", "text", &messages[1]["id"]), "Well.");
    assert_eq!(joined("call", "name", &messages[1]["id"]), "slow");
    assert_eq!(joined("arguments", "json", &messages[1]["id"]), r#"{"ms":1}"#);
    assert_eq!(joined("text", "text", &messages[3]["id"]), "Fine.");
    let asked = payloads(&test_agent, "before_provider_request");
    assert_eq!(asked.len(), 2);
    assert_eq!((&asked[0]["provider"], &asked[0]["layout"]), (&json!("anthropic"), &json!("strata")));
    assert!(asked.iter().all(|event| event["tokens"].as_u64() > Some(100)), "{asked:?}");
    let end = payloads(&test_agent, "agent_end").pop().unwrap();
    assert_eq!(end["messages"], json!(messages));
    assert_eq!(end["stop"], json!({"reason": "done"}));
    assert_eq!(end["queued"], json!({"steering": [], "follow_up": []}));
    let test_agent = test_agent.resume();
    test_agent.agent.start().await;
    assert_eq!(payloads(&test_agent, "session_start"), [json!({"session": "s1", "resumed": true})]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_before_a_request_is_what_is_sent() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        test_agent.write("open.md", "# Open\n");
        let shown = NoteLog::default();
        let notes = shown.clone();
        test_agent.agent.events().subscribe::<BeforeProviderRequest, _>("look", move |event, agent| {
            let body = hardpan_providers::encode(&event.prompt, &agent.target().profile);
            notes.add(String::from_utf8(body).unwrap());
            async { Ok(()) }
        });
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.prompt("Hello again").await, InputOutcome::Ran(RunEnd::Done));
        let fields = |body: &String| serde_json::from_str::<Value>(body).unwrap();
        let mut sent: Vec<Value> = test_agent.sent_bodies().iter().map(fields).collect();
        for body in &mut sent {
            // The question for the provider's own reason of a loss belongs to the request alone.
            assert!(body.as_object_mut().unwrap().remove("diagnostics").is_some());
        }
        assert_eq!(shown.all().iter().map(fields).collect::<Vec<_>>(), sent, "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turning_to_another_session_is_told() {
    let test_agent = TestAgent::builder().start().await;
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.assert_stored_matches_memory().await;
    let first = test_agent.agent.messages()[0].id.0.clone();
    test_agent.clear_events();
    let (_, path) = test_agent.agent.session();
    let file = |name: &str| path.with_file_name(format!("{name}.jsonl"));
    let how = SessionSwitchKind::Fork { entry: Some(first.clone()) };
    test_agent.agent.switch_session(test_agent.fork_session("fork1", Some(&first)), how).await;
    assert_eq!(test_agent.transcript_lines(), ["user: Hello"]);
    test_agent.agent.switch_session(test_agent.begin_session("s2"), SessionSwitchKind::New).await;
    assert!(test_agent.transcript_lines().is_empty());
    assert_eq!(
        test_agent.events().iter().map(|event| json!(event)).collect::<Vec<_>>(),
        [
            json!({"type": "session_fork", "from": "s1", "entry": &*first, "to": "fork1", "from_file": file("s1")}),
            json!({"type": "session_switch", "from": "fork1", "to": "s2", "reason": "new", "from_file": file("fork1")}),
        ]
    );
    assert_eq!(test_agent.prompt("Hello over there").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines(), ["user: Hello over there", "assistant: Fine."]);
    test_agent.assert_continues().await;
}
