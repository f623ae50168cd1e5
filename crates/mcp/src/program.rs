//! [`ProgramTransport`]: a server that is a program, started by our sandbox, with messages as lines on its
//! standard input and output.
//!
//! Whatever it prints, a bounded part is kept: a line of more than [`MAX_LINE`] bytes ends the connection,
//! lines that are no messages are skipped, and of standard error the last lines are remembered.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use hardpan_sandbox::{Program, ProgramStreams, RunningProgram, SandboxLauncher, SandboxPolicy};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};

use crate::error::ServerError;
use crate::error_output::{ErrorOutput, MAX_LINE_BYTES, readable_line};
use crate::message_text::read_messages;

/// The longest message that is read, in bytes.
pub const MAX_LINE: usize = 16 << 20;

/// How many messages may wait to be handled: then the program has to wait.
pub(crate) const WAITING_MESSAGES: usize = 64;

/// How many lines of standard error go into the log: one that never ends must not fill the disk.
const LOGGED_LINES: usize = 500;

/// Where programs of servers run, and what they get.
#[derive(Clone)]
pub struct ProgramPlace {
    /// The root of the workspace, in which they run.
    pub root: PathBuf,
    /// The folder with the logins of servers on the network.
    pub logins: Option<PathBuf>,
    /// The user's environment, of which they get the least.
    pub environment: BTreeMap<OsString, OsString>,
    /// How a server runs that needs no sandbox: a launcher ends it with all its processes.
    pub plain: ProgramConfinement,
    /// How a server runs in the sandbox.
    pub sandboxed: ProgramConfinement,
}

/// What keeps a program from doing what it may not.
#[derive(Clone)]
pub enum ProgramConfinement {
    /// Nothing.
    None,
    /// It must not run at all, for this reason.
    Refused(String),
    /// This sandbox.
    Sandbox(SandboxLauncher, SandboxPolicy),
}

/// The variables of the user's environment that every server gets.
const PASSED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR"];

/// The program of a server, as the settings name it.
pub(crate) struct ServerProgram<'a> {
    pub server: &'a str,
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, String>,
    pub pass_environment: &'a [String],
    pub cwd: Option<&'a Path>,
    pub sandbox: bool,
}

/// Why messages cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("the program does not read its input")]
pub(crate) struct InputClosed;

/// A running program, and the messages to and from it.
pub(crate) struct ProgramTransport {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    input: std::sync::mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
    program: Option<RunningProgram>,
}

impl ProgramTransport {
    /// Starts the program of a server.
    pub fn start(
        wanted: &ServerProgram<'_>,
        place: &ProgramPlace,
        error_output: &ErrorOutput,
    ) -> Result<Self, ServerError> {
        let path = place.environment.get(&OsString::from("PATH"));
        let found = find_program(wanted.command, &place.root, path)
            .ok_or_else(|| ServerError::NoProgram(wanted.command.to_owned()))?;
        let passed = PASSED.into_iter().chain(wanted.pass_environment.iter().map(String::as_str));
        let passed = passed.filter_map(|name| {
            let name = OsString::from(name);
            place.environment.get(&name).map(|value| (name, value.clone()))
        });
        let own = wanted.env.iter().map(|(name, value)| (name.into(), value.into()));
        let folder = wanted.cwd.map_or(place.root.clone(), |cwd| place.root.join(cwd));
        let program = Program::new(found, folder).arguments(wanted.args).variables(passed.chain(own));
        let (output, output_writer) = io::pipe().map_err(ServerError::NotStarted)?;
        let (errors, errors_writer) = io::pipe().map_err(ServerError::NotStarted)?;
        let (input_reader, input) = io::pipe().map_err(ServerError::NotStarted)?;
        let streams = ProgramStreams {
            input: Some(input_reader.into()),
            output: output_writer.into(),
            errors: errors_writer.into(),
        };
        let confinement = if wanted.sandbox { &place.sandboxed } else { &place.plain };
        let sandbox = match confinement {
            ProgramConfinement::None => None,
            ProgramConfinement::Refused(reason) => return Err(ServerError::Refused(reason.clone())),
            ProgramConfinement::Sandbox(launcher, policy) => Some((launcher, policy)),
        };
        let running = program.start(sandbox, streams, |_| {}).map_err(ServerError::NotStarted)?;
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        let (server, words, reading) =
            (wanted.server.to_owned(), error_output.clone(), error_output.add_reader());
        thread::spawn(move || {
            forward_messages(output, &sender, &server, &words);
            drop(reading);
        });
        let (server, words, reading) =
            (wanted.server.to_owned(), error_output.clone(), error_output.add_reader());
        thread::spawn(move || {
            read_errors(errors, &server, &words);
            drop(reading);
        });
        let (writer, waiting) = std::sync::mpsc::channel();
        thread::spawn(move || write_messages(input, &waiting));
        Ok(ProgramTransport { messages, input: writer, program: Some(running) })
    }
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = InputClosed;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), InputClosed>> + Send + 'static {
        let line = serde_json::to_vec(&item).map(|mut line| {
            line.push(b'\n');
            line
        });
        let (done, written) = oneshot::channel();
        let sent = line.is_ok_and(|line| self.input.send((line, done)).is_ok());
        async move {
            match sent {
                true => written.await.map_err(|_| InputClosed),
                false => Err(InputClosed),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), InputClosed> {
        self.program = None;
        self.messages.close();
        Ok(())
    }
}

/// The program that a name or a path means.
fn find_program(command: &str, root: &Path, path: Option<&OsString>) -> Option<PathBuf> {
    if command.contains('/') {
        let home = command
            .strip_prefix("~/")
            .and_then(|rest| Some(PathBuf::from(std::env::var_os("HOME")?).join(rest)));
        return Some(home.unwrap_or_else(|| root.join(command))).filter(|path| path.is_file());
    }
    let folders = path.into_iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(command)).find(|path| path.is_file())
}

/// Reads a line of at most `limit` bytes. `None` at the end; an error if the line is longer.
pub(crate) fn read_line(
    reader: &mut impl BufRead,
    limit: usize,
    line: &mut Vec<u8>,
) -> io::Result<Option<()>> {
    line.clear();
    let read = reader.by_ref().take(limit as u64 + 1).read_until(b'\n', line)?;
    match read {
        0 => Ok(None),
        _ if line.len() > limit => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(Some(())),
    }
}

fn forward_messages(
    output: impl Read,
    sender: &mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    server: &str,
    error_output: &ErrorOutput,
) {
    let (mut reader, mut line) = (BufReader::with_capacity(64 * 1024, output), Vec::new());
    loop {
        match read_line(&mut reader, MAX_LINE, &mut line) {
            Ok(Some(())) => {}
            Ok(None) => return,
            Err(error) => {
                if error.kind() == io::ErrorKind::FileTooLarge {
                    error_output.set_reason(&format!("a line of more than {} MB", MAX_LINE >> 20));
                }
                return;
            }
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match read_messages(&line) {
            Some(messages) => {
                for message in messages {
                    if sender.blocking_send(message).is_err() {
                        return;
                    }
                }
            }
            None => {
                let text = readable_line(&line);
                tracing::warn!(server, line = %text.escape_debug(), "no message of the protocol");
                error_output.add(&text);
            }
        }
    }
}

fn read_errors(errors: impl Read, server: &str, error_output: &ErrorOutput) {
    let (mut reader, mut line, mut count) = (BufReader::new(errors), Vec::new(), 0_usize);
    loop {
        match read_line(&mut reader, MAX_LINE_BYTES, &mut line) {
            Ok(None) => return,
            // The rest of a long line is read as further lines.
            Ok(Some(())) => {}
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {}
            Err(_) => return,
        }
        let text = readable_line(&line);
        error_output.add(&text);
        count += 1;
        if count <= LOGGED_LINES {
            tracing::info!(server, line = %text.escape_debug(), "standard error");
        }
    }
}

pub(crate) fn write_messages(
    mut input: impl Write,
    waiting: &std::sync::mpsc::Receiver<(Vec<u8>, oneshot::Sender<()>)>,
) {
    while let Ok((line, done)) = waiting.recv() {
        if input.write_all(&line).and_then(|()| input.flush()).is_err() {
            return;
        }
        // Whoever sent it may have gone on.
        let _ = done.send(());
    }
}
