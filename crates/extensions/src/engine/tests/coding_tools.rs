//! The tools of the published package, as extensions wrap them.

use super::*;

/// What the tool of a factory answers, or the message of what it throws, and the updates meanwhile.
async fn use_tool(made: &str, args: &str) -> Value {
    let expression = format!(
        "await (async () => {{ const agent = await import('@earendil-works/pi-coding-agent'); const updates = []; const stop = new AbortController(); const files = new Map([['/work/a.txt', 'one\\ntwo\\nthree\\n'], ['/work/dos.txt', 'a\\r\\nb\\r\\n'], ['/work/long.txt', 'x\\n'.repeat(2500)], ['/work/dot.gif', 'GIF89a...']]);\
            const operations = {{ readFile: async (file) => Buffer.from(files.get(file)), writeFile: async (file, text) => {{ files.set(file, text); }} }};\
            let result; try {{ result = await agent.{made}.execute('1', {args}, stop.signal, (update) => updates.push(update.content[0].text)); }} catch (error) {{ result = error.message; }}\
            return [result, updates, files.get('/work/dos.txt')]; }})()"
    );
    evaluate(&expression).await
}

#[tokio::test]
async fn a_read_of_the_factory_says_how_to_go_on_and_shows_images() {
    let read = async |args: &str| use_tool("createReadTool('/work', { operations })", args).await[0].clone();
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    assert_eq!(read("{ path: 'a.txt' }").await, text("one\ntwo\nthree\n"));
    assert_eq!(read("{ path: 'a.txt', limit: 1 }").await, text("one\n[lines 1-1 of 3; go on with offset=2]"));
    assert_eq!(read("{ path: 'a.txt', offset: 3 }").await, text("three\n[lines 3-3 of 3]"));
    assert_eq!(
        read("{ path: 'a.txt', offset: 9 }").await,
        json!("a.txt has only 3 lines: offset 9 is past its end.")
    );
    let long = read("{ path: 'long.txt' }").await;
    let shown = long["content"][0]["text"].as_str().unwrap();
    assert!(shown.ends_with("x\n[lines 1-2000 of 2500; go on with offset=2001]"), "{long}");
    assert_eq!(long["details"]["truncation"]["outputLines"], 2000);
    assert_eq!(
        read("{ path: 'dot.gif' }").await["content"],
        json!([{ "type": "text", "text": "dot.gif: image/gif" }, { "type": "image", "data": STANDARD.encode("GIF89a..."), "mimeType": "image/gif" }])
    );
}

#[tokio::test]
async fn a_bash_of_the_factory_fails_as_its_command_does_and_keeps_long_output() {
    let run = async |exec: &str| {
        let made = format!("createBashTool('/work', {{ operations: {{ exec: {exec} }} }})");
        use_tool(&made, "{ command: 'x', timeout: 3 }").await
    };
    let printing = |text: &str, end: &str| {
        format!("async (command, cwd, {{ onData }}) => {{ onData(Buffer.from('{text}')); {end} }}")
    };
    let fine = run(&printing("done\\n", "return { exitCode: 0 };")).await;
    assert_eq!(fine[0], json!({ "content": [{ "type": "text", "text": "done\n" }] }));
    assert_eq!(fine[1], json!(["done\n"]));
    for (end, status) in [
        ("return { exitCode: 3 };", "Command exited with code 3"),
        ("throw new Error('timeout:3');", "Command timed out after 3 seconds"),
        ("stop.abort(); throw new Error('aborted');", "Command aborted"),
        ("stop.abort(); return { exitCode: null };", "Command aborted"),
    ] {
        let failed = run(&printing("half\\n", end)).await;
        assert_eq!(failed[0], json!(format!("half\n\n{status}")), "{end}");
    }
    assert_eq!(run("async () => ({ exitCode: 1 })").await[0], json!("Command exited with code 1"));
    let long = run("async (command, cwd, { onData }) => { for (let n = 1; n <= 3000; n++) onData(`${n}\\n`); return { exitCode: 0 }; }").await;
    let shown = long[0]["content"][0]["text"].as_str().unwrap();
    assert!(shown.starts_with("1001\n") && shown.contains("3000\n[lines 1001-3000 of 3000; "), "{shown}");
    assert_eq!(long[0]["details"]["truncation"]["totalLines"], 3000);
}

#[tokio::test]
async fn a_local_command_that_is_aborted_settles() {
    let expression = "await (async () => { const { createLocalBashOperations } = await import('@earendil-works/pi-coding-agent'); const { exec } = createLocalBashOperations(); const stop = new AbortController();\
        const ended = (signal) => exec('x', '/work', { onData() {}, signal }).catch((error) => error.message);\
        const running = ended(stop.signal); stop.abort(); return [await running, await ended(stop.signal)]; })()";
    assert_eq!(evaluate(expression).await, json!(["aborted", "aborted"]));
}

#[tokio::test]
async fn an_edit_of_the_factory_makes_all_replacements_or_none_and_tells_the_difference() {
    let edit = async |args: &str| use_tool("createEditTool('/work', { operations })", args).await;
    let edited = edit(
        "{ path: 'dos.txt', edits: [{ oldText: 'b', newText: 'B' }, { oldText: 'a\\n', newText: 'b\\n' }] }",
    )
    .await;
    assert_eq!(
        edited[0],
        json!({
            "content": [{ "type": "text", "text": "Successfully replaced text in dos.txt." }],
            "details": {
                "diff": "-1 a\n 2 b\n+2 B\n 3 ",
                "patch": "--- dos.txt\n+++ dos.txt\n@@ -1,2 +1,2 @@\n-a\n b\n+B\n",
                "firstChangedLine": 1,
            },
        })
    );
    assert_eq!(edited[2], json!("b\r\nB\r\n"));
    for (edits, problem) in [
        (
            "{ oldText: 'c', newText: 'd' }",
            "The text to replace is there 0 times in a.txt: it must be there once",
        ),
        (
            "{ oldText: 'o', newText: 'd' }",
            "The text to replace is there 2 times in a.txt: it must be there once",
        ),
        (
            "{ oldText: 'one', newText: 'x' }, { oldText: 'ne', newText: 'y' }",
            "Two of the edits overlap in a.txt: make one edit of them",
        ),
        ("{ oldText: 'one', newText: 'one' }", "The edits change nothing in a.txt"),
    ] {
        let args = format!("{{ path: 'a.txt', edits: [{edits}] }}");
        assert_eq!(edit(&args).await[0], json!(problem), "{edits}");
    }
}

#[tokio::test]
async fn tools_of_factories_that_list_use_the_operations_they_are_given() {
    let shown = async |made: &str, args: &str| use_tool(made, args).await[0].clone();
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let list = "createLsTool('/work', { operations: { exists: () => true, stat: (file) => ({ isDirectory: () => !file.includes('.') }), readdir: () => ['b', 'a.ts'] } })";
    assert_eq!(shown(list, "{}").await, text("a.ts\nb/"));
    let cut = shown(list, "{ limit: 1 }").await;
    assert_eq!(
        cut["content"][0]["text"],
        "a.ts\n[the first 1 of 2; narrow what you ask for, or raise limit]"
    );
    assert_eq!(cut["details"], json!({ "entryLimitReached": 1 }));
    let find = "createFindTool('/work', { operations: { exists: () => true, glob: async (pattern, cwd) => [cwd + '/src/' + pattern, './b.ts'] } })";
    assert_eq!(shown(find, "{ pattern: 'a.ts' }").await, text("src/a.ts\nb.ts"));
    let grep = "createGrepTool('/work', { operations: { isDirectory: () => false, readFile: operations.readFile } })";
    assert_eq!(
        shown(grep, "{ pattern: 'T.*E', path: 'a.txt', ignoreCase: true, context: 1 }").await,
        text("a.txt-2-two\na.txt:3:three\na.txt-4-")
    );
}
