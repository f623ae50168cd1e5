//! A session that is being written.

use std::collections::VecDeque;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};

use tokio::sync::oneshot;

use crate::disk::{Disk, LogError, LogFailure};
use crate::entry::{Entry, Header};
use crate::session::{Session, is_finished};

/// A session open for writing. Only one can be open for a file, in all processes together.
///
/// A thread of its own writes: whatever waits when it looks goes into one write and is made durable at once, so that
/// many entries cost little more than one. Dropping the log waits until all is written.
///
/// ```
/// use hardpan_prompt::{AgentMessage, Body, Part};
/// use hardpan_session::{Entry, Header, Log};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("s1.jsonl");
/// let header = Header { id: "s1".into(), time: None, cwd: "/project".into(), extra: Default::default() };
/// let log = Log::create(&path, header)?;
/// let hello = AgentMessage::new("m1", Body::User { content: vec![Part::text("Hello!")] });
/// log.append(Entry::message(None, hello)).wait()?; // or `.await?`
/// drop(log);
///
/// let (_log, session) = Log::open(&path)?;
/// assert_eq!(session.entries.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// None only while it is dropped.
    queue: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// That an entry is durable, once it is: a future, or [`Saved::wait`].
///
/// It may be dropped: the entry is written all the same.
#[derive(Debug)]
#[must_use = "an entry is not durable before this says so; drop it where that does not matter"]
pub struct Saved {
    result: oneshot::Receiver<Result<(), LogError>>,
    path: PathBuf,
}

struct Job {
    /// None to be told when all before it is durable.
    entry: Option<Entry>,
    done: oneshot::Sender<Result<(), LogError>>,
}

impl Log {
    /// A new session. Its file is made with the first entry: a conversation in which nothing was said leaves none.
    pub fn create(path: &Path, header: Header) -> Result<Self, LogError> {
        Log::start(path, Disk::later(path, header))
    }

    /// Opens a session to go on with it, and makes its file whole where a crash left it otherwise: a line that was
    /// not finished is cut off (and kept beside it), and an answer that was cut off is put together from its pieces.
    /// What was done is said in the session's problems.
    pub fn open(path: &Path) -> Result<(Self, Session), LogError> {
        let (mut disk, bytes) = Disk::open(path)?;
        let mut session = Session::parse(&path.display().to_string(), &bytes).map_err(|error| {
            let remedy = "name another session; `hardpan sessions` lists them";
            LogError::new(LogFailure::Unreadable, path, error.to_string(), remedy)
        })?;
        repair(&mut disk, &bytes, &mut session)?;
        Ok((Log::start(path, disk)?, session))
    }

    fn start(path: &Path, disk: Disk) -> Result<Self, LogError> {
        let (queue, jobs) = mpsc::channel();
        let writer = thread::Builder::new().name("session".into()).spawn(move || write(disk, &jobs));
        let writer = writer.map_err(|error| LogError::of(path, "its writer cannot be started", &error))?;
        Ok(Log { path: path.to_owned(), queue: Some(queue), writer: Some(writer) })
    }

    /// Queues an entry. Entries are written in the order in which they are appended.
    ///
    /// Where writing fails, the file is as it was before, and every entry that waited gets the error. They are kept and
    /// written before the next entry, so that no entry ever stands in the file without the one it follows; to append one
    /// of the same id again replaces it.
    pub fn append(&self, entry: Entry) -> Saved {
        self.send(Some(entry))
    }

    /// Tells when everything that was appended so far is durable.
    pub fn flush(&self) -> Saved {
        self.send(None)
    }

    fn send(&self, entry: Option<Entry>) -> Saved {
        let (done, result) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // Without a writer the sender is dropped, and `Saved` tells.
            let _ = queue.send(Job { entry, done });
        }
        Saved { result, path: self.path.clone() }
    }

    /// The file, which may not be there yet.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// The writer's life: it ends with the log, after a last attempt at what could not be written before.
fn write(mut disk: Disk, jobs: &Receiver<Job>) {
    let mut unsaved: VecDeque<Entry> = VecDeque::new();
    while let Ok(first) = jobs.recv() {
        let mut waiting = Vec::new();
        for Job { entry, done } in std::iter::once(first).chain(jobs.try_iter()) {
            if let Some(entry) = entry {
                unsaved.retain(|unsaved| unsaved.id != entry.id);
                unsaved.push_back(entry);
            }
            waiting.push(done);
        }
        let saved = if unsaved.is_empty() { Ok(()) } else { save(&mut disk, &mut unsaved) };
        for done in waiting {
            let _ = done.send(saved.clone());
        }
    }
    if !unsaved.is_empty() {
        let _ = save(&mut disk, &mut unsaved);
    }
}

fn save(disk: &mut Disk, unsaved: &mut VecDeque<Entry>) -> Result<(), LogError> {
    let lines: String = unsaved.iter().map(Entry::to_line).collect();
    disk.append(lines.as_bytes()).map_err(LogError::and_kept)?;
    unsaved.clear();
    Ok(())
}

/// Makes the file what the session says it is.
fn repair(disk: &mut Disk, bytes: &[u8], session: &mut Session) -> Result<(), LogError> {
    let mut missing = String::new();
    let start = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let tail = &bytes[start..];
    // The first line has been read, so it is whole.
    if start == 0 || (!tail.is_empty() && is_finished(tail)) {
        missing.push('\n');
    } else if !tail.is_empty() {
        let kept = disk.cut_off(bytes, start)?;
        let what = "cut off: its writing was interrupted; its";
        let what = format!("{what} {} bytes are kept in {}", tail.len(), kept.display());
        let line = bytes.iter().filter(|&&byte| byte == b'\n').count() + 1;
        match session.problems.iter_mut().find(|problem| problem.line == line) {
            Some(problem) => problem.what = what,
            None => session.report(line, what),
        }
    }
    if let Some(at) = session.missing.take() {
        missing += &session.entries[at].to_line();
    }
    if missing.is_empty() { Ok(()) } else { disk.append(missing.as_bytes()) }
}

impl Saved {
    /// Waits until the entry is durable, holding up this thread.
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

impl Future for Saved {
    type Output = Result<(), LogError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(context).map(|result| {
            result.unwrap_or_else(|_| {
                let (message, remedy) = ("its writer has ended", "open the session again");
                Err(LogError::new(LogFailure::Other, &self.path, message, remedy))
            })
        })
    }
}

#[cfg(test)]
mod tests;
