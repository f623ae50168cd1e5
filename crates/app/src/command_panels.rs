//! [`CommandPanel`]: the output of a command that only reads, as a panel that follows the repository. A
//! [`CommandSource`] says which commands those are, and runs them.
//!
//! A request waits a moment for a command that must run again. If that is not enough, it shows the former
//! output with its age, and the command goes on: a later request has what it prints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use hardpan_panels::{Panel, PanelRegistry, RefreshContext, RefreshStrategy, Revision};
use hardpan_prompt::Volatility;
use hardpan_tools::{ToolOutcome, clean_output};
use hardpan_workspace::{Changes, GitError, GitHubError, WatchPosition, WorkspaceWatch};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::now;

/// The most bytes of an output that are kept.
pub(crate) const MAX_BYTES: usize = 256 * 1024;
/// After this time an output is read again, whatever is known of the repository.
const MAX_AGE_SECONDS: i64 = 120;

/// Why a panel has no output, or only an old one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandPanelError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error("the repository's settings name programs that git would run, and there is no sandbox for them")]
    NamesPrograms,
    #[error("`{0}` is not known to only read")]
    NotReadOnly(String),
}

/// A program whose commands become panels.
pub(crate) trait CommandSource: Send + Sync + 'static {
    /// The program, as lines begin with it. Also what stands before the colon in the keys of its panels.
    const PROGRAM: &'static str;

    /// How long a request waits for a command.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// The words of a line, if it is one plain command of the program that only reads.
    fn read_only_words(line: &str) -> Option<Vec<String>>;

    /// Runs such a command. The first of the arguments follows the program.
    fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, CommandPanelError>;

    /// The watch of the repository, if it runs.
    fn watch(&self) -> Option<&Arc<WorkspaceWatch>>;

    /// Whether the output of a line may be another one after these changes.
    fn is_affected_by(line: &str, changes: &Changes) -> bool;
}

/// The output of a command.
struct CommandPanel<S>(Arc<CommandState<S>>);

struct CommandState<S> {
    key: String,
    line: String,
    source: Arc<S>,
    revision: Revision,
    reading: Mutex<Reading>,
}

#[derive(Default)]
struct Reading {
    output: String,
    read_at: Option<Timestamp>,
    /// When it was last tried, and why that failed.
    tried_at: Option<Timestamp>,
    failure: Option<String>,
    /// Whether the command is running.
    is_running: bool,
    /// Whether something changed since it was started.
    is_outdated: bool,
    position: WatchPosition,
}

/// What is stored of a panel.
#[derive(Serialize, Deserialize)]
struct StoredPanel {
    line: String,
    output: String,
}

impl<S: CommandSource> CommandPanel<S> {
    fn new(key: String, line: String, source: Arc<S>, output: String) -> Self {
        let reading = Mutex::new(Reading { output, ..Reading::default() });
        CommandPanel(Arc::new(CommandState { key, line, source, revision: Revision::default(), reading }))
    }
}

impl<S: CommandSource> CommandState<S> {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> Result<String, CommandPanelError> {
        let words = S::read_only_words(&self.line);
        let words = words.ok_or_else(|| CommandPanelError::NotReadOnly(self.line.clone()))?;
        let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        Ok(output_text(&self.source.read(&arguments)?))
    }

    /// Reads the output again. If that fails, the former one stays, with its age.
    fn read(&self, now: Timestamp) -> Result<(), CommandPanelError> {
        let result = self.run();
        let mut reading = self.lock();
        reading.is_running = false;
        reading.tried_at = Some(now);
        if result.is_ok() {
            reading.read_at = Some(now);
        }
        let (output, failure) = match &result {
            Ok(output) => (output.clone(), None),
            Err(error) => (reading.output.clone(), Some(error.to_string())),
        };
        self.show(&mut reading, output, failure);
        result.map(drop)
    }

    fn show(&self, reading: &mut Reading, output: String, failure: Option<String>) {
        if (&reading.output, &reading.failure) != (&output, &failure) {
            (reading.output, reading.failure) = (output, failure);
            self.revision.bump();
        }
    }

    /// Whether the command must run again.
    fn is_due(&self, reading: &mut Reading, now: Timestamp) -> bool {
        let age = reading.tried_at.map(|tried| now.as_second().saturating_sub(tried.as_second()));
        // A clock that was set back makes it old, too.
        let is_young = age.is_some_and(|age| (0..MAX_AGE_SECONDS).contains(&age));
        let is_unchanged = self
            .source
            .watch()
            .is_some_and(|watch| !S::is_affected_by(&self.line, &watch.changes_since(&mut reading.position)));
        let is_outdated = !is_unchanged || std::mem::take(&mut reading.is_outdated);
        !is_young || is_outdated && reading.failure.is_none()
    }

    /// Runs the command again, and waits for it as long as a request may. What takes longer goes on.
    fn refresh(self: &Arc<Self>, now: Timestamp) {
        {
            let mut reading = self.lock();
            if reading.is_running {
                // What it prints may be of before a change: it runs once more when it has ended.
                reading.is_outdated = true;
                return;
            }
            if !self.is_due(&mut reading, now) {
                return;
            }
            reading.is_running = true;
        }
        let (ended, end) = mpsc::channel();
        let state = self.clone();
        let work = move || {
            // A failure is shown in the panel.
            let _ = state.read(now);
            let _ = ended.send(());
        };
        let has_started = std::thread::Builder::new().name("panel".into()).spawn(work).is_ok();
        if end.recv_timeout(S::PATIENCE).is_ok() {
            return;
        }
        let mut reading = self.lock();
        if reading.is_running {
            reading.is_running = has_started;
            let output = reading.output.clone();
            self.show(&mut reading, output, Some("the command is still running".into()));
        }
    }
}

impl<S: CommandSource> Panel for CommandPanel<S> {
    fn key(&self) -> &str {
        &self.0.key
    }

    fn title(&self) -> String {
        self.0.line.clone()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Watched
    }

    fn volatility(&self) -> Volatility {
        Volatility::Active
    }

    fn revision(&self) -> u64 {
        self.0.revision.current()
    }

    fn render(&self) -> Option<String> {
        let reading = self.0.lock();
        Some(match (&reading.failure, reading.read_at) {
            (None, _) => reading.output.clone(),
            (Some(failure), None) => format!("{}(not read again: {failure})\n", reading.output),
            (Some(failure), Some(at)) => {
                format!(
                    "{}(as of {}, not read again since: {failure})\n",
                    reading.output,
                    at.strftime("%Y-%m-%dT%H:%M:%SZ")
                )
            }
        })
    }

    fn refresh(&self, context: &RefreshContext<'_>) {
        self.0.refresh(context.now);
    }

    fn save(&self) -> Option<Value> {
        let (line, output) = (self.0.line.clone(), self.0.lock().output.clone());
        serde_json::to_value(StoredPanel { line, output }).ok()
    }
}

/// Registers how the panels of a program come back when a conversation is resumed.
pub(crate) fn register_opener<S: CommandSource>(registry: &PanelRegistry, source: &Arc<S>) {
    let source = source.clone();
    registry.register_opener(
        S::PROGRAM,
        Arc::new(move |key, state| {
            let stored: StoredPanel = serde_json::from_value(state?.clone()).ok()?;
            S::read_only_words(&stored.line)?;
            Some(Arc::new(CommandPanel::new(key.to_owned(), stored.line, source.clone(), stored.output)))
        }),
    );
}

/// Runs a command and opens its output as a panel. The line is one that only reads.
pub(crate) async fn open_panel<S: CommandSource>(
    registry: &Weak<PanelRegistry>,
    source: &Arc<S>,
    line: String,
) -> Result<ToolOutcome, ToolOutcome> {
    let ended = || ToolOutcome::failed("The conversation has ended.");
    let registry = registry.upgrade().ok_or_else(ended)?;
    let key = format!("{}:{line}", S::PROGRAM);
    let panel = Arc::new(CommandPanel::new(key, line.clone(), source.clone(), String::new()));
    let state = panel.0.clone();
    let read = tokio::task::spawn_blocking(move || state.read(now())).await;
    read.map_err(|_| ended())?.map_err(|error| ToolOutcome::failed(format!("{error}.")))?;
    let id = registry.add(panel);
    Ok(ToolOutcome::text(format!("Opened '{line}' as {id}")))
}

/// The command with its program, which models leave out.
pub(crate) fn full_line(program: &str, command: &str) -> String {
    let command = command.trim();
    let has_program =
        command.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    if has_program { command.to_owned() } else { format!("{program} {command}") }
}

/// What a command printed, without control sequences, and with a note where it was cut.
pub(crate) fn output_text(bytes: &[u8]) -> String {
    let mut text = clean_output(&String::from_utf8_lossy(bytes));
    if bytes.len() >= MAX_BYTES {
        text.push_str("\n(cut here: the output is longer)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    use hardpan_tools::Scope;

    use super::*;

    /// Prints the file `output` once there is a file `go`, which it removes.
    struct SlowCommand(PathBuf);

    impl CommandSource for SlowCommand {
        const PROGRAM: &'static str = "slow";
        const PATIENCE: Duration = Duration::from_millis(50);

        fn read_only_words(line: &str) -> Option<Vec<String>> {
            Some(line.split_whitespace().map(str::to_owned).collect())
        }

        fn read(&self, _: &[&str]) -> Result<Vec<u8>, CommandPanelError> {
            let script = "until [ -e go ]; do sleep 0.01; done; rm go; cat output";
            let printed = Command::new("sh").args(["-c", script]).current_dir(&self.0).output();
            Ok(printed.unwrap().stdout)
        }

        fn watch(&self) -> Option<&Arc<WorkspaceWatch>> {
            None
        }

        fn is_affected_by(_: &str, _: &Changes) -> bool {
            true
        }
    }

    #[test]
    fn a_command_that_takes_long_is_shown_with_its_age_until_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let panel = CommandPanel::new(
            "slow:1".into(),
            "slow".into(),
            Arc::new(SlowCommand(root.clone())),
            String::new(),
        );
        let scope = Scope::new(&root, &root);
        let refresh = |second: i64| panel.refresh(&RefreshContext::new(&scope, at(second)));
        let wait_for_end = || {
            for _ in 0..6000 {
                if !panel.0.lock().is_running {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("the command has not ended");
        };
        write("output", "one\n");
        write("go", "");
        panel.0.read(at(1000)).unwrap();
        assert_eq!(panel.render().unwrap(), "one\n");

        // It must run again, and does not end in time.
        write("output", "two\n");
        refresh(1010);
        let old = "one\n(as of 1970-01-01T00:16:40Z, not read again since: the command is still running)\n";
        assert_eq!(panel.render().unwrap(), old);
        // The next request does not wait for it, and its panel is not rendered again.
        let revision = panel.revision();
        refresh(1020);
        assert_eq!((panel.render().unwrap().as_str(), panel.revision()), (old, revision));
        write("go", "");
        wait_for_end();
        assert_eq!(panel.render().unwrap(), "two\n");

        // Something changed while it ran: it runs once more, although it is young.
        write("output", "three\n");
        write("go", "");
        refresh(1030);
        wait_for_end();
        assert_eq!(panel.render().unwrap(), "three\n");
    }
}
