//! The events that extensions take part in: payloads, order, chaining, copies, deliveries.

use hardpan_agent::BranchExit;
use hardpan_agent::events::HandlerFailed;
use hardpan_app::options::SessionChoice;
use hardpan_models::ThinkingSetting;
use hardpan_session::{ExportFormat, ExportScope};
use serde_json::json;

use super::extensions::{TestConversation, calling};

/// An extension that tells of events, one line each: what `tell` makes of an event `e`.
fn telling(events: &[(&str, &str)]) -> String {
    let handlers: String = events
        .iter()
        .map(|(event, tell)| {
            format!(
                "pi.on('{event}', (e, ctx) => {{ ctx.ui.notify('{event}: ' + JSON.stringify({tell})); }});\n"
            )
        })
        .collect();
    format!("export default (pi) => {{ {handlers} }}")
}

async fn wait_for(what: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if what() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it did not happen");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_generations_of_session_events_are_raised_with_reasons_and_files() {
    let file = "e.previousSessionFile?.split('/').pop().length > 5";
    let source = telling(&[
        ("session_directory", "[e.cwd.length > 1]"),
        ("session_start", &format!("[e.reason, {file}]")),
        ("session_switch", &format!("[e.reason, {file}]")),
        ("session_fork", &format!("[{file}]")),
        ("session_shutdown", "[e.reason, e.targetSessionFile?.endsWith('.jsonl')]"),
        ("session_before_switch", "[e.reason, e.targetSessionFile?.endsWith('.jsonl')]"),
        ("session_before_fork", "[e.entryId, e.position]"),
        (
            "session_before_tree",
            "[e.preparation.targetId, e.preparation.entriesToSummarize.length > 1, e.preparation.userWantsSummary, e.signal?.aborted]",
        ),
        ("session_tree", "[e.newLeafId, e.oldLeafId !== undefined]"),
    ]);
    let mut test = TestConversation::with_sources("", &[&source], None).await;
    assert_eq!(test.notes(), ["session_directory: [true]", "session_start: [\"startup\",false]"]);
    test.say("Hi").await;
    let first = test.app.agent.messages()[0].id.0.clone();
    test.say("Again").await;
    test.app.agent.go_to_entry(&first, BranchExit::WithoutSummary).await.unwrap();
    let notes = test.notes();
    assert_eq!(notes[0], format!("session_before_tree: [\"{first}\",true,false,false]"));
    assert_eq!(notes[1], format!("session_tree: [\"{first}\",true]"));
    let (session, _) = test.app.agent.session();
    let find = || test.app.store.find(Some(&test.app.folder), &session).unwrap();
    test.app.start_new().await.unwrap();
    test.app.resume(&find()).await.unwrap();
    // It goes on where the file ends.
    let last = test.app.agent.messages().last().unwrap().id.0.clone();
    test.app.fork(None).await.unwrap();
    assert_eq!(
        test.notes(),
        [
            "session_before_switch: [\"new\",null]",
            "session_shutdown: [\"new\",true]",
            "session_start: [\"new\",true]",
            "session_switch: [\"new\",true]",
            "session_before_switch: [\"resume\",true]",
            "session_shutdown: [\"resume\",true]",
            "session_start: [\"resume\",true]",
            "session_switch: [\"resume\",true]",
            &format!("session_before_fork: [\"{last}\",\"at\"]"),
            "session_shutdown: [\"fork\",true]",
            "session_start: [\"fork\",true]",
            "session_fork: [true]",
        ]
    );
    test.app.agent.shutdown().await.unwrap();
    assert_eq!(test.notes(), ["session_shutdown: [\"quit\",null]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_before_a_session_changes_can_cancel_it() {
    let source = "export default (pi) => { for (const event of ['switch', 'fork', 'tree']) pi.on('session_before_' + event, () => ({ cancel: true, reason: 'not the ' + event })); }";
    let test = TestConversation::with_sources("", &[source], None).await;
    test.say("Hi").await;
    let (session, _) = test.app.agent.session();
    let refused = test.app.start_new().await.unwrap_err().to_string();
    assert_eq!(refused, "not done: not the switch");
    assert_eq!(test.app.fork(None).await.unwrap_err().to_string(), "not done: not the fork");
    let first = test.app.agent.messages()[0].id.0.clone();
    let left = test.app.agent.go_to_entry(&first, BranchExit::WithoutSummary).await;
    assert_eq!(left.unwrap_err().to_string(), "not done: not the tree");
    assert_eq!(test.app.agent.session().0, session);
    assert_eq!(test.lines().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_summarises_and_labels_the_branch_that_is_left() {
    let source = "export default (pi) => pi.on('session_before_tree', (e) => ({ summary: { summary: 'left ' + e.preparation.entriesToSummarize.filter((x) => x.type === 'message').length }, label: 'mark' }));";
    let test = TestConversation::with_sources("", &[source], None).await;
    test.say("Hi").await;
    test.say("Again").await;
    let second = test.app.agent.messages()[1].id.0.clone();
    test.app.agent.go_to_entry(&second, BranchExit::WithSummary).await.unwrap();
    assert_eq!(test.lines()[2], "branch: left 2");
    assert_eq!(test.home.sent().len(), 2, "the model is not asked for a summary");
    let summary = test.app.agent.messages()[2].id.0.clone();
    let session = test.app.read_session().unwrap();
    assert_eq!(session.labels().get(&*summary).copied(), Some("mark"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_told_part_by_part_with_the_message_so_far() {
    let update = "[e.assistantMessageEvent.type, e.assistantMessageEvent.contentIndex, e.message.role, e.message.content.length]";
    let ends = "[e.message.role, e.message.stopReason, e.message.usage?.totalTokens > 0, typeof e.message.usage?.cost.total]";
    let source = telling(&[("message_update", update), ("message_end", ends)]);
    let script = "turns:\n- text: Look.\n  tool_calls: [{name: ls, arguments: {path: .}}]\n";
    let mut test = TestConversation::with_sources(script, &[&source], None).await;
    test.say("Hi").await;
    let mut notes = test.notes();
    notes.dedup();
    let end = notes.iter().position(|note| note.contains("message_end: [\"assistant\"")).unwrap();
    assert_eq!(
        notes[1..=end],
        [
            "message_update: [\"text_start\",0,\"assistant\",1]",
            "message_update: [\"text_delta\",0,\"assistant\",1]",
            "message_update: [\"text_end\",0,\"assistant\",2]",
            "message_update: [\"toolcall_start\",1,\"assistant\",2]",
            "message_update: [\"toolcall_delta\",1,\"assistant\",2]",
            "message_update: [\"toolcall_end\",1,\"assistant\",2]",
            "message_end: [\"assistant\",\"toolUse\",true,\"number\"]",
        ]
    );
}

const ORDER: &str = "for (const name of ['tool_call', 'tool_execution_start', 'tool_execution_end', 'tool_result']) pi.on(name, (e, ctx) => { ctx.ui.notify(name + ' ' + e.toolCallId + (e.result ? ' ' + e.result.content[0].text : '')); if (name === 'tool_result') return { content: [{ type: 'text', text: 'changed' }] }; });";

#[tokio::test(flavor = "multi_thread")]
async fn events_around_a_call_come_in_the_order_that_the_extension_was_written_for() {
    let script = "turns:\n- tool_calls: [{id: c1, name: read, arguments: {path: notes.txt}}]\n";
    let of_document = format!("export default (pi) => {{ {ORDER} }}");
    let newer = format!(
        "import type {{ ExtensionAPI }} from '@earendil-works/pi-coding-agent';\nexport default (pi: ExtensionAPI) => {{ {ORDER} }}"
    );
    let declared = format!("// @tool-events around-questions\nexport default (pi) => {{ {ORDER} }}");
    for (source, names) in [
        (&of_document, ["tool_call", "tool_execution_start", "tool_execution_end", "tool_result"]),
        (&newer, ["tool_execution_start", "tool_call", "tool_result", "tool_execution_end"]),
        (&declared, ["tool_execution_start", "tool_call", "tool_result", "tool_execution_end"]),
    ] {
        let mut test = TestConversation::with_sources(script, &[source], None).await;
        test.say("Look").await;
        let notes = test.notes();
        let told: Vec<&str> = notes.iter().map(|note| note.split(' ').next().unwrap()).collect();
        assert_eq!(told, names, "{notes:?}");
        let ended = notes.iter().find(|note| note.starts_with("tool_execution_end")).unwrap();
        assert_eq!(ended.ends_with("changed"), names[3] == "tool_execution_end", "{ended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_delivered_as_the_extension_says() {
    let source = "export default (pi) => {\n\
        const send = (content, options) => pi.sendMessage({ customType: 'x', content, display: true, details: { content } }, options);\n\
        pi.on('tool_call', () => { send('follow', { deliverAs: 'followUp' }); send('later', { triggerTurn: false }); send('steer'); send('next', { deliverAs: 'nextTurn' }); });\n\
        pi.registerCommand('idle', { handler: async () => send('idle') });\n\
        pi.registerCommand('run', { handler: async () => send('run', { triggerTurn: true }) });\n\
    }";
    let script = "turns:\n- when: {contains: Look}\n  tool_calls: [{name: ls, arguments: {path: .}}]\n";
    let test = TestConversation::with_sources(script, &[source], None).await;
    test.say("/idle").await;
    wait_for(|| test.lines() == ["custom: idle"]).await;
    assert_eq!(test.home.sent().len(), 0);
    test.say("/run").await;
    wait_for(|| test.lines().len() == 3 && !test.app.agent.is_busy()).await;
    assert_eq!(test.lines()[1..], ["custom: run", "assistant: Fine."]);
    test.say("Look").await;
    wait_for(|| test.lines().iter().any(|line| line == "custom: follow")).await;
    wait_for(|| !test.app.agent.is_busy()).await;
    let lines = test.lines();
    let at = |line: &str| {
        lines.iter().position(|other| other == line).unwrap_or_else(|| panic!("{line}: {lines:?}"))
    };
    assert!(
        at("custom: later") < at("custom: follow") && at("custom: steer") < at("custom: follow"),
        "{lines:?}"
    );
    assert_eq!(lines[at("custom: follow") - 1], "assistant: Fine.");
    assert!(!lines.contains(&"custom: next".to_owned()));
    test.say("More").await;
    let lines = test.lines();
    assert_eq!(lines[lines.len() - 3..], ["user: More", "custom: next", "assistant: Fine."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn details_are_stored_and_given_back_and_never_sent() {
    let tool = "pi.registerTool({ name: 'count', label: 'Count', description: 'Counts', parameters: { type: 'object', properties: {} }, execute: async () => ({ content: [{ type: 'text', text: 'counted' }], details: { secretCount: 41 } }) });";
    let tell = "const of = (messages) => JSON.stringify(messages.filter((m) => m.details).map((m) => [m.role, m.details]));\n\
        pi.on('context', (e, ctx) => ctx.ui.notify('context ' + of(e.messages)));\n\
        pi.registerCommand('branch', { handler: async (a, ctx) => ctx.ui.notify('branch ' + of(ctx.sessionManager.getBranch().map((e) => e.message ?? e))) });\n\
        pi.on('before_agent_start', () => ({ message: { customType: 'x', content: 'seen', display: false, details: { hiddenPart: [1.5] } } }));";
    let source = format!("export default (pi) => {{ {tool}\n{tell} }}");
    let mut test = TestConversation::with_sources(&calling("count", "{}"), &[&source], None).await;
    test.say("Count").await;
    let custom = r#"["custom",{"hiddenPart":[1.5]}]"#;
    assert!(test.lines().contains(&"result: counted".to_owned()), "{:?} {:?}", test.lines(), test.notices());
    let all = format!("[{custom},[\"toolResult\",{{\"secretCount\":41}}]]");
    assert_eq!(test.notes(), [format!("context [{custom}]"), format!("context {all}")]);
    test.say("/branch").await;
    assert_eq!(test.notes(), [format!("branch {all}")]);
    let sent: String = test.home.sent().iter().map(|sent| sent.body.to_string()).collect();
    assert!(sent.contains("counted") && sent.contains("seen"));
    assert!(!sent.contains("secretCount") && !sent.contains("hiddenPart"), "{sent}");
    // Hidden messages are for the model alone.
    let session = test.app.read_session().unwrap();
    for format in [ExportFormat::Markdown, ExportFormat::Html] {
        let document = session.export(ExportScope::All, format).unwrap();
        assert!(document.contains("counted") && !document.contains("seen"), "{document}");
    }
    test.app.agent.shutdown().await.unwrap();
    let TestConversation { app, home, .. } = test;
    drop(app);
    let path = home.home.folder.path().join("extensions/ext1.ts");
    let mut test = TestConversation::open_session(home, SessionChoice::Latest, &[path], None).await;
    test.say("Again").await;
    assert_eq!(test.notes(), [format!("context [{},{custom}]", &all[1..all.len() - 1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_is_prepared_with_messages_and_entries() {
    let prepared = "[e.preparation.messagesToSummarize.length, e.branchEntries.length > 4, e.reason, e.signal.aborted, e.customInstructions, e.preparation.firstKeptEntryId === e.branchEntries.filter((x) => x.type === 'message')[4].id]";
    let first = telling(&[
        ("session_before_compact", prepared),
        (
            "session_compact",
            "[e.compactionEntry.summary, e.compactionEntry.firstKeptEntryId, e.fromExtension]",
        ),
    ]);
    let second = "export default (pi) => { pi.on('session_before_compact', (e) => ({ compaction: { summary: 'short', firstKeptEntryId: e.preparation.messagesToSummarize[2].id, tokensBefore: 1, details: { mine: true } } })); pi.registerCommand('last', { handler: async (a, ctx) => ctx.ui.notify(JSON.stringify(ctx.sessionManager.getBranch().find((e) => e.type === 'compaction').details)) }); }";
    let mut test = TestConversation::with_sources("", &[&first, second], None).await;
    for prompt in ["First", "Second", "Third"] {
        // More than a compaction keeps.
        test.say(&format!("{prompt}\n{}", "word ".repeat(15_000))).await;
    }
    let kept = test.app.agent.messages()[2].id.0.clone();
    test.notes();
    test.app.agent.compact(Some("the plan".into())).await.unwrap();
    let notes = test.notes();
    assert_eq!(notes[0], "session_before_compact: [4,true,\"manual\",false,\"the plan\",true]");
    assert_eq!(notes[1], format!("session_compact: [\"short\",\"{kept}\",true]"));
    assert!(test.lines()[1].starts_with("user: Second"));
    test.say("/last").await;
    assert_eq!(test.notes(), ["{\"mine\":true}"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_runs_a_command_of_the_user() {
    let source = "export default (pi) => pi.on('user_bash', (e) => ({ operations: { exec: async (command, cwd, { onData }) => { onData(Buffer.from('far away: ')); onData(command + (cwd === e.cwd)); return { exitCode: 3 }; } } }));";
    let test = TestConversation::with_sources("", &[source], None).await;
    let run = test.app.agent.run_shell_command("date".into(), hardpan_agent::ShellVisibility::Model);
    let message = serde_json::to_value(run.await.unwrap()).unwrap();
    assert_eq!((&message["output"], &message["exit_code"]), (&json!("far away: datetrue"), &json!(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_brings_skills_and_templates() {
    let source = "export default (pi) => { pi.on('resources_discover', (e) => ({ skillPaths: ['skills'], promptPaths: ['prompts'] })); pi.registerCommand('send', { handler: async (args) => pi.sendUserMessage('/greet Bob', { expandPromptTemplates: args === 'expanded' }) }); };";
    let home = super::subagents::TaskHome::new("default: {text: Fine.}\n", "").await;
    home.home.write("extensions/one.ts", source);
    home.home.write("extensions/prompts/greet.md", "Greet $1.");
    home.home.write(
        "extensions/skills/wave/SKILL.md",
        "---\nname: wave\ndescription: Waves at people\n---\nWave.",
    );
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_session(home, SessionChoice::New, &[path], None).await;
    test.say("/greet Ada").await;
    assert_eq!(test.lines()[0], "user: Greet Ada.");
    for (args, sent) in [("expanded", "user: Greet Bob."), ("", "user: /greet Bob")] {
        test.say(&format!("/send {args}")).await;
        super::hostile_extensions::until("it is sent", || test.lines().iter().any(|line| line == sent)).await;
        super::hostile_extensions::until("it is answered", || !test.app.agent.status().is_working()).await;
    }
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(body.contains("Waves at people"), "{body}");
}

/// The specification's table of what is safe to change.
#[tokio::test(flavor = "multi_thread")]
async fn what_handlers_change_in_place_stays_with_them() {
    let source = "export default (pi) => {\n\
        pi.on('input', (e) => { e.text = 'replaced'; });\n\
        pi.on('before_agent_start', (e) => { e.systemPrompt = 'replaced'; e.prompt = 'replaced'; });\n\
        pi.on('tool_call', (e) => { e.input.path = '/etc/passwd'; });\n\
        pi.on('tool_result', (e) => { e.content.length = 0; e.isError = true; });\n\
        pi.on('context', (e) => { e.messages[0].content = [{ type: 'text', text: 'a copy' }]; });\n\
        pi.on('message_end', (e) => { e.message.content = []; });\n\
    }";
    let second = "export default (pi) => pi.on('context', (e) => { e.messages.push({ role: 'user', content: 'after ' + e.messages[0].content[0].text }); });";
    let test =
        TestConversation::with_sources(&calling("read", "{path: notes.txt}"), &[source, second], None).await;
    test.say("Look").await;
    let lines = test.lines();
    assert_eq!(lines[0], "user: Look");
    assert!(lines[2].contains("Remember the milk."), "{lines:?}");
    let body = test.home.sent().remove(0).body.to_string();
    // Of all these only the messages of `context` are a copy that counts, for this request.
    assert!(body.contains("a copy") && body.contains("after a copy"), "{body}");
    assert!(!body.contains("replaced"), "{body}");
}

/// The specification's tables of chaining and timing.
#[tokio::test(flavor = "multi_thread")]
async fn handlers_are_called_as_often_as_the_table_says_and_each_sees_the_one_before() {
    let count = |name: &str| {
        let events = ["input", "before_agent_start", "context", "tool_call", "tool_result"];
        let handlers: String = events
            .iter()
            .map(|event| format!("pi.on('{event}', (e, ctx) => {{ ctx.ui.notify('{name} {event}'); }});\n"))
            .collect();
        format!(
            "export default (pi) => {{ {handlers}\
             pi.on('input', (e) => ({{ action: 'transform', text: e.text + ' {name}' }}));\n\
             pi.on('before_agent_start', (e) => ({{ systemPrompt: e.systemPrompt + '\\n{name}-rules', message: {{ customType: 'x', content: '{name} says ' + e.prompt, display: true }} }}));\n\
             pi.on('tool_result', (e) => ({{ content: [{{ type: 'text', text: e.content[0].text.trim() + ' {name}' }}] }})); }}"
        )
    };
    let mut test = TestConversation::with_sources(
        &calling("read", "{path: notes.txt}"),
        &[&count("a"), &count("b")],
        None,
    )
    .await;
    test.say("Go").await;
    let notes = test.notes();
    let often = |event: &str| notes.iter().filter(|note| note.ends_with(&format!(" {event}"))).count();
    let counts: Vec<usize> = ["input", "before_agent_start", "context", "tool_call", "tool_result"]
        .iter()
        .map(|event| often(event))
        .collect();
    assert_eq!(counts, [2, 2, 4, 2, 2], "{notes:?}");
    assert!(
        notes.iter().position(|note| note == "a input") < notes.iter().position(|note| note == "b input")
    );
    let lines = test.lines();
    assert_eq!(lines[..3], ["user: Go a b", "custom: a says Go a b", "custom: b says Go a b"]);
    assert!(lines.iter().any(|line| line.ends_with("milk. a b")), "{lines:?}");
    let system = test.home.sent().remove(0).body["system"].to_string();
    assert!(system.find("a-rules").unwrap() < system.find("b-rules").unwrap(), "{system}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_idle_once_it_has_settled() {
    let source = "export default (pi) => { pi.on('agent_end', (e, ctx) => ctx.ui.notify('end ' + e.messages.length)); pi.on('agent_settled', (e, ctx) => ctx.ui.notify('settled ' + ctx.isIdle())); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("Hi").await;
    assert_eq!(test.notes(), ["end 2", "settled true"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_says_something_for_one_request_and_changes_a_payload() {
    let source = "export default (pi) => {\n\
        pi.registerCommand('now', { handler: async (args, ctx) => ctx.ephemeral('It is ' + args) });\n\
        pi.on('before_provider_request', (e) => { e.payload.max_tokens = 777; });\n\
        pi.on('before_provider_request', (e) => ({ ...e.payload, messages: 'none' })); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("/now half past nine").await;
    test.say("Hi").await;
    test.say("Again").await;
    let sent = test.home.sent();
    let has_text: Vec<bool> =
        sent.iter().map(|sent| sent.body.to_string().contains("half past nine")).collect();
    assert_eq!(has_text, [true, false]);
    assert_eq!(sent[0].body["max_tokens"], json!(777));
    assert_eq!(test.lines(), ["user: Hi", "assistant: Fine.", "user: Again", "assistant: Fine."]);
    let faults = test.take_events().into_iter().filter_map(|event| event.payload::<HandlerFailed>().cloned());
    assert!(
        faults.clone().count() == 2 && faults.clone().all(|fault| fault.0.message.contains("is not sent"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_has_ended_is_not_asked_any_more_and_its_guard_stays_shut() {
    let source = "export default (pi) => { pi.on('input', () => {}); pi.on('tool_call', async () => { for (;;) await null; }); }";
    let script = "turns:\n- when: {contains: Look}\n  tool_calls: [{name: ls, arguments: {path: .}}, {name: ls, arguments: {path: src}}, {name: ls, arguments: {path: docs}}]\n";
    let mut test = TestConversation::with_sources(script, &[source], None).await;
    test.say("Look").await;
    let lines = test.lines();
    assert!(lines[4].contains("decides about tool calls, and has ended"), "{lines:?}");
    test.take_events();
    test.say("Go on").await;
    let faults =
        test.take_events().into_iter().filter(|event| event.payload::<HandlerFailed>().is_some()).count();
    assert_eq!(faults, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_thinking_level_is_told_with_the_level_before_it() {
    let source = telling(&[("thinking_level_select", "[e.previousLevel, e.level]")]);
    let mut test = TestConversation::with_sources("", &[&source], None).await;
    let agent = &test.app.agent;
    agent.select_thinking(ThinkingSetting::Off).await.unwrap();
    for level in ["high", "high", "low"] {
        agent.select_thinking(level.parse().unwrap()).await.unwrap();
    }
    let told = test.notes().split_off(1);
    assert_eq!(
        told,
        ["thinking_level_select: [\"off\",\"high\"]", "thinking_level_select: [\"high\",\"low\"]"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_of_the_session_is_told_and_so_is_a_compaction_that_failed() {
    let teller = telling(&[
        ("session_info_changed", "e.name"),
        ("session_compact", "[e.reason, e.willRetry]"),
        ("session_compact_failed", "[e.reason, e.errorMessage, e.aborted, e.willRetry, e.fromExtension]"),
    ]);
    let decider = "export default (pi) => {\n\
        const replies = [{ cancel: true }, { compaction: { summary: ' ' } }, { compaction: { summary: 'short' } }];\n\
        pi.on('session_before_compact', () => replies.shift());\n\
        pi.registerCommand('name', { handler: async (name) => { pi.setSessionName(name); } }); }";
    let mut test = TestConversation::with_sources("", &[&teller, decider], None).await;
    test.say("/name The plan").await;
    let mut told = Vec::new();
    for _ in 0..400 {
        told.extend(test.notes());
        if !told.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(told, ["session_info_changed: \"The plan\""]);
    // Nothing to compact, cancelled, no summary, and done.
    let agent = test.app.agent.clone();
    agent.compact(None).await.unwrap_err();
    for prompt in ["First", "Second", "Third"] {
        test.say(&format!("{prompt}\n{}", "word ".repeat(15_000))).await;
    }
    agent.compact(None).await.unwrap_err();
    agent.compact(None).await.unwrap_err();
    agent.compact(None).await.unwrap();
    let told: Vec<String> = test.notes().into_iter().filter(|note| note.contains("compact")).collect();
    assert!(told[0].starts_with("session_compact_failed: [\"manual\",\""), "{told:?}");
    assert!(told[0].ends_with("\",false,false,false]"), "{told:?}");
    assert_eq!(told[1], "session_compact_failed: [\"manual\",null,true,false,false]");
    assert!(told[2].ends_with("\",false,false,true]"), "{told:?}");
    assert_eq!(told[3], "session_compact: [\"manual\",false]");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_the_system_prompt_can_be_changed_where_they_are() {
    let first = "export default (pi) => pi.on('before_agent_start', (e) => { e.systemPromptOptions.sections.house = 'Be brief.'; e.systemPromptOptions.promptGuidelines.push('Ask first.'); e.systemPromptOptions.appendSystemPrompt += 'The end.'; });";
    let second = "export default (pi) => pi.on('before_agent_start', (e) => ({ systemPrompt: e.systemPrompt + ' Really.' }));";
    let test = TestConversation::with_sources("", &[first, second], None).await;
    test.say("hello").await;
    let system = test.home.sent()[0].body["system"].to_string();
    assert!(
        system.contains("- Ask first.\\n\\nThe end.\\n\\n<house>\\nBe brief.\\n</house> Really."),
        "{system}"
    );
}
