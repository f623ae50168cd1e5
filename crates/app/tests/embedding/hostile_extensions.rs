//! Extensions that mean harm, or are merely broken: the conversation goes on, and ends.

use hardpan_agent::events::{FaceChange, FaceChanged, HandlerFailed, Note};
use hardpan_agent::{InputOutcome, RunEnd};

use super::extensions::TestConversation;

/// Says something to a conversation with hostile extensions; it must be answered, and the conversation
/// must end. Returns the faults that were told of.
async fn survives(sources: &[&str]) -> Vec<String> {
    let mut test = TestConversation::with_sources("", sources, None).await;
    assert_eq!(test.say("Hi").await, InputOutcome::Ran(RunEnd::Done));
    let lines = test.lines();
    assert_eq!(lines.last().map(String::as_str), Some("assistant: Fine."), "{lines:?}");
    let faults = test.take_events().into_iter().filter_map(|event| {
        let failed = event.payload::<HandlerFailed>()?;
        Some(format!("{} {}: {}", failed.0.owner, failed.0.event, failed.0.message))
    });
    let mut told: Vec<String> = faults.collect();
    told.extend(test.notices());
    test.app.agent.shutdown().await.unwrap();
    told
}

/// An extension with one handler of `input`.
fn on_input(body: &str) -> String {
    format!("export default (pi) => {{ pi.on('input', async (event, ctx) => {{ {body} }}); }}")
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_work_is_stopped_wherever_it_hides() {
    // One conversation each, at the same time: every one takes as long as the limit.
    let bodies = [
        "for (;;) {}",
        "await null; for (;;) {}",
        "return { get action() { for (;;) {} } };",
        "return { toJSON() { for (;;) {} } };",
        "return /^(a+)+$/.test('a'.repeat(40) + 'b') ? undefined : undefined;",
        "const again = () => Promise.resolve().then(again); await again();",
    ];
    let tests = bodies.map(|body| {
        tokio::spawn(async move {
            let told = survives(&[&on_input(body)]).await;
            assert!(told.iter().any(|fault| fault.contains("ext1")), "{body}: {told:?}");
        })
    });
    for test in tests {
        test.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_stack_and_results_have_limits() {
    let bodies = [
        "let text = 'x'; for (;;) text += text;",
        "const list = []; for (;;) list.push(new Array(100000).fill(1));",
        "const list = []; for (;;) list.push(new Uint8Array(1 << 20));",
        "const map = new Map(); for (let n = 0; ; n++) map.set(n, { n, text: 'entry ' + n });",
        "const deep = (n) => deep(n + 1) + 1; return deep(0);",
        "let nested = {}; for (let n = 0; n < 1e6; n++) nested = { nested }; return nested;",
        "return { action: 'transform', text: 'x'.repeat(60 << 20) };",
        "return { action: 'transform', text: 7 };",
    ];
    let tests = bodies.map(|body| tokio::spawn(async move { survives(&[&on_input(body)]).await }));
    for (test, body) in tests.into_iter().zip(bodies) {
        let told = test.await.unwrap();
        assert!(body.ends_with("text: 7 };") || !told.is_empty(), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_timers_lines_and_notes_are_borne() {
    survives(&[&on_input("for (let n = 0; n < 2e5; n++) setTimeout(() => {}, n % 1000);")]).await;
    survives(&[&on_input("for (let n = 0; n < 1e4; n++) console.log('line', n);")]).await;
    survives(&[&on_input("for (let n = 0; n < 1e4; n++) ctx.ui.notify('note ' + n);")]).await;
    survives(&[&on_input("setInterval(() => { throw new Error('again'); }, 1);")]).await;
    survives(&[&on_input("for (let n = 0; n < 1000; n++) Promise.reject(new Error('nobody ' + n));")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_to_load_is_named_and_left_out() {
    let told = survives(&[
        "throw new Error('at once');",
        "export default () => { throw new Error('in the function'); };",
        "for (;;) {}\nexport default () => {};",
        "export default 5;",
        "export default (pi) => { pi.on('input', 'no function'); };",
        "export default async () => { throw null; };",
        "this is not a program",
    ])
    .await;
    for name in ["ext1.ts", "ext2.ts", "ext3.ts", "ext4.ts", "ext5.ts", "ext6.ts", "ext7.ts"] {
        assert!(told.iter().any(|notice| notice.contains(name)), "{name}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_prototypes_reach_neither_other_extensions_nor_the_conversation() {
    let hostile = "Object.prototype.polluted = 'yes'; Array.prototype.map = () => { throw new Error('gotcha'); }; JSON.stringify = () => '{\"action\":\"handled\"}'; Promise.prototype.then = function () { return this; }; globalThis.Error = null;\n\
        export default (pi) => { pi.on('input', (event) => { Object.setPrototypeOf(event, null); }); };";
    let innocent = "export default (pi) => { pi.on('input', (event) => ({ action: 'transform', text: event.text + ' ' + String({}.polluted) + [1].map((n) => n + 1).join() })); };";
    let test = TestConversation::with_sources("", &[hostile, innocent], None).await;
    assert_eq!(test.say("Hi").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test.lines()[0], "user: Hi undefined2");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_the_workspace() {
    let source = "import fs from 'node:fs';\nimport { readFile, open } from 'node:fs/promises';\n\
        export default (pi) => pi.registerCommand('try', { handler: async (args, ctx) => {\n\
          const attempt = async (work) => { try { await work(); return 'DONE'; } catch (error) { return error.code ?? error.message; } };\n\
          const paths = ['/etc/hostname', '../user/config/keys.toml', 'link/passwd', '/proc/self/environ', '/proc/self/root/etc/passwd', '/dev/stdin', '/dev/fd/0', 'file:///etc/hostname', './../../../../../../etc/passwd', 'work\\0/../x', '~/.ssh/id_rsa'];\n\
          const results = [];\n\
          for (const path of paths) results.push(await attempt(() => fs.readFileSync(path)), await attempt(() => readFile(path)), await attempt(() => fs.copyFileSync(path, 'copy')));\n\
          results.push(await attempt(() => fs.writeFileSync('link/evil', 'x')), await attempt(() => fs.renameSync('notes.txt', '../escaped')), await attempt(() => fs.symlinkSync('/etc', 'mine')), await attempt(() => fs.readFileSync(0)), await attempt(() => fs.openSync('/etc/passwd', 'r')), await attempt(() => import('/etc/passwd')), await attempt(() => import('../../../../etc/x.js')), await attempt(() => fs.mkdirSync('/tmp/hardpan-hostile')), await attempt(() => fs.rmSync('..', { recursive: true, force: true })));\n\
          results.push(...['ANTHROPIC_API_KEY', 'CARGO_MANIFEST_DIR', 'SSH_AUTH_SOCK'].map((name) => (process.env[name] === undefined && !Object.keys(process.env).includes(name) ? 'hidden' : 'DONE')));\n\
          ctx.ui.notify(results.includes('DONE') ? 'ESCAPED ' + results.join() : 'kept'); } });";
    let home = super::subagents::TaskHome::new(super::extensions::FINE, "").await;
    home.home.write("extensions/ext1.ts", source);
    std::os::unix::fs::symlink("/etc", home.home.folder.path().join("work/link")).unwrap();
    let path = home.home.folder.path().join("extensions/ext1.ts");
    let mut test = TestConversation::open_in(home, &[path], None).await;
    test.say("/try").await;
    assert_eq!(test.notes(), ["kept"]);
}

/// Waits until something is so, for a few seconds.
pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_wait_for_a_command_that_never_settles() {
    let hanging = "export default (pi) => pi.registerCommand('hang', { handler: (args, ctx) => { ctx.ui.notify('began'); return new Promise(() => {}); } });";
    let mut test = TestConversation::with_sources("", &[hanging], None).await;
    let agent = test.app.agent.clone();
    let (stopping, mut events) = (agent.clone(), agent.events().unbounded_stream());
    let saying = async {
        // Once the command runs.
        while events.recv().await.is_some_and(|event| event.payload::<Note>().is_none()) {}
        stopping.stop();
    };
    let (outcome, ()) = tokio::join!(test.say("/hang"), saying);
    let InputOutcome::Command { output: Some(told) } = outcome else { panic!("{outcome:?}") };
    assert!(told.contains("ext1"), "{told}");
    test.take_events();
    // The conversation goes on.
    assert_eq!(test.say("Hi").await, InputOutcome::Ran(RunEnd::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_gives_up_scripts_that_never_end() {
    let hanging = "export default (pi) => pi.registerCommand('hang', { handler: (args, ctx) => { ctx.ui.notify('began'); return new Promise(() => {}); } });";
    let stuck = "export default (pi) => pi.on('agent_end', () => { const numbers = new Int32Array(16 << 20); for (;;) numbers.indexOf(1); });";
    let test = TestConversation::with_sources("", &[hanging, stuck], None).await;
    let (agent, app) = (test.app.agent.clone(), test.app.clone());
    let mut events = agent.events().unbounded_stream();
    let hang = tokio::spawn({
        let agent = agent.clone();
        let input = hardpan_agent::Input {
            text: "/hang".into(),
            below: None,
            images: Vec::new(),
            source: hardpan_agent::InputSource::Interactive,
            id: None,
        };
        async move { agent.prompt(input).await }
    });
    while events.recv().await.is_some_and(|event| event.payload::<Note>().is_none()) {}
    let run = tokio::spawn({
        let agent = agent.clone();
        let input = hardpan_agent::Input {
            text: "Hi".into(),
            below: None,
            images: Vec::new(),
            source: hardpan_agent::InputSource::Interactive,
            id: None,
        };
        async move { agent.prompt(input).await }
    });
    until("the run ends", || agent.status().activity == hardpan_agent::Activity::Ending).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    agent.stop();
    let limit = std::time::Duration::from_secs(20);
    tokio::time::timeout(limit, app.reload_extensions()).await.expect("the reload ends");
    let told = test.notices();
    assert!(
        told.iter().any(|notice| notice.contains("ext2") && notice.contains("cannot be stopped")),
        "{told:?}"
    );
    // Whoever waited for the old instances does not wait any more.
    tokio::time::timeout(limit, hang).await.expect("the command has ended").unwrap().unwrap();
    tokio::time::timeout(limit, run).await.expect("the run has ended").unwrap().unwrap();
    assert_eq!(app.extensions.list().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_extensions_begin_by_themselves_have_a_limit() {
    let endless = "export default (pi) => pi.on('agent_end', () => pi.sendUserMessage('again'));";
    let mut test = TestConversation::with_sources("", &[endless], None).await;
    let answers =
        |test: &TestConversation| test.lines().iter().filter(|line| line.starts_with("assistant")).count();
    test.say("Hi").await;
    let most = 1 + hardpan_agent::MAX_EXTENSION_RUNS as usize;
    until("all runs are over", || answers(&test) == most && !test.app.agent.status().is_working()).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(answers(&test), most);
    let is_told =
        |failed: &HandlerFailed| failed.0.message.contains("times in a row") && &*failed.0.owner == "ext1";
    let events = test.take_events();
    let told = events.iter().filter_map(|event| event.payload::<HandlerFailed>());
    assert_eq!(told.filter(|failed| is_told(failed)).count(), 1);
    // After a stop nothing begins, until the person says something.
    test.app.agent.stop();
    let after_stop = answers(&test);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(answers(&test), after_stop);
    test.say("Once more").await;
    until("it goes on", || answers(&test) > after_stop + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_tools_are_cut() {
    let tool = "export default (pi) => pi.registerTool({ name: 'large', description: 'x', parameters: { type: 'object', properties: { kind: { type: 'string' } } }, execute: async (id, { kind }) => {\n\
        if (kind === 'throw') throw new Error('x'.repeat(30e6));\n\
        return { content: kind === 'parts' ? Array.from({ length: 5e4 }, () => ({ type: 'text', text: 'y' })) : [{ type: 'text', text: 'x'.repeat(30e6) }] }; } });";
    for kind in ["text", "parts", "throw"] {
        let script = super::extensions::calling("large", &format!("{{kind: {kind}}}"));
        let test = TestConversation::with_sources(&script, &[tool], None).await;
        let limit = std::time::Duration::from_secs(100);
        let outcome = tokio::time::timeout(limit, test.say("Go")).await.expect("it is answered");
        assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done), "{kind}");
        let lines = test.lines();
        let result =
            lines.iter().find(|line| line.starts_with("result") || line.starts_with("failed")).unwrap();
        assert!(result.len() < 60_000 && result.contains("left out"), "{kind}: {} bytes", result.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_run_does_not_wait_for_handlers_of_notifications() {
    let never = "export default (pi) => { for (const name of ['turn_start', 'message_end', 'agent_end', 'agent_settled']) pi.on(name, () => new Promise(() => {})); };";
    let test = TestConversation::with_sources("", &[never], None).await;
    let agent = test.app.agent.clone();
    let stopping = async {
        until("the run begins", || agent.is_busy()).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        agent.stop();
    };
    let both = async { tokio::join!(test.say("Hi"), stopping) };
    let limit = std::time::Duration::from_secs(8);
    let (outcome, ()) = tokio::time::timeout(limit, both).await.expect("the run ends soon");
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Aborted));
    tokio::time::timeout(limit, test.app.agent.shutdown()).await.expect("the conversation ends").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_reach_no_face() {
    let flood = "export default (pi) => pi.on('input', async (event, ctx) => {\n\
        for (let n = 0; n < 2000; n++) { ctx.ui.notify('note ' + n + 'x'.repeat(50000)); ctx.ui.setTitle('title ' + n); try { ctx.ui.setStatus('key ' + n, 'x'.repeat(9000)); ctx.ui.setWidget('key ' + n, ['line']); } catch {} Promise.reject(new Error('nobody ' + n)); } });";
    let mut test = TestConversation::with_sources("", &[flood], None).await;
    assert_eq!(test.say("Hi").await, InputOutcome::Ran(RunEnd::Done));
    // The last value of what changes comes, if late.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let events = test.take_events();
    let notes: Vec<&Note> = events.iter().filter_map(|event| event.payload::<Note>()).collect();
    assert!(notes.len() <= 102 && notes.iter().all(|note| note.text.len() < 33_000), "{}", notes.len());
    let faults = events.iter().filter(|event| event.payload::<HandlerFailed>().is_some()).count();
    assert!((1..=102).contains(&faults), "{faults} faults");
    let changes: Vec<&FaceChanged> =
        events.iter().filter_map(|event| event.payload::<FaceChanged>()).collect();
    assert!(changes.len() <= 200, "{}", changes.len());
    let title = FaceChange::Title { text: "title 1999".into() };
    assert!(changes.iter().any(|changed| changed.change == title));
    let statuses = changes.iter().filter_map(|changed| match &changed.change {
        FaceChange::Status { key, .. } => Some(key.as_str()),
        _ => None,
    });
    assert!(statuses.collect::<std::collections::BTreeSet<&str>>().len() <= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_extensions_register_and_store_has_limits() {
    let greedy = "export default (pi) => {\n\
        const refused = {}; const attempt = (what, count, act) => { refused[what] = 0; for (let n = 0; n < count; n++) { try { act(n); } catch { refused[what]++; } } };\n\
        attempt('commands', 205, (n) => pi.registerCommand('c' + n, { description: 'x'.repeat(1e5), handler() {} }));\n\
        attempt('tools', 205, (n) => pi.registerTool({ name: 't' + n, description: 'x', parameters: {}, execute() {} }));\n\
        attempt('flags', 205, (n) => pi.registerFlag('f' + n, { type: 'boolean' }));\n\
        pi.registerCommand('c0', { handler: async (args, ctx) => {\n\
          attempt('large', 1, () => pi.appendEntry('x', 'y'.repeat(3e5)));\n\
          attempt('entries', 70, () => pi.appendEntry('x', 'y'.repeat(25e4)));\n\
          ctx.ui.notify(JSON.stringify(refused)); } }); };";
    let mut test = TestConversation::with_sources("", &[greedy], None).await;
    test.say("/c0").await;
    assert_eq!(test.notes(), ["{\"commands\":5,\"tools\":5,\"flags\":5,\"large\":1,\"entries\":3}"]);
    let commands = test.app.agent.commands();
    assert!(commands.values().all(|command| command.description.len() < 10_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_keeps_for_an_extension_has_limits() {
    let greedy = "export default (pi) => { pi.registerCommand('fill', { handler: async (args, ctx) => {\n\
        const told = []; const attempt = (most, act) => { let n = 0; try { for (; n < most; n++) act(n); told.push(n); } catch (error) { told.push(n + ' ' + error.message); } };\n\
        const name = 'x'.repeat(201), large = 'x'.repeat(9e6);\n\
        attempt(1, () => pi.registerCommand(name, { handler() {} }));\n\
        attempt(1, () => pi.registerTool({ name, description: 'x', parameters: {}, execute() {} }));\n\
        attempt(1, () => pi.registerFlag(name, {}));\n\
        attempt(1, () => pi.registerShortcut(name, { handler() {} }));\n\
        attempt(1, () => pi.on(name, () => {}));\n\
        attempt(1, () => pi.events.on(name, () => {}));\n\
        attempt(9, () => ctx.ephemeral('x'.repeat(1e5)));\n\
        attempt(9, () => pi.sendMessage({ customType: 'x', content: large }, { deliverAs: 'nextTurn' }));\n\
        attempt(20, () => pi.events.emit('busy', large));\n\
        ctx.ui.notify(told.join('\\n')); } }); };";
    let busy = "export default (pi) => { pi.events.on('busy', () => { const end = Date.now() + 1500; while (Date.now() < end); }); };";
    let mut test = TestConversation::with_sources("", &[greedy, busy], None).await;
    test.say("/fill").await;
    let notes = test.notes();
    let mut told: Vec<&str> = notes.last().map_or(Vec::new(), |note| note.lines().collect());
    // One or two may have been taken meanwhile.
    let bus = told.pop().unwrap_or_default();
    assert!(bus.ends_with(" the events that ext2 has not taken yet have more than 64 MB"), "{bus}");
    assert_eq!(
        told,
        [
            "0 the name of a command has at most 200 bytes; this one has 201",
            "0 the name of a tool has at most 200 bytes; this one has 201",
            "0 the name of a flag has at most 200 bytes; this one has 201",
            "0 a shortcut has at most 200 bytes; this one has 201",
            "0 the name of an event has at most 200 bytes; this one has 201",
            "0 the name of a channel has at most 200 bytes; this one has 201",
            "2 the texts for the next request have at most 256 kB; with this one, they have 292",
            "1 the messages that wait for the next prompt have at most 16384 kB; with this one, they have 17578",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_at_once_is_refused_before_it_is_read() {
    let source = "const many = new Array(1000).fill(new Array(300).fill({ '': 0 }));\n\
        export default (pi) => { pi.registerCommand('many', { handler: async (args, ctx) => {\n\
        const attempt = (act) => { try { act(); return 'taken'; } catch (error) { return error.message; } };\n\
        ctx.ui.notify([attempt(() => pi.appendEntry('x', many)), attempt(() => pi.events.emit('x', many)), attempt(() => pi.sendMessage({ customType: 'x', content: 'c', details: many }))].join('\\n')); } }); };";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("/many").await;
    let notes = test.notes();
    let told: Vec<&str> = notes.last().map_or(Vec::new(), |note| note.lines().collect());
    assert_eq!(told.len(), 3);
    for (line, name) in told.iter().zip(["appendEntry", "bus.emit", "sendMessage"]) {
        assert!(
            line.starts_with(&format!("{name} was given ")) && line.ends_with("at most 250000 are taken"),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_goes_through_a_context_handler() {
    let source = "export default (pi) => { pi.on('context', (event) => ({ messages: event.messages.concat(Array.from({ length: 1000 }, (_, n) => ({ role: 'user', content: [{ type: 'text', text: 'message ' + n }], timestamp: n }))) })); };";
    let told = survives(&[source]).await;
    assert!(told.iter().all(|told| !told.contains("ext1")), "{told:?}");
}
