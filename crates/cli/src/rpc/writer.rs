//! [`JsonWriter`]: everything that goes to standard output, one JSON object per line and in order.
//!
//! A thread of its own writes, so that a client that does not read blocks nothing but the runs and
//! requests that wait for it. A line comes after the events that were emitted before it was sent.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hardpan_agent::events::{MessageEnd, MessageStart, Note, NoteKind};
use hardpan_agent::{Agent, AgentEvent, InputId};
use hardpan_app::{Notice, NoticeSink};
use hardpan_prompt::{AgentMessage, MessageBody};
use serde::Serialize;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::pending_inputs::PendingInputs;
use super::reply::PendingResponse;
use super::response::{PromptOutcome, ResponseData};
use crate::event_reader::{OrderedQueue, QueueItem};
use crate::output;

/// While this many lines wait to be written, no more requests are read.
const MAX_BACKLOG: usize = 64;

/// Sends lines to the thread that writes them.
#[derive(Clone)]
pub struct JsonWriter {
    lines: mpsc::UnboundedSender<OutputLine>,
    backlog: Arc<Backlog>,
    reader_gone: Arc<Notify>,
}

enum OutputLine {
    Json(String),
    /// No line follows.
    End,
}

/// The lines that are not written yet.
#[derive(Default)]
struct Backlog {
    count: AtomicUsize,
    shrunk: Notify,
}

/// What a `WriterThread` will write, before there is an agent whose events it could write.
pub struct UnstartedWriter {
    lines: mpsc::UnboundedReceiver<OutputLine>,
    backlog: Arc<Backlog>,
    reader_gone: Arc<Notify>,
}

impl JsonWriter {
    pub fn new() -> (Self, UnstartedWriter) {
        let (sender, lines) = mpsc::unbounded_channel();
        let (backlog, reader_gone): (Arc<Backlog>, Arc<Notify>) = Default::default();
        let writer = JsonWriter { lines: sender, backlog: backlog.clone(), reader_gone: reader_gone.clone() };
        (writer, UnstartedWriter { lines, backlog, reader_gone })
    }

    /// Sends a line.
    pub fn write_line(&self, value: &impl Serialize) {
        // Cannot fail: all our types have string keys.
        let Ok(json) = serde_json::to_string(value) else { return };
        self.backlog.count.fetch_add(1, Ordering::SeqCst);
        // Fails once the last line is written; nobody reads any more then.
        let _ = self.lines.send(OutputLine::Json(json));
    }

    /// Writes a `note` event: something that the user should know.
    pub fn write_note(&self, note: &impl ToString, kind: NoteKind) {
        self.write_line(&AgentEvent::Note(Note { text: note.to_string(), kind }));
    }

    /// Waits until the client has read enough of what was sent.
    pub async fn wait_for_room(&self) {
        loop {
            let shrunk = self.backlog.shrunk.notified();
            tokio::pin!(shrunk);
            shrunk.as_mut().enable();
            if self.backlog.count.load(Ordering::SeqCst) < MAX_BACKLOG {
                return;
            }
            shrunk.await;
        }
    }

    /// Lets the thread end when it has written everything.
    pub fn end(&self) {
        let _ = self.lines.send(OutputLine::End);
    }

    /// Waits until a write fails, which means that the client is gone.
    pub async fn wait_for_reader_gone(&self) {
        self.reader_gone.notified().await;
    }
}

impl NoticeSink for JsonWriter {
    fn notice(&self, notice: Notice) {
        self.write_note(&notice, NoteKind::Setup);
    }
}

impl UnstartedWriter {
    /// Starts to write lines and the agent's events.
    pub fn start(self, agent: &Agent, inputs: &PendingInputs) -> JoinHandle<()> {
        let UnstartedWriter { lines, backlog, reader_gone } = self;
        let mut events = EventWriter { inputs: inputs.clone(), in_run: false, prompt: None, reader_gone };
        OrderedQueue::new(agent.events().stream(), lines).run(move |item| {
            match item {
                QueueItem::Event(event) => events.write_event(&event),
                QueueItem::Own(OutputLine::Json(line)) => {
                    events.write(line);
                    backlog.count.fetch_sub(1, Ordering::SeqCst);
                    backlog.shrunk.notify_waiters();
                }
                QueueItem::Own(OutputLine::End) => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        })
    }
}

/// Writes events, and the response to an input right after the event that reports its message as
/// stored.
struct EventWriter {
    inputs: PendingInputs,
    in_run: bool,
    /// The input whose message began the run.
    prompt: Option<(InputId, Arc<PendingResponse>)>,
    reader_gone: Arc<Notify>,
}

impl EventWriter {
    fn write_event(&mut self, event: &AgentEvent) {
        match event {
            // Within a run, it is a message that was queued: its input has its response.
            AgentEvent::MessageStart(MessageStart { message, input }) if is_user(message) && !self.in_run => {
                self.in_run = true;
                self.prompt = input.and_then(|id| Some((id, self.inputs.get(id)?)));
            }
            AgentEvent::AgentEnd(_) => {
                self.in_run = false;
                self.prompt = None;
            }
            _ => {}
        }
        self.write_json(event);
        if let AgentEvent::MessageEnd(MessageEnd { message, input: Some(id), .. }) = event
            && let Some((_, reply)) = self.prompt.as_ref().filter(|(prompt, _)| prompt == id)
        {
            let message_id = message.id.to_string();
            let data = ResponseData::PromptOutcome(PromptOutcome::Started { message_id });
            reply.succeed_with(Some(data), |response| self.write_json(response));
        }
    }

    fn write_json(&self, value: &impl Serialize) {
        if let Ok(json) = serde_json::to_string(value) {
            self.write(json);
        }
    }

    fn write(&self, line: String) {
        if output::print_json_line(line).is_err() {
            self.reader_gone.notify_one();
        }
    }
}

fn is_user(message: &AgentMessage) -> bool {
    matches!(*message.body, MessageBody::User { .. })
}
