//! What published extensions rely on beyond the specification: built-in tools that they replace, commands
//! of one name, modules, and what calls answer.

use serde_json::{Value, json};

use super::extensions::{TestConversation, calling};

/// An extension that stands for `bash` with the tool of the published package.
const WRAPPED_BASH: &str = "import { createBashTool } from '@mariozechner/pi-coding-agent';\n\
    export default (pi) => { const bash = createBashTool(process.cwd(), { spawnHook: (it) => ({ ...it, command: it.command.replace('secretly', 'openly') }) });\n\
    pi.registerTool({ ...bash, description: 'Wrapped.' }); }";

fn declared<'a>(body: &'a Value, name: &str) -> &'a Value {
    body["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_in_the_place_of_a_built_in_one_is_asked_about_as_that_one_is() {
    let script = calling("bash", "{command: echo hello}");
    let test = TestConversation::with_sources(&script, &[WRAPPED_BASH], None).await;
    assert_eq!(test.notices(), [""; 0]);
    test.say("go").await;
    let lines = test.lines();
    assert!(lines.contains(&"result: hello\n".to_owned()), "{lines:?}");
    assert_eq!(declared(&test.home.sent()[0].body, "bash")["description"], "Wrapped.");
    // Once: what was approved runs without another question.
    assert_eq!(test.questions(), ["Command(\"echo hello\")"]);
    assert_eq!(test.app.extensions.list()[0].tools, ["bash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_replaced_tool_changes_is_asked_about_again() {
    let script = calling("bash", "{command: echo secretly}");
    let test = TestConversation::with_sources(&script, &[WRAPPED_BASH], None).await;
    test.say("go").await;
    let asked = test.questions();
    assert_eq!(asked, ["Command(\"echo secretly\")", "Command(\"bash -c 'echo openly'\")"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_built_in_tool_is_back_when_its_replacement_is_gone() {
    let script = calling("bash", "{command: echo hello}");
    let test = TestConversation::with_sources(&script, &[WRAPPED_BASH], None).await;
    let path = test.home.home.folder.path().join("extensions/ext1.ts");
    std::fs::write(&path, "export default () => {}").unwrap();
    test.app.reload_extensions().await;
    test.say("go").await;
    assert_ne!(declared(&test.home.sent()[0].body, "bash")["description"], "Wrapped.");
    assert!(test.lines()[2].contains("hello"), "{:?}", test.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_replacement_and_one_of_another_tool_are_left_out() {
    let task = "export default (pi) => pi.registerTool({ name: 'recall', description: 'r', parameters: {}, execute: () => ({ content: [] }) });";
    let test = TestConversation::with_sources("", &[WRAPPED_BASH, WRAPPED_BASH, task], None).await;
    let notices = test.notices();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("extension:ext1 already has a tool named bash"), "{notices:?}");
    assert!(notices[1].contains("already has a tool named recall"), "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_parameters_is_declared_as_an_object() {
    let source = "export default (pi) => pi.registerTool({ name: 'now', description: 'The time.', parameters: {}, execute: () => ({ content: [{ type: 'text', text: 'noon' }] }) });";
    let test = TestConversation::with_sources(&calling("now", "{}"), &[source], None).await;
    test.say("go").await;
    let sent = test.home.sent();
    assert_eq!(declared(&sent[0].body, "now")["input_schema"], json!({ "type": "object", "properties": {} }));
    assert!(test.lines().contains(&"result: noon".to_owned()), "{:?}", test.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_one_name_get_numbers() {
    let greet = |word: &str| {
        format!(
            "export default (pi) => pi.registerCommand('greet', {{ handler: (args, ctx) => ctx.ui.notify('{word} ' + args) }});"
        )
    };
    let (first, second) = (greet("hello"), greet("goodbye"));
    let mut test = TestConversation::with_sources("", &[&first, &second], None).await;
    let listed = test.app.extensions.list();
    assert_eq!(
        (&*listed[0].commands, &*listed[1].commands),
        (&["greet:1".into()][..], &["greet:2".into()][..])
    );
    test.take_events();
    test.say("/greet:1 Ada").await;
    test.say("/greet:2 Ada").await;
    assert_eq!(test.notes(), ["hello Ada", "goodbye Ada"]);
    // The numbers are the same when both are loaded anew.
    test.app.reload_extensions().await;
    test.say("/greet:2 Bob").await;
    assert_eq!(test.notes(), ["goodbye Bob"]);
    assert!(!test.app.agent.commands().contains_key("greet"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_sessions_that_was_cancelled_says_so() {
    let source = "export default (pi) => {\n\
        for (const event of ['session_before_switch', 'session_before_fork', 'session_before_tree']) pi.on(event, () => ({ cancel: true }));\n\
        pi.registerCommand('try', { handler: async (_, ctx) => { const entry = ctx.sessionManager.getLeafId();\n\
        ctx.ui.notify(JSON.stringify([await ctx.newSession(), await ctx.fork(entry, { position: 'at' }), await ctx.navigateTree(entry)])); } }); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("hello").await;
    test.take_events();
    test.say("/try").await;
    assert_eq!(test.notes(), [r#"[{"cancelled":true},{"cancelled":true},{"cancelled":true}]"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_the_provider_and_the_parts_of_the_prompt_are_told() {
    let source = "export default (pi) => {\n\
        pi.on('after_provider_response', (e, ctx) => ctx.ui.notify([e.status, e.headers['content-type']].join(' ')));\n\
        pi.on('before_agent_start', ({ systemPromptOptions: parts }, ctx) => ctx.ui.notify([parts.selectedTools.includes('read'), typeof parts.toolSnippets.read, parts.cwd === ctx.cwd].join(' '))); }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("hello").await;
    assert_eq!(test.notes(), ["true string true", "200 text/event-stream; charset=utf-8"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_two_extensions_add_are_told_apart() {
    let adding = "export default (pi) => pi.on('context', (e) => ({ messages: [...e.messages, { role: 'user', content: 'more' }] }));";
    let looking = "export default (pi) => pi.on('context', (e, ctx) => ctx.ui.notify(e.messages.slice(1).map((m) => m.id).join(' ')));";
    let mut test = TestConversation::with_sources("", &[adding, adding, looking], None).await;
    test.say("hello").await;
    assert_eq!(test.notes(), ["extension-ext1-1 extension-ext2-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_of_one_extension_share_values_and_those_of_others_get_copies() {
    let asking = "export default (pi) => {\n\
        pi.events.on('ask', ({ reply }) => reply?.('answered at once'));\n\
        pi.registerCommand('ask', { handler: (_, ctx) => { let said; pi.events.emit('ask', { reply: (text) => { said = text; } }); ctx.ui.notify(said ?? 'nothing'); } }); }";
    let mut test = TestConversation::with_sources("", &[asking], None).await;
    test.take_events();
    test.say("/ask").await;
    assert_eq!(test.notes(), ["answered at once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_project_are_read_and_addresses_compared() {
    let source = "import { SettingsManager, SessionManager } from '@mariozechner/pi-coding-agent';\nimport { BlockList, isIP } from 'node:net';\nimport { debuglog } from 'node:util';\n\
        export default (pi) => pi.registerCommand('look', { handler: (_, ctx) => { debuglog('x')('y'); const settings = SettingsManager.create(ctx.cwd);\n\
        const list = new BlockList(); list.addSubnet('10.0.0.0', 8); list.addSubnet('fd00::', 8);\n\
        let missing; try { SessionManager.inMemory(); } catch (error) { missing = error.message; }\n\
        ctx.ui.notify(JSON.stringify([settings.getProjectSettings(), settings.getTheme(), isIP('::1'), isIP('1.2.3'), list.check('10.1.2.3'), list.check('11.1.2.3'), list.check('fd12::1'), missing])); } });";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.home.home.write("work/.pi/settings.json", r#"{"theme":"dark"}"#);
    test.take_events();
    test.say("/look").await;
    let expected = r#"[{"theme":"dark"},"dark",6,0,true,false,true,"SessionManager.inMemory is not available in Hardpan's extensions"]"#;
    assert_eq!(test.notes(), [expected]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_names_single_files_of_skills_and_templates() {
    let source = "export default (pi) => pi.on('resources_discover', () => ({ skillPaths: ['SKILL.md'], promptPaths: ['greet.md'] }));";
    let home = super::subagents::TaskHome::new("default: {text: Fine.}\n", "").await;
    home.home.write("extensions/one.ts", source);
    home.home.write("extensions/greet.md", "Greet $1.");
    home.home.write("extensions/SKILL.md", "---\nname: wave\ndescription: Waves at people\n---\nWave.");
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    test.say("/greet Ada").await;
    assert_eq!(test.lines()[0], "user: Greet Ada.");
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(body.contains("Waves at people"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_and_templates_of_a_changed_extension_are_there_after_a_reload_and_listed_after_a_fold() {
    let home = super::subagents::TaskHome::new("default: {text: Fine.}\n", "").await;
    home.home.write("extensions/one.ts", "export default () => {};");
    home.home.write("extensions/prompts/greet.md", "Greet $1.");
    home.home.write(
        "extensions/skills/wave/SKILL.md",
        "---\nname: wave\ndescription: Waves at people\n---\nWave.",
    );
    let path = home.home.folder.path().join("extensions/one.ts");
    let mut test = TestConversation::open_in(home, &[path], None).await;
    test.say("Hello").await;
    let changed = "export default (pi) => pi.on('resources_discover', (event, ctx) => { ctx.ui.notify(event.reason); return { skillPaths: ['skills'], promptPaths: ['prompts'] }; });";
    test.home.home.write("extensions/one.ts", changed);
    test.app.reload_extensions().await;
    assert_eq!(test.notes(), ["reload"]);
    test.say("/greet Ada").await;
    assert!(test.lines().contains(&"user: Greet Ada.".to_owned()), "{:?}", test.lines());
    let system = |test: &TestConversation| test.home.sent().pop().unwrap().body["system"].to_string();
    assert!(!system(&test).contains("Waves at people"), "what is cached stays");
    test.app.agent.request_fold();
    test.say("Go on").await;
    assert!(system(&test).contains("Waves at people"), "{}", system(&test));
    test.home.home.write("extensions/one.ts", "export default () => {};");
    test.app.reload_extensions().await;
    assert!(!test.app.agent.expansions().is_known("greet"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_read_that_shows_the_file_counts_as_having_shown_it() {
    let replaced = |result: &str| {
        format!(
            "import {{ createReadTool }} from '@mariozechner/pi-coding-agent';\nexport default (pi) => {{ const read = createReadTool(process.cwd()); pi.registerTool({{ ...read, execute: async (...given) => {result} }}); }}"
        )
    };
    let whole = replaced("read.execute(...given)");
    let other = replaced("({ content: [{ type: 'text', text: 'something else' }] })");
    for (source, is_shown) in [(whole, true), (other, false)] {
        let test =
            TestConversation::with_sources(&calling("read", "{path: notes.txt}"), &[&source], None).await;
        test.say("Look").await;
        test.app.agent.flush_session().await.unwrap();
        let stored = std::fs::read_to_string(test.app.agent.session().1).unwrap();
        assert_eq!(stored.contains("file_observations"), is_shown, "{stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_tools_and_commands_are_told_with_what_extensions_read_of_them() {
    let source = "export default (pi) => {
        pi.registerTool({ name: 'now', label: 'Now', description: 'The time.\\nIn full.', promptGuidelines: ['Ask for it.'], parameters: { type: 'object', properties: { zone: { type: 'string' } } }, execute: () => ({ content: [] }) });
        pi.registerCommand('add', { handler: async () => { pi.sendMessage({ customType: 'x', content: 'a text', display: true }); } });
        pi.registerCommand('try', { handler: async (_, ctx) => {
            const entries = ctx.sessionManager.getEntries();
            const answers = entries.filter((entry) => entry.message?.role === 'assistant').map((entry) => entry.message);
            const tool = (name) => pi.getAllTools().find((known) => known.name === name);
            ctx.ui.notify(JSON.stringify({
                used: answers.map((answer) => answer.usage.output > 0 && answer.usage.cost.total > 0),
                times: entries.every((entry) => /^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$/.test(entry.timestamp)),
                custom: entries.find((entry) => entry.type === 'custom_message').content,
                context: ctx.sessionManager.buildSessionContext().messages.map((message) => message.role),
                now: tool('now'), read: tool('read').sourceInfo, described: Object.keys(tool('read').parameters.properties).includes('path'),
                command: pi.getCommands().find((command) => command.name === 'try').sourceInfo.source,
                options: [ctx.getSystemPromptOptions().selectedTools.includes('now'), ctx.scopedModels, ctx.ui.getToolsExpanded()],
            }));
        } });
    }";
    let mut test = TestConversation::with_sources("", &[source], None).await;
    test.say("hello").await;
    test.say("/add").await;
    for _ in 0..400 {
        if test.lines().iter().any(|line| line.contains("a text")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    test.take_events();
    test.say("/try").await;
    let value: Value = serde_json::from_str(&test.notes()[0]).unwrap();
    assert_eq!(
        value,
        json!({
            "used": [true], "times": true, "custom": "a text", "context": ["user", "assistant", "custom"],
            "now": {
                "name": "now", "description": "The time.\nIn full.", "active": true, "promptGuidelines": ["Ask for it."],
                "parameters": { "type": "object", "properties": { "zone": { "type": "string" } } },
                "sourceInfo": { "path": "<extension:ext1>", "source": "extension:ext1", "scope": "temporary", "origin": "top-level" },
            },
            "read": { "path": "<builtin:read>", "source": "builtin", "scope": "temporary", "origin": "top-level" },
            "described": true, "command": "extension:ext1", "options": [true, [], false],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_told_in_the_form_that_the_extension_was_written_for() {
    let telling = "pi.on('tool_call', (e, ctx) => { ctx.ui.notify(JSON.stringify(e.input)); });";
    let older = format!("export default (pi) => {{ {telling} }}");
    // The file that the main file takes its factory from says for which releases it is.
    let newer = format!(
        "import type {{ ExtensionAPI }} from '@earendil-works/pi-coding-agent';\n\
         export default (pi: ExtensionAPI) => {{ {telling} pi.on('tool_call', (e) => {{ e.input.edits[0].newText = 'the bread'; }}); }}"
    );
    let script = calling("edit", "{path: notes.txt, old_text: the milk, new_text: the tea}");
    let home = super::subagents::TaskHome::new(&script, "").await;
    home.home.write("extensions/older.ts", &older);
    home.home.write("extensions/newer/index.ts", "export { default } from './main';");
    home.home.write("extensions/newer/main.ts", &newer);
    let folder = home.home.folder.path().join("extensions");
    let mut test =
        TestConversation::open_in(home, &[folder.join("older.ts"), folder.join("newer")], None).await;
    assert_eq!(test.notices(), [""; 0]);
    test.say("go").await;
    assert_eq!(
        test.notes(),
        [
            r#"{"path":"notes.txt","oldText":"the milk","newText":"the tea","edits":[{"oldText":"the milk","newText":"the tea"}]}"#,
            r#"{"path":"notes.txt","edits":[{"oldText":"the milk","newText":"the tea"}]}"#,
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_main_file_of_a_package_that_fails_costs_no_others() {
    let greet = |word: &str| {
        format!(
            "export default (pi) => pi.registerCommand('{word}', {{ handler: (_, ctx) => ctx.ui.notify('{word}') }});"
        )
    };
    let home = super::subagents::TaskHome::new(super::extensions::FINE, "").await;
    let files = [
        ("package.json", r#"{"pi": {"extensions": ["./a.ts", "./b.ts", "./c.ts", "./d.ts"]}}"#.to_owned()),
        ("a.ts", "import { missing } from './none';\nexport default () => missing();".to_owned()),
        ("b.ts", greet("one")),
        ("c.ts", "export default (pi) => { pi.on('input', () => ({ action: 'handled' })); throw new Error('no'); };".to_owned()),
        ("d.ts", greet("two")),
    ];
    for (name, content) in &files {
        home.home.write(&format!("extensions/several/{name}"), content);
    }
    let folder = home.home.folder.path().join("extensions/several");
    let mut test = TestConversation::open_in(home, &[folder], None).await;
    let notices = test.notices();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("a.ts") && notices[0].contains("./none"), "{notices:?}");
    assert!(notices[1].contains("c.ts") && notices[1].contains("Error: no"), "{notices:?}");
    test.say("/one").await;
    test.say("/two").await;
    assert_eq!(test.notes(), ["one", "two"]);
    // The handler of the one that failed is gone.
    test.say("hello").await;
    assert_eq!(test.lines()[0], "user: hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_a_provider_would_refuse_have_other_names_on_the_way() {
    let script = "turns:\n- when: {contains: go}\n  tool_calls: [{name: search, arguments: {filter_id: 7, text: milk}}]\n";
    let source = "import { Type } from 'typebox';\n\
        export default (pi) => pi.registerTool({ name: 'search', label: 'search', description: 'Searches', parameters: Type.Object({ 'filter[id]': Type.Number(), text: Type.String() }), execute: async (_, args) => ({ content: [{ type: 'text', text: JSON.stringify(args) }], details: {} }) });";
    let test = TestConversation::with_sources(script, &[source], None).await;
    test.say("go").await;
    let declared = test.home.sent()[0].body["tools"].to_string();
    assert!(declared.contains("\"filter_id\"") && !declared.contains("filter[id]"), "{declared}");
    assert!(
        test.lines().contains(&"result: {\"filter[id]\":7,\"text\":\"milk\"}".to_owned()),
        "{:?}",
        test.lines()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_read_that_shows_a_page_of_the_file_counts_as_having_shown_it() {
    let source = "import { createReadTool } from '@mariozechner/pi-coding-agent';\nexport default (pi) => pi.registerTool(createReadTool(process.cwd()));";
    let home = super::subagents::TaskHome::new(&calling("read", "{path: long.txt, offset: 3}"), "").await;
    home.home.write("work/long.txt", &"a line of the file\n".repeat(4_000));
    home.home.write("extensions/one.ts", source);
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    test.say("Look").await;
    let lines = test.lines();
    let shown = lines.iter().find(|line| line.starts_with("result: ")).unwrap();
    assert!(shown.ends_with("[lines 3-2002 of 4000; go on with offset=2003]"), "{shown}");
    test.app.agent.flush_session().await.unwrap();
    let stored = std::fs::read_to_string(test.app.agent.session().1).unwrap();
    assert!(stored.contains("file_observations"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_read_shows_images() {
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let source = format!(
        "import {{ createReadTool }} from '@mariozechner/pi-coding-agent';\nimport {{ writeFileSync }} from 'node:fs';\nexport default (pi) => {{ pi.on('session_start', () => writeFileSync('dot.png', Buffer.from('{DOT}', 'base64'))); pi.registerTool(createReadTool(process.cwd())); }}"
    );
    let test = TestConversation::with_sources(&calling("read", "{path: dot.png}"), &[&source], None).await;
    test.say("Look").await;
    let body = test.home.sent().pop().unwrap().body.to_string();
    assert!(body.contains(DOT) && body.contains("dot.png: image/png"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_replaced_bash_that_takes_too_long_fails_with_what_it_printed() {
    let script = calling("bash", "{command: 'echo begun; sleep 100', timeout: 1}");
    let test = TestConversation::with_sources(&script, &[WRAPPED_BASH], None).await;
    test.say("go").await;
    let lines = test.lines();
    let expected = "failed: begun\n\nCommand timed out after 1 seconds";
    assert!(lines.contains(&expected.to_owned()), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_of_a_replaced_bash_is_kept_in_a_file() {
    let script = calling("bash", "{command: seq 1 3000}");
    let test = TestConversation::with_sources(&script, &[WRAPPED_BASH], None).await;
    test.say("go").await;
    let lines = test.lines();
    let shown = lines.iter().find(|line| line.starts_with("result: ")).unwrap();
    let (_, place) = shown.split_once("[lines 1001-3000 of 3000; the whole output is in ").unwrap();
    let kept = std::fs::read_to_string(place.trim_end_matches(']')).unwrap();
    assert_eq!(kept.lines().count(), 3_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_find_walks_the_folder_by_itself() {
    let source = "import { createFindTool } from '@mariozechner/pi-coding-agent';\nexport default (pi) => pi.registerTool(createFindTool(process.cwd()));";
    let home = super::subagents::TaskHome::new(&calling("find", "{pattern: '*.{txt,md}'}"), "").await;
    home.home.write("work/deep/er/a.md", "");
    home.home.write("work/node_modules/b.md", "");
    home.home.write("extensions/one.ts", source);
    let path = home.home.folder.path().join("extensions/one.ts");
    let test = TestConversation::open_in(home, &[path], None).await;
    test.say("go").await;
    assert!(test.lines().contains(&"result: notes.txt\ndeep/er/a.md".to_owned()), "{:?}", test.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_a_tool_throws_reaches_the_model_as_its_message_alone() {
    for (thrown, expected) in [
        ("new Error('no milk')", "no milk"),
        ("new TypeError('no tea')", "no tea"),
        ("'plain text'", "plain text"),
        ("new RangeError()", "RangeError"),
    ] {
        let source = format!(
            "export default (pi) => pi.registerTool({{ name: 'fetch_it', description: 'f', parameters: {{}}, execute: async () => {{ throw {thrown}; }} }});"
        );
        let test = TestConversation::with_sources(&calling("fetch_it", "{}"), &[&source], None).await;
        test.say("go").await;
        let lines = test.lines();
        assert!(lines.contains(&format!("failed: {expected}")), "{lines:?}");
        test.app.agent.flush_session().await.unwrap();
        let stored = std::fs::read_to_string(test.app.agent.session().1).unwrap();
        assert!(stored.contains(r#""details":{}"#), "{stored}");
    }
}
