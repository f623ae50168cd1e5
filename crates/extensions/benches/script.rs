//! What an extension costs: `cargo bench -p hardpan-extensions`.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails fails")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_extensions::{
    CallKind, FileSources, HostError, LogLevel, ModuleSources, Script, ScriptFault, ScriptHost, ScriptLimits,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

struct SilentHost;

impl ScriptHost for SilentHost {
    fn call(&self, _name: &str, _arguments: Value) -> BoxFuture<'static, Result<Value, HostError>> {
        Box::pin(std::future::ready(Ok(Value::Null)))
    }

    fn call_now(&self, _name: &str, _arguments: Value) -> Result<Value, HostError> {
        Ok(Value::Null)
    }

    fn log(&self, _level: LogLevel, _text: &str) {}

    fn fault(&self, _fault: ScriptFault) {}
}

async fn load(folder: &std::path::Path, source: &str) -> Script {
    std::fs::write(folder.join("a.ts"), source).unwrap();
    let sources = Arc::new(FileSources::new(folder).unwrap());
    let entry = sources.root().join("a.ts");
    Script::load(entry, sources, Arc::new(SilentHost), ScriptLimits::default()).await.unwrap()
}

/// More than a script ever takes to end.
const ENDING: Duration = Duration::from_secs(10);

const EMPTY: &str = "export default (pi: any) => { pi.on('x', async () => {}); }";

#[divan::bench]
fn load_and_close(bencher: divan::Bencher) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    bencher.bench_local(|| runtime.block_on(async { load(folder.path(), EMPTY).await.close(ENDING).await }));
}

/// The packages that published extensions import are evaluated when one of them is needed: schemas by themselves, the
/// others together.
#[divan::bench]
fn load_with_schemas_and_close(bencher: divan::Bencher) {
    load_importing(bencher, "import { Type } from 'typebox'; export const schema = Type.Object({});");
}

#[divan::bench]
fn load_with_packages_and_close(bencher: divan::Bencher) {
    load_importing(
        bencher,
        "import { Text } from '@mariozechner/pi-tui'; export const text = new Text('x');",
    );
}

fn load_importing(bencher: divan::Bencher, import: &str) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let source = format!("{import}\n{EMPTY}");
    bencher
        .bench_local(|| runtime.block_on(async { load(folder.path(), &source).await.close(ENDING).await }));
}

#[divan::bench]
fn empty_async_handler(bencher: divan::Bencher) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let script = runtime.block_on(load(folder.path(), EMPTY));
    bencher.bench_local(|| runtime.block_on(script.call(CallKind::Handler, "1", "{}".into())).unwrap());
}

/// A `context` event of 1,000 messages, from the payload as text to the answer.
fn context(bencher: divan::Bencher, handler: &str) {
    let (runtime, folder) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let source = format!("export default (pi) => {{ pi.on('context', {handler}); }}");
    let script = runtime.block_on(load(folder.path(), &source));
    let text = "A sentence of a conversation about a program. ".repeat(10);
    let message = |at: usize| json!({"id": format!("m{at}"), "role": "user", "content": [{"type": "text", "text": text}]});
    let messages: Value = (0..1000).map(|at| message(at).to_string()).collect();
    let payload = json!({"type": "context", "lazyMessages": messages});
    bencher.bench_local(|| {
        runtime.block_on(script.call(CallKind::Handler, "1", payload.to_string())).unwrap();
    });
}

#[divan::bench]
fn context_of_1000_messages(bencher: divan::Bencher) {
    context(bencher, "() => {}");
}

#[divan::bench]
fn context_of_1000_messages_with_one_more(bencher: divan::Bencher) {
    context(bencher, "(event) => ({ messages: [...event.messages, { role: 'user', content: 'more' }] })");
}

#[divan::bench]
fn context_of_1000_messages_that_are_all_read(bencher: divan::Bencher) {
    context(
        bencher,
        "(event) => ({ messages: event.messages.filter((message) => message.role === 'user') })",
    );
}

fn main() {
    divan::main();
}
