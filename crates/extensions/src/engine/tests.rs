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

mod coding_tools; // the tools of the published package, as extensions wrap them
mod components; // what a face has in the place of components

/// A host that notes what it is asked, and answers with the arguments.
#[derive(Default)]
struct EchoHost {
    notes: Mutex<Vec<String>>,
    /// What is left of the answers to requests, by their numbers.
    bodies: Arc<Mutex<Vec<Vec<String>>>>,
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
        let bodies = self.bodies.clone();
        Box::pin(async move {
            match &*name {
                "exec" if arguments["bytes"] == true => {
                    let line = format!("{} {}", arguments["command"], arguments["args"]);
                    let is_late = arguments["timeout"].is_number();
                    let (stdout, code) = (STANDARD.encode(line), i32::from(arguments["command"] == "false"));
                    Ok(json!({ "stdout": stdout, "stderr": "", "code": code, "killed": is_late }))
                }
                "exec" => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    Ok(arguments)
                }
                // Far longer than a slice may take.
                "ui.confirm" => {
                    tokio::time::sleep(limits().slice * 4).await;
                    Ok(json!(true))
                }
                "fetch" if arguments["url"].as_str().is_some_and(|url| url.ends_with("/never")) => {
                    std::future::pending().await
                }
                // The answer comes in two parts, the last one first here.
                "fetch" => {
                    let text = arguments.to_string();
                    let (start, rest) = text.as_bytes().split_at(text.len() / 2);
                    let mut bodies = bodies.lock().unwrap();
                    bodies.push(vec![STANDARD.encode(rest), STANDARD.encode(start)]);
                    Ok(json!({
                        "url": arguments["url"], "status": 201, "redirected": false,
                        "headers": [["content-type", "application/json"]],
                        "body": bodies.len() - 1,
                    }))
                }
                "fetch.read" => {
                    let number = usize::try_from(arguments["body"].as_u64().unwrap()).unwrap();
                    Ok(bodies.lock().unwrap()[number].pop().map_or(Value::Null, Value::from))
                }
                // Whoever is asked takes the choice that the title names, or the second, or what stands there.
                "ui.select" => {
                    let title = arguments["title"].as_str().unwrap_or_default();
                    let choices = arguments["choices"].as_array().unwrap();
                    if title == "Not answered" {
                        std::future::pending::<()>().await;
                    }
                    let is_named =
                        |choice: &&Value| choice.as_str().is_some_and(|choice| title.contains(choice));
                    Ok(choices.iter().find(is_named).unwrap_or(&choices[1]).clone())
                }
                "ui.input" | "ui.editor" => Ok(json!(format!("typed after {}", arguments["title"]))),
                _ => Err(HostError(format!("no {name}"))),
            }
        })
    }

    fn call_now(&self, name: &str, arguments: Value) -> Result<Value, HostError> {
        self.note(format!("{name} {arguments}"));
        match name {
            "cwd" => Ok(json!("/work")),
            "hasUI" => Ok(json!(true)),
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
    ScriptLimits { slice: Duration::from_millis(500), memory: 32 << 20, ..ScriptLimits::default() }
}

async fn load_with(files: &[(&str, &str)], host: &Arc<EchoHost>) -> Result<(Script, TempDir), ScriptError> {
    load_limited(files, host, limits()).await
}

async fn load_limited(
    files: &[(&str, &str)],
    host: &Arc<EchoHost>,
    limits: ScriptLimits,
) -> Result<(Script, TempDir), ScriptError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
    }
    let sources = Arc::new(FileSources::new(folder.path()).unwrap());
    let entry = sources.root().join(files[0].0);
    Ok((Script::load(entry, sources, host.clone(), limits).await?, folder))
}

/// Loads a script whose only handler has the number 1.
async fn load(body: &str) -> TestScript {
    let host = Arc::new(EchoHost::default());
    let (script, folder) = load_with(&[("guard.ts", body)], &host).await.unwrap();
    TestScript { script, host, _folder: folder }
}

/// The value of an expression, however long it takes on a busy machine.
async fn evaluate(expression: &str) -> Value {
    let source = format!("export default (pi) => {{ pi.on('x', async (event) => ({expression})); }}");
    let patient = ScriptLimits { slice: Duration::from_secs(20), ..limits() };
    let (script, _folder) =
        load_limited(&[("guard.ts", &source)], &Arc::new(EchoHost::default()), patient).await.unwrap();
    script.call(CallKind::Handler, "1", "{}".into()).await.unwrap()
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
async fn a_person_may_think_for_longer_than_a_slice() {
    let test = load(
        "export default (pi) => { pi.on('x', async (event, ctx) => { const first = await ctx.ui.confirm('Sure?'); return first && (await ctx.ui.confirm('Really?')); }); }",
    )
    .await;
    assert_eq!(test.call(json!({})).await.unwrap(), json!(true));
    let faults: Vec<String> =
        test.host.notes().into_iter().filter(|note| note.starts_with("fault")).collect();
    assert_eq!(faults, [""; 0]);
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
            "import x from 'node:nothing'; x(); export default () => {};",
            "There is no module \"node:nothing\" here",
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

/// How long the end of a script may take.
const ENDING: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_script_ends_with_its_timers_and_whatever_it_computes() {
    let host = Arc::new(EchoHost::default());
    for body in ["setInterval(() => {}, 1)", "pi.exec('long')", "pi.on('x', () => {})"] {
        let source = format!("export default (pi) => {{ {body}; }}");
        let (script, _folder) = load_with(&[("guard.ts", &source)], &host).await.unwrap();
        assert!(script.close(ENDING).await);
    }
    let test =
        load("export default (pi) => { pi.on('x', () => { console.log('began'); for (;;) {} }); }").await;
    let TestScript { script, host, _folder } = test;
    let script = Arc::new(script);
    let called = script.clone();
    let call = tokio::spawn(async move { called.call(CallKind::Handler, "1", "{}".into()).await });
    host.wait_for("began").await;
    call.abort();
    let _ = call.await;
    assert!(script.close(ENDING).await);
}

#[tokio::test]
async fn many_scripts_leave_nothing_behind() {
    let host = Arc::new(EchoHost::default());
    for _ in 0..50 {
        let (script, _folder) =
            load_with(&[("a.ts", "export default (pi) => { pi.on('x', () => 1); }")], &host).await.unwrap();
        assert_eq!(script.call(CallKind::Handler, "1", "{}".into()).await.unwrap(), json!(1));
        assert!(script.close(ENDING).await);
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
async fn a_module_of_node_that_is_not_there_fails_when_it_is_called() {
    let host = Arc::new(EchoHost::default());
    let files = [
        (
            "a.ts",
            "import { ask } from 'asker'; import { createSocket } from 'node:dgram'; export default (pi: any) => { pi.on('x', () => ask()); pi.on('y', () => createSocket('udp4')); }",
        ),
        (
            "node_modules/asker/index.mjs",
            "import { connect, Http2Session } from 'node:http2'; class Own extends Http2Session {}\nexport const ask = () => connect('x');",
        ),
        ("node_modules/asker/package.json", r#"{"main": "index.mjs"}"#),
    ];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    for (handler, expected) in [
        ("1", "node:http2 is not available in an extension (connect)"),
        ("2", "node:dgram is not available in an extension (createSocket)"),
    ] {
        let error = script.call(CallKind::Handler, handler, "{}".into()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn streams_are_piped_read_and_split_into_lines() {
    let expression = "await (async () => { const { Readable, Transform, Writable, PassThrough } = await import('node:stream'); const { pipeline } = await import('node:stream/promises'); const readline = await import('node:readline'); const { text } = await import('node:stream/consumers');\
        const written = []; await pipeline(Readable.from(['a', 'b']), new Transform({ transform(chunk, _encoding, done) { done(null, String(chunk).toUpperCase()); } }), new Writable({ write(chunk, _encoding, done) { written.push(chunk.toString()); done(); } }));\
        const lines = []; for await (const line of readline.createInterface({ input: Readable.from(['one\\ntw', 'o\\r\\nthree']) })) lines.push(line);\
        const flowing = await new Promise((resolve) => { const through = new PassThrough().setEncoding('utf8'); let all = ''; through.on('data', (part) => { all += part; }).on('end', () => resolve(all)); through.write('x'); through.end('y'); });\
        let failed; try { await pipeline(Readable.from((async function* () { throw new Error('broken'); })()), new PassThrough()); } catch (error) { failed = error.message; }\
        const web = []; for await (const part of new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode('w')); c.close(); } }).pipeThrough(new TextDecoderStream())) web.push(part);\
        function Old() { require('events').call(this); } require('util').inherits(Old, require('events')); let heard; new Old().on('x', (value) => { heard = value; }).emit('x', 5);\
        return [written, lines, flowing, failed, web, await text(Readable.from(['t'])), heard]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([["A", "B"], ["one", "two", "three"], "xy", "broken", ["w"], "t", 5])
    );
}

#[tokio::test]
async fn requests_of_node_go_through_fetch_and_servers_fail_as_events() {
    let expression = "await (async () => { const https = await import('node:https'); const net = await import('node:net');\
        const answered = await new Promise((resolve, reject) => { const request = https.request('https://example.com/a?b', { method: 'POST', headers: { 'X-One': '1' } }, (response) => { let all = ''; response.setEncoding('utf8'); response.on('data', (part) => { all += part; }); response.on('end', () => resolve([response.statusCode, response.headers['content-type'], JSON.parse(all)])); }); request.on('error', reject); request.write('body'); request.end(); });\
        const event = (emitter) => new Promise((resolve) => emitter.on('error', (error) => resolve(error.code)));\
        return [answered[0], answered[1], answered[2].method, answered[2].url, answered[2].headers, Buffer.from(answered[2].body, 'base64').toString(), await event(https.createServer(() => {}).listen(80)), await event(net.connect(80, 'localhost'))]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([
            201,
            "application/json",
            "POST",
            "https://example.com/a?b",
            [["x-one", "1"]],
            "body",
            "EACCES",
            "ECONNREFUSED"
        ])
    );
}

#[tokio::test]
async fn bytes_are_packed_and_hashed() {
    let expression = "await (async () => { const zlib = await import('node:zlib'); const { createHash } = await import('node:crypto'); const { promisify } = await import('node:util');\
        let failed; try { zlib.gunzipSync(Buffer.from('no')); } catch (error) { failed = [error.code, error.message]; }\
        return [zlib.gunzipSync(zlib.gzipSync('ä')).toString(), (await promisify(zlib.inflate)(zlib.deflateSync('b'))).toString(), zlib.unzipSync(zlib.gzipSync('c')).toString(), failed, createHash('md5').update('abc').digest('hex')]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([
            "ä",
            "b",
            "c",
            ["Z_DATA_ERROR", "incorrect header check"],
            "900150983cd24fb0d6963f7d28e17f72"
        ])
    );
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
async fn programs_that_take_too_long_or_are_aborted_end_as_in_node() {
    // The host ends whatever has a timeout.
    let expression = "await (async () => { const cp = await import('node:child_process'); const stop = AbortSignal.abort('enough');\
        const told = (error) => [error.name, error.code, error.signal ?? null, error.killed ?? null];\
        const thrown = (work) => { try { return work(); } catch (error) { return [error.code, error.status, error.signal, String(error.stdout)]; } };\
        const late = cp.spawnSync('a', ['b'], { timeout: 5 });\
        const watched = (child) => new Promise((resolve) => { const seen = []; child.on('error', (error) => seen.push(...told(error))); child.on('close', (...end) => resolve([...seen, ...end])); });\
        return [[late.status, late.signal, late.error.code, late.error.syscall], thrown(() => cp.execSync('b', { timeout: 5 })), await new Promise((resolve) => cp.exec('c', { timeout: 5 }, (error) => resolve(told(error)))), await watched(cp.spawn('d', { timeout: 5 })),\
            await watched(cp.spawn('e', { signal: stop })), await new Promise((resolve) => cp.execFile('f', [], { signal: stop }, (error) => resolve([...told(error), error.cause])))]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([
            [null, "SIGTERM", "ETIMEDOUT", "spawnSync a"],
            ["ETIMEDOUT", null, "SIGTERM", r#""sh" ["-c","b"]"#],
            ["Error", null, "SIGTERM", true],
            [null, "SIGTERM"],
            ["AbortError", "ABORT_ERR", null, null, null, "SIGTERM"],
            ["AbortError", "ABORT_ERR", null, null, "enough"],
        ])
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

#[tokio::test]
async fn undici_is_fetch_and_agents_that_do_nothing() {
    let expression = "await (async () => { const undici = await import('undici');\
        undici.setGlobalDispatcher(new undici.Agent({ connect: {} })); await undici.getGlobalDispatcher().close();\
        const { statusCode, headers, body } = await undici.request('https://example.com/a', { method: 'PUT', body: 'b' });\
        const sent = await body.json(); return [undici.fetch === fetch, statusCode, headers['content-type'], sent.method, sent.url]; })()";
    assert_eq!(
        evaluate(expression).await,
        json!([true, 201, "application/json", "PUT", "https://example.com/a"])
    );
}

#[tokio::test]
async fn helpers_read_skills_usage_and_failures() {
    let expression = "await (async () => { const agent = await import('@earendil-works/pi-coding-agent'); const ai = await import('@earendil-works/pi-ai');\
        const skill = agent.parseSkillBlock('<skill name=\"tidy\" location=\"/a/SKILL.md\">\\nDo it.\\n</skill>\\n\\nnow');\
        const failed = (errorMessage) => ({ stopReason: 'error', errorMessage }); const model = { reasoning: true };\
        return [skill, agent.parseSkillBlock('plain'), agent.stripFrontmatter('---\\na: b\\n---\\nText'), agent.getLastAssistantUsage([{ message: { role: 'assistant', stopReason: 'stop', usage: { totalTokens: 7 } } }, { message: { role: 'assistant', stopReason: 'aborted', usage: { totalTokens: 9 } } }]).totalTokens,\
          ai.clampThinkingLevel(model, 'xhigh'), ai.clampThinkingLevel({ reasoning: false }, 'high'), ai.isContextOverflow(failed('prompt is too long: 9 tokens')), ai.isRetryableAssistantError(failed('529 overloaded')), ai.isRetryableAssistantError(failed('no such model'))]; })()";
    let skill =
        json!({ "name": "tidy", "location": "/a/SKILL.md", "content": "Do it.", "userMessage": "now" });
    assert_eq!(evaluate(expression).await, json!([skill, null, "Text", 7, "high", "off", true, true, false]));
}

/// `published_values.txt` has an expression and its value in turn, as Node and the published packages give it.
#[tokio::test]
async fn values_are_those_of_node_and_of_the_published_packages() {
    let lines: Vec<&str> = include_str!("published_values.txt").lines().collect();
    let cases: Vec<(&str, Value)> = lines
        .chunks_exact(2)
        .map(|pair| (pair[0], serde_json::from_str(pair[1].strip_prefix("= ").unwrap()).unwrap()))
        .collect();
    let modules = [
        ("ca", "@earendil-works/pi-coding-agent"),
        ("ac", "@earendil-works/pi-agent-core"),
        ("ai", "@earendil-works/pi-ai"),
        ("tui", "@earendil-works/pi-tui"),
        ("tb", "typebox"),
        ("tbv", "typebox/value"),
        ("util", "node:util"),
        ("assert", "node:assert"),
        ("path", "node:path"),
        ("url", "node:url"),
        ("crypto", "node:crypto"),
        ("events", "node:events"),
        ("stream", "node:stream"),
        ("qs", "node:querystring"),
    ];
    let imports: String =
        modules.map(|(name, module)| format!("import * as {name} from '{module}';\n")).concat();
    let values: String = cases
        .iter()
        .map(|(expression, _)| {
            format!(
                "await (async () => {{ try {{ return ({expression}); }} catch (error) {{ return String(error); }} }})(),\n"
            )
        })
        .collect();
    let script = format!("{imports}export default (pi) => {{ pi.on('x', async () => [{values}]); }}");
    let found = load(&script).await.call(json!({})).await.unwrap();
    let found = found.as_array().unwrap();
    let wrong: Vec<String> = cases
        .iter()
        .zip(found)
        .filter(|((_, expected), found)| expected != *found)
        .map(|((expression, expected), found)| format!("{expression}\n  is {found}\n  not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() > 150, "{}", cases.len());
}

#[tokio::test]
async fn types_are_imported_and_exported_by_the_words_of_values() {
    let host = Arc::new(EchoHost::default());
    let files = [
        (
            "index.ts",
            "import Settings, { Foo, Color, Again, make } from './all';\n\
             export { Foo };\n\
             export default (pi) => { pi.on('x', (): Foo => [Color.Red, make(1), typeof Foo, typeof Settings, typeof Again]); }",
        ),
        (
            "all.ts",
            "export { Foo, Color } from './types';\nexport * from './more';\nimport { Foo } from './types';\nexport { Foo as Again };",
        ),
        ("types.ts", "export interface Foo { a: number }\nexport enum Color { Red = 'red' }"),
        (
            "more.ts",
            "export default interface Settings { x: 1 }\nexport function make(x: number) { return x + 1; }",
        ),
    ];
    let (script, _folder) = load_with(&files, &host).await.unwrap();
    let found = script.call(CallKind::Handler, "1", "{}".into()).await.unwrap();
    assert_eq!(found, json!(["red", 2, "undefined", "undefined", "undefined"]));
}

#[tokio::test]
async fn a_script_that_is_stuck_in_the_engine_is_given_up() {
    // The engine looks whether it is to stop once in thousands of calls, and each of these takes milliseconds.
    let source = "export default (pi) => { pi.on('x', () => { console.log('began'); const numbers = new Int32Array(4 << 20); for (;;) numbers.indexOf(1); }); }";
    let TestScript { script, host, _folder } = load(source).await;
    let script = Arc::new(script);
    let called = script.clone();
    let call = tokio::spawn(async move { called.call(CallKind::Handler, "1", "{}".into()).await });
    host.wait_for("began").await;
    assert!(!script.close(Duration::from_millis(200)).await);
    call.abort();
}

#[tokio::test]
async fn a_call_that_never_settles_ends_with_its_script() {
    let TestScript { script, host, _folder } =
        load("export default (pi) => { pi.on('x', () => { console.log('began'); return new Promise(() => {}); }); }").await;
    let script = Arc::new(script);
    let called = script.clone();
    let call = tokio::spawn(async move { called.call(CallKind::Handler, "1", "{}".into()).await });
    host.wait_for("began").await;
    assert!(script.close(ENDING).await);
    assert!(matches!(call.await.unwrap(), Err(ScriptError::Stopped)));
}

/// Calls the only handler of a script that has the limits of real ones.
async fn call_with_usual_limits(source: &str) -> Result<Value, ScriptError> {
    // A build for tests is slow.
    let patient = ScriptLimits { slice: Duration::from_secs(20), ..ScriptLimits::default() };
    let host = Arc::new(EchoHost::default());
    let (script, _folder) = load_limited(&[("guard.ts", source)], &host, patient).await.unwrap();
    script.call(CallKind::Handler, "1", "{}".into()).await
}

#[tokio::test]
async fn searches_for_long_texts_can_be_stopped_and_find_what_is_there() {
    let search = |expression: &str| format!("export default (pi) => {{ pi.on('x', () => {expression}); }}");
    let endless = search("'a'.repeat(1e7).indexOf('a'.repeat(5e6) + 'b')");
    let called = call_with_usual_limits(&endless);
    let ended = tokio::time::timeout(Duration::from_secs(60), called).await.expect("it can be stopped");
    assert!(matches!(ended, Ok(_) | Err(ScriptError::TooLong(_))), "{ended:?}");
    for (expression, expected) in [
        ("('x'.repeat(3e4) + 'ab'.repeat(14e4) + 'c').indexOf('ab'.repeat(135e3) + 'c')", json!(40_000)),
        ("('x'.repeat(3e4) + 'ab'.repeat(14e4) + 'c').indexOf('ab'.repeat(135e3) + 'c', 5e4)", json!(-1)),
        ("('x'.repeat(3e4) + 'ab'.repeat(14e4)).includes('ab'.repeat(135e3))", json!(true)),
        ("'banana'.indexOf('na', 3) + 'banana'.lastIndexOf('na') + 'a-b'.split('-').length", json!(10)),
        ("'a.a'.replace('a', '$&$&') + 'a.a'.replaceAll('a', (found, at) => at)", json!("aa.a0.2")),
    ] {
        assert_eq!(call_with_usual_limits(&search(expression)).await.unwrap(), expected, "{expression}");
    }
    let split = search("'a'.repeat(1e7).split('a'.repeat(5e6))");
    assert!(matches!(call_with_usual_limits(&split).await, Err(ScriptError::Raised(_))));
}

#[tokio::test]
async fn bytes_that_the_host_makes_count_towards_the_memory() {
    let kept = [
        "new TextEncoder().encode(text)",
        "Buffer.from(base64, 'base64')",
        "require('zlib').gunzipSync(packed)",
    ];
    for make in kept {
        let source = format!(
            "const text = 'x'.repeat(1 << 20); const base64 = Buffer.from(text).toString('base64'); const packed = require('zlib').gzipSync(text); const list = [];\n\
             export default (pi) => {{ pi.on('x', () => {{ for (let n = 0; n < 200; n++) list.push({make}); return list.length; }}); }}"
        );
        let called = call_with_usual_limits(&source).await;
        assert!(called.is_err(), "{make}: {called:?}");
    }
}

#[tokio::test]
async fn calls_of_the_host_have_a_limit() {
    let flood = |arguments: &str, count: u32| {
        format!(
            "export default (pi) => {{ pi.on('x', async () => {{ let refused = 0; const calls = []; for (let n = 0; n < {count}; n++) calls.push(pi.exec('echo', [{arguments}]).catch(() => refused++)); await Promise.all(calls); return refused; }}); }}"
        )
    };
    for (arguments, count, refused) in [("'a'", 1_005, 5), ("'a'.repeat(1 << 20)", 66, 3)] {
        let called = call_with_usual_limits(&flood(arguments, count)).await.unwrap();
        assert_eq!(called, json!(refused), "{count} calls");
    }
}

/// What the only handler of a script answers about a call.
async fn decide(body: &str) -> Result<Value, ScriptError> {
    let test =
        load(&format!("{body}\nexport default (pi) => {{ pi.on('tool_call', () => decision()); }};")).await;
    test.call(json!({ "toolName": "bash", "input": {} })).await
}

#[tokio::test]
async fn whatever_a_script_takes_for_a_block_is_one() {
    let blocking = [
        "const decision = () => ({ block: 1, reason: 'no' });",
        "const decision = () => ({ block: 'yes', reason: 'no' });",
        "class Decision { get block() { return true; } get reason() { return 'no'; } } const decision = () => new Decision();",
        "const decision = () => Object.create({ block: true, reason: 'no' });",
        "const decision = () => Object.defineProperty({ reason: 'no' }, 'block', { value: true });",
        "const decision = () => new Proxy({}, { get: (target, name) => (name === 'block' ? true : name === 'reason' ? 'no' : undefined) });",
        "Object.prototype.toJSON = () => ({}); const decision = () => ({ block: true, reason: 'no' });",
    ];
    for body in blocking {
        let decision = json!({ "block": true, "reason": "no", "terminate": false });
        assert_eq!(decide(body).await.unwrap(), decision, "{body}");
    }
    for body in ["undefined", "null", "false", "({})", "({ block: false })", "({ reason: 'no' })"] {
        let reply = decide(&format!("const decision = () => {body};")).await.unwrap();
        assert_eq!(reply, json!({ "block": false, "terminate": false }), "{body}");
    }
    let faults = [
        "'block'",
        "true",
        "7",
        "() => {}",
        "({ get block() { throw new Error('unknown'); } })",
        "new Error('no')",
        "[{ block: true }]",
        "new Map([['block', true]])",
        "new String('no')",
        "/no/",
    ];
    for body in faults {
        let error = decide(&format!("const decision = () => {body};")).await.unwrap_err();
        assert!(matches!(error, ScriptError::Raised(_)), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_guard_is_asked_whatever_a_script_does_to_prototypes() {
    let changes = [
        "const { get } = Map.prototype; Map.prototype.get = function (key) { return /^\\d+$/.test(key) ? undefined : get.call(this, key); };",
        "Map.prototype.set = function () { return this; };",
        "Promise.prototype.then = function () { return this; };",
        "const { then } = Promise.prototype; Promise.prototype.then = function (done) { done?.(undefined); return this; };",
        "globalThis.Map = globalThis.Set = class {}; globalThis.String = () => 'input'; globalThis.Boolean = () => false;",
        "JSON.stringify = () => 'null'; JSON.parse = () => null; Reflect.apply = () => {};",
    ];
    for change in changes {
        let body = format!("{change} const decision = () => ({{ block: true }});");
        assert_eq!(decide(&body).await.unwrap(), json!({ "block": true, "terminate": false }), "{change}");
    }
}

#[tokio::test]
async fn a_handler_that_was_never_there_is_a_fault_and_one_that_was_taken_away_says_nothing() {
    let test = load("export default (pi) => { pi.on('x', () => 1)(); };").await;
    assert_eq!(test.call(json!({})).await.unwrap(), Value::Null);
    let error = test.script.call(CallKind::Handler, "2", "{}".into()).await.unwrap_err();
    assert!(error.to_string().contains("there is no handler 2"), "{error}");
}

#[tokio::test]
async fn what_a_script_hands_over_has_a_limit_of_values() {
    let many = "const many = (count) => new Array(count).fill(new Array(1000).fill({ '': 0 }));";
    let test = load(&format!(
        "{many} export default (pi) => {{ pi.on('x', (event, ctx) => {{ if (event.returns) return many(130); pi.events.emit('y', many(event.count)); }}); }};"
    ))
    .await;
    test.call(json!({ "count": 100 })).await.unwrap();
    assert!(test.host.notes().iter().any(|note| note.starts_with("bus.emit")));
    let error = test.call(json!({ "count": 130 })).await.unwrap_err().to_string();
    assert!(error.contains("bus.emit was given") && error.contains("at most 250000"), "{error}");
    let error = test.call(json!({ "returns": true })).await.unwrap_err();
    assert!(matches!(error, ScriptError::TooManyValues { limit: 250_000, .. }), "{error}");
    // Deeper than is read: an error, and not a call without arguments.
    let test = load(
        "export default (pi) => { pi.on('x', () => { let deep = {}; for (let n = 0; n < 200; n++) deep = { deep }; pi.events.emit('y', deep); }); };",
    )
    .await;
    let error = test.call(json!({})).await.unwrap_err().to_string();
    assert!(error.contains("what bus.emit was given cannot be read"), "{error}");
}

#[tokio::test]
async fn keys_of_passwords_take_no_longer_than_a_slice_or_so() {
    let key = |given: &str| {
        format!(
            "(() => {{ try {{ return require('node:crypto').pbkdf2Sync({given}).length; }} catch (error) {{ return error.message; }} }})()"
        )
    };
    assert_eq!(evaluate(&key("'a', 'b', 1000, 64, 'sha256'")).await, json!(64));
    for given in ["'a', 'b', 1e6, 65536, 'sha512'", "'a', 'b'.repeat(4e6), 1, 65536, 'sha256'"] {
        let told = evaluate(&key(given)).await;
        assert!(told.as_str().is_some_and(|told| told.contains("at most 2000000")), "{told}");
    }
}

#[tokio::test]
async fn no_nesting_of_sources_ends_the_program() {
    let (open, close) = ("[".repeat(20_000), "]".repeat(20_000));
    let start = "export default (pi) => { pi.on('x', () => 'there'); };";
    let host = Arc::new(EchoHost::default());
    let deep = format!("export const {open}a{close} = 1;");
    let main = format!("import {{ a }} from './deep.js'; {start}");
    // The engine says what it thinks of such a pattern.
    assert!(load_with(&[("main.js", &main), ("deep.js", &deep)], &host).await.is_err());
    let own = format!("const {open}a{close} = 1; export {{ a }}; {start}");
    assert!(load_with(&[("main.js", &own)], &host).await.is_err());

    let count = 1_800;
    let names: Vec<String> = (0..=count).map(|number| format!("f{number}.js")).collect();
    let mut sources: Vec<String> =
        (1..=count).map(|number| format!("export * from './f{number}.js';")).collect();
    sources.push("export const last = 'there';".into());
    let main = format!("import {{ last }} from './f0.js'; {start}").replace("'there'", "last");
    let mut files = vec![("main.js", &*main)];
    files.extend(names.iter().zip(&sources).map(|(name, source)| (&**name, &**source)));
    // The engine has a limit of its own for such chains.
    match load_with(&files, &host).await {
        Ok((script, _folder)) => {
            assert_eq!(script.call(CallKind::Handler, "1", "{}".into()).await.unwrap(), json!("there"));
        }
        Err(error) => assert!(error.to_string().contains("call stack"), "{error}"),
    }
}
