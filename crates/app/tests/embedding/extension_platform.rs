//! What an extension reaches outside of its engine: hosts, programs, variables, its data.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use hardpan_app::extensions::{ExtensionGrant, PermissionStore};

use super::extensions::{FINE, TestConversation};
use super::subagents::TaskHome;

/// Answers each request with what its path names, and the headers that it had.
fn start_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let has_key = headers.iter().any(|line| line.to_lowercase().starts_with("authorization:"));
            let is_spoofed = headers.iter().any(|line| line.contains("spoof"));
            let (status, more) = match &*path {
                "/away" => ("302 Found", format!("location: http://localhost:{port}/here\r\n")),
                _ => ("200 OK", String::new()),
            };
            let body = format!("{path} {has_key}{}", if is_spoofed { " spoofed" } else { "" });
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}

/// An extension whose command `/try` says what an expression gives.
fn trying(expression: &str) -> String {
    format!(
        "const attempt = async (work) => {{ try {{ return await work(); }} catch (error) {{ return error.message; }} }};\n\
         export default (pi) => pi.registerCommand('try', {{ handler: async (args, ctx) => ctx.ui.notify(JSON.stringify({expression})) }});"
    )
}

async fn conversation(config: &str, files: &[(&str, &str)]) -> TestConversation {
    let home = TaskHome::new(FINE, config).await;
    for (name, content) in files {
        home.home.write(&format!("extensions/tried/{name}"), content);
    }
    let folder = home.home.folder.path().join("extensions/tried");
    TestConversation::open_in(home, &[folder], None).await
}

async fn try_in(mut test: TestConversation) -> (serde_json::Value, Vec<String>) {
    assert_eq!(test.notices(), [""; 0]);
    test.say("/try").await;
    let notes = test.notes();
    let value = serde_json::from_str(notes.first().map_or("null", String::as_str)).unwrap();
    (value, test.questions())
}

#[tokio::test(flavor = "multi_thread")]
async fn fetch_asks_for_each_host_and_gives_keys_to_the_first_alone() {
    let port = start_server();
    let expression = format!(
        "await attempt(async () => {{ const response = await fetch('http://127.0.0.1:{port}/away', {{ headers: {{ authorization: 'key' }} }}); return [response.status, response.redirected, response.url.endsWith('/here'), await response.text()]; }})"
    );
    let source = trying(&expression);
    let config = "private_hosts = [\"127.0.0.1\", \"localhost\"]\n";
    let (value, questions) = try_in(conversation(config, &[("index.ts", &source)]).await).await;
    assert_eq!(value, serde_json::json!([200, true, true, "/here false"]));
    assert_eq!(
        questions,
        [format!("Url(\"http://127.0.0.1:{port}/away\")"), format!("Url(\"http://localhost:{port}/here\")")]
    );
    // Without the setting, addresses of this machine are none that anybody is asked about.
    let (value, questions) = try_in(conversation("", &[("index.ts", &source)]).await).await;
    assert!(value.as_str().unwrap().contains("an address of this machine"), "{value}");
    assert_eq!(questions, [""; 0]);
    let denied = format!("{config}deny = [\"fetch(127.0.0.1)\"]\n");
    let (value, _) = try_in(conversation(&denied, &[("index.ts", &source)]).await).await;
    assert!(value.as_str().unwrap().contains("the settings deny it"), "{value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_connection_are_not_the_extension_s() {
    let port = start_server();
    let source = trying(&format!(
        "await attempt(async () => {{ const headers = {{ Host: 'spoof.test', TE: 'spoof', Upgrade: 'spoof', Connection: 'spoof', 'Keep-Alive': 'spoof', Trailer: 'spoof', Expect: 'spoof', authorization: 'key' }}; return [await (await fetch('http://127.0.0.1:{port}/a', {{ headers }})).text(), await (await fetch('http://127.0.0.1:{port}/away', {{ headers }})).text()]; }})"
    ));
    let config = "private_hosts = [\"127.0.0.1\", \"localhost\"]\n";
    let (value, _) = try_in(conversation(config, &[("index.ts", &source)]).await).await;
    assert_eq!(value, serde_json::json!(["/a true", "/here false"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_extension_was_allowed_is_not_asked_again() {
    let port = start_server();
    let source = trying(&format!("await (await fetch('http://127.0.0.1:{port}/a')).text()"));
    let test = conversation("private_hosts = [\"127.0.0.1\"]\n", &[("index.ts", &source)]).await;
    let granted = test.app.extensions.list().remove(0).granted;
    assert_eq!((granted.name.as_str(), granted.network.len()), ("tried", 0));
    let store = PermissionStore::new(&test.home.home.user_folders());
    store.allow(&ExtensionGrant { network: ["127.0.0.1".to_owned()].into(), ..granted }).unwrap();
    let (home, folder) = (test.home, test.app.folder.clone());
    drop(test.app);
    let path = folder.parent().unwrap().join("extensions/tried");
    let test = TestConversation::open_in(home, &[path], None).await;
    assert_eq!(try_in(test).await, (serde_json::json!("/a false"), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_limits_what_an_extension_may_ask_for() {
    let manifest = r#"{"pi": {"extensions": ["index.ts"]}, "hardpan": {"permissions": {"network": ["api.example.com"], "exec": ["echo"]}}}"#;
    let source = format!(
        "import {{ execFileSync, spawnSync }} from 'node:child_process';\n{}",
        trying(
            "[await attempt(() => fetch('https://example.com/')), spawnSync('ls').stderr.toString(), execFileSync('echo', ['hello'], { encoding: 'utf8' })]"
        )
    );
    let files = [("package.json", manifest), ("index.ts", &*source)];
    let (value, questions) = try_in(conversation("", &files).await).await;
    assert!(value[0].as_str().unwrap().contains("does not declare example.com in \"network\""), "{value}");
    assert!(value[1].as_str().unwrap().contains("does not declare ls in \"exec\""), "{value}");
    assert_eq!((&value[2], questions), (&"hello\n".into(), vec!["Command(\"echo hello\")".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_read_their_input_and_variables_are_seen_by_whoever_is_asked() {
    let source = format!(
        "import {{ spawn, execSync }} from 'node:child_process';\n{}",
        trying(
            "[execSync('cat', { input: 'typed', encoding: 'utf8' }), execSync('echo $EXTRA', { env: { ...process.env, EXTRA: 'more' } }).toString(), await new Promise((resolve) => { const child = spawn('sleep', ['60']); child.on('exit', (code, signal) => resolve(signal)); setTimeout(() => child.kill(), 50); }), await attempt(() => execSync('true', { cwd: '/' }))]"
        )
    );
    let (value, questions) = try_in(conversation("", &[("index.ts", &source)]).await).await;
    assert_eq!(value[0], "typed");
    assert_eq!(value[1], "more\n");
    assert_eq!(value[2], "SIGTERM");
    assert!(value[3].as_str().unwrap().starts_with("EACCES"), "{value}");
    assert_eq!(questions[1], "Command(\"env EXTRA=more sh -c 'echo $EXTRA'\")");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_has_a_folder_for_its_data() {
    let source = format!(
        "import {{ writeFileSync, readFileSync, mkdtempSync }} from 'node:fs';\nimport {{ join }} from 'node:path';\nimport {{ homedir, tmpdir }} from 'node:os';\nimport {{ getAgentDir }} from '@mariozechner/pi-coding-agent';\n{}",
        trying(
            "(writeFileSync(join(getAgentDir(), 'settings.json'), '1'), [readFileSync(join(getAgentDir(), 'settings.json'), 'utf8'), await attempt(() => readFileSync(join(getAgentDir(), '../../sessions'), 'utf8')), mkdtempSync(join(tmpdir(), 'a-')).startsWith(tmpdir()), readFileSync(join(homedir(), '.pi/agent/settings.json'), 'utf8'), readFileSync(join(homedir(), '.tried/settings.json'), 'utf8')])"
        )
    );
    let (value, _) = try_in(conversation("", &[("index.ts", &source)]).await).await;
    assert_eq!(value[0], "1");
    assert!(value[1].as_str().unwrap().starts_with('E'), "{value}");
    assert_eq!(value[2], true);
    // Where extensions look for it by its usual name.
    assert_eq!((&value[3], &value[4]), (&"1".into(), &"1".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_one_package_hand_each_other_functions() {
    let manifest = r#"{"pi": {"extensions": ["./core.ts", "./commands.ts"]}}"#;
    let core = "export default (pi) => { pi.events.on('count', ({ reply }) => reply(['one', 'two'])); pi.registerCommand('core', { handler() {} }); }";
    let commands = "export default (pi) => pi.registerCommand('try', { handler: async (args, ctx) => { let found; pi.events.emit('count', { reply: (names) => { found = names; } }); ctx.ui.notify(JSON.stringify(found ?? null)); } });";
    let files = [("package.json", manifest), ("core.ts", core), ("commands.ts", commands)];
    let test = conversation("", &files).await;
    let listed = test.app.extensions.list();
    assert_eq!((listed.len(), &*listed[0].name), (1, "tried"));
    assert_eq!(listed[0].commands, ["core", "try"]);
    assert_eq!(try_in(test).await.0, serde_json::json!(["one", "two"]));

    // One of them that cannot be loaded is named, and costs no others.
    let broken = "export default () => { throw new Error('late'); }";
    let files = [("package.json", manifest), ("core.ts", core), ("commands.ts", broken)];
    let test = conversation("", &files).await;
    assert!(test.notices()[0].contains("Error: late (commands.ts:1:"), "{:?}", test.notices());
    assert_eq!(test.app.extensions.list()[0].commands, ["core"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_an_answer_are_read_by_all_of_its_copies() {
    let port = start_server();
    let source = trying(
        "await (async () => {\
          const get = () => fetch('http://127.0.0.1:PORT/part');\
          const one = await get(); const copy = one.clone(); await one.body.cancel();\
          const locked = await get(); locked.body.getReader();\
          const both = (await get()).body.tee(); const read = async (stream) => { let text = ''; for await (const part of stream) text += new TextDecoder().decode(part); return text; };\
          return [await copy.text(), await attempt(() => locked.text()), await Promise.all(both.map(read)), await new Response((await get()).body).text(), await attempt(async () => { const used = await get(); await used.text(); return used.clone(); })];\
        })()",
    );
    let config = "private_hosts = [\"127.0.0.1\"]\n";
    let test = conversation(config, &[("index.ts", &source.replace("PORT", &port.to_string()))]).await;
    let (found, _) = try_in(test).await;
    let text = "/part false";
    assert_eq!(
        found,
        serde_json::json!([
            text,
            "Body is unusable: Body is locked",
            [text, text],
            text,
            "Response.clone: Body has already been consumed.",
        ])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_programs_and_files_are_as_node_has_them() {
    let expression = "await (async () => {
        const { execFileSync, spawn, spawnSync } = await import('node:child_process');
        const fs = await import('node:fs');
        const name = 'node:os';
        const os = await import(name);
        const code = (work) => { try { work(); return 'none'; } catch (error) { return [error.code, error.syscall]; } };
        const ended = (child) => new Promise((resolve) => { child.on('error', (error) => resolve(error.code)); child.on('close', (...end) => resolve(end)); });
        process.env.TRIED = 'seen';
        const seen = [execFileSync('sh', ['-c', 'printf $TRIED']).toString(), (await pi_exec('sh', ['-c', 'printf $TRIED'])).stdout];
        delete process.env.TRIED;
        fs.writeFileSync('run.sh', 'exit 0', { mode: 0o755 });
        const modes = [fs.statSync('run.sh').mode & 0o777];
        fs.chmodSync('run.sh', 0o600);
        fs.utimesSync('run.sh', 0, 1000);
        modes.push(fs.statSync('run.sh').mode & 0o777, fs.statSync('run.sh').mtimeMs);
        const changes = [];
        const watcher = fs.watch('run.sh', (kind, file) => changes.push([kind, file]));
        fs.writeFileSync('run.sh', 'exit 1');
        while (changes.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
        watcher.close();
        return { seen, gone: 'TRIED' in process.env, modes, changes, homedir: typeof os.homedir(),
            missing: [code(() => execFileSync('no-such-program')), spawnSync('no-such-program').error.code, await ended(spawn('no-such-program'))],
            killed: await ended(spawn('sh', ['-c', 'kill -9 $$'])), nothing: code(() => fs.readFileSync('nothing')),
            alive: [process.kill(process.pid, 0), code(() => process.kill(999999999, 0))] };
    })()";
    let source = trying(expression)
        .replace("export default (pi) => pi", "let pi_exec;\nexport default (pi) => (pi_exec = pi.exec, pi)");
    let test = conversation("", &[("index.ts", &source)]).await;
    let (value, questions) = try_in(test).await;
    assert_eq!(
        value,
        serde_json::json!({
            "seen": ["seen", "seen"], "gone": false, "modes": [0o755, 0o600, 1_000_000],
            "changes": [["change", "run.sh"]], "homedir": "string",
            "missing": [["ENOENT", "spawnSync no-such-program"], "ENOENT", "ENOENT"],
            "killed": [null, "SIGKILL"], "nothing": ["ENOENT", "open"],
            "alive": [true, ["ESRCH", "kill"]],
        })
    );
    // Nobody is asked about a program that is not there, and variables are seen by whoever is asked.
    assert!(questions.iter().all(|question| !question.contains("no-such")), "{questions:?}");
    assert!(questions[0].contains("env TRIED=seen sh -c"), "{questions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_by_patterns() {
    let expression = "await (async () => { const fs = await import('node:fs'); const asked = (...given) => fs.globSync(...given).sort();
        for (const file of ['src/a.ts', 'src/deep/b.ts', 'src/deep/b.js', '.hidden/c.ts', 'd1.txt', 'd2.txt']) { fs.mkdirSync(file.replace(/[^/]+$/, '') || '.', { recursive: true }); fs.writeFileSync(file, ''); }
        const later = []; for await (const file of fs.promises.glob('src/**/b.*', { exclude: (name) => name.endsWith('.js') })) later.push(file);
        return [asked('**/*.ts'), asked('src/*.{ts,js}'), asked('d?.txt'), asked('d[!1].txt'), asked('src/**'), asked('*.ts', { cwd: 'src/deep' }), asked(['d1.txt', '.hidden/*']), later,
            await new Promise((resolve) => fs.glob('src/deep/*', { withFileTypes: true }, (error, found) => resolve(error ?? found.map((entry) => [entry.name, entry.isFile()])))), asked('nothing/*')];
    })()";
    let (value, _) = try_in(conversation("", &[("index.ts", &trying(expression))]).await).await;
    assert_eq!(
        value,
        serde_json::json!([
            ["src/a.ts", "src/deep/b.ts"],
            ["src/a.ts"],
            ["d1.txt", "d2.txt"],
            ["d2.txt"],
            ["src", "src/a.ts", "src/deep", "src/deep/b.js", "src/deep/b.ts"],
            ["b.ts"],
            [".hidden/c.ts", "d1.txt"],
            ["src/deep/b.ts"],
            [["b.js", true], ["b.ts", true]],
            [],
        ])
    );
}
