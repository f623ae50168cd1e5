//! What an extension cannot do to the person: files beside it, other extensions, programs in another folder than
//! the one that was shown, keys at another address.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_agent::{InputOutcome, RunEnd};
use hardpan_app::extensions::{ExtensionGrant, PermissionStore};
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_app::settings::TrustReview;
use hardpan_app::{ConversationApp, DiscardNotices, FaceHooks};
use rustix::fs::{CWD, RenameFlags};
use serde_json::json;

use super::extension_providers::{HELPERS, Person, fine_server, open_as};
use super::extensions::{FINE, TestConversation};
use super::subagents::{TaskHome, prompt, results};

/// A command `try` that notes what came of each of these expressions: its value, or the code of its error.
fn attempts(expressions: &[&str]) -> String {
    let attempts: Vec<String> = expressions.iter().map(|work| format!("attempt(() => {work})")).collect();
    format!(
        "import * as fs from 'node:fs'; import {{ dirname, join }} from 'node:path'; import {{ fileURLToPath }} from 'node:url';\n\
         const here = dirname(fileURLToPath(import.meta.url));\n\
         const attempt = (work) => {{ try {{ return work() ?? 'done'; }} catch (error) {{ return error.code ?? error.message; }} }};\n\
         export default (pi) => pi.registerCommand('try', {{ handler: (_, ctx) => ctx.ui.notify([{}].join('|')) }});",
        attempts.join(", ")
    )
}

async fn tried(mut test: TestConversation) -> String {
    try_in(&mut test).await
}

async fn try_in(test: &mut TestConversation) -> String {
    test.take_events();
    test.say("/try").await;
    test.notes().pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_among_the_user_s_extensions_does_not_change_the_others() {
    let home = TaskHome::new(FINE, "").await;
    let source = attempts(&[
        "fs.writeFileSync(join(here, 'guard.ts'), '')",
        "fs.appendFileSync(join(here, 'guard.json'), '{}')",
        "fs.readFileSync(join(here, 'guard.json'), 'utf8')",
        "fs.rmSync(join(here, 'guard.ts'))",
        "fs.writeFileSync(join(here, 'new.ts'), '')",
        "fs.writeFileSync(join(process.env.HOME, '.pi/agent/mine.json'), 'mine')",
    ]);
    home.home.write("user/config/extensions/first.ts", &source);
    home.home.write("user/config/extensions/guard.ts", "export default () => {};");
    home.home.write("user/config/extensions/guard.json", "{\"secret\": 1}");
    let folder = home.home.folder.path().join("user/config/extensions");
    let test = TestConversation::open_in(home, &[], None).await;
    assert_eq!(tried(test).await, "EACCES|EACCES|EACCES|EACCES|EACCES|done");
    assert!(!folder.join("new.ts").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_named_keeps_data_beside_it_and_changes_no_program() {
    let home = TaskHome::new(FINE, "").await;
    let writes = [
        "fs.writeFileSync(join(here, 'state.json'), '{}')",
        "fs.readFileSync(join(here, 'state.json'), 'utf8')",
        "fs.writeFileSync(join(here, 'one.ts'), '')",
        "fs.writeFileSync(join(here, 'run.sh'), '')",
        "fs.writeFileSync(join(here, 'node_modules/x/index.js'), '')",
    ];
    home.home.write("extensions/one.ts", &attempts(&writes));
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    assert_eq!(tried(test).await, "done|{}|EACCES|EACCES|EACCES");

    // In a repository, beside a hook.
    let home = TaskHome::new(FINE, "").await;
    home.home.write("repository/.git/config", "[core]\n");
    let writes =
        ["fs.writeFileSync(join(here, '.git/config'), '')", "fs.writeFileSync(join(here, 'a.json'), '')"];
    home.home.write("repository/one.ts", &attempts(&writes));
    let path = home.home.folder.path().join("repository/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    assert_eq!(tried(test).await, "EACCES|EACCES");
}

/// While something swaps a folder of the extension's own with a link to a private one, nothing of that is read.
#[tokio::test(flavor = "multi_thread")]
async fn no_swapped_link_in_its_own_folder_shows_an_extension_other_files() {
    let source = "import * as fs from 'node:fs'; import { dirname, join } from 'node:path'; import { fileURLToPath } from 'node:url';\n\
         const here = dirname(fileURLToPath(import.meta.url));\n\
         const seen = new Map(); const count = (work) => { try { const found = String(work()); seen.set(found, (seen.get(found) ?? 0) + 1); } catch {} };\n\
         export default (pi) => pi.registerCommand('try', { handler: (_, ctx) => { for (let n = 0; n < 400; n++) {\n\
         count(() => fs.readFileSync(join(here, 'folder/id'), 'utf8')); count(() => fs.readdirSync(join(here, 'folder')).join()); count(() => fs.statSync(join(here, 'folder/id')).size); }\n\
         ctx.ui.notify([...seen.keys()].sort().join('|')); } });";
    let home = TaskHome::new(FINE, "").await;
    home.home.write("extensions/package/index.ts", source);
    home.home.write("extensions/package/folder/id", "own");
    home.home.write("private/id", "the private key");
    home.home.write("private/second", "");
    let base = home.home.folder.path().canonicalize().unwrap();
    let package = base.join("extensions/package");
    let (own, other) = (package.join("folder"), package.join("folder.other"));
    std::os::unix::fs::symlink(base.join("private"), &other).unwrap();
    let mut test = TestConversation::open_in(home, std::slice::from_ref(&package), None).await;
    let is_done = AtomicBool::new(false);
    let runtime = tokio::runtime::Handle::current();
    let seen = tokio::task::block_in_place(|| {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(CWD, &own, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let seen = runtime.block_on(try_in(&mut test));
            is_done.store(true, Ordering::Relaxed);
            seen
        })
    });
    assert_eq!(seen, "3|id|own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_s_extension_does_not_get_the_data_of_the_user_s_of_its_name() {
    let data = "join(process.env.HOME, '.pi/agent/token')";
    let home = TaskHome::new(FINE, "").await;
    let write = attempts(&[&format!("fs.writeFileSync({data}, 'mine')")]);
    home.home.write("user/config/extensions/weather.ts", &write);
    let test = TestConversation::open_in(home, &[], None).await;
    test.say("/try").await;
    let home = test.home;
    let read = attempts(&[&format!("fs.readFileSync({data}, 'utf8')")]);
    home.home.write("work/.hardpan/extensions/weather.ts", &read);
    fs::remove_file(home.home.folder.path().join("user/config/extensions/weather.ts")).unwrap();
    let folders = home.home.user_folders();
    TrustReview::read(&home.home.folder.path().join("work"), &folders).unwrap().accept(&folders).unwrap();
    let test = TestConversation::open_in(home, &[], None).await;
    assert_eq!(tried(test).await, "ENOENT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_asked_about_with_its_folder_and_its_input() {
    let source = "import { execFileSync } from 'node:child_process';\n\
        export default (pi) => pi.registerCommand('run', { handler: async () => {\n\
        await pi.exec('git', ['status'], { cwd: 'sub' }); await pi.exec('git', ['status']);\n\
        try { execFileSync('sh', [], { input: 'touch made\\n' }); } catch {} } });";
    let home = TaskHome::new(FINE, "allow = [\"bash(git status)\"]\n").await;
    home.home.write("work/sub/file", "");
    home.home.write("extensions/one.ts", source);
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], Some("n")).await;
    test.say("/run").await;
    // The rule is about the folder of the conversation.
    assert_eq!(
        test.questions(),
        ["Command(\"env -C sub git status\")", "Command(\"sh <<'INPUT'\\ntouch made\\nINPUT\")"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_allowed_runs_once_in_its_folder() {
    let script = "turns:\n  - {when: {contains: go}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'echo x >> made.txt'}}]}\n";
    let source = "import { Type } from 'typebox';\n\
        export default (pi) => pi.registerTool({ name: 'bash', label: 'bash', description: 'Runs', parameters: Type.Object({ command: Type.String() }), execute: async (_, { command }) => {\n\
        for (const cwd of [undefined, undefined, 'sub']) await pi.exec('sh', ['-c', command], { cwd }); return { content: [{ type: 'text', text: 'ran' }], details: {} }; } });";
    let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
    home.home.write("work/sub/file", "");
    home.home.write("extensions/one.ts", source);
    let (work, path) =
        (home.home.folder.path().join("work"), home.home.folder.path().join("extensions/one.ts"));
    let test = TestConversation::open_in(home, &[path], Some("y")).await;
    assert_eq!(test.say("go").await, InputOutcome::Ran(RunEnd::Done));
    // The call, then the second run, and the one in another folder.
    let questions = test.questions();
    assert_eq!(questions.len(), 3, "{questions:?}");
    assert!(questions[2].contains("env -C sub"), "{questions:?}");
    assert_eq!(fs::read_to_string(work.join("made.txt")).unwrap(), "x\nx\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_cannot_be_loaded_blocks_calls_until_it_can() {
    let script = "turns:\n  - {when: {contains: go}, repeat: always, tool_calls: [{name: read, arguments: {path: notes.txt}}]}\n";
    let guard = "export default (pi) => { pi.on('tool_call', () => {}); };";
    let home = TaskHome::new(&format!("{script}{FINE}"), "").await;
    home.home.write("user/config/extensions/guard.ts", guard);
    let test = TestConversation::open_in(home, &[], None).await;
    test.say("go").await;
    assert_eq!(results(&test.app).last().unwrap().0, "Remember the milk.\n");
    test.home.home.write("user/config/extensions/guard.ts", &format!("{guard} syntax (("));
    test.app.reload_extensions().await;
    test.say("go").await;
    let result = results(&test.app).pop().unwrap().0;
    assert!(
        result.contains("the extension guard, which decides about tool calls, could not be loaded"),
        "{result}"
    );
    test.home.home.write("user/config/extensions/guard.ts", guard);
    test.app.reload_extensions().await;
    assert_eq!(test.app.extensions.list()[0].name, "guard");
    test.say("go").await;
    assert_eq!(results(&test.app).last().unwrap().0, "Remember the milk.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_was_named_and_is_not_there_ends_the_start() {
    let home = TaskHome::new(FINE, "").await;
    let options =
        OpenOptions { extensions: vec![PathBuf::from("gaurd.ts")], ..home.options(SessionChoice::New) };
    let face = FaceHooks { prompter: None, notices: Arc::new(DiscardNotices) };
    let error = ConversationApp::open(&options, &face).err().unwrap().to_string();
    assert!(error.starts_with("--extension gaurd.ts: "), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_and_templates_come_from_where_an_extension_may_read() {
    let home = TaskHome::new(FINE, "").await;
    home.home.write("private/plain.md", "Private.");
    home.home
        .write("private/skills/wave/SKILL.md", "---\nname: wave\ndescription: Private waves\n---\nWave.");
    home.home.write("extensions/hi.md", "Hi.");
    let private = home.home.folder.path().join("private");
    let source = format!(
        "export default (pi) => pi.on('resources_discover', () => ({{ skillPaths: ['{0}/skills', '../private/skills'], promptPaths: ['{0}/plain.md', '../private/plain.md', 'hi.md'] }}));",
        private.display()
    );
    home.home.write("extensions/one.ts", &source);
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    let known = test.app.agent.expansions();
    assert_eq!(["hi", "plain", "skill:wave"].map(|name| known.is_known(name)), [true, false, false]);
    test.say("hello").await;
    assert!(!test.home.sent().pop().unwrap().body.to_string().contains("Private waves"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_to_the_host_that_it_was_allowed_for() {
    let server = fine_server();
    let home = TaskHome::new(FINE, "").await;
    let source = format!(
        "{HELPERS}export default (pi) => pi.registerProvider('nest', {{ baseUrl: '{}/v1', api: 'openai-completions', apiKey: '$HOME', models }});",
        server.url()
    );
    home.home.write("extensions/nest.ts", &source);
    let path = home.home.folder.path().join("extensions/nest.ts");
    let open = async |home: TaskHome| {
        let person = Arc::new(Person::default());
        let test = open_as(home, vec![path.clone()], Some("nest/large"), person.clone()).await;
        prompt(&test.app, "hello").await;
        (test, person.asked.lock().unwrap().len())
    };
    let (test, asked) = open(home).await;
    assert_eq!(asked, 1);
    let store = PermissionStore::new(&test.home.home.user_folders());
    let listed = test.app.extensions.list();
    let grant = |keys: &str| ExtensionGrant { keys: [keys.to_owned()].into(), ..listed[0].granted.clone() };
    store.allow(&grant("$HOME@api.acme.test")).unwrap();
    let (test, asked) = open(test.home).await;
    assert_eq!(asked, 1, "it was allowed for another host");
    store.allow(&grant("$HOME@127.0.0.1")).unwrap();
    assert_eq!(open(test.home).await.1, 0);
    assert_eq!(json!(server.received().len()), 3);
}
