//! Repositories that are set up to make Hardpan run a program, or tell of another repository. Whatever a
//! repository names may run in the sandbox, where it reaches nothing; outside of it nothing runs.

#[path = "git_safety/github.rs"]
mod github;
mod provider;
#[path = "git_safety/repository_pages.rs"]
mod repository_pages;
mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hardpan_sandbox::{SandboxSupport, sandbox_support};
use hardpan_test_support::prerequisite;
use provider::Provider;
use support::{CommandOutput, Sandbox};

const KEY: &str = "the-key-of-the-test";
const WRITER: &str = "turns: []\ndefault: {text: 'feat(ring): add a buffer'}";

/// A repository with a commit and a staged change.
struct Repository {
    sandbox: Sandbox,
}

impl Repository {
    /// None where the kernel has no Landlock.
    fn new() -> Option<Self> {
        let support = match sandbox_support() {
            SandboxSupport::None(_) => None,
            support => Some(support),
        };
        prerequisite(
            "a kernel with Landlock",
            "run on Linux 5.13 or later with `landlock` in lsm=",
            support,
        )?;
        let repository = Repository { sandbox: Sandbox::new() };
        repository.write("work/a.txt", "one\n");
        init(&repository.sandbox.work());
        // Of the same length, so that git has to look into it.
        repository.write("work/a.txt", "two\n");
        repository.write("work/b.txt", "three\n");
        repository.git(&["add", "b.txt"]);
        Some(repository)
    }

    fn write(&self, path: &str, content: &str) -> PathBuf {
        self.sandbox.write(path, content)
    }

    fn program(&self, path: &str, script: &str) -> PathBuf {
        let path = self.write(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
        path
    }

    fn git(&self, arguments: &[&str]) {
        git(&self.sandbox.work(), arguments);
    }

    /// A file outside of the workspace, which only a program outside of the sandbox can write.
    fn witness(&self) -> PathBuf {
        self.sandbox.work().with_file_name("witness")
    }

    /// A command line that betrays itself, and passes on what it reads.
    fn betrayal(&self) -> String {
        format!("env > {}; cat", self.witness().display())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command.env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        output_of(self.command(args))
    }

    /// The body of a request, and what was said beside.
    fn request(&self) -> (String, String) {
        let ran = self.run(&["request", "Hi", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (String::from_utf8_lossy(&ran.stdout).into_owned(), ran.stderr)
    }

    #[track_caller]
    fn assert_nothing_ran(&self) {
        let witness = fs::read_to_string(self.witness());
        assert!(witness.is_err(), "something ran outside of the sandbox: {witness:?}");
    }
}

fn output_of(mut command: Command) -> CommandOutput {
    let output = command.output().expect("the binary can be run");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=A Person", "-c", "user.email=a@b.example"]);
    let output = command.args(arguments).output().expect("git can be run");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository whose files are all committed.
fn init(folder: &Path) {
    git(folder, &["init", "--quiet", "--initial-branch=main"]);
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    git(folder, &["config", "user.name", "A Person"]);
    git(folder, &["config", "user.email", "a@b.example"]);
}

/// Serves texts from a named pipe, the last one for ever.
struct PipeServer(Arc<AtomicBool>, PathBuf);

impl PipeServer {
    fn start(pipe: PathBuf, texts: Vec<String>) -> Self {
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, path) = (stop.clone(), pipe.clone());
        thread::spawn(move || {
            for at in 0.. {
                let Ok(mut writer) = fs::OpenOptions::new().write(true).open(&path) else { return };
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // The reader may be gone.
                let _ = writer.write_all(texts[texts.len().min(at + 1) - 1].as_bytes());
                drop(writer);
                // Lets the reader see the end before the next text.
                thread::sleep(Duration::from_millis(20));
            }
        });
        PipeServer(stop, pipe)
    }
}

impl Drop for PipeServer {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        // Wakes the writer that waits for a reader.
        let _ = Command::new("timeout").args(["1", "cat"]).arg(&self.1).output();
    }
}

#[test]
fn settings_that_change_between_two_looks_run_nothing() {
    // How many looks are harmless, and the next ones are not.
    for harmless in 1..4 {
        let Some(repository) = Repository::new() else { return };
        let pipe = repository.sandbox.work().join(".git/more");
        let attack = format!(
            "[filter \"x\"]\n\tclean = \"{0}\"\n\tsmudge = \"{0}\"\n[core]\n\tfsmonitor = \"{0}\"\n",
            repository.betrayal()
        );
        let texts = std::iter::repeat_n("[a]\n\tb = c\n".to_owned(), harmless).chain([attack]);
        let _server = PipeServer::start(pipe, texts.collect());
        repository.write("work/.git/info/attributes", "* filter=x\n");
        let config = repository.sandbox.work().join(".git/config");
        let mut file = fs::OpenOptions::new().append(true).open(config).expect("the settings");
        file.write_all(b"[include]\n\tpath = more\n").expect("the settings");
        let ran = repository.run(&["request", "Hi", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        repository.assert_nothing_ran();
    }
}

#[test]
fn a_git_that_the_workspace_brings_along_never_runs() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    for name in ["git", "bash", "sh"] {
        let script = format!("env > {}; exec /usr/bin/{name} \"$@\"", repository.witness().display());
        repository.program(&format!("work/.venv/bin/{name}"), &script);
    }
    let work = repository.sandbox.work();
    symlink(work.join(".venv/bin"), work.with_file_name("tools")).expect("a link");
    let usual = std::env::var("PATH").expect("a PATH");
    for entry in [
        work.join(".venv/bin").display().to_string(),
        ".venv/bin".into(),
        "../tools".into(),
        work.with_file_name("tools").display().to_string(),
    ] {
        let path = format!("{entry}:{usual}");
        for args in [&["request", "Hi"][..], &["-p", "Hi", "--no-session"], &["commit", "--print"]] {
            let mut command = repository.command(args);
            let ran = output_of({
                command.env("PATH", &path);
                command
            });
            assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
            repository.assert_nothing_ran();
        }
    }
    assert!(repository.request().0.contains("## main"), "the status is told");
}

#[test]
fn to_print_a_commit_message_nothing_runs_outside() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let betrayal = repository.betrayal();
    repository.write("work/.git/info/attributes", "* filter=x diff=x\n");
    for key in [
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.process",
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
        "gpg.program",
        "core.pager",
        "pager.diff",
        "pager.log",
        "core.editor",
        "core.alternateRefsCommand",
        "core.sshCommand",
        "credential.helper",
        "interactive.diffFilter",
    ] {
        repository.git(&["config", key, &betrayal]);
    }
    repository.git(&["config", "log.showSignature", "true"]);
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman", "reference-transaction"] {
        repository.program(&format!("work/.git/hooks/{hook}"), &betrayal);
    }
    let before = fs::read(repository.sandbox.work().join(".git/index")).expect("the index");
    let ran = repository.run(&["commit", "--print"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"feat(ring): add a buffer\n"[..]), "{}", ran.stderr);
    repository.assert_nothing_ran();
    assert_eq!(fs::read(repository.sandbox.work().join(".git/index")).expect("the index"), before);
}

#[test]
fn hooks_commit_in_the_sandbox_without_keys() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let keys = repository.write("config/keys.toml", "openai = \"another-key\"\n");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).expect("its mode");
    let script = format!(
        "env > seen; cat {} >> seen; cat /proc/$PPID/environ >> seen; tr '\\0' '\\n' < /proc/*/environ >> seen; echo out > {}; printf '\\033]0;title\\007checked'",
        keys.display(),
        repository.witness().display()
    );
    for hook in ["pre-commit", "commit-msg", "post-commit"] {
        repository.program(&format!("work/.git/hooks/{hook}"), &script);
    }
    let mut command = repository.command(&["commit", "--yes"]);
    command.env("OTHER_TOKEN", "the-other-token");
    let ran = output_of(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("checked") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    repository.assert_nothing_ran();
    let seen = fs::read_to_string(repository.sandbox.work().join("seen")).expect("the hook ran");
    assert!(seen.contains("PATH="), "{seen}");
    for secret in [KEY, "the-other-token", "another-key"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
}

#[test]
fn a_commit_is_the_user_s_own() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    repository.git(&["config", "--unset", "user.name"]);
    repository.git(&["config", "--unset", "user.email"]);
    repository.write("home/.gitconfig", "[include]\n\tpath = more\n[user]\n\tname = The User\n");
    repository.write("home/more", "[user]\n\temail = user@home.example\n");
    let ran = repository.run(&["commit", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut log = Command::new("git");
    log.arg("-C").arg(repository.sandbox.work()).args(["log", "-1", "--format=%an <%ae> %s"]);
    let log = log.output().expect("git").stdout;
    assert_eq!(String::from_utf8_lossy(&log), "The User <user@home.example> feat(ring): add a buffer\n");
    // Keys are out of reach, so nothing is committed without the signature that the user wants.
    repository.git(&["rm", "--quiet", "--cached", "b.txt"]);
    repository
        .write("home/.gitconfig", "[commit]\n\tgpgSign = true\n[user]\n\tname = U\n\temail = u@h.example\n");
    let ran = repository.run(&["commit", "--yes"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]));
    assert!(ran.stderr.contains("sign commits") && ran.stderr.contains("git commit -F -"), "{}", ran.stderr);
    assert_eq!(repository.run(&["commit", "--print"]).code, Some(0));
}

#[test]
fn a_hook_in_a_linked_work_tree_changes_nothing_of_the_others() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    let linked = repository.sandbox.work().with_file_name("linked");
    repository.git(&["config", "core.hooksPath", ".hooks"]);
    repository.git(&["worktree", "add", "--quiet", "-b", "other", &linked.display().to_string()]);
    let common = repository.sandbox.work().join(".git");
    let attack = format!(
        "echo ran > ran; echo x > {0}/hooks/pre-push; echo '[a]' >> {0}/config; mkdir {0}/new; mv {0}/config {0}/old; exit 0",
        common.display()
    );
    repository.program("linked/.hooks/pre-commit", &attack);
    fs::write(linked.join("c.txt"), "c\n").expect("a file");
    git(&linked, &["add", "c.txt"]);
    let before = fs::read(common.join("config")).expect("the settings");
    let ran = repository.run(&["commit", "--yes", "--dir", "../linked"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(linked.join("ran").exists(), "the hook ran");
    assert_eq!(fs::read(common.join("config")).expect("the settings"), before);
    assert!(!common.join("hooks/pre-push").exists() && !common.join("new").exists());
    let log = Command::new("git").arg("-C").arg(&linked).args(["log", "-1", "--format=%s"]).output();
    assert_eq!(String::from_utf8_lossy(&log.expect("git").stdout), "feat(ring): add a buffer\n");
}

#[test]
fn pipes_in_the_place_of_a_repository_s_files_hold_nothing_up() {
    let Some(repository) = Repository::new() else { return };
    for name in ["config", "HEAD"] {
        let path = repository.sandbox.work().join(".git").join(name);
        let kept = fs::read(&path).expect("a file");
        fs::remove_file(&path).expect("a file");
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
        // Git, which would wait for the pipe, is not asked.
        let shown = repository.run(&["context"]).stdout;
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains("is no repository") && !shown.contains("in time"), "{name}: {shown}");
        fs::remove_file(&path).expect("a pipe");
        fs::write(&path, kept).expect("a file");
    }
}

#[test]
fn a_user_who_wants_no_sandbox_gets_git_as_it_is() {
    let Some(repository) = Repository::new() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "sandbox = \"off\"");
    repository.program("work/.git/hooks/pre-commit", &repository.betrayal());
    let signer = repository
        .program("home/signer", "cat > /dev/null; echo SIGNATURE; echo '[GNUPG:] SIG_CREATED ' >&2");
    let settings = format!("[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {}\n", signer.display());
    repository.write("home/.gitconfig", &settings);
    let ran = repository.run(&["commit", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = Command::new("git")
        .arg("-C")
        .arg(repository.sandbox.work())
        .args(["cat-file", "-p", "HEAD"])
        .output();
    assert!(String::from_utf8_lossy(&log.expect("git").stdout).contains("SIGNATURE"));
    let seen = fs::read_to_string(repository.witness()).expect("the hook ran, outside of a sandbox");
    assert!(!seen.contains(KEY), "{seen}");
    // To look at the repository, still nothing runs.
    fs::remove_file(repository.witness()).expect("a file");
    repository.git(&["config", "core.fsmonitor", &repository.betrayal()]);
    assert!(repository.request().0.contains("## main"));
    repository.assert_nothing_ran();
}

#[test]
fn the_editor_is_the_user_s_and_the_message_goes_through_no_link() {
    let Some(repository) = Repository::new() else { return };
    let Some(()) = support::script_program() else { return };
    let _provider = Provider::start(&repository.sandbox, WRITER, "");
    repository.git(&["config", "core.editor", &repository.betrayal()]);
    let precious = repository.write("home/precious", "precious\n");
    let message = repository.sandbox.work().join(".git/COMMIT_EDITMSG");
    fs::remove_file(&message).expect("the last message");
    symlink(&precious, message).expect("a link");
    let inner = repository.sandbox.command(&["commit"]);
    let line = format!("{} commit", inner.get_program().to_string_lossy());
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(repository.sandbox.work()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let seen = repository.sandbox.work().with_file_name("editor-saw");
    let editor = repository
        .program("home/editor", &format!("env > {}; sed -i s/buffer/queue/ \"$1\"", seen.display()));
    command.env("ANTHROPIC_API_KEY", KEY).env("EDITOR", editor);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it can be run");
    child.stdin.take().expect("it is piped").write_all(b"e\nn\n").expect("it reads");
    let shown = child.wait_with_output().expect("it ends").stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("feat(ring): add a queue"), "{shown}");
    repository.assert_nothing_ran();
    assert_eq!(fs::read_to_string(precious).expect("a file"), "precious\n");
    assert!(!fs::read_to_string(seen).expect("the editor ran").contains(KEY));
}

#[test]
fn the_status_tells_of_no_other_repository() {
    let Some(repository) = Repository::new() else { return };
    let private = repository.write("home/private/the-private-name", "");
    let private = private.parent().expect("a folder").to_owned();
    init(&private);
    fs::write(private.join("the-private-news"), "").expect("a file");
    let work = repository.sandbox.work();
    let (dot_git, kept) = (work.join(".git"), work.with_file_name("kept"));
    let private_git = private.join(".git");
    type Attack<'a> = (&'a str, &'a dyn Fn());
    let attacks: [Attack; 6] = [
        ("core.worktree", &|| repository.git(&["config", "core.worktree", &private.display().to_string()])),
        ("commondir", &|| {
            fs::write(dot_git.join("commondir"), private_git.display().to_string()).expect("a file");
        }),
        ("the index of others", &|| {
            fs::remove_file(dot_git.join("index")).expect("the index");
            symlink(private_git.join("index"), dot_git.join("index")).expect("a link");
        }),
        ("the objects of others", &|| {
            fs::rename(dot_git.join("objects"), work.join("objects")).expect("a folder");
            symlink(private_git.join("objects"), dot_git.join("objects")).expect("a link");
        }),
        ("a file", &|| {
            fs::remove_dir_all(&dot_git).expect("a folder");
            fs::write(&dot_git, format!("gitdir: {}", private_git.display())).expect("a file");
        }),
        ("a link", &|| {
            fs::remove_dir_all(&dot_git).expect("a folder");
            symlink(&private_git, &dot_git).expect("a link");
        }),
    ];
    let copy = |from: &Path, to: &Path| {
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(copied.expect("cp").success());
    };
    copy(&dot_git, &kept);
    for (name, attack) in attacks {
        attack();
        let (body, _) = repository.request();
        assert!(!body.contains("the-private-n"), "{name}: {body}");
        let ran = repository.run(&["commit", "--print"]);
        assert!(!format!("{ran:?}").contains("the-private-n"), "{name}: {ran:?}");
        let context = repository.run(&["context"]);
        let shown = String::from_utf8_lossy(&context.stdout);
        assert!(shown.contains("git status"), "{name}: a word about it: {shown}");
        let _ = fs::remove_dir_all(&dot_git).or_else(|_| fs::remove_file(&dot_git));
        let _ = fs::remove_dir_all(work.join("objects"));
        copy(&kept, &dot_git);
    }
    assert!(repository.request().0.contains("## main"));
    // As a hook that starts Hardpan would have it.
    let mut command = repository.command(&["request", "Hi", "--json"]);
    command.env("GIT_DIR", &private_git).env("GIT_WORK_TREE", &private).env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "core.worktree").env("GIT_CONFIG_VALUE_0", &private);
    let body = output_of(command).stdout;
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("## main") && !body.contains("the-private-n"), "{body}");
}

#[test]
fn work_trees_and_the_user_s_ignore_file_work_in_the_sandbox() {
    let Some(repository) = Repository::new() else { return };
    repository.write("home/.config/git/ignore", "*.ignored\n");
    let linked = repository.sandbox.work().with_file_name("linked");
    repository.git(&["worktree", "add", "--quiet", "-b", "other", &linked.display().to_string()]);
    fs::write(linked.join("news.txt"), "").expect("a file");
    fs::write(linked.join("noise.ignored"), "").expect("a file");
    let ran = repository.run(&["request", "Hi", "--json", "--dir", "../linked"]);
    let body = String::from_utf8_lossy(&ran.stdout);
    assert!(body.contains("## other") && body.contains("?? news.txt"), "{body}");
    assert!(!body.contains("noise.ignored"), "{body}");
}

#[test]
fn a_repository_that_a_command_removes_leads_to_no_repository_above() {
    let Some(repository) = Repository::new() else { return };
    repository.write("work/the-upper-name", "");
    let inner = repository.write("work/inner/file.txt", "").parent().expect("a folder").to_owned();
    init(&inner);
    let script = "
turns:
  - {when: {contains: Remove it}, tool_calls: [{name: bash, arguments: {command: 'rm -rf .git; ls -a'}}]}
  - {when: {contains: the-upper-name}, text: LEAKED}
default: {text: Done.}
";
    let _provider = Provider::start(&repository.sandbox, script, "");
    let ran = repository.run(&["-p", "Remove it", "--yes", "--dir", "inner"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"Done.\n"[..]), "{}", ran.stderr);
    assert!(!inner.join(".git").exists());
}
