//! [`CommandTerminal`]: shows in a terminal of the client what a command prints while it runs.
//!
//! Commands run where they always run, in the sandbox. The client is asked for a terminal in which
//! `hardpan __terminal` runs, a program that prints what it receives over a socket. If the person ends
//! that program, the command is stopped.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, ReleaseTerminalRequest, SessionId, TerminalId,
    WaitForTerminalExitRequest,
};
use hardpan_app::ConversationApp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::connection::Connection;
use super::terminal_text::TerminalText;

/// The argument that makes a process the program in the terminal.
pub const MARKER: &str = "__terminal";

/// How long the client may take for a step. A command whose terminal takes longer is shown as text.
const PATIENCE: Duration = Duration::from_secs(3);

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

/// A terminal that shows one command.
pub struct CommandTerminal {
    pub id: TerminalId,
    session: SessionId,
    connection: Connection,
    text: TerminalText,
    frames: mpsc::UnboundedSender<Frame>,
    feeding: JoinHandle<()>,
}

/// How a command ended.
pub struct CommandEnd {
    pub exit_code: Option<u32>,
    pub signal: Option<String>,
}

impl CommandEnd {
    /// Reads it from the details of a call's result.
    pub fn read(details: Option<&Value>) -> Self {
        let number = |name: &str| details.and_then(|details| details[name].as_u64());
        CommandEnd {
            exit_code: number("exit_code").and_then(|code| u32::try_from(code).ok()),
            signal: number("signal").map(|signal| signal.to_string()),
        }
    }
}

impl CommandTerminal {
    /// Asks the client for a terminal. None if it has none to give.
    pub async fn open(
        app: &Arc<ConversationApp>,
        connection: &Connection,
        call_id: &Arc<str>,
        command: &str,
    ) -> Option<Self> {
        let session = SessionId::new(app.agent.session().0);
        let place = SocketPlace::create().inspect_err(|error| tracing::warn!(%error, "no terminal")).ok()?;
        let listener = UnixListener::bind(place.socket()).ok()?;
        let program = std::env::current_exe().ok()?.to_str()?.to_owned();
        // The command is for the person, who sees what the terminal runs.
        let arguments = vec![MARKER.to_owned(), place.socket().to_str()?.to_owned(), command.to_owned()];
        let request = CreateTerminalRequest::new(session.clone(), program)
            .args(arguments)
            .cwd(app.scope.folder.clone())
            .output_byte_limit(KEPT_OUTPUT);
        let created: CreateTerminalResponse = ask(connection, "terminal/create", &request).await?;
        let (frames, received) = mpsc::unbounded_channel();
        let (app, call_id) = (app.clone(), call_id.clone());
        let feeding = tokio::spawn(async move {
            let accepted = timeout(PATIENCE, listener.accept()).await;
            drop(place);
            if let Ok(Ok((stream, _))) = accepted
                && feed(stream, received).await == FeedEnd::Closed
            {
                app.agent.stop_tool_call(&call_id);
            }
        });
        let (connection, text) = (connection.clone(), TerminalText::default());
        Some(CommandTerminal { id: created.terminal_id, session, connection, text, frames, feeding })
    }

    /// Shows the output so far.
    pub fn show(&mut self, visible: &str) {
        let news = self.text.advance(visible);
        if !news.is_empty() {
            // Fails once the program in the terminal has gone.
            let _ = self.frames.send(Frame::Print(news));
        }
    }

    /// Ends the program in the terminal as the command ended, and waits until the client has all output.
    pub async fn end(&mut self, end: &CommandEnd) {
        let code = end.exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        let _ = self.frames.send(Frame::Exit(code));
        let _ = timeout(PATIENCE, &mut self.feeding).await;
        let request = WaitForTerminalExitRequest::new(self.session.clone(), self.id.clone());
        let _: Option<Value> = ask(&self.connection, "terminal/wait_for_exit", &request).await;
    }

    /// Gives the terminal back. The client goes on showing what it holds.
    pub async fn release(self) {
        self.feeding.abort();
        let request = ReleaseTerminalRequest::new(self.session.clone(), self.id.clone());
        let _: Option<Value> = ask(&self.connection, "terminal/release", &request).await;
    }
}

/// The client's answer to a request, if it comes in time.
async fn ask<T: DeserializeOwned>(
    connection: &Connection,
    method: &str,
    request: &impl Serialize,
) -> Option<T> {
    let (message, answer) = connection.request(method, &serde_json::to_value(request).ok()?)?;
    connection.write(&message).await;
    match timeout(PATIENCE, answer.wait()).await.ok()?? {
        Ok(answer) => serde_json::from_value(answer).ok(),
        Err(error) => {
            tracing::warn!(%error, method, "the client has no terminal to give");
            None
        }
    }
}

#[derive(PartialEq, Eq)]
enum FeedEnd {
    /// It has received all.
    Done,
    /// It has gone before.
    Closed,
}

/// Writes frames to the program in the terminal, until it has received the last one or has gone.
async fn feed(mut stream: UnixStream, mut frames: mpsc::UnboundedReceiver<Frame>) -> FeedEnd {
    let (reader, mut writer) = stream.split();
    loop {
        let frame = tokio::select! {
            biased;
            frame = frames.recv() => frame,
            // It never writes: what can be read is its end.
            _ = reader.readable() => return FeedEnd::Closed,
        };
        let Some(frame) = frame else { return FeedEnd::Done };
        // Cannot fail: a frame is a text or a number.
        let Ok(mut line) = serde_json::to_string(&frame) else { return FeedEnd::Done };
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() {
            return FeedEnd::Closed;
        }
        if let Frame::Exit(_) = frame {
            // It closes the socket once it has printed everything.
            let _ = reader.readable().await;
            return FeedEnd::Done;
        }
    }
}

/// A folder of the person's alone with one socket, which goes with it.
struct SocketPlace(PathBuf);

impl SocketPlace {
    fn create() -> io::Result<Self> {
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
        Ok(SocketPlace(folder))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("output")
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program in the terminal, if the arguments of this process say so. Its exit code is that of
/// the command.
pub fn run_if_asked() -> Option<u8> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MARKER {
        return None;
    }
    Some(print_frames(Path::new(&arguments.next()?)).unwrap_or(1))
}

fn print_frames(socket: &Path) -> io::Result<u8> {
    let stream = std::os::unix::net::UnixStream::connect(socket)?;
    for line in io::BufRead::lines(io::BufReader::new(stream)) {
        match serde_json::from_str(&line?).map_err(io::Error::other)? {
            Frame::Print(text) => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text.as_bytes())?;
                stdout.flush()?;
            }
            Frame::Exit(code) => return Ok(code),
        }
    }
    // Hardpan has gone, and the command with it.
    Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_arrive_in_order_and_a_reader_that_goes_is_noticed() {
        let place = SocketPlace::create().unwrap();
        let listener = UnixListener::bind(place.socket()).unwrap();
        let (frames, received) = mpsc::unbounded_channel();
        frames.send(Frame::Print(String::new())).unwrap();
        frames.send(Frame::Exit(7)).unwrap();
        let socket = place.socket();
        let viewer = tokio::task::spawn_blocking(move || print_frames(&socket));
        let stream = listener.accept().await.unwrap().0;
        assert!(feed(stream, received).await == FeedEnd::Done);
        assert_eq!(viewer.await.unwrap().unwrap(), 7);

        let (_frames, received) = mpsc::unbounded_channel();
        let viewer = UnixStream::connect(place.socket()).await.unwrap();
        let stream = listener.accept().await.unwrap().0;
        drop(viewer);
        assert!(feed(stream, received).await == FeedEnd::Closed);
        let folder = place.0.clone();
        drop(place);
        assert!(!folder.exists());
    }
}
