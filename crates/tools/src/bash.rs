//! The tool `bash`: runs a command, streams its output, and ends all its processes when the call is
//! dropped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{WorkingFolder, analyze_command};
use hardpan_sandbox::{
    FileHandle, ProcessEnd, Program, ProgramEvent, ProgramStreams, RunningProgram, Sandbox, SandboxLauncher,
    SandboxPolicy, explain_denials,
};
use hardpan_workspace::LiveIndex;
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::declarations::load_declaration;
use crate::tool::{
    CallSubject, Effect, ResultDisplay, SubjectKind, Tool, ToolInvocation, ToolOutcome, parse_arguments,
};
use crate::{Journal, Scope, limits};

mod command_record; // CommandRecord: what a command does to files
mod environment; // the variables of commands, without secrets
mod observe; // what the output shows of files, checked against the files
mod output; // CommandOutput: its end in memory, all of it on disk
pub(crate) mod sanitize; // removes what a terminal would interpret

use command_record::{CommandRecord, RecordedFiles, RecordedTree};
pub use environment::{command_environment, scrub_environment};
use observe::observe_files;
use output::CommandOutput;

/// How long a command may run, in seconds, unless the call sets `timeout`, and at most.
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 600;

/// How long the processes have to end by themselves between SIGTERM and SIGKILL.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// How long output is still read after the command has ended: a background process may keep the
/// pipe open.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// How long to wait for killed processes to be gone. The kernel may hold one that waits for a disk.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// How often the output so far is reported as progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How `bash` runs commands.
#[derive(Clone, Debug)]
pub struct ShellOptions {
    /// The shell, by absolute path.
    pub program: PathBuf,
    /// The folder that receives outputs which are too long for an answer.
    pub outputs: PathBuf,
    /// The value of `TMPDIR` for commands. The folder is created when the first command runs.
    pub temp: PathBuf,
    /// The environment variables of commands, usually from [`command_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// What commands are kept from.
    pub confinement: Confinement,
}

/// What commands are kept from, and how they are ended.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// They run in this sandbox, with the workspace and the temporary folder as writable folders.
    Sandbox(Sandbox),
    /// They run with all the rights of the user. What leaves their group of processes may outlive
    /// them.
    None,
    /// They do not run, for this reason.
    Refused(String),
}

/// Why a command cannot run as it should. The model reads it.
#[derive(Debug, thiserror::Error)]
pub enum SandboxUnavailable {
    /// The settings require a sandbox, and there is none.
    #[error("Commands do not run: {0}.")]
    Refused(String),
    /// A folder that commands may write in is not there.
    #[error("The folder for commands cannot be opened: {0}.")]
    Folder(#[source] std::io::Error),
}

impl From<SandboxUnavailable> for String {
    fn from(error: SandboxUnavailable) -> Self {
        error.to_string()
    }
}

/// The tool `bash`, and the `!` commands of the user.
pub(crate) struct Bash {
    options: ShellOptions,
    /// Whether the text of an answer tells the exit code. Whoever shows the person's own commands
    /// tells it from the details.
    tells_exit_code: bool,
    /// The folders that commands may write in, as they were before the first command: a command may
    /// put something else in their place.
    folders: Mutex<BTreeMap<PathBuf, FileHandle>>,
    /// Records what commands do to files; `None` records nothing.
    journal: Option<Arc<Journal>>,
    work_tree: Arc<Mutex<RecordedTree>>,
    /// Has the watch that tells what changed since.
    index: Option<Arc<LiveIndex>>,
}

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("bash", include_str!("../texts/bash.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

impl Tool for Bash {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        CallSubject::of_argument(CallSubject::Command, arguments, "command")
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Command
    }

    fn result_display(&self) -> ResultDisplay {
        ResultDisplay::LastLines
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.call(&call).await.unwrap_or_else(|failed| failed) })
    }
}

struct CommandEnd {
    ended: ProcessEnd,
    timed_out: bool,
    /// A background process still had the output open when the command had ended.
    output_still_open: bool,
}

impl Bash {
    pub(crate) fn new(options: ShellOptions) -> Self {
        Bash {
            options,
            tells_exit_code: true,
            folders: Mutex::default(),
            journal: None,
            work_tree: Arc::default(),
            index: None,
        }
    }

    /// For the person's own commands.
    pub(crate) fn without_exit_code(self) -> Self {
        Bash { tells_exit_code: false, ..self }
    }

    /// Records what commands do to small files of the workspace, so that it can be undone.
    pub(crate) fn with_journal(self, journal: Option<Arc<Journal>>, index: Option<Arc<LiveIndex>>) -> Self {
        Bash { journal, index, ..self }
    }

    /// Looks at the files before a command that may change some. `None` if it changes none, or nothing
    /// is recorded.
    async fn begin_record(&self, command: &str, scope: &Scope) -> Option<CommandRecord> {
        let journal = self.journal.clone()?;
        let folder = WorkingFolder::new(scope.folder.to_str()?);
        if analyze_command(command, &folder).changes.is_empty() {
            return None;
        }
        let (scope, tree, index) = (scope.clone(), self.work_tree.clone(), self.index.clone());
        CommandRecord::begin(RecordedFiles { journal, scope, tree, index }).await
    }

    async fn call(&self, call: &ToolInvocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let Arguments { command, timeout } = parse_arguments(call)?;
        let seconds = timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(1, MAX_TIMEOUT);
        if command.contains('\0') {
            return Err(ToolOutcome::failed(
                "The command holds a NUL character, which no command can: leave it out.",
            ));
        }
        let sandbox = self.sandbox(call.scope).map_err(ToolOutcome::failed)?;
        let record = self.begin_record(&command, call.scope).await;
        let running = self.start(&command, call.scope, sandbox.as_ref()).map_err(|error| {
            let folder = call.scope.display_name(&call.scope.folder);
            ToolOutcome::failed(format!("The command could not be started in {folder}: {error}."))
        })?;
        let mut output = CommandOutput::new(&self.options.outputs);
        let command_end =
            collect_output(running, &mut output, Duration::from_secs(seconds), call.progress).await;
        let denied = sandbox
            .map(|(_, policy)| explain_denials(&policy, &call.scope.folder, output.tail()))
            .unwrap_or_default();
        let mut outcome = build_outcome(&command_end, &output, &denied, seconds, self.tells_exit_code);
        if let Some(record) = record
            && let Some(problem) = record.end().await
            && let Some(Value::Object(details)) = &mut outcome.details
        {
            details.insert("not_undoable".into(), problem.into());
        }
        if !outcome.is_error && denied.is_empty() && !command_end.output_still_open {
            outcome.file_observations = observe_files(command, call.scope, &output).await;
        }
        Ok(outcome)
    }

    /// The sandbox for a command; `None` for a command without one. The error is a sentence for the
    /// model.
    pub(crate) fn sandbox(
        &self,
        scope: &Scope,
    ) -> Result<Option<(&SandboxLauncher, SandboxPolicy)>, SandboxUnavailable> {
        // If this fails, the command that needs the folder will say so.
        let _ = hardpan_files::create_private_folder(&self.options.temp);
        match &self.options.confinement {
            Confinement::Refused(reason) => Err(SandboxUnavailable::Refused(reason.clone())),
            Confinement::None => Ok(None),
            Confinement::Sandbox(sandbox) => {
                let folders = [&scope.root, &self.options.temp].into_iter();
                let folders: Result<Vec<_>, _> = folders.map(|folder| self.folder(folder)).collect();
                let policy = folders.map(|folders| sandbox.policy.clone().with_writable(folders));
                Ok(Some((&sandbox.launcher, policy.map_err(SandboxUnavailable::Folder)?)))
            }
        }
    }

    /// The shell with a command line, and the variables that all commands have.
    pub(crate) fn program(&self, line: &str, scope: &Scope) -> Program {
        // There is nobody to look at colours, or who wants to be asked.
        let fixed = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
        Program::new(&self.options.program, &scope.folder)
            .arguments(["-c", line])
            .variables(self.options.environment.iter().cloned())
            .variable("TMPDIR", &self.options.temp)
            .variables(fixed.map(|(name, value)| (name.into(), value.into())))
    }

    fn start(
        &self,
        line: &str,
        scope: &Scope,
        sandbox: Option<&(&SandboxLauncher, SandboxPolicy)>,
    ) -> std::io::Result<RunningCommand> {
        let program = self.program(line, scope);
        let (reader, writer) = std::io::pipe()?;
        let (told, events) = unbounded_channel();
        let streams =
            ProgramStreams { input: None, output: writer.try_clone()?.into(), errors: writer.into() };
        let sandbox = sandbox.map(|(launcher, policy)| (*launcher, policy));
        let program = program.start(sandbox, streams, move |event| {
            let _ = told.send(event);
        })?;
        Ok(RunningCommand { program, events, pipe: Receiver::from_owned_fd(reader.into())? })
    }

    /// A folder that commands may write in, as it was when it was first asked for.
    fn folder(&self, path: &Path) -> std::io::Result<FileHandle> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = folders.get(path) {
            return Ok(folder.clone());
        }
        let folder = FileHandle::open(path)?;
        folders.insert(path.to_owned(), folder.clone());
        Ok(folder)
    }
}

/// A command that was started. Dropping it kills all its processes.
struct RunningCommand {
    program: RunningProgram,
    events: UnboundedReceiver<ProgramEvent>,
    pipe: Receiver,
}

/// Collects the output until the command has ended and its processes are gone. Dropping the future
/// kills them.
async fn collect_output(
    running: RunningCommand,
    output: &mut CommandOutput,
    timeout: Duration,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> CommandEnd {
    let RunningCommand { program, mut events, mut pipe } = running;
    let mut program = Some(program);
    let mut buffer = vec![0; 64 * 1024];
    let mut ticks = interval(PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = std::pin::pin!(sleep(timeout));
    let (mut open, mut news, mut timed_out) = (true, false, false);
    let mut ended = None;
    while ended.is_none() || open {
        tokio::select! {
            read = pipe.read(&mut buffer), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(length) => {
                    output.push(&buffer[..length]);
                    news = true;
                }
            },
            event = events.recv(), if ended.is_none() => {
                ended = Some(match event {
                    Some(ProgramEvent::Ended(end)) => end,
                    Some(ProgramEvent::Gone) | None => ProcessEnd::Unknown,
                });
                deadline.set(sleep(DRAIN_TIME));
            }
            () = &mut deadline => {
                if ended.is_some() {
                    break;
                }
                // First ask the processes to end, then kill them.
                match program.take() {
                    Some(running) if !timed_out => {
                        running.request_end();
                        program = Some(running);
                        deadline.set(sleep(TERMINATION_GRACE));
                    }
                    _ => {
                        ended = Some(ProcessEnd::Signal(Signal::KILL.as_raw()));
                        deadline.set(sleep(DRAIN_TIME));
                    }
                }
                timed_out = true;
            }
            _ = ticks.tick(), if news => {
                news = false;
                progress(&output.visible_text());
            }
        }
    }
    output.end();
    drop(program);
    // What the command changes, it has changed before its answer is read.
    let gone = async { while !matches!(events.recv().await, None | Some(ProgramEvent::Gone)) {} };
    let _ = tokio::time::timeout(END_PATIENCE, gone).await;
    CommandEnd { ended: ended.unwrap_or(ProcessEnd::Unknown), timed_out, output_still_open: open }
}

fn build_outcome(
    command_end: &CommandEnd,
    output: &CommandOutput,
    denied: &[String],
    seconds: u64,
    tells_exit_code: bool,
) -> ToolOutcome {
    let mut notices = Vec::new();
    notices.extend(output.notice());
    if command_end.output_still_open {
        notices.push(
            "a process in the background still held the output; it was ended with the command".to_owned(),
        );
    }
    if command_end.timed_out {
        notices.push(format!("stopped after {seconds} seconds: give a longer timeout, or do less at once"));
    }
    match command_end.ended {
        ProcessEnd::Exit(0) => {}
        ProcessEnd::Exit(_) if !tells_exit_code => {}
        ProcessEnd::Exit(code) => notices.push(format!("exit code {code}")),
        ProcessEnd::Signal(signal) => notices.push(format!("ended by signal {signal}")),
        ProcessEnd::Unknown => notices.push("how it ended is not known".to_owned()),
    }
    let mut text = output.visible_text();
    if text.trim().is_empty() && notices.is_empty() && tells_exit_code {
        text = "(no output)".to_owned();
    }
    let mut text = limits::append_notices(text, &notices);
    for sentence in denied {
        text = text + "\n" + sentence;
    }
    let (code, signal) = match command_end.ended {
        ProcessEnd::Exit(code) => (Some(code), None),
        ProcessEnd::Signal(signal) => (None, Some(signal)),
        ProcessEnd::Unknown => (None, None),
    };
    let details = json!({
        "exit_code": code,
        "signal": signal,
        "timed_out": command_end.timed_out,
        "lines": output.lines(),
        "bytes": output.bytes(),
        "full_output": output.file(),
        "denied": denied,
    });
    ToolOutcome {
        is_error: command_end.timed_out || code != Some(0),
        ..ToolOutcome::text(text).with_details(details)
    }
}

#[cfg(test)]
mod tests;
