//! Scripts in the engine: what they can do, and what they cannot do to the program around them.

use std::fs;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::modules::FileSources;

/// A host that notes what it is asked, and answers with the arguments.
#[derive(Default)]
struct EchoHost {
    notes: Mutex<Vec<String>>,
}

impl EchoHost {
    fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    /// Waits until something was noted that contains the text.
    async fn wait_for(&self, text: &str) -> String {
        for _ in 0..2_000 {
            if let Some(found) = self.notes().into_iter().find(|note| note.contains(text)) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing noted {text:?}: {:?}", self.notes());
    }
}

impl ScriptHost for EchoHost {
    fn call(&self, name: &str, arguments: Value) -> BoxFuture<'static, Result<Value, HostError>> {
        let name = name.to_owned();
        Box::pin(async move {
            match &*name {
                "exec" if arguments["bytes"] == true => {
                    let line = format!("{} {}", arguments["command"], arguments["args"]);
                    let (stdout, code) = (STANDARD.encode(line), i32::from(arguments["command"] == "false"));
                    Ok(json!({ "stdout": stdout, "stderr": "", "code": code, "killed": false }))
                }
                "exec" => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    Ok(arguments)
                }
                "fetch" if arguments["url"].as_str().is_some_and(|url| url.ends_with("/never")) => {
                    std::future::pending().await
                }
                "fetch" => Ok(json!({
                    "url": arguments["url"], "status": 201, "redirected": false,
                    "headers": [["content-type", "application/json"]],
                    "body": STANDARD.encode(arguments.to_string()),
                })),
                _ => Err(HostError(format!("no {name}"))),
            }
        })
    }

    fn call_now(&self, name: &str, arguments: Value) -> Result<Value, HostError> {
        self.note(format!("{name} {arguments}"));
        match name {
            "cwd" => Ok(json!("/work")),
            "forbidden" => Err(HostError("forbidden".into())),
            _ => Ok(Value::Null),
        }
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.note(format!("{level:?} {text}"));
    }

    fn fault(&self, fault: ScriptFault) {
        self.note(format!("fault {fault}"));
    }
}

struct TestScript {
    script: Script,
    host: Arc<EchoHost>,
    _folder: TempDir,
}

fn limits() -> ScriptLimits {
    ScriptLimits { slice: Duration::from_millis(250), memory: 32 << 20, ..ScriptLimits::default() }
}

async fn load_with(files: &[(&str, &str)], host: &Arc<EchoHost>) -> Result<(Script, TempDir), ScriptError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
    }
    let sources = Arc::new(FileSources::new(folder.path()).unwrap());
    let entry = sources.root().join(files[0].0);
    Ok((Script::load(entry, sources, host.clone(), limits()).await?, folder))
}

/// Loads a script whose only handler has the number 1.
async fn load(body: &str) -> TestScript {
    let host = Arc::new(EchoHost::default());
    let (script, folder) = load_with(&[("guard.ts", body)], &host).await.unwrap();
    TestScript { script, host, _folder: folder }
}

/// The value of an expression.
async fn evaluate(expression: &str) -> Value {
    let test =
        load(&format!("export default (pi) => {{ pi.on('x', async (event) => ({expression})); }}")).await;
    test.call(json!({})).await.unwrap()
}

impl TestScript {
    async fn call(&self, event: Value) -> Result<Value, ScriptError> {
        self.script.call(CallKind::Handler, "1", event.to_string()).await
    }
}

#[tokio::test]
async fn a_typed_handler_gets_its_event_and_its_reply_comes_back() {
    let test = load(
        "import type { ExtensionAPI } from \"@mariozechner/pi-coding-agent\";\n\
         export default async function (pi: ExtensionAPI): Promise<void> {\n\
           pi.on(\"input\", async (event: { text: string }, ctx) => {\n\
             await Promise.resolve();\n\
             return { action: \"transform\", text: event.text + \" in \" + ctx.cwd } as const;\n\
           });\n\
         }",
    )
    .await;
    let reply = test.call(json!({"text": "hi"})).await.unwrap();
    assert_eq!(reply, json!({"action": "transform", "text": "hi in /work"}));
    assert!(test.host.notes().contains(&r#"on {"event":"input","handler":"1"}"#.to_owned()));
}

#[tokio::test]
async fn an_error_names_the_line_of_the_source() {
    let test = load(
        "interface A { x: number }\n\nexport default function (pi: any) {\n  pi.on('x', (event: A) => {\n    const y: string = event.missing.deep;\n  });\n}",
    )
    .await;
    let error = test.call(json!({})).await.unwrap_err().to_string();
    assert!(error.starts_with("TypeError: "), "{error}");
    assert!(error.contains("guard.ts:5:"), "{error}");
}

#[tokio::test]
async fn a_rejection_that_nobody_takes_up_is_reported_and_one_that_is_taken_up_is_not() {
    let test = load(
        "export default (pi) => { pi.on('x', () => {\n\
           Promise.reject(new Error('quiet')).catch(() => {});\n\
           Promise.reject(new Error('loud'));\n\
           setTimeout(() => { throw new Error('late'); }, 1);\n\
         }); }",
    )
    .await;
    test.call(json!({})).await.unwrap();
    assert!(test.host.wait_for("loud").await.starts_with("fault Error: loud (guard.ts:3:"));
    assert!(test.host.wait_for("late").await.contains("guard.ts:4:"));
    assert!(!test.host.notes().iter().any(|note| note.contains("quiet")));
}

#[tokio::test]
async fn an_endless_loop_is_stopped_and_the_script_can_be_called_again() {
    let test = load(
        "let calls = 0;\nexport default (pi) => { pi.on('x', async (event) => {\n  calls += 1;\n  if (event.wait) await pi.exec('sleep');\n  try { while (event.loop) {} } catch { return 'caught'; }\n  return calls;\n}); }",
    )
    .await;
    let error = test.call(json!({"loop": true})).await.unwrap_err();
    assert!(matches!(error, ScriptError::TooLong(_)), "{error}");
    // After something was waited for as well.
    let error = test.call(json!({"loop": true, "wait": true})).await.unwrap_err();
    assert!(matches!(error, ScriptError::TooLong(_)), "{error}");
    assert_eq!(test.call(json!({})).await.unwrap(), json!(3));
}

#[tokio::test]
async fn waiting_does_not_count_as_computing() {
    // The host takes longer than a slice may.
    let test =
        load("export default (pi) => { pi.on('x', async () => (await pi.exec('a', ['b'])).args); }").await;
    assert_eq!(test.call(json!({})).await.unwrap(), json!(["b"]));
}

#[tokio::test]
async fn promises_without_end_stop_the_script() {
    let test = load("export default (pi) => { pi.on('x', async () => { for (;;) await null; }); }").await;
    assert!(matches!(test.call(json!({})).await.unwrap_err(), ScriptError::TooLong(_)));
    assert!(matches!(test.call(json!({})).await.unwrap_err(), ScriptError::Stopped));
}

#[tokio::test]
async fn too_much_memory_recursion_and_huge_results_are_errors_of_the_script() {
    let test = load(
        "export default (pi) => { pi.on('x', (event) => {\n\
           if (event.bomb) { const all = []; for (;;) all.push(new Array(100000).fill(all.length)); }\n\
           if (event.deep) { const down = (n) => down(n + 1) + 1; return down(0); }\n\
           if (event.long) return 'x'.repeat(8 << 20);\n\
           return 'fine';\n\
         }); }",
    )
    .await;
    for fault in ["bomb", "deep"] {
        let error = test.call(json!({fault: true})).await.unwrap_err();
        assert!(matches!(error, ScriptError::Raised(_) | ScriptError::TooLong(_)), "{fault}: {error}");
    }
    assert_eq!(test.call(json!({"long": true})).await.unwrap().as_str().map(str::len), Some(8 << 20));
    assert_eq!(test.call(json!({})).await.unwrap(), json!("fine"));
}

#[tokio::test]
async fn a_module_may_wait_at_its_top_and_import_its_own_files() {
    let host = Arc::new(EchoHost::default());
    let files = [
        (
            "index.ts",
            "import { name } from './lib/name.js';\nimport data from './data.json';\nconst late: string = await Promise.resolve(name);\nexport default (pi: any) => { pi.on('x', () => late + data.n + import.meta.url.startsWith('file:///')); };",
        ),
        ("lib/name.ts", "import { other } from '../other';\nexport const name: string = 'a' + other;"),
        ("other.ts", "export enum Kind { A = 'b' }\nexport const other = Kind.A;"),
        ("data.json", "{\"n\": 5}"),
    ];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    assert_eq!(script.call(CallKind::Handler, "1", "{}".into()).await.unwrap(), json!("ab5true"));
}

#[tokio::test]
async fn what_cannot_be_loaded_says_why() {
    for (source, expected) in [
        ("import x from 'left-pad'; x(); export default () => {};", "There is no module \"left-pad\" here"),
        (
            "import x from 'node:dgram'; x(); export default () => {};",
            "There is no module \"node:dgram\" here",
        ),
        ("import x from './missing'; x(); export default () => {};", "Cannot find the module \"./missing\""),
        ("import x from '../../etc/passwd'; x(); export default () => {};", "Cannot find the module"),
        ("import all from 'hardpan:internal'; all(); export default () => {};", "There is no module"),
        ("export default 5;", "the module's default export is not a function"),
        ("export default () => {\n  throw new Error('no');\n}", "Error: no (guard.ts:2:"),
        ("export default () => { const = 5; }", "line 1"),
        ("export default (pi) => { pi.sendUserMessage('x'); }", "Extension runtime not initialized"),
        (
            "export default (pi) => { pi.registerTool({ name: 'x', execute() {} }); }",
            "parameters of the tool x",
        ),
        ("while (true) {}\nexport default () => {};", "without a pause"),
    ] {
        let host = Arc::new(EchoHost::default());
        let Err(error) = load_with(&[("guard.ts", source)], &host).await else {
            panic!("{source} was loaded")
        };
        assert!(error.to_string().contains(expected), "{source}: {error}");
    }
}

#[tokio::test]
async fn a_name_that_a_known_package_lacks_is_undefined() {
    let test = load(
        "import { NoSuchThing, truncateHead } from '@mariozechner/pi-coding-agent';\nimport * as tui from '@earendil-works/pi-tui';\n\
         export default (pi) => { pi.on('x', () => [typeof NoSuchThing, truncateHead('a\\nb', { maxLines: 1 }).content, tui.visibleWidth('a✅')]); }",
    )
    .await;
    assert_eq!(test.call(json!({})).await.unwrap(), json!(["undefined", "a", 3]));
}

#[tokio::test]
async fn a_tool_gets_arguments_that_fit_its_schema() {
    let test = load(
        "import { Type } from '@sinclair/typebox';\nimport { StringEnum } from '@mariozechner/pi-ai';\n\
         export default (pi) => pi.registerTool({ name: 'add', label: 'Add', description: 'Adds.',\n\
           parameters: Type.Object({ n: Type.Integer(), how: Type.Optional(StringEnum(['up', 'down'])) }),\n\
           async execute(id, params, signal, onUpdate, ctx) {\n\
             onUpdate({ content: [{ type: 'text', text: 'half' }] });\n\
             return { content: [{ type: 'text', text: `${id} ${typeof params.n} ${params.how} ${signal.aborted}` }], details: { n: params.n } };\n\
           } });",
    )
    .await;
    let registered = test.host.notes().into_iter().find(|note| note.starts_with("registerTool")).unwrap();
    assert!(registered.contains(r#""required":["n"]"#), "{registered}");
    let call = |args: Value| {
        let payload = json!({"callId": "c1", "args": args}).to_string();
        test.script.call(CallKind::Tool, "add", payload)
    };
    assert_eq!(
        call(json!({"n": "5", "how": null})).await.unwrap(),
        json!({"content": [{"type": "text", "text": "c1 number undefined false"}], "details": {"n": 5}})
    );
    assert!(test.host.notes().iter().any(|note| note.contains("half")));
    let error = call(json!({"how": "sideways"})).await.unwrap_err().to_string();
    assert!(error.contains("n: is required") && error.contains("how: must be one of"), "{error}");
}

#[tokio::test]
async fn an_abandoned_call_gets_its_signal() {
    let test = load(
        "export default (pi) => { pi.on('x', (event, ctx) => new Promise(() => { ctx.signal.addEventListener('abort', () => console.log('gone')); console.log('began'); })); }",
    )
    .await;
    {
        let mut call = Box::pin(test.call(json!({})));
        let began = test.host.wait_for("began");
        tokio::select! { _ = &mut call => panic!("it never answers"), _ = began => {} }
    }
    test.host.wait_for("gone").await;
}

#[tokio::test]
async fn the_platform_is_there() {
    for (expression, expected) in [
        ("new URL('../b?x=1#y', 'https://a.org:8080/c/d').href", json!("https://a.org:8080/b?x=1#y")),
        (
            "(() => { const u = new URL('https://a.org/?x=1'); u.searchParams.set('y', 'a b'); u.pathname = '/p'; return u.href; })()",
            json!("https://a.org/p?x=1&y=a+b"),
        ),
        ("URL.canParse('nonsense')", json!(false)),
        ("new TextDecoder().decode(new TextEncoder().encode('grüße 😀'))", json!("grüße 😀")),
        ("Buffer.from('grüße').toString('base64')", json!("Z3LDvMOfZQ==")),
        ("Buffer.concat([Buffer.from('a'), Buffer.from('62', 'hex')]).toString()", json!("ab")),
        ("Buffer.byteLength('ü')", json!(2)),
        ("structuredClone({ a: [1, { b: new Date(0) }], m: new Map([[1, 2]]) }).m.get(1)", json!(2)),
        ("AbortSignal.any([AbortSignal.abort('r')]).reason", json!("r")),
        (
            "await new Promise((done) => { const c = setInterval(() => { clearInterval(c); done('tick'); }, 1); })",
            json!("tick"),
        ),
        ("await new Promise((done) => queueMicrotask(() => done(1)))", json!(1)),
        ("crypto.randomUUID().length", json!(36)),
        (
            "(await import('node:crypto')).createHash('sha256').update('abc').digest('hex').slice(0, 8)",
            json!("ba7816bf"),
        ),
        ("(await import('node:path')).join('/a/b', '../c', './d.ts')", json!("/a/c/d.ts")),
        ("(await import('path')).relative('/a/b', '/a/c/d')", json!("../c/d")),
        ("(await import('node:url')).fileURLToPath('file:///a%20b')", json!("/a b")),
        ("atob(btoa('xyz'))", json!("xyz")),
        ("'\\ud83d'", json!("\u{fffd}")),
        ("typeof globalThis.__hardpan_modules + typeof native", json!("undefinedundefined")),
    ] {
        assert_eq!(evaluate(expression).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn a_script_ends_with_its_timers_and_whatever_it_computes() {
    let host = Arc::new(EchoHost::default());
    for body in ["setInterval(() => {}, 1)", "pi.exec('long')", "pi.on('x', () => {})"] {
        let source = format!("export default (pi) => {{ {body}; }}");
        let (script, _folder) = load_with(&[("guard.ts", &source)], &host).await.unwrap();
        script.close().await;
    }
    let test =
        load("export default (pi) => { pi.on('x', () => { console.log('began'); for (;;) {} }); }").await;
    let TestScript { script, host, _folder } = test;
    let script = Arc::new(script);
    let called = script.clone();
    let call = tokio::spawn(async move { called.call(CallKind::Handler, "1", "{}".into()).await });
    host.wait_for("began").await;
    call.abort();
    // The task lets go of the script; then nobody else has it.
    let _ = call.await;
    Arc::into_inner(script).expect("the only handle").close().await;
}

#[tokio::test]
async fn many_scripts_leave_nothing_behind() {
    let host = Arc::new(EchoHost::default());
    for _ in 0..50 {
        let (script, _folder) =
            load_with(&[("a.ts", "export default (pi) => { pi.on('x', () => 1); }")], &host).await.unwrap();
        assert_eq!(script.call(CallKind::Handler, "1", "{}".into()).await.unwrap(), json!(1));
        script.close().await;
    }
    // The scripts' threads held the host; all of them have ended.
    assert_eq!(Arc::strong_count(&host), 1);
}

#[tokio::test]
async fn packages_of_node_modules_are_there_whatever_their_format() {
    let host = Arc::new(EchoHost::default());
    let files = [
        (
            "index.ts",
            "import both, { half } from 'both';\nimport plain from 'plain';\nimport { deep } from 'plain/deep';\nimport old from 'compiled';\nimport data from './data.json';\nimport { createRequire } from 'node:module';\n\
             export default (pi: any) => { pi.on('x', async () => [both, half, plain(), deep, old, data.n, require('./old').answer, __dirname === import.meta.dirname, createRequire(import.meta.url)('plain')(), (await import('plain')).default(), (await import('node:path')).default.sep, (await import('node:path')).join('a', 'b'), require('./modern').modern]); };",
        ),
        ("data.json", "{\"n\": 7}"),
        (
            "old.js",
            "const { join } = require('path'); exports.answer = join('a', 'b') + typeof module + __filename.slice(-7);",
        ),
        ("modern.mjs", "export const modern = 'esm';"),
        ("node_modules/both/package.json", r#"{"exports": {"import": "./a.mjs", "require": "./a.cjs"}}"#),
        ("node_modules/both/a.mjs", "export default 'esm'; export const half = 0.5;"),
        ("node_modules/both/a.cjs", "module.exports = 'cjs';"),
        (
            "node_modules/plain/index.js",
            "const both = require('both'); module.exports = () => 'plain ' + both; require('http');",
        ),
        (
            "node_modules/plain/deep.js",
            "exports.deep = typeof require('./index.js') + require('../both/package.json').exports.import;",
        ),
        (
            "node_modules/compiled/index.js",
            "Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 'default of compiled';",
        ),
    ];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    let answer = script.call(CallKind::Handler, "1", "{}".into()).await.unwrap();
    assert_eq!(
        answer,
        json!([
            "esm",
            0.5,
            "plain cjs",
            "function./a.mjs",
            "default of compiled",
            7,
            "a/bobject/old.js",
            true,
            "plain cjs",
            "plain cjs",
            "/",
            "a/b",
            "esm"
        ])
    );
}

#[tokio::test]
async fn an_extension_may_be_of_common_js() {
    let host = Arc::new(EchoHost::default());
    let files = [("guard.js", "module.exports = function (pi) { pi.on('x', () => 'common'); };")];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    assert_eq!(script.call(CallKind::Handler, "1", "{}".into()).await.unwrap(), json!("common"));
}

#[tokio::test]
async fn a_module_that_is_not_there_is_named_and_one_that_only_a_package_uses_fails_when_it_is_called() {
    let host = Arc::new(EchoHost::default());
    let failed =
        load_with(&[("a.ts", "import http from 'node:http';\nexport default () => http;")], &host).await;
    assert!(failed.err().unwrap().to_string().contains("There is no module \"node:http\" here"));
    let files = [
        ("a.ts", "import { ask } from 'asker'; export default (pi: any) => { pi.on('x', () => ask()); }"),
        (
            "node_modules/asker/index.mjs",
            "import { request, Agent } from 'node:http'; class Own extends Agent {}\nexport const ask = () => request('x');",
        ),
        ("node_modules/asker/package.json", r#"{"main": "index.mjs"}"#),
    ];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    let error = script.call(CallKind::Handler, "1", "{}".into()).await.unwrap_err().to_string();
    assert!(error.contains("node:http is not available in an extension (request)"), "{error}");
}

#[tokio::test]
async fn programs_are_started_in_every_way_that_node_knows() {
    let expression = "await (async () => { const cp = await import('node:child_process'); const { promisify } = await import('node:util');\
        const spawned = await new Promise((resolve) => { const child = cp.spawn('cat', ['-'], { stdio: 'pipe' }); let text = ''; child.stdout.setEncoding('utf8').on('data', (part) => { text += part; }); child.on('close', (code) => resolve(text + code)); child.stdin.write('a'); child.stdin.end(); });\
        let failed; try { cp.execFileSync('false'); } catch (error) { failed = error.status; }\
        return [cp.execSync('ls -l', { encoding: 'utf8' }), cp.spawnSync('a', ['b']).stdout.toString(), spawned, (await promisify(cp.execFile)('x', ['y'])).stdout, failed]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([r#""sh" ["-c","ls -l"]"#, r#""a" ["b"]"#, r#""cat" ["-"]0"#, r#""x" ["y"]"#, 1])
    );
}

#[tokio::test]
async fn fetch_sends_a_request_and_can_be_aborted() {
    let expression = "await (async () => { const response = await fetch('https://example.com/a', { method: 'post', body: JSON.stringify({ a: 'ä' }), headers: { 'X-One': '1' } });\
        const sent = await response.clone().json(); let aborted; try { await fetch('https://example.com/never', { signal: AbortSignal.timeout(20) }); } catch (error) { aborted = error.name; }\
        return [response.ok, response.status, response.headers.get('Content-Type'), sent.method, sent.headers, Buffer.from(sent.body, 'base64').toString(), (await response.arrayBuffer()).byteLength > 10, aborted, new Response('x').bodyUsed]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([
            true,
            201,
            "application/json",
            "POST",
            [["content-type", "text/plain;charset=UTF-8"], ["x-one", "1"]],
            "{\"a\":\"ä\"}",
            true,
            "TimeoutError",
            false
        ])
    );
}

#[tokio::test]
async fn texts_numbers_and_dates_are_formatted_in_english() {
    let expression = "[[...new Intl.Segmenter().segment('e\u{301}👨‍👩‍👧🇩🇪\\r\\n')].map((part) => part.segment.length), (1234567.891).toLocaleString(), new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(-1234.5), new Intl.NumberFormat('en', { notation: 'compact' }).format(15300), new Date(0).toLocaleDateString('en-US', { timeZone: 'UTC' }), new Intl.ListFormat('en').format(['a', 'b', 'c']), ['a10', 'a9'].sort(new Intl.Collator(undefined, { numeric: true }).compare)]";
    assert_eq!(
        evaluate(expression).await,
        json!([
            [2, 8, 4, 2],
            "1,234,567.891",
            "-$1,234.50",
            "15.3K",
            "1/1/1970",
            "a, b, and c",
            ["a9", "a10"]
        ])
    );
}

#[tokio::test]
async fn messages_that_a_handler_leaves_alone_go_back_as_their_numbers() {
    let call = async |handler: &str| {
        let test = load(&format!("export default (pi) => {{ pi.on('context', {handler}); }}")).await;
        let text = |n: u32| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}");
        test.call(json!({ "type": "context", "lazyMessages": [text(0), text(1), text(2)] })).await.unwrap()
    };
    assert_eq!(call("() => {}").await, Value::Null);
    assert_eq!(call("(e) => ({ messages: e.messages.filter((m) => m.role === 'user') })").await, Value::Null);
    let added = call(
        "(e) => ({ messages: [e.messages[2], { role: 'user', content: 'x' }, ...e.messages.slice(0, 1)] })",
    )
    .await;
    assert_eq!(added, json!({ "messages": [2, { "role": "user", "content": "x" }, 0] }));
    let changed =
        call("(e) => { e.messages[1].content = 'changed'; delete e.messages[0].role; e.messages.pop(); }")
            .await;
    assert_eq!(
        changed,
        json!({ "messages": [{ "content": "0" }, { "role": "user", "content": "changed" }] })
    );
    let seen = call("(e) => ({ messages: e.messages.map((m) => ({ ...m, keys: Object.keys(m), json: JSON.stringify(m), has: 'role' in m })).slice(0, 1) })").await;
    let first = json!({ "role": "user", "content": "0", "keys": ["role", "content"], "json": "{\"role\":\"user\",\"content\":\"0\"}", "has": true });
    assert_eq!(seen, json!({ "messages": [first] }));
}
