//! [`CommandTerminal`]: shows in a terminal of the client what a command prints while it runs.
//!
//! Commands run where they always run, in the sandbox. The client is asked for a terminal in which
//! `hardpan __terminal` runs, a program that prints what it receives over a socket. If the person ends
//! that program, the command is stopped. Where the program cannot run, the output is shown as text.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable, Error, ReleaseTerminalRequest, SessionId,
    TerminalId, WaitForTerminalExitRequest,
};
use hardpan_app::ConversationApp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::Connection;
use super::terminal_text::{CLEAR_LINE, TerminalText};
use super::tool_calls::first_line;

/// The argument that makes a process the program in the terminal.
pub const MARKER: &str = "__terminal";

/// The variable that holds what the program in the terminal sends first. Commands can find the socket, but
/// cannot read the environment of processes outside of their sandbox.
const KEY_VARIABLE: &str = "HARDPAN_TERMINAL_KEY";

/// How long the client may take for a step. A command whose terminal takes longer is shown as text.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long somebody who has connected may take to send the key.
const KEY_PATIENCE: Duration = Duration::from_millis(500);

/// The name of the socket in its folder.
const SOCKET: &str = "output";

/// How much of the output a client has to keep, in bytes.
const KEPT_OUTPUT: u64 = 1 << 20;

/// What the program in the terminal receives, one JSON object per line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Frame {
    /// It prints this.
    Print(String),
    /// It ends with this exit code.
    Exit(u8),
}

/// What the terminal has to show. Only the newest is kept, however slowly the terminal prints.
#[derive(Clone, Debug, Default)]
struct TerminalState {
    visible: String,
    exit: Option<u8>,
}

/// Why no terminal was opened.
#[derive(Debug, PartialEq, Eq)]
pub enum NoTerminal {
    /// The client gave none this time.
    Refused,
    /// The client did not answer: it is not asked again.
    NoAnswer,
}

/// A terminal that shows one command.
pub struct CommandTerminal {
    pub id: TerminalId,
    session: SessionId,
    connection: Connection,
    state: watch::Sender<TerminalState>,
    progress: watch::Receiver<FeedProgress>,
    feeding: JoinHandle<()>,
}

/// What has become of the program in the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedProgress {
    /// It was started, or will be.
    Waiting,
    /// It prints.
    Connected,
    /// It has printed everything.
    Done,
    /// It has gone before.
    Closed,
    /// It did not come: the client's terminals run elsewhere, for example.
    NeverCame,
}

/// How a command ended.
pub struct CommandEnd {
    pub exit_code: Option<u32>,
    pub signal: Option<u64>,
    /// Whether the result has the output. That of a command that was stopped only says so.
    has_output: bool,
}

impl CommandEnd {
    /// Reads it from the details of a call's result.
    pub fn read(details: Option<&Value>) -> Self {
        let number = |name: &str| details.and_then(|details| details[name].as_u64());
        CommandEnd {
            exit_code: number("exit_code").and_then(|code| u32::try_from(code).ok()),
            signal: number("signal"),
            has_output: details.is_some(),
        }
    }

    /// What is visible in the end, of a command whose output was this so far.
    pub fn last_text(&self, so_far: &str, result: &str) -> String {
        let line_end = if so_far.is_empty() || so_far.ends_with('\n') { "" } else { "\n" };
        match self.has_output {
            true => result.to_owned(),
            false => format!("{so_far}{line_end}{result}"),
        }
    }

    /// The exit code of the program in the terminal: that of the command, as shells tell it.
    fn terminal_code(&self) -> u8 {
        let code = match (self.exit_code, self.signal) {
            (Some(code), _) => u8::try_from(code).ok(),
            (None, Some(signal)) => u8::try_from(signal).ok().and_then(|signal| signal.checked_add(128)),
            (None, None) => None,
        };
        code.unwrap_or(u8::MAX)
    }
}

impl CommandTerminal {
    /// Asks the client for a terminal.
    pub async fn open(
        app: &Arc<ConversationApp>,
        connection: &Connection,
        call_id: &Arc<str>,
        command: &str,
    ) -> Result<Self, NoTerminal> {
        let session = SessionId::new(app.agent.session().0);
        let socket = match TerminalSocket::bind() {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "no socket for a terminal");
                return Err(NoTerminal::Refused);
            }
        };
        let program = std::env::current_exe().ok().and_then(|path| Some(path.to_str()?.to_owned()));
        let (Some(program), Some(path)) = (program, socket.path().to_str().map(str::to_owned)) else {
            return Err(NoTerminal::Refused);
        };
        // The command is for the person, who sees what the terminal runs.
        let request = CreateTerminalRequest::new(session.clone(), program)
            .args(vec![MARKER.to_owned(), path, first_line(command)])
            .env(vec![EnvVariable::new(KEY_VARIABLE, &*socket.key)])
            .cwd(app.scope.folder.clone())
            .output_byte_limit(KEPT_OUTPUT);
        let request = serde_json::to_value(request).map_err(|_| NoTerminal::Refused)?;
        let asked = connection.request("terminal/create", &request).ok_or(NoTerminal::Refused)?;
        let (message, answer) = asked;
        connection.write(&message).await;
        let mut answer = Box::pin(answer.wait());
        let id = match timeout(PATIENCE, &mut answer).await {
            Ok(answer) => created_terminal(answer).ok_or(NoTerminal::Refused)?,
            Err(_) => {
                tracing::warn!("the client did not answer terminal/create");
                let connection = connection.clone();
                tokio::spawn(async move {
                    if let Some(id) = created_terminal(answer.await) {
                        release_terminal(&connection, &session, &id).await;
                    }
                });
                return Err(NoTerminal::NoAnswer);
            }
        };
        let (state, shown) = watch::channel(TerminalState::default());
        let (sender, progress) = watch::channel(FeedProgress::Waiting);
        let (app, call_id) = (app.clone(), call_id.clone());
        let feeding = tokio::spawn(async move {
            let accepted = timeout(PATIENCE, socket.accept()).await;
            drop(socket);
            let Ok(Ok(stream)) = accepted else {
                sender.send_replace(FeedProgress::NeverCame);
                return;
            };
            sender.send_replace(FeedProgress::Connected);
            let end = feed(stream, shown).await;
            sender.send_replace(end);
            if end == FeedProgress::Closed {
                app.agent.stop_tool_call(&call_id);
            }
        });
        let connection = connection.clone();
        Ok(CommandTerminal { id, session, connection, state, progress, feeding })
    }

    /// Shows the output so far. False if no program prints it.
    pub fn show(&self, visible: &str) -> bool {
        self.state.send_modify(|state| visible.clone_into(&mut state.visible));
        *self.progress.borrow() != FeedProgress::NeverCame
    }

    /// Ends the program in the terminal as the command ended, once it has printed everything.
    pub async fn end(&mut self, result: &str, end: &CommandEnd) -> FeedProgress {
        self.state.send_modify(|state| {
            state.visible = end.last_text(&state.visible, result);
            state.exit = Some(end.terminal_code());
        });
        let is_over =
            |progress: &FeedProgress| !matches!(progress, FeedProgress::Waiting | FeedProgress::Connected);
        let _ = timeout(PATIENCE, self.progress.wait_for(is_over)).await;
        *self.progress.borrow()
    }

    /// Waits until the client has all that the program in the terminal printed, which has ended. False if
    /// the client does not say so.
    pub async fn wait_for_exit(&self) -> bool {
        let request = WaitForTerminalExitRequest::new(self.session.clone(), self.id.clone());
        let Ok(request) = serde_json::to_value(request) else { return false };
        let Some((message, answer)) = self.connection.request("terminal/wait_for_exit", &request) else {
            return false;
        };
        self.connection.write(&message).await;
        timeout(PATIENCE, answer.wait()).await.is_ok()
    }

    /// Gives the terminal back. The client goes on showing what it holds.
    pub async fn release(self) {
        self.feeding.abort();
        release_terminal(&self.connection, &self.session, &self.id).await;
    }
}

/// The terminal that the client made, if it made one.
fn created_terminal(answer: Option<Result<Value, Error>>) -> Option<TerminalId> {
    match answer? {
        Ok(answer) => {
            serde_json::from_value(answer).ok().map(|created: CreateTerminalResponse| created.terminal_id)
        }
        Err(error) => {
            tracing::warn!(%error, "the client has no terminal to give");
            None
        }
    }
}

/// Nothing depends on the answer to this, so nobody waits for it.
async fn release_terminal(connection: &Connection, session: &SessionId, id: &TerminalId) {
    let request = ReleaseTerminalRequest::new(session.clone(), id.clone());
    if let Ok(request) = serde_json::to_value(request)
        && let Some((message, _)) = connection.request("terminal/release", &request)
    {
        connection.write(&message).await;
    }
}

/// Writes frames to the program in the terminal, until it has received the last one or has gone.
async fn feed(mut stream: UnixStream, mut state: watch::Receiver<TerminalState>) -> FeedProgress {
    let (mut reader, mut writer) = stream.split();
    let mut text = TerminalText::default();
    let mut byte = [0];
    loop {
        let TerminalState { visible, exit } = state.borrow_and_update().clone();
        let news = text.advance(&visible);
        let frames = (!news.is_empty()).then_some(Frame::Print(news)).into_iter();
        for frame in frames.chain(exit.map(Frame::Exit)) {
            // Cannot fail: a frame is a text or a number.
            let Ok(mut line) = serde_json::to_string(&frame) else { continue };
            line.push('\n');
            if writer.write_all(line.as_bytes()).await.is_err() {
                return FeedProgress::Closed;
            }
        }
        if exit.is_some() {
            // It closes the socket once it has printed everything.
            while reader.read(&mut byte).await.is_ok_and(|read| read > 0) {}
            return FeedProgress::Done;
        }
        tokio::select! {
            changed = state.changed() => if changed.is_err() {
                return FeedProgress::Done;
            },
            // It writes nothing any more: only its end can be read.
            read = reader.read(&mut byte) => if !read.is_ok_and(|read| read > 0) {
                return FeedProgress::Closed;
            },
        }
    }
}

/// The socket that the program in the terminal connects to, in a folder of the person's alone, which goes
/// with it.
struct TerminalSocket {
    folder: PathBuf,
    listener: UnixListener,
    /// What the program has to send first.
    key: String,
}

impl TerminalSocket {
    fn bind() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hardpan-terminal-{}-{number}", std::process::id()));
        let create = || std::fs::DirBuilder::new().mode(0o700).create(&folder);
        create().or_else(|error| match error.kind() {
            // Of an earlier process with the same number; another user's cannot be removed.
            io::ErrorKind::AlreadyExists => std::fs::remove_dir_all(&folder).and_then(|()| create()),
            _ => Err(error),
        })?;
        let bound = UnixListener::bind(folder.join(SOCKET));
        let listener = bound.inspect_err(|_| drop(std::fs::remove_dir_all(&folder)))?;
        let random = || RandomState::new().hash_one(&folder);
        let key = format!("{:016x}{:016x}", random(), random());
        Ok(TerminalSocket { folder, listener, key })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// The program in the terminal; whoever else connects is sent away.
    async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let mut line = Vec::new();
            let mut reader = BufReader::new(&mut stream).take(self.key.len() as u64 + 1);
            let read = timeout(KEY_PATIENCE, reader.read_until(b'\n', &mut line)).await;
            if matches!(read, Ok(Ok(_))) && line.trim_ascii_end() == self.key.as_bytes() {
                return Ok(stream);
            }
            tracing::warn!("something else than the terminal connected to its socket");
        }
    }
}

impl Drop for TerminalSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Runs the program in the terminal, if the arguments of this process say so. Its exit code is that of
/// the command.
pub fn run_if_asked() -> Option<u8> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MARKER {
        return None;
    }
    let key = std::env::var(KEY_VARIABLE).unwrap_or_default();
    Some(print_frames(Path::new(&arguments.next()?), &key).unwrap_or(1))
}

fn print_frames(socket: &Path, key: &str) -> io::Result<u8> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
    stream.write_all(format!("{key}\n").as_bytes())?;
    for line in io::BufRead::lines(io::BufReader::new(stream)) {
        match serde_json::from_str(&line?).map_err(io::Error::other)? {
            Frame::Print(text) => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(printable(&text).as_bytes())?;
                stdout.flush()?;
            }
            Frame::Exit(code) => return Ok(code),
        }
    }
    // Hardpan has gone, and the command with it.
    Ok(1)
}

/// The text without what a terminal would interpret, except for what [`TerminalText`] puts there.
fn printable(text: &str) -> String {
    let plain = |part: &str| -> String {
        part.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t')).collect()
    };
    text.split(CLEAR_LINE).map(plain).collect::<Vec<_>>().join(CLEAR_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(visible: &str, exit: Option<u8>) -> TerminalState {
        TerminalState { visible: visible.to_owned(), exit }
    }

    #[tokio::test]
    async fn the_program_in_the_terminal_ends_as_the_command_did() {
        let socket = TerminalSocket::bind().unwrap();
        let (path, key) = (socket.path(), socket.key.clone());
        let viewer = tokio::task::spawn_blocking(move || print_frames(&path, &key));
        let stream = socket.accept().await.unwrap();
        let (_state, shown) = watch::channel(state("", Some(7)));
        assert_eq!(feed(stream, shown).await, FeedProgress::Done);
        assert_eq!(viewer.await.unwrap().unwrap(), 7);
        let folder = socket.folder.clone();
        drop(socket);
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn it_is_fed_until_it_goes_and_gets_the_newest_output_alone() {
        let socket = TerminalSocket::bind().unwrap();
        let mut viewer = UnixStream::connect(socket.path()).await.unwrap();
        viewer.write_all(format!("{}\n", socket.key).as_bytes()).await.unwrap();
        let stream = socket.accept().await.unwrap();
        let (sender, shown) = watch::channel(state("one\n", None));
        let feeding = tokio::spawn(feed(stream, shown));
        let mut lines = BufReader::new(viewer).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), r#"{"print":"one\r\n"}"#);
        // Nothing has happened: it goes on.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!feeding.is_finished());
        sender.send_replace(state("one\ntwo\n", None));
        sender.send_replace(state("one\ntwo\nthree\n", None));
        assert_eq!(lines.next_line().await.unwrap().unwrap(), r#"{"print":"two\r\nthree\r\n"}"#);
        drop(lines);
        assert_eq!(feeding.await.unwrap(), FeedProgress::Closed);
    }

    #[tokio::test]
    async fn whoever_does_not_know_the_key_gets_nothing() {
        let socket = TerminalSocket::bind().unwrap();
        let mut stranger = UnixStream::connect(socket.path()).await.unwrap();
        stranger.write_all(b"let me in\n").await.unwrap();
        let mut viewer = UnixStream::connect(socket.path()).await.unwrap();
        viewer.write_all(format!("{}\n", socket.key).as_bytes()).await.unwrap();
        let mut stream = socket.accept().await.unwrap();
        stream.write_all(b"secret").await.unwrap();
        drop(stream);
        let mut read = String::new();
        assert_eq!(stranger.read_to_string(&mut read).await.unwrap_or_default(), 0, "{read}");
        assert_eq!(viewer.read_to_string(&mut read).await.unwrap(), 6, "{read}");
    }

    #[test]
    fn nothing_that_a_terminal_would_interpret_is_printed() {
        assert_eq!(
            printable("a\tb\r\n\r\u{1b}[K20%\u{1b}]0;title\u{7}\u{9b}31m"),
            "a\tb\r\n\r\u{1b}[K20%]0;title31m"
        );
    }
}
