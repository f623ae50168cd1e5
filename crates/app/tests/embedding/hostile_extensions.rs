//! Extensions that mean harm, or are merely broken: the conversation goes on, and ends.

use hardpan_agent::events::HandlerFailed;
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
