//! [`SessionLog`]: a session open for writing.

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use hardpan_files::FileLines;
use tokio::sync::oneshot;

use crate::entry::{Entry, Header};
use crate::log_error::{LogAction, LogError, LogErrorCause};
use crate::problem::{SessionProblem, SessionProblemKind};
use crate::session::{Session, is_complete_line};
use crate::session_file::SessionFile;

/// A session open for writing. Only one process can have a file open, and only once.
///
/// A thread of its own does the writing: whatever is queued when it looks goes into one write and
/// one sync, so that many entries cost little more than one. Dropping the log waits until
/// everything is written.
///
/// ```
/// use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
/// use hardpan_session::{Entry, Header, SessionLog};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("s1.jsonl");
/// let header = Header { id: "s1".into(), time: None, cwd: "/project".into(), extra: Default::default() };
/// let log = SessionLog::create(&path, header)?;
/// let hello = AgentMessage::new("m1", MessageBody::User { content: vec![MessagePart::text("Hello!")] });
/// log.append(Entry::message(None, hello)).wait()?; // or `.await?`
/// drop(log);
///
/// let (_log, session) = SessionLog::open(&path)?;
/// assert_eq!(session.entries.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SessionLog {
    path: PathBuf,
    /// `None` only while it is dropped.
    queue: Option<Sender<WriteJob>>,
    writer: Option<JoinHandle<()>>,
}

/// Resolves once an entry is durable. Await it, or call [`PendingSave::wait`].
///
/// It may be dropped: the entry is written anyway.
#[derive(Debug)]
#[must_use = "an entry is not durable before this says so; drop it where that does not matter"]
pub struct PendingSave {
    result: oneshot::Receiver<Result<(), LogError>>,
    path: PathBuf,
}

struct WriteJob {
    /// `None` only asks to be told when everything before it is durable.
    entry: Option<Entry>,
    done: oneshot::Sender<Result<(), LogError>>,
}

impl SessionLog {
    /// Starts a new session. Its file is created with the first entry: a conversation in which
    /// nothing happened leaves no file.
    pub fn create(path: &Path, header: Header) -> Result<Self, LogError> {
        SessionLog::start_writer(path, SessionFile::create_lazily(path, header))
    }

    /// Opens a session to continue it, and repairs its file after a crash: an unfinished last line
    /// is cut off (and kept beside the file), and an answer that was cut off is put together from
    /// its saved pieces. The session's problems tell what was done.
    pub fn open(path: &Path) -> Result<(Self, Session), LogError> {
        let (mut file, lines) = SessionFile::open(path)?;
        let mut session = Session::parse_lines(&path.display().to_string(), &lines)
            .map_err(|error| LogError::new(path, LogErrorCause::Unreadable(error.into())))?;
        repair_file(&mut file, &lines, &mut session)?;
        Ok((SessionLog::start_writer(path, file)?, session))
    }

    fn start_writer(path: &Path, file: SessionFile) -> Result<Self, LogError> {
        let (queue, jobs) = mpsc::channel();
        let writer = thread::Builder::new().name("session".into()).spawn(move || run_writer(file, &jobs));
        let writer = writer.map_err(|error| LogError::io(path, LogAction::StartWriter, error))?;
        Ok(SessionLog { path: path.to_owned(), queue: Some(queue), writer: Some(writer) })
    }

    /// Queues an entry. Entries are written in the order in which they are appended.
    ///
    /// If writing fails, the file is left as it was, and every entry that waited gets the error.
    /// The entries are kept and written before the next one, so that no entry ever stands in the
    /// file without its parent; appending an entry with the same id again replaces the one that
    /// waits.
    pub fn append(&self, entry: Entry) -> PendingSave {
        self.enqueue(Some(entry))
    }

    /// Resolves once everything appended so far is durable.
    pub fn flush(&self) -> PendingSave {
        self.enqueue(None)
    }

    fn enqueue(&self, entry: Option<Entry>) -> PendingSave {
        let (done, result) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // If the writer has ended, the sender is dropped, and `PendingSave` reports it.
            let _ = queue.send(WriteJob { entry, done });
        }
        PendingSave { result, path: self.path.clone() }
    }

    /// Path of the session file, which does not exist before the first entry.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The loop of the writer thread. It ends with the log, after a last attempt at what could not be
/// written before.
fn run_writer(mut file: SessionFile, jobs: &Receiver<WriteJob>) {
    let mut unsaved: VecDeque<Entry> = VecDeque::new();
    while let Ok(first) = jobs.recv() {
        let mut waiting = Vec::new();
        for WriteJob { entry, done } in std::iter::once(first).chain(jobs.try_iter()) {
            if let Some(entry) = entry {
                unsaved.retain(|unsaved| unsaved.id != entry.id);
                unsaved.push_back(entry);
            }
            waiting.push(done);
        }
        let saved = if unsaved.is_empty() { Ok(()) } else { save_entries(&mut file, &mut unsaved) };
        for done in waiting {
            let _ = done.send(saved.clone());
        }
    }
    if !unsaved.is_empty() {
        let _ = save_entries(&mut file, &mut unsaved);
    }
}

fn save_entries(file: &mut SessionFile, unsaved: &mut VecDeque<Entry>) -> Result<(), LogError> {
    let lines: String = unsaved.iter().map(Entry::to_line).collect();
    let (entries, bytes) = (unsaved.len(), lines.len());
    let name = file.path().file_name().unwrap_or_default();
    let span = tracing::debug_span!("session_write", file = %name.display(), entries, bytes);
    let saved = span.in_scope(|| file.append(lines.as_bytes()));
    saved
        .map_err(LogError::with_retry_note)
        .inspect_err(|error| tracing::warn!(parent: &span, %error, "entries not saved"))?;
    unsaved.clear();
    Ok(())
}

/// Makes the file agree with the session as it was read.
fn repair_file(file: &mut SessionFile, lines: &FileLines, session: &mut Session) -> Result<(), LogError> {
    let mut missing = String::new();
    let bytes = &lines.bytes;
    let start = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
    let tail = &bytes[start..];
    // A last line that is not read stays as it is. The header has been read, so the first line is
    // complete.
    if lines.left_out.last().is_some_and(|line| !line.has_end)
        || start == 0
        || (!tail.is_empty() && is_complete_line(tail))
    {
        missing.push('\n');
    } else if !tail.is_empty() {
        let kept_in = file.cut_tail(tail)?;
        let kind = SessionProblemKind::TailRemoved { bytes: tail.len(), kept_in };
        let line = memchr::memchr_iter(b'\n', bytes).count() + 1;
        match session.problems.iter_mut().find(|problem| problem.line == line) {
            Some(problem) => problem.kind = kind,
            None => session.problems.push(SessionProblem { line, kind }),
        }
    }
    if let Some(at) = session.unwritten_recovery.take() {
        missing += &session.entries[at].to_line();
    }
    if missing.is_empty() { Ok(()) } else { file.append(missing.as_bytes()) }
}

impl PendingSave {
    /// Blocks this thread until the entry is durable.
    pub fn wait(self) -> Result<(), LogError> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut saved = pin!(self);
        loop {
            match saved.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }
}

impl Future for PendingSave {
    type Output = Result<(), LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(context).map(|result| {
            result.unwrap_or_else(|_| Err(LogError::new(&self.path, LogErrorCause::WriterEnded)))
        })
    }
}

#[cfg(test)]
mod tests;
