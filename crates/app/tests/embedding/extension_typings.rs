//! `hardpan.d.ts` says what handlers get, and files of extensions stay where they belong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_app::extensions::typings::{DECLARATIONS, EVENTS, write_skeleton};
use rustix::fs::{CWD, RenameFlags};

use super::extensions::{FINE, TestConversation, calling};
use super::subagents::TaskHome;

/// An extension that notes the fields of every event that it hears of.
fn noting_fields() -> String {
    let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
    let names = serde_json::to_string(&names).unwrap();
    format!(
        "const seen = {{}}; export default (pi) => {{ for (const name of {names}) pi.on(name, (event) => {{ seen[name] = [...new Set([...(seen[name] ?? []), ...Object.keys(event)])]; }});\n\
         pi.registerCommand('fields', {{ handler: (_, ctx) => ctx.ui.notify(JSON.stringify(seen)) }});\n\
         pi.registerCommand('ask', {{ handler: async (_, ctx) => {{ await ctx.ui.confirm('Sure?', 'Really?'); }} }});\n\
         pi.registerCommand('other', {{ handler: async (_, ctx) => {{ const entry = ctx.sessionManager.getLeafId(); await ctx.fork(entry, {{ position: 'at' }}); await ctx.newSession(); }} }});\n\
         pi.registerCommand('back', {{ handler: async (_, ctx) => {{ await ctx.navigateTree(ctx.sessionManager.getBranch().find((entry) => entry.message?.role === 'assistant').id); }} }}); }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_get_the_fields_that_are_declared() {
    let script = calling("bash", "{command: echo hello}");
    let mut test = TestConversation::with_sources(&script, &[&noting_fields()], Some("y")).await;
    assert_eq!(test.notices(), [""; 0], "every declared event is there");
    for text in ["go", "and on", "/ask", "/back", "/other"] {
        test.say(text).await;
    }
    // The end of a question is told beside the conversation.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    test.take_events();
    test.say("/fields").await;
    let noted = test.notes().pop().unwrap();
    let seen: BTreeMap<String, BTreeSet<String>> = serde_json::from_str(&noted).unwrap();
    for event in EVENTS {
        let Some(fields) = seen.get(event.name) else { continue };
        let mut declared: BTreeSet<String> = event.field_names().into_iter().collect();
        declared.insert("type".into());
        let undeclared: Vec<&String> = fields.difference(&declared).collect();
        assert!(undeclared.is_empty(), "{} has {undeclared:?} besides {declared:?}", event.name);
    }
    let unheard: Vec<&str> =
        EVENTS.iter().map(|event| event.name).filter(|name| !seen.contains_key(*name)).collect();
    // These need a compaction, another model or name, the end, output in pieces, a face.
    let rare = [
        "model_select",
        "session_before_compact",
        "session_compact",
        "session_compact_failed",
        "session_info_changed",
        "session_shutdown",
        "thinking_level_select",
        "tool_execution_update",
        "user_bash",
    ];
    let common: Vec<&&str> = unheard.iter().filter(|name| !rare.contains(name)).collect();
    assert!(common.is_empty(), "not heard: {common:?}");
}

/// The members that an interface declares, without those of the one that it extends.
fn declared_members(interface: &str) -> BTreeSet<String> {
    let start = DECLARATIONS.find(&format!("export interface {interface} ")).expect(interface);
    let body = &DECLARATIONS[start..];
    let body = &body[body.find('{').unwrap() + 1..body.find("\n  }").unwrap()];
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('/'));
    let name = |line: &str| {
        let line = line.strip_prefix("readonly ").unwrap_or(line);
        line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    lines.map(name).collect()
}

/// Every member of `pi` and `ctx` that the engine has is declared, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn the_declared_members_are_those_that_the_engine_has() {
    let source = "const members = (value) => { const names = new Set(); for (let at = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) for (const name of Object.getOwnPropertyNames(at)) names.add(name); names.delete('constructor'); return [...names]; };\n\
         export default (pi) => { let context = []; pi.on('input', (_, ctx) => { context = members(ctx); });\n\
         pi.registerCommand('members', { handler: (_, ctx) => ctx.ui.notify(JSON.stringify({ ExtensionAPI: members(pi), ExtensionContext: context, ExtensionCommandContext: members(ctx).filter((name) => !context.includes(name)), ExtensionUI: members(ctx.ui), SessionManager: members(ctx.sessionManager), ModelRegistry: members(ctx.modelRegistry) })) }); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("hello").await;
    test.take_events();
    test.say("/members").await;
    let noted = test.notes().pop().unwrap();
    let found: BTreeMap<String, BTreeSet<String>> = serde_json::from_str(&noted).unwrap();
    assert_eq!(found.len(), 6);
    for (interface, members) in found {
        assert_eq!(declared_members(&interface), members, "{interface}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_extension_runs_and_every_declared_event_is_there() {
    let home = TaskHome::new(FINE, "").await;
    let folder = write_skeleton(home.home.folder.path(), "greeter").unwrap();
    let names: Vec<&str> = EVENTS.iter().map(|event| event.name).collect();
    let names = serde_json::to_string(&names).unwrap();
    let source = format!("export default (pi) => {{ for (const name of {names}) pi.on(name, () => {{}}); }}");
    home.home.write("extensions/all.ts", &source);
    let all = home.home.folder.path().join("extensions/all.ts");
    let mut test = TestConversation::open_in(home, &[folder.clone(), all], None).await;
    assert_eq!(test.notices(), [""; 0]);
    test.say("/greeter you").await;
    assert_eq!(test.notes(), ["Hello you"]);
    assert_eq!(fs::read_to_string(folder.join("hardpan.d.ts")).unwrap(), DECLARATIONS);
}

const ROUNDS: usize = 400;

/// While something swaps a folder with a link that leads out of the workspace, as fast as it can, nothing
/// that an extension writes, makes, moves or removes lies outside.
#[tokio::test(flavor = "multi_thread")]
async fn no_swapped_link_leads_an_extension_out_of_the_workspace() {
    let source = format!(
        "import * as fs from 'node:fs';\n\
         const attempt = (work) => {{ try {{ work(); return 1; }} catch {{ return 0; }} }};\n\
         export default (pi) => pi.registerCommand('work', {{ handler: (_, ctx) => {{ let done = 0; for (let n = 0; n < {ROUNDS}; n++) {{\n\
         done += attempt(() => fs.writeFileSync('folder/written.txt', 'x')); attempt(() => fs.writeFileSync('folder/kept.txt', 'changed'));\n\
         attempt(() => fs.appendFileSync('folder/kept.txt', 'more')); attempt(() => fs.mkdirSync('folder/made/deep', {{ recursive: true }}));\n\
         attempt(() => fs.renameSync('loose.txt', 'folder/moved.txt')); attempt(() => fs.renameSync('folder/moved.txt', 'loose.txt'));\n\
         attempt(() => fs.copyFileSync('loose.txt', 'folder/copied.txt')); attempt(() => fs.mkdtempSync('folder/temp-'));\n\
         attempt(() => fs.rmSync('folder/precious', {{ recursive: true }})); attempt(() => fs.unlinkSync('folder/kept.txt')); }} ctx.ui.notify(String(done)); }} }});"
    );
    let mut test = TestConversation::with_sources("", &[&source], None).await;
    let work = test.home.home.folder.path().join("work");
    let outside = test.home.home.folder.path().join("outside");
    for folder in [&work.join("folder"), &outside] {
        fs::create_dir_all(folder.join("precious")).unwrap();
        fs::write(folder.join("precious/file"), "p").unwrap();
        fs::write(folder.join("kept.txt"), "kept").unwrap();
    }
    fs::write(work.join("loose.txt"), "loose").unwrap();
    std::os::unix::fs::symlink(&outside, work.join("folder.other")).unwrap();
    test.take_events();
    let is_done = AtomicBool::new(false);
    let (own, other) = (work.join("folder"), work.join("folder.other"));
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(CWD, &own, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            runtime.block_on(test.say("/work"));
            is_done.store(true, Ordering::Relaxed);
        });
    });
    let written: usize = test.notes()[0].parse().unwrap();
    assert!(written > 0, "some of it was inside");
    let mut names: Vec<String> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["kept.txt", "precious"]);
    assert_eq!(fs::read_to_string(outside.join("kept.txt")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(outside.join("precious/file")).unwrap(), "p");
}
