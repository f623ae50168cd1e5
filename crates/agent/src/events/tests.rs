use std::sync::Arc;

use hardpan_context::LayoutName;
use hardpan_economy::Verdict;
use hardpan_economy::verdict::{Blame, Cause, VerdictSource};
use hardpan_prompt::{
    AgentMessage, MessageBody, MessagePart, MessageState, NotRunReason, Prompt, TokenUsage,
};
use hardpan_providers::UnsupportedFeature;
use hardpan_tools::{EditBlockStatus, ResultDisplay};
use serde_json::{Value, json};

use super::*;
use crate::compact::{CompactReason, CompactionResult};
use crate::edit_blocks::EditBlockResult;
use crate::queue::{InputId, PreparedInput, QueuedInputs};
use crate::spending::{Spending, UsageReport};

fn user_message() -> AgentMessage {
    AgentMessage::new("e1", MessageBody::User { content: vec![MessagePart::text("Hello")] })
}

fn result_message() -> AgentMessage {
    AgentMessage::new(
        "e3",
        MessageBody::ToolResult {
            call_id: "c1".into(),
            tool_name: Some("bash".into()),
            content: vec![MessagePart::text("Skipped due to queued user message")],
            is_error: true,
            not_run: Some(NotRunReason::Steered),
        },
    )
}

fn queued() -> QueuedInputs {
    let input = |text: &str| PreparedInput {
        text: format!("{text}, expanded"),
        typed: text.into(),
        images: Vec::new(),
        id: Some(InputId(3)),
        custom: None,
    };
    QueuedInputs { steering: vec![input("left")], follow_up: Vec::new() }
}

fn run_end() -> AgentEnd {
    let tokens =
        TokenUsage { input: 1, cache_read: 2, cache_write_5m: 3, output: 4, ..TokenUsage::default() };
    AgentEnd {
        messages: vec![user_message()],
        stop: RunEnd::Looping { tool: "bash".into() },
        token_usage: UsageReport {
            last_request: None,
            session: Spending { tokens, dollars: 0.5, would_cost: 0.0 },
            requests: 7,
            tasks: None,
            breakdown: None,
        },
        queued: queued(),
    }
}

fn edit_block_result() -> EditBlockResult {
    let (path, text) = ("a.rs".into(), "Done.".into());
    EditBlockResult { index: 1, path, status: EditBlockStatus::Applied, text }
}

fn verdict() -> CacheVerdict {
    let verdict = Verdict {
        expected_read: 9,
        read: 2,
        lost_tokens: 7,
        lost_dollars: 0.25,
        cause: Cause::Expired { minutes: 6, lifetime: 5, avoidable_by: None },
        blame: Blame::Person,
        first_difference: None,
        source: VerdictSource::Ours,
        provider_says: None,
        our_cause: None,
    };
    CacheVerdict { message: Some("e2".into()), verdict, sentence: "7 tokens were paid again.".into() }
}

fn request() -> BeforeProviderRequest {
    let prompt = Arc::new(Prompt::default());
    let (provider, model) = ("anthropic".into(), "claude-sonnet-5".into());
    BeforeProviderRequest { provider, model, layout: LayoutName::Strata, tokens: 2634, prompt }
}

/// The events of a session, and their JSON to the byte.
fn session_events() -> Vec<(AgentEvent, &'static str)> {
    let (from, to): (Arc<str>, Arc<str>) = ("s1".into(), "s2".into());
    let compaction = CompactionResult {
        summary: "It was long.".into(),
        messages: 4,
        first_kept: "e5".into(),
        tokens_before: 900,
        why: CompactReason::Requested,
        from_handler: false,
    };
    vec![
        (
            SessionStart { session: from.clone(), resumed: false }.into(),
            r#"{"type":"session_start","session":"s1","resumed":false}"#,
        ),
        (
            SessionSwitch {
                from: from.clone(),
                to: to.clone(),
                reason: SwitchReason::New,
                from_file: "/s/a.jsonl".into(),
            }
            .into(),
            r#"{"type":"session_switch","from":"s1","to":"s2","reason":"new","from_file":"/s/a.jsonl"}"#,
        ),
        (
            SessionFork { from: from.clone(), entry: None, to: to.clone(), from_file: "/s/a.jsonl".into() }
                .into(),
            r#"{"type":"session_fork","from":"s1","entry":null,"to":"s2","from_file":"/s/a.jsonl"}"#,
        ),
        (
            SessionTree { from: Some("e2".into()), to: "e1".into(), summary: None, from_handler: false }
                .into(),
            r#"{"type":"session_tree","from":"e2","to":"e1"}"#,
        ),
        (
            SessionCompact(compaction).into(),
            r#"{"type":"session_compact","summary":"It was long.","messages":4,"first_kept":"e5","tokens_before":900}"#,
        ),
        (SessionShutdown { session: from }.into(), r#"{"type":"session_shutdown","session":"s1"}"#),
    ]
}

/// The events of a run.
fn run_events() -> Vec<(AgentEvent, &'static str)> {
    vec![
        (AgentStart {}.into(), r#"{"type":"agent_start"}"#),
        (
            run_end().into(),
            r#"{"type":"agent_end","messages":[{"id":"e1","role":"user","content":[{"type":"text","text":"Hello"}]}],"stop":{"reason":"looping","tool":"bash"},"token_usage":{"last_request":null,"session":{"input":1,"read":2,"written":3,"output":4,"dollars":0.5},"requests":7,"tiers":null},"queued":{"steering":[{"text":"left, expanded","typed":"left"}],"follow_up":[]}}"#,
        ),
        (TurnStart { turn: 2 }.into(), r#"{"type":"turn_start","turn":2}"#),
        (
            TurnEnd { turn: 2, message: user_message(), tool_results: vec![result_message()] }.into(),
            r#"{"type":"turn_end","turn":2,"message":{"id":"e1","role":"user","content":[{"type":"text","text":"Hello"}]},"tool_results":[{"id":"e3","role":"tool_result","call_id":"c1","tool_name":"bash","content":[{"type":"text","text":"Skipped due to queued user message"}],"is_error":true,"not_run":{"reason":"steered"}}]}"#,
        ),
        (
            request().into(),
            r#"{"type":"before_provider_request","provider":"anthropic","model":"claude-sonnet-5","layout":"strata","tokens":2634}"#,
        ),
        (
            MessageStart { message: user_message(), input: Some(InputId(3)) }.into(),
            r#"{"type":"message_start","message":{"id":"e1","role":"user","content":[{"type":"text","text":"Hello"}]}}"#,
        ),
        (
            MessageUpdate { id: "e2".into(), delta: MessageDelta::Text { text: "Hi".into() } }.into(),
            r#"{"type":"message_update","id":"e2","delta":{"kind":"text","text":"Hi"}}"#,
        ),
        (
            MessageEnd { message: user_message(), input: None, response: None }.into(),
            r#"{"type":"message_end","message":{"id":"e1","role":"user","content":[{"type":"text","text":"Hello"}]}}"#,
        ),
        (
            MessageStateChanged { messages: vec!["e2".into()], state: MessageState::TlDr }.into(),
            r#"{"type":"message_state","messages":["e2"],"state":"tl_dr"}"#,
        ),
        (
            EditBlockFound { message: "e2".into(), index: 1, path: "a.rs".into() }.into(),
            r#"{"type":"edit_block_found","message":"e2","index":1,"path":"a.rs"}"#,
        ),
        (
            EditBlockResults { message: "e2".into(), results: vec![edit_block_result()] }.into(),
            r#"{"type":"edit_block_results","message":"e2","results":[{"index":1,"path":"a.rs","status":"applied","text":"Done."}]}"#,
        ),
        (
            verdict().into(),
            r#"{"type":"cache_verdict","message":"e2","verdict":{"expected_read":9,"read":2,"lost_tokens":7,"lost_dollars":0.25,"cause":{"expired":{"minutes":6,"lifetime":5}},"ours":"person","source":"ours"},"sentence":"7 tokens were paid again."}"#,
        ),
    ]
}

/// The events of tools, and the others.
fn other_events() -> Vec<(AgentEvent, &'static str)> {
    let (call_id, tool_name): (Arc<str>, Arc<str>) = ("c1".into(), "bash".into());
    let ended = ToolExecutionEnd {
        call_id: call_id.clone(),
        tool_name: tool_name.clone(),
        content: vec![MessagePart::text("ok")],
        details: Some(json!({"exit_code": 0})),
        is_error: false,
        display: ResultDisplay::LastLines,
    };
    let fault = HandlerFault {
        owner: "guard".into(),
        event: "tool_call",
        message: "no idea".into(),
        is_repeated: false,
    };
    vec![
        (
            ToolExecutionStart {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                args: json!({"command": "make"}),
            }
            .into(),
            r#"{"type":"tool_execution_start","call_id":"c1","tool_name":"bash","args":{"command":"make"}}"#,
        ),
        (
            ToolExecutionUpdate { call_id, tool_name, partial: "half".into(), args: Arc::default() }.into(),
            r#"{"type":"tool_execution_update","call_id":"c1","tool_name":"bash","partial":"half"}"#,
        ),
        (
            ended.into(),
            r#"{"type":"tool_execution_end","call_id":"c1","tool_name":"bash","content":[{"type":"text","text":"ok"}],"details":{"exit_code":0},"is_error":false,"display":"last_lines"}"#,
        ),
        (
            TaskStart {
                call_id: "c1".into(),
                agent: "helper".into(),
                session: "3f2a".into(),
                model: "a/b".into(),
                prefix: TaskPrefix::Shared,
                task: "Look.".into(),
            }
            .into(),
            r#"{"type":"task_start","call_id":"c1","agent":"helper","session":"3f2a","model":"a/b","prefix":"shared","task":"Look."}"#,
        ),
        (
            TaskUpdate {
                call_id: "c1".into(),
                agent: "helper".into(),
                activity: "read a.rs".into(),
                used: TaskUsage::default(),
            }
            .into(),
            r#"{"type":"task_update","call_id":"c1","agent":"helper","activity":"read a.rs","used":{"requests":0,"prompt_tokens":0,"cached_tokens":0,"output_tokens":0,"dollars":0.0}}"#,
        ),
        (
            TaskEnd {
                call_id: "c1".into(),
                agent: "helper".into(),
                session: "3f2a".into(),
                stop: TaskStop::Budget { limit: TaskLimit::OutputTokens },
                used: TaskUsage { requests: 2, ..TaskUsage::default() },
            }
            .into(),
            r#"{"type":"task_end","call_id":"c1","agent":"helper","session":"3f2a","stop":{"reason":"budget","limit":"output_tokens"},"used":{"requests":2,"prompt_tokens":0,"cached_tokens":0,"output_tokens":0,"dollars":0.0}}"#,
        ),
        (
            ModelSelect { previous: "a/b".into(), model: "c/d".into() }.into(),
            r#"{"type":"model_select","previous":"a/b","model":"c/d"}"#,
        ),
        (
            ThinkingSelect { previous: "default".into(), thinking: "high".into() }.into(),
            r#"{"type":"thinking_select","previous":"default","thinking":"high"}"#,
        ),
        (
            QueueUpdate(queued()).into(),
            r#"{"type":"queue_update","steering":[{"text":"left, expanded","typed":"left"}],"follow_up":[]}"#,
        ),
        (
            Note { text: "4 messages were compacted".into(), kind: NoteKind::Compacted { messages: 4 } }
                .into(),
            r#"{"type":"note","text":"4 messages were compacted","kind":"compacted","messages":4}"#,
        ),
        (
            DialogStart {
                owner: "guard".into(),
                dialog: Dialog::Select { title: "Which?".into(), choices: vec!["a".into()] },
            }
            .into(),
            r#"{"type":"ui_prompt_start","owner":"guard","kind":"select","title":"Which?","choices":["a"]}"#,
        ),
        (
            DialogEnd { owner: "guard".into(), answered: true }.into(),
            r#"{"type":"ui_prompt_end","owner":"guard","answered":true}"#,
        ),
        (
            FaceChanged { owner: "guard".into(), change: FaceChange::Status { key: "s".into(), text: None } }
                .into(),
            r#"{"type":"face_change","owner":"guard","part":"status","key":"s","text":null}"#,
        ),
        (
            HandlerFailed(fault).into(),
            r#"{"type":"handler_failed","owner":"guard","event":"tool_call","what":"no idea"}"#,
        ),
    ]
}

fn all_events() -> Vec<(AgentEvent, &'static str)> {
    [session_events(), run_events(), other_events()].concat()
}

#[test]
fn the_json_of_every_event_is_its_name_and_its_fields() {
    for (event, json) in all_events() {
        assert_eq!(serde_json::to_string(&event).unwrap(), json);
        assert_eq!(serde_json::from_str::<Value>(json).unwrap()["type"], event.name());
    }
    let names: Vec<&str> = all_events().iter().map(|(event, _)| event.name()).collect();
    let declared: Vec<&str> =
        EVENTS.iter().filter(|event| event.answer.is_none()).map(|event| event.name).collect();
    assert_eq!(names, declared);
}

#[test]
fn the_other_pieces_and_ends_have_their_json_too() {
    for (delta, json) in [
        (MessageDelta::Reasoning { text: "Hm".into() }, r#"{"kind":"reasoning","text":"Hm"}"#),
        (
            MessageDelta::Call { index: 1, call_id: "c1".into(), name: "bash".into() },
            r#"{"kind":"call","index":1,"call_id":"c1","name":"bash"}"#,
        ),
        (
            MessageDelta::Arguments { index: 1, json: "{\"a".into() },
            r#"{"kind":"arguments","index":1,"json":"{\"a"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&delta).unwrap(), json);
    }
    for (stop, json) in [
        (RunEnd::Done, r#"{"reason":"done"}"#),
        (RunEnd::Aborted, r#"{"reason":"aborted"}"#),
        (RunEnd::Length, r#"{"reason":"length"}"#),
        (RunEnd::Refused, r#"{"reason":"refused"}"#),
        (RunEnd::TooLong { message: "no".into() }, r#"{"reason":"too_long","message":"no"}"#),
        (RunEnd::Error { message: "no".into() }, r#"{"reason":"error","message":"no"}"#),
    ] {
        assert_eq!(serde_json::to_string(&stop).unwrap(), json);
    }
    for (kind, json) in [
        (
            NoteKind::Retry { attempt: 2, tries: 4, wait_ms: 1500 },
            r#"{"type":"note","text":"n","kind":"retry","attempt":2,"tries":4,"wait_ms":1500}"#,
        ),
        (
            NoteKind::Downgrade { feature: UnsupportedFeature::Images },
            r#"{"type":"note","text":"n","kind":"downgrade","feature":"images"}"#,
        ),
        (NoteKind::BrokenOff, r#"{"type":"note","text":"n","kind":"broken_off"}"#),
        (
            NoteKind::SkippedPart { part_type: "poem".into() },
            r#"{"type":"note","text":"n","kind":"skipped_part","part_type":"poem"}"#,
        ),
        (NoteKind::CompactionFailed, r#"{"type":"note","text":"n","kind":"compaction_failed"}"#),
        (NoteKind::Expansion, r#"{"type":"note","text":"n","kind":"expansion"}"#),
    ] {
        let note = AgentEvent::from(Note { text: "n".into(), kind });
        assert_eq!(serde_json::to_string(&note).unwrap(), json);
    }
}

#[test]
fn a_payload_is_found_by_its_type() {
    let event = AgentEvent::from(TurnStart { turn: 3 });
    assert_eq!(event.payload::<TurnStart>(), Some(&TurnStart { turn: 3 }));
    assert_eq!(event.payload::<AgentStart>(), None);
}

#[test]
fn replies_are_read_from_json() {
    fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
        serde_json::from_value(json).unwrap()
    }
    assert_eq!(read::<InputReply>(json!({"action": "continue"})), InputReply::Continue);
    assert_eq!(read::<InputReply>(json!({"action": "handled"})), InputReply::Handled);
    assert_eq!(
        read::<InputReply>(json!({"action": "transform", "text": "other"})),
        InputReply::Transform { text: "other".into(), images: None }
    );
    assert_eq!(
        read::<ToolCallReply>(json!({"action": "block", "reason": "not today"})),
        ToolCallReply::Block { reason: "not today".into() }
    );
    assert_eq!(read::<BeforeAgentStartReply>(json!({})), BeforeAgentStartReply::default());
    assert_eq!(
        read::<BeforeCompactReply>(json!({"action": "summary", "text": "s"})),
        BeforeCompactReply::summary("s")
    );
    assert_eq!(
        read::<ToolResultReply>(json!({"is_error": false})),
        ToolResultReply { is_error: Some(false), ..ToolResultReply::default() }
    );
    assert_eq!(
        read::<Option<UserBashReply>>(json!({"output": "o", "exit_code": 1})),
        Some(UserBashReply { output: "o".into(), exit_code: Some(1) })
    );
}

/// Every field of an event's JSON is described, and every field that must be there is.
#[test]
fn the_schema_describes_what_is_emitted() {
    let schema = schemars::schema_for!(AgentEvent).to_value();
    for (event, json) in all_events() {
        let json: Value = serde_json::from_str(json).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        let variant = variants.iter().find(|variant| variant["properties"]["type"]["const"] == event.name());
        let mut described = Vec::new();
        describe(variant.unwrap(), &schema, &json, &mut described);
        let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
        for field in fields {
            assert!(described.contains(field), "{}: {field} is not in the schema", event.name());
        }
    }
}

/// Collects the properties of a schema, and checks that the required ones are in `json`.
fn describe(schema: &Value, root: &Value, json: &Value, fields: &mut Vec<String>) {
    fields.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(json.get(required.as_str().unwrap()).is_some(), "{required} is required, but not in {json}");
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        describe(&root["$defs"][name], root, json, fields);
    }
    // A flattened enum: the variant whose constants are in the JSON.
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        let constants = variant["properties"].as_object().into_iter().flatten();
        let mut constants = constants.filter_map(|(name, property)| Some((name, property.get("const")?)));
        if constants.all(|(name, value)| json[name] == *value) {
            describe(variant, root, json, fields);
        }
    }
}

/// Compares a part of the documents with what the code says, or writes it anew.
fn assert_documented(path: &str, documented: impl Fn(&str) -> String) {
    let path = format!("{}/../../docs/{path}", env!("CARGO_MANIFEST_DIR"));
    let now = std::fs::read_to_string(&path).unwrap_or_default();
    let wanted = documented(&now);
    if std::env::var_os("HARDPAN_UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, wanted).unwrap();
    } else {
        let remedy = "HARDPAN_UPDATE_DOCS=1 cargo test -p hardpan-agent --lib events writes it anew";
        assert!(now == wanted, "{path} is not current: {remedy}");
    }
}

#[test]
fn the_table_of_events_in_the_docs_is_current() {
    assert_documented("agent.md", |page| {
        let (begin, end) = ("<!-- events: generated -->\n\n", "\n<!-- end of events -->");
        let (before, rest) = page.split_once(begin).expect("the table's beginning");
        let (_, after) = rest.split_once(end).expect("the table's end");
        format!("{before}{begin}{}{end}{after}", markdown_table())
    });
}

#[test]
fn the_schema_of_events_in_the_docs_is_current() {
    assert_documented("events.schema.json", |_| serde_json::to_string_pretty(&schema()).unwrap() + "\n");
}
