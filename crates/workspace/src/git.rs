//! [`git_status`] and [`find_project_root`]: the repository, the branch and the changes. Git is run
//! with limits on time and output.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longer than a warm status of the largest repositories takes, shorter than a person waits.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Enough for some 1,000 changed files; more would only fill the context window.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// Limit for listing the configuration, which has some hundred names.
const CONFIG_LIMIT: usize = 1024 * 1024;

/// The branch and the changed files, as `git status --short --branch` prints them; `None` if git is
/// absent or the folder is not in a repository. If git takes longer than 5 seconds or prints more
/// than 64 KiB, the text says so.
///
/// Git writes nothing, and runs no program that the repository names: no file monitor, no filter,
/// no transport for missing objects. Filters from the user's own configuration do run. Changes
/// within submodules are not reported, since a submodule could name programs, too.
pub fn git_status(root: &Path) -> Option<String> {
    let filters = repository_filters(root)?;
    let mut command = git_command(root);
    command.args(["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]).args([
        "status",
        "--porcelain=v1",
        "--branch",
        "--untracked-files=normal",
        "--ignore-submodules=dirty",
    ]);
    // By variables, not by `-c`, because a name may contain an equals sign. Variables that are
    // already set stay.
    let set = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0_usize);
    for (at, key) in filters.iter().enumerate() {
        let at = set + at;
        command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), "");
    }
    command.env("GIT_CONFIG_COUNT", (set + filters.len()).to_string());
    match run_bounded(command, TIME_LIMIT, OUTPUT_LIMIT) {
        CommandOutput::Whole(text) => Some(text),
        CommandOutput::Truncated(text) => {
            Some(format!("{text}(cut here: git status printed more than 64 KiB)\n"))
        }
        CommandOutput::TimedOut => Some("(git status was stopped after 5 seconds)\n".into()),
        CommandOutput::Failed => None,
    }
}

/// A git command that only looks: it writes nothing, prompts for nothing and fetches nothing.
fn git_command(root: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("--no-pager")
        .current_dir(root)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A partial clone would fetch what it lacks, by a command that its configuration may name.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("LC_ALL", "C");
    // Set if a git hook started us; they would point git at the hook's repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command
}

/// The settings by which the repository itself names filters: programs that git runs on files when
/// it compares them. `None` if the configuration cannot be read.
fn repository_filters(root: &Path) -> Option<Vec<String>> {
    let mut command = git_command(root);
    command.args(["config", "--show-scope", "-z", "--list", "--name-only"]);
    let CommandOutput::Whole(listed) = run_bounded(command, TIME_LIMIT, CONFIG_LIMIT) else { return None };
    let mut fields = listed.split('\0');
    let mut filters = Vec::new();
    while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
        let runs = [".clean", ".process", ".required"].iter().any(|end| name.ends_with(end));
        if name.starts_with("filter.") && runs && !matches!(scope, "system" | "global" | "command") {
            filters.push(name.to_owned());
        }
    }
    Some(filters)
}

#[derive(Debug, PartialEq)]
enum CommandOutput {
    /// Everything it printed.
    Whole(String),
    /// The complete lines within the limit.
    Truncated(String),
    /// It was killed because the time ran out.
    TimedOut,
    /// It could not be started, or exited with an error.
    Failed,
}

fn run_bounded(mut command: Command, time: Duration, limit: usize) -> CommandOutput {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = spawned else { return CommandOutput::Failed };
    let Some(stdout) = child.stdout.take() else { return CommandOutput::Failed };

    // A thread reads, so that waiting can end before the output does.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(limit as u64 + 1).read_to_end(&mut bytes);
        // Nobody listens any more if the time ran out.
        let _ = sender.send(read.map(|_| bytes));
    });

    let received = receiver.recv_timeout(time);
    let whole = matches!(&received, Ok(Ok(bytes)) if bytes.len() <= limit);
    if !whole {
        let _ = child.kill(); // an error means that it has ended by itself
    }
    match received {
        Ok(Ok(bytes)) if whole => match child.wait() {
            Ok(status) if status.success() => {
                CommandOutput::Whole(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => CommandOutput::Failed,
        },
        cut_or_late => {
            // Reaped on another thread: a process stuck in the kernel survives even SIGKILL.
            thread::spawn(move || child.wait());
            match cut_or_late {
                Ok(Ok(bytes)) => CommandOutput::Truncated(whole_lines(&bytes[..limit])),
                Ok(Err(_)) => CommandOutput::Failed,
                Err(_) => CommandOutput::TimedOut,
            }
        }
    }
}

fn whole_lines(bytes: &[u8]) -> String {
    let end = memchr::memrchr(b'\n', bytes).map_or(0, |newline| newline + 1);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The root of the git repository that contains `path` (absolute): the nearest folder upwards with
/// a `.git` folder or file. `path` itself if there is none.
pub fn find_project_root(path: &Path) -> PathBuf {
    path.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let status = Command::new("git").arg("-C").arg(folder).args(arguments).status();
        assert!(status.unwrap().success());
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_branch_and_the_changes_are_told() {
        let folder = tempdir().unwrap();
        git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a b.rs"), "").unwrap();
        fs::write(folder.path().join("ü"), "").unwrap();
        git(folder.path(), &["add", "src"]);
        let expected = "## No commits yet on main\nA  \"src/a b.rs\"\n?? ü\n";
        assert_eq!(git_status(folder.path()).as_deref(), Some(expected));
        assert_eq!(git_status(&folder.path().join("src")).as_deref(), Some(expected));
    }

    #[test]
    fn a_folder_that_is_no_repository_or_missing_has_no_status() {
        let folder = tempdir().unwrap();
        assert_eq!(git_status(folder.path()), None);
        assert_eq!(git_status(&folder.path().join("none")), None);
    }

    #[test]
    fn the_status_runs_no_file_monitor() {
        let folder = tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]);
        let witness = folder.path().join("witness");
        git(folder.path(), &["config", "core.fsmonitor", &format!("touch {} #", witness.display())]);
        assert!(git_status(folder.path()).is_some());
        assert!(!witness.exists());
    }

    #[test]
    fn the_status_runs_no_filter_that_the_repository_names() {
        let folder = tempdir().unwrap();
        let witness = folder.path().join(".git/witness");
        git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
        fs::write(folder.path().join("a"), "text\n").unwrap();
        git(folder.path(), &["add", "a"]);
        fs::write(folder.path().join(".git/info/attributes"), "a filter=x=y\n").unwrap();
        // Of the same length, so that git has to look into it.
        let changed = || fs::write(folder.path().join("a"), "TEXT\n").unwrap();
        for (key, required) in [("clean", "false"), ("process", "false"), ("clean", "true")] {
            git(folder.path(), &["config", "filter.x=y.required", required]);
            let program = format!("touch {}; cat", witness.display());
            git(folder.path(), &["config", &format!("filter.x=y.{key}"), &program]);
            changed();
            let expected = "## No commits yet on main\nAM a\n";
            assert_eq!(git_status(folder.path()).as_deref(), Some(expected), "{key}");
            assert!(!witness.exists(), "{key}");
        }
        // It would have been run.
        git(folder.path(), &["config", "--unset", "filter.x=y.process"]);
        git(folder.path(), &["status", "--short"]);
        assert!(witness.exists());
    }

    #[test]
    fn the_status_fetches_nothing_that_a_partial_clone_lacks() {
        let folder = tempdir().unwrap();
        let witness = folder.path().join(".git/witness");
        git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
        fs::write(folder.path().join("a"), "some text\n".repeat(50)).unwrap();
        git(folder.path(), &["add", "a"]);
        git(folder.path(), &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"]);
        git(folder.path(), &["mv", "a", "b"]);
        fs::write(folder.path().join("b"), "some text\n".repeat(51)).unwrap();
        git(folder.path(), &["add", "b"]);
        // What was committed is missing, and would be fetched to tell whether the file was renamed.
        let object = Command::new("git").arg("-C").arg(folder.path()).args(["rev-parse", "HEAD:a"]).output();
        let object = String::from_utf8(object.unwrap().stdout).unwrap();
        let (start, rest) = object.trim().split_at(2);
        fs::remove_file(folder.path().join(".git/objects").join(start).join(rest)).unwrap();
        for (key, value) in [
            ("core.repositoryFormatVersion", "1".to_owned()),
            ("extensions.partialClone", "origin".to_owned()),
            ("remote.origin.promisor", "true".to_owned()),
            ("remote.origin.url", folder.path().display().to_string()),
            ("remote.origin.uploadpack", format!("touch {}; false", witness.display())),
        ] {
            git(folder.path(), &["config", key, &value]);
        }
        git_status(folder.path());
        assert!(!witness.exists());
        // It would have been run.
        let status = Command::new("git").arg("-C").arg(folder.path()).args(["status", "--short"]).output();
        assert!(status.is_ok() && witness.exists());
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let time = Duration::from_millis(20);
        assert_eq!(run_bounded(shell("exec sleep 600"), time, 100), CommandOutput::TimedOut);
        // One that leaves a child behind, which holds the output open.
        assert_eq!(run_bounded(shell("sleep 3 & wait"), time, 100), CommandOutput::TimedOut);
    }

    #[test]
    fn endless_output_is_cut_after_a_line() {
        assert_eq!(
            run_bounded(shell("exec yes abc"), TIME_LIMIT, 10),
            CommandOutput::Truncated("abc\nabc\n".into())
        );
    }

    #[test]
    fn a_program_that_fails_or_is_absent_says_nothing() {
        assert_eq!(run_bounded(shell("echo x; exit 1"), TIME_LIMIT, 10), CommandOutput::Failed);
        assert_eq!(
            run_bounded(Command::new("no-such-program-anywhere"), TIME_LIMIT, 10),
            CommandOutput::Failed
        );
        assert_eq!(
            run_bounded(shell("printf 1234567890"), TIME_LIMIT, 10),
            CommandOutput::Whole("1234567890".into())
        );
    }

    #[test]
    fn the_root_is_the_nearest_folder_with_a_git_folder_or_file() {
        let folder = tempdir().unwrap();
        let inner = folder.path().join("module/src");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(find_project_root(&inner), inner);
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(find_project_root(&inner), folder.path());
        fs::write(folder.path().join("module/.git"), "gitdir: ../.git/modules/module").unwrap();
        assert_eq!(find_project_root(&inner), folder.path().join("module"));
    }
}
