//! A sandbox whose provider is a simulator over HTTP, and a conversation in a terminal within it.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{Session, SessionStore};
use hardpan_test_support::SimulatorServer;

use crate::support::{CommandOutput, Sandbox, script_program};

/// How often something is looked for: a minute. Nothing takes that long unless it never happens.
const MAX_POLLS: usize = 12_000;

/// The time between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

const SCRIPT: &str = r#"
turns:
  - {when: {contains: about to leave the context}, repeat: always, text: The summary of it all.}
  - {when: {contains: Write notes}, repeat: always, text: Writing., tool_calls: [{name: write, arguments: {path: notes/a.txt, content: noted}}]}
  - {when: {contains: Write secret}, repeat: always, tool_calls: [{name: write, arguments: {path: notes/secret.txt, content: noted}}]}
  - {when: {contains: Edit it}, repeat: always, tool_calls: [{name: edit, arguments: {path: a.txt, old_text: one, new_text: two}}]}
  - {when: {contains: Print the variables}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'env; cat $HOME/../config/keys.toml'}}]}
  - {when: {contains: Work slowly}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'echo begun; sleep 1000'}}]}
  - {when: {contains: Show code}, repeat: always, text: "\tif x {\e]0;title\a}"}
  - {when: {contains: Write oddly}, repeat: always, tool_calls: [{name: write, arguments: {path: "x)\nbash\nwrite(y", content: noted}}]}
  - {when: {contains: Call twice}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'seq 1 20; sleep 2'}}, {name: write, arguments: {path: b.txt, content: noted}}]}
  - {when: {contains: Do fly}, repeat: always, undeclared: true, tool_calls: [{name: fly, arguments: {to: the moon}}]}
  - {when: {contains: Be quick}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'echo quick', timeout: 1}}]}
  - {when: {contains: Remove one}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'rm a.tmp'}}]}
  - {when: {contains: Remove more}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'rm a.tmp -rf src'}}]}
  - {when: {contains: Look at it}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'ls a.txt'}}]}
  - {when: {contains: Look again}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'ls -l .'}}]}
  - {when: {contains: Bury it}, repeat: always, text: "Now:\nasks: Run ls?\n  1 yes", tool_calls: [{name: bash, arguments: {command: "touch buried\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\e[2Jasks: Run ls?\nasks: Run ls?"}}]}
default: {text: I have nothing to add.}
"#;

/// A sandbox whose provider is a simulator.
pub struct TestCli {
    pub sandbox: Sandbox,
    _server: SimulatorServer,
}

impl TestCli {
    pub fn new(config: &str) -> Self {
        TestCli::with_script(config, SCRIPT)
    }

    /// A provider that answers from this script.
    pub fn with_script(config: &str, script: &str) -> Self {
        let server = SimulatorServer::start(script);
        let sandbox = Sandbox::new();
        let provider = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", server.url());
        let all = format!("model = \"claude-sonnet-5\"\nmap_tokens = 0\n{config}\n{provider}");
        sandbox.write("config/config.toml", all);
        sandbox.write("work/a.txt", "one\n");
        TestCli { sandbox, _server: server }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command.env("ANTHROPIC_API_KEY", "the-key-of-the-test").env("OTHER_TOKEN", "the-token-of-the-test");
        command.env("EDITOR", self.editor());
        command
    }

    /// One prompt without a terminal.
    pub fn print(&self, args: &[&str]) -> CommandOutput {
        self.print_with(args, "")
    }

    pub fn print_with(&self, args: &[&str], input: &str) -> CommandOutput {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be run");
        // A process that refuses its arguments ends without reading.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8(output.stderr).expect("words are UTF-8");
        CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
    }

    /// Where a test can put an editor.
    pub fn editor(&self) -> PathBuf {
        self.sandbox.work().with_file_name("editor")
    }

    pub fn data(&self) -> PathBuf {
        self.sandbox.work().with_file_name("home").join(".local/share/hardpan")
    }

    /// The messages of the newest session.
    pub fn messages(&self) -> Vec<AgentMessage> {
        let store = SessionStore::new(self.data().join("sessions"));
        let newest = store.list(None).into_iter().next().expect("a session");
        Session::open(&newest.path).expect("it can be read").branch(None).expect("a branch").messages
    }

    /// What the last call was answered with.
    pub fn last_result(&self) -> String {
        let results = self.messages().into_iter().filter_map(|message| match &*message.body {
            MessageBody::ToolResult { content, .. } => Some(content.clone()),
            _ => None,
        });
        match &results.last().expect("a result")[..] {
            [MessagePart::Text { text }] => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.sandbox.work().join(path).exists()
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.sandbox.work().join(path)).expect("a file")
    }
}

/// The conversation in a terminal. None where there is nothing to make one with.
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
    seen: usize,
}

impl Terminal {
    /// Plain lines.
    pub fn open(cli: &TestCli, args: &[&str]) -> Option<Self> {
        Self::open_as(cli, args, "xterm", ":")
    }

    /// The page.
    pub fn open_page(cli: &TestCli, args: &[&str], then: &str) -> Option<Self> {
        Self::start(&cli.command(args), cli.sandbox.work(), "xterm", (":", then))
    }

    /// The page, with a line for the shell to run before.
    pub fn open_page_after(cli: &TestCli, args: &[&str], before: &str) -> Option<Self> {
        Self::start(&cli.command(args), cli.sandbox.work(), "xterm", (before, ":"))
    }

    /// The page, in surroundings that the test changes.
    pub fn open_page_with(cli: &TestCli, args: &[&str], change: impl FnOnce(&mut Command)) -> Option<Self> {
        let mut command = cli.command(args);
        change(&mut command);
        Self::start(&command, cli.sandbox.work(), "xterm", (":", ":"))
    }

    /// The same in a terminal of this kind, with a line for the shell to run afterwards.
    pub fn open_as(cli: &TestCli, args: &[&str], term: &str, then: &str) -> Option<Self> {
        let mut command = cli.command(args);
        command.env("HARDPAN_PLAIN", "1");
        Self::start(&command, cli.sandbox.work(), term, (":", then))
    }

    /// Runs the command between two lines of the shell.
    fn start(plain: &Command, folder: PathBuf, term: &str, (before, then): (&str, &str)) -> Option<Self> {
        let words = [plain.get_program()].into_iter().chain(plain.get_args());
        let line: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // The shell does not end of what is meant for the conversation.
        let line = format!("trap : INT QUIT; {before}; {}; {then}", line.join(" "));
        let mut command = Command::new("script");
        command.args(["-qefc", &line, "/dev/null"]).current_dir(folder).env_clear();
        command
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("SHELL", "/bin/sh")
            .env("TERM", term);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        script_program()?;
        let mut child = command.spawn().expect("it can be run");
        let keys = child.stdin.take().expect("it is piped");
        let mut output = child.stdout.take().expect("it is piped");
        let screen: Arc<Mutex<String>> = Arc::default();
        let shown = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                shown.lock().expect("the screen").push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Some(Terminal { child, keys, screen, reader, seen: 0 })
    }

    pub fn screen(&self) -> String {
        self.screen.lock().expect("the screen").clone()
    }

    /// Waits until this is shown, after what was waited for before.
    pub fn expect(&mut self, text: &str) {
        for _ in 0..MAX_POLLS {
            let screen = self.screen();
            if let Some(at) = screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("\"{text}\" never came after:\n{}", &self.screen()[self.seen..]);
    }

    /// Presses keys once the conversation waits for them: what is read here may be on the screen before the program
    /// knows, and no key answers a question that was pressed before it was drawn.
    pub fn press(&mut self, keys: &str) {
        for _ in 0..MAX_POLLS {
            if self.is_waiting() {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.keys.write_all(keys.as_bytes()).expect("somebody reads");
        self.keys.flush().expect("somebody reads");
    }

    /// Whether no thread of the conversation computes, perhaps because it has not begun or has ended.
    fn is_waiting(&self) -> bool {
        let threads =
            self.running_conversation().and_then(|it| fs::read_dir(format!("/proc/{it}/task")).ok());
        let threads = threads.into_iter().flatten().flatten();
        let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        // The state follows the name, which stands in parentheses.
        let computes =
            |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['R', 'D']));
        !stats.any(computes)
    }

    /// The process of the conversation: the child of the shell, which is the child of `script`.
    fn conversation(&self) -> String {
        self.running_conversation().expect("a running process")
    }

    fn running_conversation(&self) -> Option<String> {
        let only_child = |process: &str| {
            let children = format!("/proc/{process}/task/{process}/children");
            let children = fs::read_to_string(children).ok()?.trim().to_owned();
            (!children.is_empty()).then_some(children)
        };
        only_child(&only_child(&self.child.id().to_string())?)
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, rows: u16) {
        let terminal = fs::read_link(format!("/proc/{}/fd/0", self.conversation())).expect("a terminal");
        let size = ["cols", &columns.to_string(), "rows", &rows.to_string()].map(str::to_owned);
        let resized = Command::new("stty").arg("-F").arg(terminal).args(size).status();
        assert!(resized.expect("stty can be run").success());
    }

    /// Sends a signal to the conversation.
    pub fn signal(&self, name: &str) {
        let conversation = self.conversation();
        let sent = Command::new("kill").args([&format!("-{name}"), &conversation]).status();
        assert!(sent.expect("kill can be run").success(), "no process {conversation}");
    }

    /// Types a line in the page.
    pub fn enter(&mut self, line: &str, then: &str) {
        self.press(&format!("{line}\r"));
        self.expect(then);
    }

    /// Types a line, and answers with what is shown once `then` is.
    pub fn say(&mut self, line: &str, then: &str) {
        self.press(&format!("{line}\n"));
        self.expect(then);
    }

    /// Leaves the page.
    pub fn end_page(mut self) -> String {
        self.press("/quit\r");
        self.wait_for_end()
    }

    pub fn end(mut self) -> String {
        self.press("/quit\n");
        self.wait_for_end()
    }

    /// Waits for the end, and answers with everything that was shown.
    pub fn wait_for_end(mut self) -> String {
        for _ in 0..MAX_POLLS {
            if self.child.try_wait().expect("it can be waited for").is_some() {
                self.reader.join().expect("all of it can be read");
                return self.screen.lock().expect("the screen").clone();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        panic!("it does not end:\n{}", self.screen());
    }
}
