//! [`GitHubTool`]: commands of `gh`. The output of those that only read stays in view, as panels; the
//! others run when the user allows them.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::{plain_command_words, read_only_github_words};
use hardpan_panels::PanelRegistry;
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome, parse_arguments};
use hardpan_workspace::{Changes, GITHUB_VARIABLES, GitHubCli, WorkspaceWatch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command_panels::{
    CommandPanelError, CommandSource, MAX_BYTES, full_line, open_panel, output_text, register_opener,
};
use crate::git_panels::GitReader;

/// Subcommands that concern gh itself, its token and its programs. No permission covers them.
const OWN_SUBCOMMANDS: [&str; 6] = ["alias", "auth", "codespace", "config", "extension", "help"];

/// Runs gh for the repository of a [`GitReader`].
pub(crate) struct GitHubReader {
    cli: GitHubCli,
    git: Arc<GitReader>,
}

impl GitHubReader {
    pub fn new(git: Arc<GitReader>) -> Self {
        let set = GITHUB_VARIABLES.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        GitHubReader { cli: GitHubCli::new(git.git.clone(), set.collect()), git }
    }

    pub fn is_installed(&self) -> bool {
        self.cli.is_installed()
    }

    fn change(&self, words: &[String], input: &str) -> Result<String, CommandPanelError> {
        self.git.check_programs()?;
        let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        Ok(output_text(&self.cli.change(&arguments, input, MAX_BYTES)?))
    }
}

impl CommandSource for GitHubReader {
    const PROGRAM: &'static str = "gh";

    fn read_only_words(line: &str) -> Option<Vec<String>> {
        read_only_github_words(line)
    }

    fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, CommandPanelError> {
        self.git.check_programs()?;
        Ok(self.cli.read(arguments, MAX_BYTES)?)
    }

    fn watch(&self) -> Option<&Arc<WorkspaceWatch>> {
        self.git.watch.running()
    }

    /// A commit or another branch may be another pull request. Files that are edited are not.
    fn is_affected_by(_line: &str, changes: &Changes) -> bool {
        changes.everything || changes.repository
    }
}

/// The tool `gh`.
pub(crate) struct GitHubTool {
    registry: Weak<PanelRegistry>,
    reader: Arc<GitHubReader>,
    declaration: Declaration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    input: String,
}

impl GitHubTool {
    /// The tool for a conversation, whose panels come back when it is resumed.
    pub fn new(registry: &Arc<PanelRegistry>, reader: Arc<GitHubReader>) -> Self {
        register_opener(registry, &reader);
        let declaration = Declaration {
            name: GitHubReader::PROGRAM.into(),
            description:
                "Run a command of GitHub's command line. The output of one that only reads (pr list, \
                pr view, issue list, run list, api with GET, …) stays in view as a panel; the user is asked \
                about others."
                    .into(),
            parameters: Json::new(&json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "such as: gh pr view 12 --comments"},
                    "input": {"type": "string", "description": "standard input, such as the text for --body-file -"},
                },
                "required": ["command"],
            })),
            snippet: Some("ask GitHub, and keep the answer in view".into()),
            guidelines: Vec::new(),
        };
        GitHubTool { registry: Arc::downgrade(registry), reader, declaration }
    }

    async fn call(&self, call: &ToolInvocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let Arguments { command, input } = parse_arguments(call)?;
        let line = full_line(GitHubReader::PROGRAM, &command);
        if GitHubReader::read_only_words(&line).is_some() && input.is_empty() {
            return open_panel(&self.registry, &self.reader, line).await;
        }
        let words = plain_command_words(&line).ok_or_else(|| {
            ToolOutcome::failed(
                "It must be one plain command, without pipes and redirections; texts of several lines belong \
                 into `input`, with --body-file -.",
            )
        })?;
        if words.get(1).is_none_or(|first| OWN_SUBCOMMANDS.contains(&&**first) || first.starts_with('-')) {
            return Err(ToolOutcome::failed(format!(
                "`{line}` concerns gh itself, which only the user sets up."
            )));
        }
        let reader = self.reader.clone();
        let changed = tokio::task::spawn_blocking(move || reader.change(&words, &input)).await;
        let changed = changed.map_err(|_| ToolOutcome::failed("The conversation has ended."))?;
        let printed = changed.map_err(|error| ToolOutcome::failed(format!("{error}.")))?;
        let printed = if printed.trim().is_empty() { "It printed nothing.".to_owned() } else { printed };
        Ok(ToolOutcome::text(printed))
    }
}

impl Tool for GitHubTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effect(&self, arguments: &Value) -> Effect {
        let line = arguments["command"].as_str().map(|line| full_line(GitHubReader::PROGRAM, line));
        let has_input = arguments["input"].as_str().is_some_and(|input| !input.is_empty());
        let only_reads = line.is_some_and(|line| GitHubReader::read_only_words(&line).is_some());
        if only_reads && !has_input { Effect::Reads } else { Effect::Changes }
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        let Some(command) = arguments["command"].as_str() else { return CallSubject::Other };
        let line = full_line(GitHubReader::PROGRAM, command);
        // What is allowed for one input is not allowed for others: as a line of a shell, this is no plain
        // command, so no rule is remembered for it.
        let input = arguments["input"].as_str().filter(|input| !input.is_empty());
        CallSubject::Command(input.map_or(line.clone(), |input| format!("{line} << INPUT\n{input}\nINPUT")))
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Command
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.call(&call).await.unwrap_or_else(|failed| failed) })
    }
}
