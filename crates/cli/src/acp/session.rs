//! [`AcpSession`]: one conversation of the client's, from its opening to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ConfigOptionUpdate, CurrentModeUpdate,
    Error, NoticeSeverity, PromptRequest, PromptResponse, SessionConfigOption, SessionId,
    SessionNotification, SessionUpdate, StopReason, UnstructuredCommandInput,
};
use hardpan_agent::events::{FaceChange, FaceChanged, ToolCallEvent, ToolCallReply};
use hardpan_agent::{Agent, AgentError, AgentEvent, Delivery, Input, InputOutcome, InputSource, RunEnd};
use hardpan_app::mentions::PromptSource;
use hardpan_app::options::OpenOptions;
use hardpan_app::{ConversationApp, FaceHooks, Notice, NoticeSink, error_text, is_command};
use hardpan_terminal::model::Mode;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::connection::{Connection, response};
use super::content::PromptContent;
use super::initialize::missing_key;
use super::options::{MODE, MODEL, THINKING, config_options, mode_by_id};
use super::prompter::ClientPrompter;
use super::tool_calls::file_change;
use super::updates::{CallChanges, UpdateMapper, chunk, plan};
use crate::chat::commands::register_commands;
use crate::event_reader::{OrderedQueue, QueueItem};
use crate::page_chat::modes::{self, SharedMode};
use crate::rpc::queries::command_list;

/// Commands that lead to another conversation or end the process: the client does that.
const CLIENT_COMMANDS: [&str; 6] = ["new", "clear", "resume", "fork", "quit", "exit"];

/// Commands that are of use in a terminal alone; a client does not offer them.
const TERMINAL_COMMANDS: [&str; 6] = ["keys", "copy", "hud", "key", "queue", "unqueue"];

/// How long the end of what still runs is waited for when a session is closed.
const CLOSE_TIME: Duration = Duration::from_secs(3);

/// How often a run is asked to stop until it has stopped: it may not have begun when the client says so.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// How long commands may go on changing before the client is told: a server's come one by one.
const COMMANDS_PAUSE: Duration = Duration::from_millis(50);

/// What is written between the updates that events lead to.
pub enum SessionItem {
    /// A message of the protocol.
    Message(Value),
    Update(Box<SessionUpdate>),
    /// Something that the person should know.
    Note(String),
    /// No item follows.
    End,
}

/// One conversation.
pub struct AcpSession {
    pub id: SessionId,
    pub app: Arc<ConversationApp>,
    connection: Connection,
    items: mpsc::UnboundedSender<SessionItem>,
    mode: SharedMode,
    /// Whether the model was last told to plan.
    is_plan_told: AtomicBool,
    changes: CallChanges,
    /// Tells the prompt that runs to stop; none while no prompt runs.
    cancel: Mutex<Option<watch::Sender<bool>>>,
    /// Held until extensions are loaded; prompts wait for it.
    starting: Arc<tokio::sync::Mutex<()>>,
    queue: Mutex<Option<OrderedQueue<SessionItem>>>,
}

struct ItemNotices(mpsc::UnboundedSender<SessionItem>);

impl NoticeSink for ItemNotices {
    fn notice(&self, notice: Notice) {
        // Fails once the session has ended.
        let _ = self.0.send(SessionItem::Note(notice.to_string()));
    }
}

impl AcpSession {
    /// Opens a conversation. Nothing is written until [`AcpSession::start`].
    pub async fn open(options: OpenOptions, connection: &Connection) -> Result<Arc<Self>, Error> {
        let (items, received) = mpsc::unbounded_channel();
        let mode = SharedMode::default();
        let prompter = Arc::new(ClientPrompter::new(connection, items.clone(), &mode));
        let face =
            FaceHooks { prompter: Some(prompter.clone()), notices: Arc::new(ItemNotices(items.clone())) };
        let opened = tokio::task::spawn_blocking(move || ConversationApp::open(&options, &face)).await;
        let opened = opened.map_err(|error| Error::internal_error().data(error.to_string()))?;
        let app = Arc::new(opened.map_err(|error| Error::invalid_params().data(error_text(&error)))?);
        let target = app.agent.target();
        if app.is_offline(&target) {
            return Err(missing_key(&target.provider));
        }
        let id = SessionId::new(app.agent.session().0);
        prompter.open(id.clone(), app.scope.clone());
        register_commands(&app);
        *mode.lock().unwrap_or_else(PoisonError::into_inner) = modes::stored_mode(&app.agent);
        modes::block_changes_in_plan(&app, &mode);
        let changes = CallChanges::default();
        keep_changes(&app, &changes);
        let queue = OrderedQueue::new(app.agent.events().stream(), received);
        Ok(Arc::new(AcpSession {
            id,
            app,
            connection: connection.clone(),
            items,
            mode,
            is_plan_told: AtomicBool::new(false),
            changes,
            cancel: Mutex::default(),
            starting: Arc::default(),
            queue: Mutex::new(Some(queue)),
        }))
    }

    /// Writes updates from now on, and loads extensions. Called once the client knows the session.
    pub fn start(self: &Arc<Self>) {
        let Some(mut queue) = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let mut mapper = UpdateMapper::new(&self.app, &self.changes, &self.connection);
        let session = self.clone();
        tokio::spawn(async move {
            while let Some(item) = queue.next().await {
                let updates = match item {
                    QueueItem::Event(event) => {
                        if is_reload(&event) {
                            session.update(session.commands());
                        }
                        mapper.updates(&event).await
                    }
                    QueueItem::Own(SessionItem::Message(message)) => {
                        session.connection.write(&message).await;
                        continue;
                    }
                    QueueItem::Own(SessionItem::Update(update)) => vec![*update],
                    QueueItem::Own(SessionItem::Note(text)) => {
                        mapper.note(&text, NoticeSeverity::Warning).into_iter().collect()
                    }
                    QueueItem::Own(SessionItem::End) => break,
                };
                for update in updates {
                    session.write_update(update).await;
                }
                mapper.release_terminals().await;
            }
        });
        let session = self.clone();
        // Taken here and not in the task, so that no prompt comes first.
        let Ok(started) = self.starting.clone().try_lock_owned() else { return };
        tokio::spawn(async move {
            if let Err(error) = session.app.load_extensions().await {
                session.app.notice_of_model(&error);
            }
            session.app.agent.start().await;
            session.app.watch_extensions();
            let mut changes = session.app.agent.watch_commands();
            let mut told = session.commands();
            session.update(told.clone());
            session.update_plan();
            drop(started);
            // Servers start in the background, and those with prompts bring commands.
            let open = Arc::downgrade(&session);
            drop(session);
            while changes.changed().await.is_ok() {
                tokio::time::sleep(COMMANDS_PAUSE).await;
                changes.mark_unchanged();
                let Some(session) = open.upgrade() else { break };
                let commands = session.commands();
                if commands != told {
                    session.update(commands.clone());
                    told = commands;
                }
            }
        });
    }

    /// Shows the todo list that a conversation from earlier has.
    fn update_plan(&self) {
        let todos = self.app.panels.todos();
        if !todos.is_empty() {
            self.update(plan(todos));
        }
    }

    /// Writes an update at once.
    pub async fn write_update(&self, update: SessionUpdate) {
        let params = SessionNotification::new(self.id.clone(), update);
        self.connection.write(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params})).await;
    }

    /// Writes an update after the events so far.
    fn update(&self, update: SessionUpdate) {
        // Fails once the session has ended.
        let _ = self.items.send(SessionItem::Update(Box::new(update)));
    }

    pub fn note(&self, text: impl Into<String>) {
        let _ = self.items.send(SessionItem::Note(text.into()));
    }

    fn commands(&self) -> SessionUpdate {
        let offered = command_list(&self.app.agent).into_iter().filter(|command| {
            let name = command.name.as_ref();
            !CLIENT_COMMANDS.contains(&name) && !TERMINAL_COMMANDS.contains(&name)
        });
        let command = offered.map(|command| {
            let hint = command.argument_hint.map(|hint| {
                AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_string()))
            });
            AvailableCommand::new(command.name.to_string(), command.description.to_string()).input(hint)
        });
        SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(command.collect()))
    }

    pub fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        config_options(&self.app, self.mode())
    }

    /// Changes the mode, from the next call on.
    pub async fn set_mode(&self, id: &str) -> Result<(), Error> {
        let mode = mode_by_id(id).ok_or_else(|| {
            Error::invalid_params()
                .data(format!("there is no mode {id:?}; the modes are ask, edits and plan"))
        })?;
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
        modes::store_mode(&self.app.agent, mode).await;
        self.update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.name())));
        self.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.config_options())));
        Ok(())
    }

    /// Changes one of [`config_options`].
    pub async fn set_option(&self, id: &str, value: &str) -> Result<Vec<SessionConfigOption>, Error> {
        match id {
            MODE => self.set_mode(value).await?,
            MODEL => {
                let (provider, model) = match value.split_once('/') {
                    Some((provider, model)) => (Some(provider.to_owned()), model.to_owned()),
                    None => (None, value.to_owned()),
                };
                let target = self.app.find_model(provider, model).map_err(invalid)?;
                if self.app.is_offline(&target) {
                    return Err(missing_key(&target.provider));
                }
                self.app.switch_model(target).await.map_err(invalid)?;
            }
            THINKING => {
                let level = value.parse().map_err(invalid::<hardpan_models::UnknownThinkingLevel>)?;
                self.app.select_thinking(level).await.map_err(invalid)?;
            }
            _ => {
                let known =
                    format!("there is no option {id:?}; the options are {MODE}, {MODEL} and {THINKING}");
                return Err(Error::invalid_params().data(known));
            }
        }
        Ok(self.config_options())
    }

    /// Runs a prompt; its response comes after its updates. `Err` answers it at once: another one runs.
    pub fn prompt(self: &Arc<Self>, id: Value, request: PromptRequest) -> Result<(), Error> {
        let (sender, cancelled) = watch::channel(false);
        {
            let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
            if cancel.is_some() {
                return Err(Error::invalid_request().data(
                    "a prompt runs in this session: wait for its end, or cancel it with session/cancel",
                ));
            }
            *cancel = Some(sender);
        }
        let session = self.clone();
        tokio::spawn(async move {
            let answer = session.run_prompt(request, cancelled).await;
            session.cancel.lock().unwrap_or_else(PoisonError::into_inner).take();
            let answer = answer.map(|reason| json!(PromptResponse::new(reason)));
            let _ = session.items.send(SessionItem::Message(response(&id, answer)));
        });
        Ok(())
    }

    /// Stops the prompt that runs, if one does.
    pub fn cancel(&self) {
        if let Some(cancel) = &*self.cancel.lock().unwrap_or_else(PoisonError::into_inner) {
            cancel.send_replace(true);
        }
    }

    async fn run_prompt(
        &self,
        request: PromptRequest,
        mut cancelled: watch::Receiver<bool>,
    ) -> Result<StopReason, Error> {
        let content = PromptContent::read(request.prompt, &self.app.scope)?;
        drop(self.starting.lock().await);
        let agent = &self.app.agent;
        let PromptContent { text, attached, images } = content;
        self.app.mcp.learn_prompts_of(&text).await;
        if is_command(agent, &text) {
            let name = text.trim_start_matches('/').split(char::is_whitespace).next().unwrap_or_default();
            if CLIENT_COMMANDS.contains(&name) {
                let said = format!("/{name} is for the terminal: begin, load and end sessions in the editor");
                self.update(SessionUpdate::AgentMessageChunk(chunk(&said)));
                return Ok(StopReason::EndTurn);
            }
        }
        tokio::select! {
            biased;
            () = wait_for_cancel(&mut cancelled) => return Ok(StopReason::Cancelled),
            confirmed = self.app.confirm_attachments(&text, attached.as_deref(), &images) => {
                confirmed.map_err(|refusal| Error::invalid_params().data(refusal.to_string()))?;
            }
        }
        let is_plan = self.mode() == Mode::Plan;
        if self.is_plan_told.swap(is_plan, Ordering::Relaxed) != is_plan {
            modes::tell_of_plan(agent, is_plan);
        }
        let mentioned = self.app.attach_mentions(&text, PromptSource::Typed);
        mentioned.notes.iter().for_each(|note| self.note(note.to_string()));
        let images = images.into_iter().chain(mentioned.images).collect();
        let input = Input { text, below: attached, images, source: InputSource::Rpc, id: None };
        let run = prompt_or_steer(agent, input);
        tokio::pin!(run);
        let outcome = tokio::select! {
            biased;
            outcome = &mut run => outcome,
            () = wait_for_cancel(&mut cancelled) => loop {
                agent.stop();
                tokio::select! {
                    outcome = &mut run => break outcome,
                    () = tokio::time::sleep(STOP_INTERVAL) => {}
                }
            },
        };
        modes::store_mode(agent, self.mode()).await;
        self.app.save_state().await;
        let failed = |message: String| match *cancelled.borrow() {
            // A client that has cancelled expects no error.
            true => Ok(StopReason::Cancelled),
            false => Err(Error::internal_error().data(message)),
        };
        match outcome {
            Ok(InputOutcome::Command { output }) => {
                if let Some(said) = output {
                    self.update(SessionUpdate::AgentMessageChunk(chunk(&said)));
                }
                // A command may have changed the model or the thinking level.
                self.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(
                    self.config_options(),
                )));
                Ok(StopReason::EndTurn)
            }
            Ok(InputOutcome::Queued(_)) if *cancelled.borrow() => {
                // It was cancelled before anything read it.
                agent.clear_queue().await;
                Ok(StopReason::Cancelled)
            }
            Ok(InputOutcome::Handled | InputOutcome::Queued(_)) => Ok(StopReason::EndTurn),
            Ok(InputOutcome::Ran(end)) => match end {
                RunEnd::Done => Ok(StopReason::EndTurn),
                RunEnd::Aborted => Ok(StopReason::Cancelled),
                RunEnd::Length => Ok(StopReason::MaxTokens),
                RunEnd::Refused => Ok(StopReason::Refusal),
                RunEnd::Looping { tool } => {
                    self.note(format!("stopped, because the model kept repeating a failing call of {tool}"));
                    Ok(StopReason::MaxTurnRequests)
                }
                RunEnd::TooLong { message } | RunEnd::Error { message } => failed(message),
            },
            Err(error) => failed(error.to_string()),
        }
    }

    /// Stops what runs, stores everything, and ends.
    pub async fn close(&self) {
        self.cancel();
        let agent = &self.app.agent;
        agent.stop();
        // What does not end keeps no client from leaving.
        let _ = tokio::time::timeout(CLOSE_TIME, agent.wait_until_idle()).await;
        if let Err(error) = self.app.close().await {
            tracing::error!(%error, "a session was not closed properly");
        }
        let _ = self.items.send(SessionItem::End);
    }
}

/// Runs a prompt to its end. If something runs that no prompt of the client began, such as what an extension
/// says, the prompt steers that, and its end is waited for.
async fn prompt_or_steer(agent: &Agent, input: Input) -> Result<InputOutcome, AgentError> {
    match agent.prompt(input.clone()).await {
        Err(AgentError::Busy) => {}
        outcome => return outcome,
    }
    let outcome = agent.queue(input, Delivery::Steer).await;
    if let Ok(InputOutcome::Queued(_)) = outcome {
        agent.wait_until_idle().await;
    }
    outcome
}

/// Resolves when the client has cancelled.
async fn wait_for_cancel(cancelled: &mut watch::Receiver<bool>) {
    let is_cancelled = cancelled.wait_for(|is_cancelled| *is_cancelled).await.is_ok();
    if !is_cancelled {
        // Nobody can cancel any more.
        std::future::pending::<()>().await;
    }
}

/// What the client asked for cannot be done.
fn invalid<E: std::error::Error + 'static>(error: E) -> Error {
    Error::invalid_params().data(error_text(&error))
}

/// Whether an event says that the commands may be others.
fn is_reload(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::FaceChanged(FaceChanged { change: FaceChange::Reloaded, .. }))
}

/// Keeps what calls are about to make of files, as the files are before.
fn keep_changes(app: &ConversationApp, changes: &CallChanges) {
    let (scope, changes) = (app.scope.clone(), changes.clone());
    app.agent.events().subscribe::<ToolCallEvent, _>("acp", move |call, _| {
        if let Some(diff) = file_change(&call.tool_name, &call.input, &scope) {
            changes.lock().unwrap_or_else(PoisonError::into_inner).insert(call.call_id.clone(), diff);
        }
        std::future::ready(Ok(ToolCallReply::Allow))
    });
}
