//! [`RpcServer`]: runs requests.
//!
//! Inputs (prompt, steer, follow_up, abort) take effect in the order of their arrival: each starts
//! once the one before has its response. All other requests are answered at once, except for slow
//! ones (bash, compact), which run in the background.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hardpan_agent::events::DialogAnswer;
use hardpan_agent::events::NoteKind;
use hardpan_agent::{AgentError, Delivery, Input, InputOutcome, InputSource, MessageRange, ShellVisibility};
use hardpan_app::approval::ApprovalVerdict;
use hardpan_app::mentions::PromptSource;
use hardpan_app::{ConversationApp, is_command};
use hardpan_prompt::Image;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::error::{InvalidRequestError, RpcError};
use super::input::InputLine;
use super::pending_inputs::PendingInputs;
use super::queries;
use super::questions::{Answer, PendingQuestions};
use super::reply::{PendingResponse, ResponseSent};
use super::request::{
    ApprovalAnswer, ApprovalScope, InvalidRequest, MessageForm, PanelVisibility, Request, RpcCommand,
    ThinkingLevel, ToolSwitch,
};
use super::response::{ModelInfo, PromptOutcome, ResponseData};
use super::writer::JsonWriter;

/// How long the commands of extensions may still take once standard input has ended: nobody can stop them any
/// more.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Runs the requests of one client.
pub struct RpcServer {
    app: Arc<ConversationApp>,
    out: JsonWriter,
    questions: Arc<PendingQuestions>,
    pending_inputs: PendingInputs,
    /// The tasks of the inputs that the agent has not finished.
    inputs: JoinSet<()>,
    /// Slow requests that run beside them.
    background: JoinSet<()>,
    /// Resolves when the last input has its response.
    last_response: ResponseSent,
}

impl RpcServer {
    pub fn new(
        app: &Arc<ConversationApp>,
        out: &JsonWriter,
        questions: &Arc<PendingQuestions>,
        pending_inputs: &PendingInputs,
    ) -> Self {
        RpcServer {
            pending_inputs: pending_inputs.clone(),
            app: app.clone(),
            out: out.clone(),
            questions: questions.clone(),
            inputs: JoinSet::new(),
            background: JoinSet::new(),
            last_response: ResponseSent::default(),
        }
    }

    /// Runs until standard input ends and every request is done, or until `/quit` sets `leaving`.
    pub async fn serve(&mut self, lines: &mut mpsc::Receiver<InputLine>, leaving: &AtomicBool) {
        let out = self.out.clone();
        while !leaving.load(Ordering::Relaxed) {
            let next_line = async {
                out.wait_for_room().await;
                lines.recv().await
            };
            tokio::select! {
                typed = next_line => match typed {
                    Some(typed) => self.handle_line(typed).await,
                    None => break,
                },
                Some(_) = self.inputs.join_next() => {}
                Some(_) = self.background.join_next() => {}
            }
        }
        self.questions.close();
        if !leaving.load(Ordering::Relaxed) {
            while self.inputs.join_next().await.is_some() {}
            let others = async { while self.background.join_next().await.is_some() {} };
            if tokio::time::timeout(COMMAND_TIME, others).await.is_err() {
                // Their responses say that they were stopped. Everything else ends by itself.
                self.app.agent.stop_extension_commands();
                while self.background.join_next().await.is_some() {}
            }
        }
    }

    async fn handle_line(&mut self, typed: InputLine) {
        let invalid = |id: Option<Value>, error| {
            Err(InvalidRequest { id: id.unwrap_or_default(), command: None, error })
        };
        let parsed = match typed {
            InputLine::Line(line) => Request::parse(&line),
            InputLine::TooLong { id } => invalid(id, InvalidRequestError::TooLong),
            InputLine::NotUtf8 => invalid(None, InvalidRequestError::NotUtf8),
        };
        match parsed {
            Ok((name, Request { id, command })) => {
                let (reply, response_sent) = PendingResponse::new(&self.out, id.clone(), Some(name));
                self.run_command(command, &id, reply, response_sent).await;
            }
            Err(InvalidRequest { id, command, error }) => {
                PendingResponse::new(&self.out, id, command).0.fail(error);
            }
        }
    }

    async fn run_command(
        &mut self,
        command: RpcCommand,
        id: &Value,
        reply: PendingResponse,
        response_sent: ResponseSent,
    ) {
        let agent = self.app.agent.clone();
        let done: Result<Option<ResponseData>, RpcError> = match command {
            RpcCommand::Prompt { message, images, when_busy } => {
                return self.submit_input(message, images, when_busy.map(Into::into), reply, response_sent);
            }
            RpcCommand::Steer { message, images } => {
                return self.submit_input(message, images, Some(Delivery::Steer), reply, response_sent);
            }
            RpcCommand::FollowUp { message, images } => {
                return self.submit_input(message, images, Some(Delivery::FollowUp), reply, response_sent);
            }
            RpcCommand::Abort {} => return self.abort(reply, response_sent),
            RpcCommand::Compact { instructions } => return self.compact(instructions, reply).await,
            RpcCommand::Bash { command, exclude_from_context } => {
                let visibility =
                    if exclude_from_context { ShellVisibility::UserOnly } else { ShellVisibility::Model };
                return self.run_shell_command(command, visibility, reply);
            }
            RpcCommand::AbortBash {} => {
                agent.abort_shell_command();
                Ok(None)
            }
            RpcCommand::GetState {} => Ok(Some(queries::state(&self.app))),
            RpcCommand::GetMessages {} => Ok(Some(ResponseData::Messages { messages: agent.messages() })),
            RpcCommand::Recall { entry } => {
                agent.recall(&entry).await.map(|found| Some(found.into())).map_err(RpcError::from)
            }
            RpcCommand::SetMessageState { entry, last, state, summary } => {
                let range = MessageRange { first: &entry, last: last.as_deref() };
                let changed = match state {
                    MessageForm::Whole => agent.restore_messages(range).await,
                    MessageForm::TlDr => agent.summarise_messages(range, &summary.unwrap_or_default()).await,
                    MessageForm::Deleted => agent.delete_messages(range).await,
                    MessageForm::Detached => agent.freeze_messages(Some(range.last.unwrap_or(range.first))),
                };
                changed.map(|_| None).map_err(RpcError::from)
            }
            RpcCommand::GetPanels {} => Ok(Some(queries::panels(&self.app))),
            RpcCommand::OpenPanel { target } => {
                let opened = self.app.open_item(&target).map(drop).map_err(RpcError::from);
                self.after_panel_change(opened).await
            }
            RpcCommand::ClosePanel { target } => {
                let closed = self.app.close_item(&target).await.map(drop).map_err(RpcError::from);
                self.after_panel_change(closed).await
            }
            RpcCommand::TurnPanel { panel, page } => {
                let turned = self.app.panels.registry.turn_page(&panel, page, agent.now());
                self.after_panel_change(turned.map(drop).map_err(RpcError::from)).await
            }
            RpcCommand::SwitchPanel { panel, state } => {
                let is_hidden = state == PanelVisibility::Hidden;
                let switched = self.app.panels.registry.set_hidden(&panel, is_hidden);
                self.after_panel_change(switched.map(drop).map_err(RpcError::from)).await
            }
            RpcCommand::SetModel { model, provider } => self.set_model(model, provider).await,
            RpcCommand::SetThinkingLevel { level } => self.set_thinking(level).await,
            RpcCommand::NewSession {} => self.new_session().await,
            RpcCommand::SwitchSession { session } => self.switch_session(&session).await,
            RpcCommand::Fork { entry } => self.fork(entry.as_deref()).await,
            RpcCommand::GetContext {} => Ok(Some(queries::context(&agent))),
            RpcCommand::GetSessionStats {} => Ok(Some(queries::stats(&self.app))),
            RpcCommand::GetCommands {} => Ok(Some(queries::commands(&agent))),
            RpcCommand::Complete { text } => Ok(Some(queries::completions(&self.app, &text))),
            RpcCommand::GetTools {} => Ok(Some(queries::tools(&agent))),
            RpcCommand::SwitchTool { name, state, now } => self.switch_tool(&name, state, now).await,
            RpcCommand::ApprovalResponse { verdict, reason, remember } => self
                .questions
                .answer(id.as_str(), Answer::Verdict(approval_verdict(verdict, reason, remember)))
                .map(|()| None)
                .map_err(RpcError::from),
            RpcCommand::DialogResponse { value, confirmed } => {
                let answer = match (value, confirmed) {
                    (Some(text), _) => Some(DialogAnswer::Text(text)),
                    (None, Some(is_yes)) => Some(DialogAnswer::Confirmed(is_yes)),
                    (None, None) => None,
                };
                self.questions
                    .answer(id.as_str(), Answer::Dialog(answer))
                    .map(|()| None)
                    .map_err(RpcError::from)
            }
            RpcCommand::InputResponse { value } => {
                self.questions.answer(id.as_str(), Answer::Text(value)).map(|()| None).map_err(RpcError::from)
            }
        };
        match done {
            Ok(data) => reply.succeed(data),
            Err(error) => reply.fail(error),
        }
    }

    /// Stores what changed about panels, and lists them.
    async fn after_panel_change(
        &self,
        changed: Result<(), RpcError>,
    ) -> Result<Option<ResponseData>, RpcError> {
        changed?;
        self.app.save_state().await;
        Ok(Some(queries::panels(&self.app)))
    }

    fn is_busy(&self) -> bool {
        self.app.agent.status().is_working()
    }

    /// Gives an input to the agent. Without a delivery mode, rejects it while the agent is busy,
    /// unless it is a slash command.
    fn submit_input(
        &mut self,
        text: String,
        images: Vec<Image>,
        delivery: Option<Delivery>,
        reply: PendingResponse,
        response_sent: ResponseSent,
    ) {
        let (app, agent) = (self.app.clone(), self.app.agent.clone());
        let is_command = is_command(&agent, &text);
        if delivery.is_none() && !is_command && self.is_busy() {
            return reply.fail(AgentError::Busy);
        }
        if let Err(error) = check_images(&images) {
            return reply.fail(error);
        }
        let out = self.out.clone();
        if is_command {
            let input = prompt_input(&app, &out, text, images);
            self.background.spawn(async move { respond(&reply, agent.prompt(input).await) });
            return;
        }
        let before = std::mem::replace(&mut self.last_response, response_sent);
        let was_idle = !self.is_busy();
        // From now on the agent is busy, though it gets the input only when it is its turn.
        let claim = agent.claim_work();
        let inputs = self.pending_inputs.clone();
        let (id, reply) = inputs.add(reply);
        self.inputs.spawn(async move {
            before.wait().await;
            if was_idle {
                // The run before has reported its end but may not be over. This input must not go
                // into its queues, where it would stay if that run was stopped.
                agent.wait_until_idle().await;
            }
            app.mcp.learn_prompts_of(&text).await;
            if let Err(refusal) = app.confirm_attachments(&text, None, &images).await {
                reply.fail(refusal);
                return inputs.remove(id);
            }
            let input = Input { id: Some(id), ..prompt_input(&app, &out, text, images) };
            // If idle, the agent starts a run whatever the delivery mode.
            let outcome = agent.queue_claimed(input, delivery.unwrap_or(Delivery::Steer), claim).await;
            let ran = matches!(outcome, Ok(InputOutcome::Ran(_)));
            respond(&reply, outcome);
            inputs.remove(id);
            if ran {
                app.save_state().await;
            }
        });
    }

    /// Stops what runs now, and inputs that arrived before this request but have not started.
    fn abort(&mut self, reply: PendingResponse, response_sent: ResponseSent) {
        let agent = self.app.agent.clone();
        agent.stop();
        self.questions.decline_prices();
        let before = std::mem::replace(&mut self.last_response, response_sent);
        self.background.spawn(async move {
            before.wait().await;
            agent.abort();
            reply.succeed(None);
        });
    }

    /// Waits for the last bookkeeping of finished runs. Fails if the agent is busy.
    async fn wait_until_idle(&mut self) -> Result<(), RpcError> {
        if self.is_busy() {
            return Err(AgentError::Busy.into());
        }
        // Finished runs may still be storing what they learned.
        while self.inputs.join_next().await.is_some() {}
        Ok(())
    }

    async fn compact(&mut self, instructions: Option<String>, reply: PendingResponse) {
        if let Err(error) = self.wait_until_idle().await {
            return reply.fail(error);
        }
        let agent = self.app.agent.clone();
        let claim = agent.claim_work();
        self.background.spawn(async move {
            let compacted = agent.compact(instructions).await;
            drop(claim);
            match compacted {
                Ok(compacted) => reply.succeed(queries::compacted(compacted)),
                Err(error) => reply.fail(error),
            }
        });
    }

    fn run_shell_command(&mut self, command: String, visibility: ShellVisibility, reply: PendingResponse) {
        let agent = self.app.agent.clone();
        self.background.spawn(async move {
            match agent.run_shell_command(command, visibility).await {
                Ok(message) => reply.succeed(ResponseData::Bash { message: Box::new(message) }),
                Err(error) => reply.fail(error),
            }
        });
    }

    async fn set_model(
        &self,
        model: String,
        provider: Option<String>,
    ) -> Result<Option<ResponseData>, RpcError> {
        let target = self.app.select_model(provider, model).await?;
        let data = ResponseData::ModelInfo(ModelInfo::from(&target));
        Ok(Some(data))
    }

    async fn set_thinking(&self, level: ThinkingLevel) -> Result<Option<ResponseData>, RpcError> {
        self.app.select_thinking(level.into()).await?;
        Ok(Some(ResponseData::Thinking { thinking: self.app.agent.thinking().into() }))
    }

    async fn switch_tool(
        &self,
        name: &str,
        state: ToolSwitch,
        now: bool,
    ) -> Result<Option<ResponseData>, RpcError> {
        let agent = &self.app.agent;
        agent.switch_tool(name, state.into()).await?;
        if now {
            agent.declare_tools_now().await?;
        }
        Ok(Some(queries::tools(agent)))
    }

    async fn new_session(&mut self) -> Result<Option<ResponseData>, RpcError> {
        self.wait_until_idle().await?;
        let app = &self.app;
        app.start_new().await?;
        Ok(Some(ResponseData::SessionInfo(queries::session(app))))
    }

    async fn switch_session(&mut self, name: &str) -> Result<Option<ResponseData>, RpcError> {
        self.wait_until_idle().await?;
        let app = self.app.clone();
        let summary = app.store.find(Some(&app.folder), name)?;
        if summary.path == app.agent.session().1 {
            return Ok(Some(ResponseData::SessionInfo(queries::session(&app))));
        }
        let resumed = app.resume(&summary).await?;
        // Keeps the conversation's own model, as --resume does.
        app.restore_choices(&resumed).await?;
        Ok(Some(ResponseData::SessionInfo(queries::session(&app))))
    }

    async fn fork(&mut self, entry: Option<&str>) -> Result<Option<ResponseData>, RpcError> {
        self.wait_until_idle().await?;
        let app = &self.app;
        app.fork(entry).await?;
        Ok(Some(ResponseData::SessionInfo(queries::session(app))))
    }
}

/// Converts the client's answer to an approval question.
fn approval_verdict(
    verdict: ApprovalAnswer,
    reason: Option<String>,
    remember: Option<ApprovalScope>,
) -> ApprovalVerdict {
    match (verdict, remember) {
        (ApprovalAnswer::Yes, None) => ApprovalVerdict::Once,
        (ApprovalAnswer::Yes, Some(ApprovalScope::Session)) => ApprovalVerdict::Session,
        (ApprovalAnswer::Yes, Some(ApprovalScope::Always)) => ApprovalVerdict::Always,
        (ApprovalAnswer::No, _) => ApprovalVerdict::No(
            reason.map_or("the person said no".into(), |reason| format!("the person said no: {reason}")),
        ),
    }
}

/// Sends the response to an input, unless its stored message has triggered it already.
fn respond(reply: &PendingResponse, outcome: Result<InputOutcome, AgentError>) {
    match outcome {
        Ok(InputOutcome::Queued(delivery)) => {
            reply.succeed(ResponseData::PromptOutcome(PromptOutcome::Queued { delivery: delivery.into() }));
        }
        Ok(InputOutcome::Command { output }) => {
            reply.succeed(ResponseData::PromptOutcome(PromptOutcome::Command { said: output }));
        }
        Ok(InputOutcome::Handled) => reply.succeed(ResponseData::PromptOutcome(PromptOutcome::Handled {})),
        // Its response was sent when its message was stored.
        Ok(InputOutcome::Ran(_)) => {}
        Err(error) => reply.fail(error),
    }
}

/// Fails if an image of a request is none that a provider accepts.
fn check_images(images: &[Image]) -> Result<(), RpcError> {
    images.iter().try_for_each(|image| image.check_data().and_then(|()| image.check()))?;
    Ok(())
}

/// The agent's input, with the images of the request and those that the text mentions.
fn prompt_input(app: &ConversationApp, out: &JsonWriter, text: String, images: Vec<Image>) -> Input {
    let attachments = app.attach_mentions(&text, PromptSource::Typed);
    attachments.notes.iter().for_each(|note| out.write_note(note, NoteKind::Mention));
    let images = images.into_iter().chain(attachments.images).collect();
    Input { text, below: None, images, source: InputSource::Rpc, id: None }
}
