//! `hardpan commit` in real repositories, with the simulator as the model.

mod provider;
mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use provider::Provider;
use support::{CommandOutput, Sandbox};

/// Writes the usual message.
const WRITER: &str = "turns: []\ndefault: {text: 'feat(ring): add a buffer'}";

/// A repository in the sandbox's folder, with one commit.
struct Repository {
    sandbox: Sandbox,
}

impl Repository {
    fn new() -> Self {
        let repository = Repository { sandbox: Sandbox::new() };
        repository.git(&["init", "-q", "-b", "main"]);
        repository.git(&["config", "user.name", "A Person"]);
        repository.git(&["config", "user.email", "person@example.org"]);
        repository.write("README.md", "# A thing\n");
        repository.git(&["add", "."]);
        repository.git(&["commit", "-q", "-m", "docs: begin"]);
        repository
    }

    /// The same, with a change that is staged.
    fn with_change() -> Self {
        let repository = Repository::new();
        repository.stage("src/ring.rs", "pub struct Ring;\n");
        repository
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.sandbox.write(&format!("work/{path}"), content);
    }

    fn stage(&self, path: &str, content: impl AsRef<[u8]>) {
        self.write(path, content);
        self.git(&["add", path]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(self.sandbox.work())
            .args(arguments)
            .env("HOME", self.sandbox.work().join("../home"));
        let output = command.output().expect("git can be run");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is UTF-8")
    }

    #[cfg(unix)]
    fn hook(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.sandbox.write(&format!("work/.git/hooks/{name}"), format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
            .expect("it can be made executable");
    }

    fn commit(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = self.sandbox.command(&["commit"]);
        command.args(arguments).env("ANTHROPIC_API_KEY", "any").stdin(Stdio::null());
        let output = command.output().expect("the binary can be run");
        let stderr = String::from_utf8(output.stderr).expect("words are UTF-8");
        CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
    }

    /// The message of the last commit.
    fn last(&self) -> String {
        self.git(&["log", "-1", "--format=%B"]).trim_end().to_owned() + "\n"
    }
}

fn text(ran: &CommandOutput) -> &str {
    std::str::from_utf8(&ran.stdout).expect("it is UTF-8")
}

#[test]
fn a_message_is_written_shown_and_used() {
    let repository = Repository::with_change();
    let script = "turns:\n  - when: {contains: '+pub struct Ring;'}\n    text: \"feat(ring): add a buffer\\n\\nReaders must not wait for writers.\"\n";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(text(&ran), "feat(ring): add a buffer\n\nReaders must not wait for writers.\n");
    assert_eq!(repository.last(), text(&ran));
    assert!(
        ran.stderr.contains("1 request to anthropic/claude-sonnet-5-5: in ") && ran.stderr.contains("; $0.0"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("1 file changed"), "git's own words are shown: {}", ran.stderr);
}

#[test]
fn without_a_yes_nothing_is_committed() {
    let repository = Repository::with_change();
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let ran = repository.commit(&["--print"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat(ring): add a buffer\n"));
    let ran = repository.commit(&[]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat(ring): add a buffer\n"));
    assert!(
        ran.stderr.contains("not committed, because there is no terminal to ask in: add --yes"),
        "{}",
        ran.stderr
    );
    assert_eq!(repository.last(), "docs: begin\n");
}

/// Without a key `--yes` commits nothing, so nobody is told to add it.
#[test]
fn without_a_key_no_flag_is_suggested_that_then_fails() {
    let repository = Repository::with_change();
    let ran = repository.sandbox.run(&["commit"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("made from the file names only"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("to ask in: save this message and run `git commit -F FILE`"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert_eq!(repository.last(), "docs: begin\n");
}

#[test]
fn the_small_model_of_the_settings_writes() {
    let repository = Repository::with_change();
    let _provider = Provider::start(&repository.sandbox, WRITER, "small_model = \"claude-haiku-4-5\"");
    let ran = repository.commit(&["--print"]);
    assert!(ran.stderr.contains("1 request to anthropic/claude-haiku-4-5"), "{}", ran.stderr);
    let ran = repository.commit(&["--print", "--model", "claude-sonnet-5"]);
    assert!(ran.stderr.contains("1 request to anthropic/claude-sonnet-5"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_committed_is_told_with_the_remedy() {
    let sandbox = Sandbox::new();
    let words = sandbox.failure(&["commit"]);
    assert!(words.contains("is not in a git repository") && words.contains("git init"), "{words}");

    let repository = Repository::new();
    repository.write("README.md", "# Not staged\n");
    let ran = repository.commit(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(1), ""));
    assert!(ran.stderr.contains("nothing is staged") && ran.stderr.contains("git add"), "{}", ran.stderr);

    repository.git(&["checkout", "-q", "-b", "other"]);
    repository.git(&["commit", "-q", "-am", "docs: one"]);
    repository.git(&["checkout", "-q", "main"]);
    repository.write("README.md", "# Another\n");
    repository.git(&["commit", "-q", "-am", "docs: two"]);
    let merged =
        Command::new("git").arg("-C").arg(repository.sandbox.work()).args(["merge", "-q", "other"]).output();
    assert!(!merged.expect("git can be run").status.success(), "it must conflict");
    let ran = repository.commit(&["--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("these files have conflicts: README.md"), "{}", ran.stderr);
}

#[test]
fn the_first_commit_of_a_repository_can_be_written() {
    let sandbox = Sandbox::new();
    let repository = Repository { sandbox };
    repository.git(&["init", "-q", "-b", "main"]);
    repository.stage("a b\u{e9}.txt", "one\n");
    let script = "turns: [{when: {contains: (none yet)}, text: 'feat: begin'}]";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--print"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat: begin\n"), "{}", ran.stderr);
}

#[test]
fn a_message_that_cannot_be_used_is_asked_for_once_more() {
    let repository = Repository::with_change();
    let script = "turns:\n  - {text: I added a ring buffer for you.}\n  - {when: {contains: 'cannot be used as a commit message: its first line is not of the form'}, text: 'feat: add a ring'}\n";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--print"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat: add a ring\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("asking the model once more") && ran.stderr.contains("2 requests"),
        "{}",
        ran.stderr
    );

    let long = format!("feat: {}", "very ".repeat(20));
    let _provider =
        Provider::start(&repository.sandbox, &format!("turns: []\ndefault: {{text: '{long}'}}"), "");
    let ran = repository.commit(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(1), ""));
    assert!(
        ran.stderr.contains("wrote no usable message: its first line has 105 characters"),
        "{}",
        ran.stderr
    );
    assert_eq!(repository.last(), "docs: begin\n");
}

#[test]
fn a_long_diff_is_summarised_file_by_file_and_a_binary_one_is_named() {
    let repository = Repository::new();
    for name in 0..12 {
        let lines: String = (0..4000).map(|line| format!("{name} is on line {line}\n")).collect();
        repository.write(&format!("list{name:02}.txt"), lines);
    }
    repository.git(&["add", "."]);
    repository.stage("picture.bin", b"\x00\x01\x02\xff".repeat(1000));
    let script = "
turns:
  - {when: {contains: too long to be read at once}, text: 'list00.txt: counts', repeat: always}
  - {when: {contains: 'list00.txt: counts'}, text: 'feat: add twelve long lists'}
";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat: add twelve long lists\n"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("the diff is too long for one request: summarising 13 files first, in 4 requests"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("5 requests to anthropic"), "{}", ran.stderr);
    assert_eq!(repository.last(), "feat: add twelve long lists\n");
    repository.stage("picture.bin", b"\x00\x03".repeat(1000));
    let script = "turns: [{when: {contains: 'Binary files a/picture.bin and b/picture.bin differ'}, text: 'chore: new picture'}]";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--print"]);
    assert_eq!(text(&ran), "chore: new picture\n", "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn hooks_run_and_what_they_refuse_is_told() {
    let repository = Repository::with_change();
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    repository.hook("pre-commit", "echo 'the style is wrong'; exit 1");
    let ran = repository.commit(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(1), "feat(ring): add a buffer\n"), "the message is not lost");
    assert!(
        ran.stderr.contains("the style is wrong") && ran.stderr.contains("git did not commit"),
        "{}",
        ran.stderr
    );
    assert_eq!(repository.last(), "docs: begin\n");
    repository.hook("pre-commit", "exit 0");
    repository.hook("commit-msg", "echo 'Checked: yes' >> \"$1\"");
    let ran = repository.commit(&["--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(repository.last(), "feat(ring): add a buffer\nChecked: yes\n");
}

#[test]
fn without_a_model_the_names_make_the_message_and_yes_is_refused() {
    let repository = Repository::with_change();
    let plain = |arguments: &[&str]| {
        let args: Vec<&str> = ["commit"].iter().chain(arguments).copied().collect();
        repository.sandbox.run(&args)
    };
    let ran = plain(&["--print"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "chore: add ring.rs\n"));
    assert!(
        ran.stderr.contains("made from the file names only") && ran.stderr.contains("ANTHROPIC_API_KEY"),
        "{}",
        ran.stderr
    );
    let ran = plain(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(1), ""));
    assert!(ran.stderr.contains("nothing was committed. Set ANTHROPIC_API_KEY"), "{}", ran.stderr);
    assert_eq!(repository.last(), "docs: begin\n");
}

#[test]
fn control_characters_of_a_model_do_not_reach_the_message() {
    let repository = Repository::with_change();
    let script = "turns: []\ndefault: {text: \"feat: add\\u001b[31m a ring\\u0007\"}";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.commit(&["--yes"]);
    assert_eq!((ran.code, text(&ran)), (Some(0), "feat: add[31m a ring\n"), "{}", ran.stderr);
}

/// Runs it in a terminal of its own, as `script` from util-linux makes one; none where there is no such program.
#[cfg(target_os = "linux")]
fn in_a_terminal(repository: &Repository, typed: &str) -> Option<(Option<i32>, String)> {
    support::script_program()?;
    let inner = repository.sandbox.command(&["commit"]);
    let line = format!("{} commit", inner.get_program().to_string_lossy());
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(repository.sandbox.work()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("ANTHROPIC_API_KEY", "any").env("GIT_EDITOR", "sed -i s/buffer/queue/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    child.stdin.take().expect("it is piped").write_all(typed.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    Some((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[cfg(target_os = "linux")]
#[test]
fn in_a_terminal_the_person_is_asked() {
    let repository = Repository::with_change();
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let Some((code, shown)) = in_a_terminal(&repository, "n\n") else { return };
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("feat(ring): add a buffer") && shown.contains("nothing was committed"), "{shown}");
    assert_eq!(repository.last(), "docs: begin\n");
    let (code, shown) = in_a_terminal(&repository, "what?\ne\ny\n").expect("it was there before");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("please answer y, e or n"), "{shown}");
    assert_eq!(repository.last(), "feat(ring): add a queue\n");
}

#[test]
fn what_a_message_cost_is_kept() {
    let repository = Repository::with_change();
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let ran = repository.commit(&["--print"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let cost = repository.sandbox.json(&["cost", "--json"]);
    assert_eq!(cost["total"]["requests"], 1);
    assert!(cost["rows"][0]["session"].as_str().is_some_and(|name| name.ends_with("  commit")), "{cost}");
    assert!(cost["total"]["dollars"].as_f64().is_some_and(|dollars| dollars > 0.0));
    // It is no conversation.
    assert_eq!(repository.sandbox.json(&["sessions", "--json"]), serde_json::json!([]));
}
