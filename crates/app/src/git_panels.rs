//! [`GitTool`]: read-only git commands whose output stays in view, as panels that follow the
//! repository.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::read_only_words;
use hardpan_panels::{Panel, PanelRegistry, RefreshContext, RefreshStrategy, Revision};
use hardpan_prompt::{Json, Tool as Declaration, Volatility};
use hardpan_tools::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome, parse_arguments};
use hardpan_workspace::{Git, GitConfinement, GitError, WatchPosition};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::now;
use crate::gather::FolderWatch;
use crate::repository_programs::names_programs;

/// What stands before the colon in the keys of these panels.
const KIND: &str = "git";
/// The most bytes of an output that are kept.
const MAX_BYTES: usize = 256 * 1024;
/// After this time an output is read again, whatever is known of the repository.
const MAX_AGE_SECONDS: i64 = 120;

/// Why a panel has no output, or only an old one.
#[derive(Debug, thiserror::Error)]
enum GitPanelError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the repository's settings name programs that git would run, and there is no sandbox for them")]
    NamesPrograms,
}

/// Runs git and says whether the repository changed.
pub struct GitReader {
    /// Runs where it can write nothing.
    pub git: Arc<Git>,
    /// The work tree.
    pub root: PathBuf,
    /// The watch of it.
    pub watch: Arc<FolderWatch>,
}

/// The output of a command.
struct GitPanel {
    key: String,
    line: String,
    reader: Arc<GitReader>,
    revision: Revision,
    reading: Mutex<GitReading>,
}

#[derive(Default)]
struct GitReading {
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

impl GitReader {
    fn run(&self, line: &str) -> Result<String, GitPanelError> {
        if matches!(self.git.confinement(), GitConfinement::None) && names_programs(&self.root) {
            return Err(GitPanelError::NamesPrograms);
        }
        let words = read_only_words(line).unwrap_or_default();
        let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let bytes = self.git.read(&arguments, MAX_BYTES)?;
        let is_cut = bytes.len() >= MAX_BYTES;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_cut {
            text.push_str("\n(cut here: the output is longer)\n");
        }
        Ok(text)
    }
}

impl GitPanel {
    fn lock(&self) -> MutexGuard<'_, GitReading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the output again. If that fails, the former one stays, with its age.
    fn read(&self, now: Timestamp) -> Result<(), GitPanelError> {
        let result = self.reader.run(&self.line);
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

impl Panel for GitPanel {
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
            let watch = self.reader.watch.running();
            let unchanged =
                watch.is_some_and(|watch| !watch.changes_since(&mut reading.position).affect_status());
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

/// The tool `git`.
pub struct GitTool {
    registry: Weak<PanelRegistry>,
    reader: Arc<GitReader>,
    declaration: Declaration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
}

impl GitTool {
    /// The tool for a conversation, whose panels come back when it is resumed.
    pub fn new(registry: &Arc<PanelRegistry>, reader: Arc<GitReader>) -> Self {
        let opener_reader = reader.clone();
        registry.register_opener(
            KIND,
            Arc::new(move |key, state| {
                let stored: StoredPanel = serde_json::from_value(state?.clone()).ok()?;
                read_only_words(&stored.line)?;
                Some(Arc::new(new_panel(key.to_owned(), stored.line, opener_reader.clone(), stored.output)))
            }),
        );
        let declaration = Declaration {
            name: KIND.into(),
            description: "Run a git command that only reads (log, diff, show, blame, branch, …) and keep its \
                output in view as a panel, which follows the repository. Commands that change something: bash."
                .into(),
            parameters: Json::new(&json!({
                "type": "object",
                "properties": {"command": {"type": "string", "description": "such as: git log --oneline -5"}},
                "required": ["command"],
            })),
            snippet: Some("keep the output of a git command in view".into()),
            guidelines: Vec::new(),
        };
        GitTool { registry: Arc::downgrade(registry), reader, declaration }
    }

    async fn open(&self, call: &ToolInvocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let Arguments { command } = parse_arguments(call)?;
        let line = full_line(&command);
        if read_only_words(&line).is_none_or(|words| words.first().is_none_or(|first| first != "git")) {
            return Err(ToolOutcome::failed(format!(
                "`{line}` is not known to only read: run it with bash, where it needs approval."
            )));
        }
        let ended = || ToolOutcome::failed("The conversation has ended.");
        let registry = self.registry.upgrade().ok_or_else(ended)?;
        let panel =
            Arc::new(new_panel(format!("{KIND}:{line}"), line.clone(), self.reader.clone(), String::new()));
        let reading = panel.clone();
        let read = tokio::task::spawn_blocking(move || reading.read(now())).await;
        read.map_err(|_| ended())?.map_err(|error| ToolOutcome::failed(format!("{error}.")))?;
        let id = registry.add(panel);
        Ok(ToolOutcome::text(format!("Opened '{line}' as {id}")))
    }
}

/// The command with its program, which models leave out.
fn full_line(command: &str) -> String {
    let command = command.trim();
    if command == "git" || command.starts_with("git ") {
        command.to_owned()
    } else {
        format!("git {command}")
    }
}

fn new_panel(key: String, line: String, reader: Arc<GitReader>, output: String) -> GitPanel {
    let reading = Mutex::new(GitReading { output, ..GitReading::default() });
    GitPanel { key, line, reader, revision: Revision::default(), reading }
}

impl Tool for GitTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        // Whatever would change something is refused.
        Effect::Reads
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        arguments["command"].as_str().map_or(CallSubject::Other, |line| CallSubject::Command(full_line(line)))
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Command
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.open(&call).await.unwrap_or_else(|failed| failed) })
    }
}
