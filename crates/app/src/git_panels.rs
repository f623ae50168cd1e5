//! [`GitTool`]: read-only git commands whose output stays in view, as panels that follow the
//! repository.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::read_only_words;
use hardpan_panels::PanelRegistry;
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome, parse_arguments};
use hardpan_workspace::{Changes, Git, GitConfinement, WorkspaceWatch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command_panels::{
    CommandPanelError, CommandSource, MAX_BYTES, full_line, open_panel, register_opener,
};
use crate::gather::FolderWatch;
use crate::repository_programs::names_programs;

/// Subcommands that tell of commits and branches, and nothing of the work tree.
const HISTORY_COMMANDS: [&str; 12] = [
    "branch",
    "cat-file",
    "for-each-ref",
    "log",
    "ls-tree",
    "merge-base",
    "reflog",
    "rev-list",
    "shortlog",
    "show",
    "show-ref",
    "tag",
];

/// Runs git and says whether the repository changed.
pub struct GitReader {
    /// Runs where it can write nothing.
    pub git: Arc<Git>,
    /// The work tree.
    pub root: PathBuf,
    /// The watch of it.
    pub watch: Arc<FolderWatch>,
}

impl GitReader {
    /// Fails if git would run programs that the repository names outside of the sandbox.
    pub(crate) fn check_programs(&self) -> Result<(), CommandPanelError> {
        let is_free = matches!(self.git.confinement(), GitConfinement::None);
        if is_free && names_programs(&self.root) { Err(CommandPanelError::NamesPrograms) } else { Ok(()) }
    }
}

impl CommandSource for GitReader {
    const PROGRAM: &'static str = "git";

    fn read_only_words(line: &str) -> Option<Vec<String>> {
        read_only_words(line).filter(|words| words.first().is_some_and(|first| first == Self::PROGRAM))
    }

    fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, CommandPanelError> {
        self.check_programs()?;
        Ok(self.git.read(arguments, MAX_BYTES)?)
    }

    fn watch(&self) -> Option<&Arc<WorkspaceWatch>> {
        self.watch.running()
    }

    fn is_affected_by(line: &str, changes: &Changes) -> bool {
        let subcommand = line.split_whitespace().nth(1).unwrap_or_default();
        let needs_work_tree = !HISTORY_COMMANDS.contains(&subcommand);
        changes.everything || changes.repository || needs_work_tree && changes.affect_status()
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
        register_opener(registry, &reader);
        let declaration = Declaration {
            name: GitReader::PROGRAM.into(),
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
        let line = full_line(GitReader::PROGRAM, &command);
        if GitReader::read_only_words(&line).is_none() {
            return Err(ToolOutcome::failed(format!(
                "`{line}` is not known to only read: run it with bash, where it needs approval."
            )));
        }
        open_panel(&self.registry, &self.reader, line).await
    }
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
        let command = arguments["command"].as_str();
        command.map_or(CallSubject::Other, |line| CallSubject::Command(full_line(GitReader::PROGRAM, line)))
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Command
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.open(&call).await.unwrap_or_else(|failed| failed) })
    }
}
