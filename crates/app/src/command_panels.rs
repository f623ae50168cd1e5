//! [`CommandPanel`]: the output of a command that only reads, as a panel that follows the repository. A
//! [`CommandSource`] says which commands those are, and runs them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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

    /// The words of a line, if it is one plain command of the program that only reads.
    fn read_only_words(line: &str) -> Option<Vec<String>>;

    /// Runs such a command. The first of the arguments follows the program.
    fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, CommandPanelError>;

    /// The watch of the repository, if it runs.
    fn watch(&self) -> Option<&Arc<WorkspaceWatch>>;

    /// Whether the output may be another one after these changes.
    fn is_affected_by(changes: &Changes) -> bool;
}

/// The output of a command.
struct CommandPanel<S> {
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
        CommandPanel { key, line, source, revision: Revision::default(), reading }
    }

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
        let before = (reading.output.clone(), reading.failure.clone());
        reading.tried_at = Some(now);
        match &result {
            Ok(output) => {
                (reading.output, reading.failure) = (output.clone(), None);
                reading.read_at = Some(now);
            }
            Err(error) => reading.failure = Some(error.to_string()),
        }
        if before != (reading.output.clone(), reading.failure.clone()) {
            self.revision.bump();
        }
        result.map(drop)
    }
}

impl<S: CommandSource> Panel for CommandPanel<S> {
    fn key(&self) -> &str {
        &self.key
    }

    fn title(&self) -> String {
        self.line.clone()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Watched
    }

    fn volatility(&self) -> Volatility {
        Volatility::Active
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let reading = self.lock();
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
        let is_current = {
            let mut reading = self.lock();
            let age = reading.tried_at.map(|tried| context.now.as_second().saturating_sub(tried.as_second()));
            // A clock that was set back makes it old, too.
            let is_young = age.is_some_and(|age| (0..MAX_AGE_SECONDS).contains(&age));
            let unchanged = self
                .source
                .watch()
                .is_some_and(|watch| !S::is_affected_by(&watch.changes_since(&mut reading.position)));
            is_young && (unchanged || reading.failure.is_some())
        };
        if !is_current {
            // A failure is shown in the panel.
            let _ = self.read(context.now);
        }
    }

    fn save(&self) -> Option<Value> {
        serde_json::to_value(StoredPanel { line: self.line.clone(), output: self.lock().output.clone() }).ok()
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
    let reading = panel.clone();
    let read = tokio::task::spawn_blocking(move || reading.read(now())).await;
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
