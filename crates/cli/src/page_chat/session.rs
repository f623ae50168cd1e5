//! [`Session`]: does with the agent what the person asks for in a face.

mod mode_control; // modes, and what becomes of a plan

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hardpan_agent::{
    AgentError, Delivery, Input, InputId, InputOutcome, InputSource, MessageRange, RunEnd, ShellVisibility,
    Spending,
};
use hardpan_app::attachment_price::AttachmentRefusal;
use hardpan_app::mentions::PromptSource;
use hardpan_app::{Attachments, ConversationApp};
use hardpan_prompt::{AgentMessage, MessageBody};
use hardpan_terminal::blocks::Subject;
use hardpan_terminal::editor::{Submission, SubmissionKind};
use hardpan_terminal::model::{AgentUpdate, Effect, Event, ToolEnd};

use super::conversation::FaceSender;
use super::drafts::DraftFile;
use super::face_host::append_history;
use super::modes::SharedMode;
use super::page_prompter::{AnswerEffect, PendingQuestions};
use super::{clipboard, modes};
use crate::chat::{commands, display, one_shot};
use crate::output::dollars;

/// The id under which the agent tells of the person's own commands.
const SHELL_CALL: &str = "user_bash";

/// How long the end of what still runs is waited for when the person leaves.
const STOP_TIME: Duration = Duration::from_secs(3);

/// How often what still runs is told to stop.
const STOP_PAUSE: Duration = Duration::from_millis(50);

/// Inputs that the face has printed when they were sent; others are printed when they are delivered.
pub type PrintedInputs = Arc<Mutex<BTreeSet<InputId>>>;

/// What became of an input.
pub enum PendingOutcome {
    Input(Result<InputOutcome, AgentError>),
    /// A request that kept the cache warm.
    Ping(Result<Spending, AgentError>),
    /// The person did not want to pay for what goes with it.
    NotSent {
        refusal: AttachmentRefusal,
        text: String,
    },
    /// The person's own command, with its output and its exit code.
    Shell(Result<(String, Option<i32>), AgentError>),
}

impl PendingOutcome {
    /// What `hardpan -p` would end with; none if nothing failed.
    fn exit_code(&self) -> Option<u8> {
        match self {
            PendingOutcome::Input(Ok(InputOutcome::Ran(end))) => one_shot::run_failure(end).map(|it| it.code),
            PendingOutcome::Input(Ok(_))
            | PendingOutcome::Ping(_)
            | PendingOutcome::Shell(Ok((_, Some(0)))) => None,
            PendingOutcome::Input(Err(_)) | PendingOutcome::NotSent { .. } | PendingOutcome::Shell(_) => {
                Some(1)
            }
        }
    }
}

/// What a session does after each run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// Nothing.
    Rest,
    /// Show the HUD (`--hud`).
    ShowHud,
}

/// What became of inputs that were not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// How many there were.
    pub count: usize,
    /// What `hardpan -p` would end with after the last of them.
    pub exit_code: u8,
}

/// Does with the agent what the person asks for.
pub struct Session {
    pub app: Arc<ConversationApp>,
    pub face: FaceSender,
    pub questions: PendingQuestions,
    pub mode: SharedMode,
    pub printed: PrintedInputs,
    /// The person has stopped what ran, and sent nothing since.
    pub was_stopped: Arc<AtomicBool>,
    pub after_run: AfterRun,
    /// What failed so far, for those who only get an exit code.
    pub failure: Option<RunFailure>,
    pending: FuturesUnordered<BoxFuture<'static, PendingOutcome>>,
    last_input: u64,
    session_id: Arc<str>,
    /// Whether the model was told that it is to plan.
    is_plan_told: bool,
    /// The prompt of the run that ends is in the line again.
    is_prompt_taken_back: bool,
    draft: Option<DraftFile>,
    /// The question about a plan that was not answered yet.
    plan_question: Option<u64>,
}

impl Session {
    pub fn new(
        app: Arc<ConversationApp>,
        face: FaceSender,
        questions: PendingQuestions,
        mode: SharedMode,
        after_run: AfterRun,
    ) -> Self {
        let session_id = app.agent.session().0;
        let state = app.settings.user_folders.state.as_ref();
        let draft = state.map(|state| DraftFile::new(state, &app.scope.root));
        Session {
            app,
            face,
            questions,
            mode,
            printed: PrintedInputs::default(),
            was_stopped: Arc::default(),
            after_run,
            failure: None,
            pending: FuturesUnordered::new(),
            last_input: 0,
            session_id,
            is_plan_told: false,
            is_prompt_taken_back: false,
            draft,
            plan_question: None,
        }
    }

    /// What has become of an input; none if nothing is pending.
    pub async fn next_outcome(&mut self) -> Option<PendingOutcome> {
        self.pending.next().await
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send(submission) => {
                self.send(&submission, Delivery::Steer, true);
                self.tell_if_idle();
            }
            Effect::Steer(submission) => self.send(&submission, Delivery::Steer, false),
            Effect::QueueForEnd(submission) => self.send(&submission, Delivery::FollowUp, false),
            Effect::TakeBack => self.take_back().await,
            Effect::Stop | Effect::Kill => self.stop(),
            Effect::StopBackgroundWork => {
                self.app.stop_indexing().await;
                self.note("indexing stopped; what is indexed is kept, and /index goes on with it");
            }
            Effect::StopAndTakeBack => {
                self.is_prompt_taken_back = true;
                self.stop();
            }
            Effect::SaveDraft(draft) => {
                self.app.extensions.set_editor_text(&draft);
                self.draft.iter().for_each(|file| file.store(&draft));
            }
            Effect::ExtensionKey(key) => {
                let app = self.app.clone();
                // It may take as long as a person takes to answer it.
                drop(tokio::spawn(async move { app.extensions.press(&key).await }));
            }
            Effect::PasteImage => self.paste_image(),
            Effect::Answer { id, answer } => match self.questions.answer(id, answer) {
                AnswerEffect::GoesOn => {}
                AnswerEffect::Stops => self.stop(),
                AnswerEffect::AsksAgain(prompt) => {
                    self.note("the lines that separate the edits are not as they were: nothing was changed");
                    self.face.agent(AgentUpdate::ApprovalAsked(*prompt));
                }
            },
            Effect::AnswerQuestion { id, answer } if self.plan_question == Some(id) => {
                self.answer_plan(answer);
            }
            Effect::AnswerQuestion { id, answer } => self.questions.answer_text(id, answer),
            Effect::SetMode(mode) => self.set_mode(mode),
            Effect::RetryNow => self.app.agent.retry_now(),
            Effect::AppendHistory(line) => append_history(&self.app, &line),
            // The face does these itself.
            Effect::Open(_)
            | Effect::OpenEditor(_)
            | Effect::EditCall { .. }
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Leave
            | Effect::SetTitle(_)
            | Effect::Notify(_) => {}
        }
    }

    /// Sends a line: a prompt, a command, a command of the shell. `is_printed`: the face has shown it.
    fn send(&mut self, submission: &Submission, delivery: Delivery, is_printed: bool) {
        let text = submission.text.trim().to_owned();
        match submission.kind {
            SubmissionKind::Shell => return self.run_shell(&text[1..], ShellVisibility::Model),
            SubmissionKind::PrivateShell => return self.run_shell(&text[2..], ShellVisibility::UserOnly),
            SubmissionKind::Command => {
                let mode = text.strip_prefix("/mode").filter(|rest| rest.is_empty() || rest.starts_with(' '));
                if let Some(name) = mode {
                    return self.choose_mode(name.trim());
                }
                if text == "/later" {
                    return self.note("expected a text: /later TEXT");
                }
                if let Some(hint) = commands::unknown_command_hint(&self.app.agent, &text) {
                    self.count_failure(1);
                    return self.note(&hint);
                }
            }
            SubmissionKind::Prompt => {}
        }
        let (text, delivery) = match text.strip_prefix("/later ") {
            Some(later) => (later.trim().to_owned(), Delivery::FollowUp),
            None => (text, delivery),
        };
        self.last_input += 1;
        let id = InputId(self.last_input);
        if is_printed {
            self.printed.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
        self.was_stopped.store(false, Ordering::Relaxed);
        self.tell_of_plan();
        let (app, face) = (self.app.clone(), self.face.clone());
        self.pending.push(Box::pin(async move {
            if let Err(refusal) = app.confirm_attachments(&text, None, &[]).await {
                return PendingOutcome::NotSent { refusal, text };
            }
            let Attachments { images, notes } = app.attach_mentions(&text, PromptSource::Typed);
            images.iter().for_each(|image| face.agent(AgentUpdate::Image(image.clone())));
            notes.iter().for_each(|note| face.agent(AgentUpdate::Note(note.to_string())));
            let input = Input { text, below: None, images, source: InputSource::Interactive, id: Some(id) };
            PendingOutcome::Input(app.agent.queue(input, delivery).await)
        }));
    }

    fn queue(&mut self, input: Input, delivery: Delivery) {
        let agent = self.app.agent.clone();
        self.pending.push(Box::pin(async move { PendingOutcome::Input(agent.queue(input, delivery).await) }));
    }

    fn run_shell(&mut self, command: &str, visibility: ShellVisibility) {
        let command = command.trim().to_owned();
        if command.is_empty() {
            return self.note("expected a command: !COMMAND, or !!COMMAND to keep it from the model");
        }
        self.was_stopped.store(false, Ordering::Relaxed);
        let subject = Subject::Text(command.clone());
        self.face.agent(AgentUpdate::ToolStarted { id: SHELL_CALL.into(), name: "bash".to_owned(), subject });
        let agent = self.app.agent.clone();
        self.pending.push(Box::pin(async move {
            let ran = agent.run_shell_command(command, visibility).await;
            PendingOutcome::Shell(ran.map(|message| match &*message.body {
                MessageBody::BashExecution { output, exit_code, .. } => (output.to_string(), *exit_code),
                _ => (String::new(), None),
            }))
        }));
    }

    /// Gives the last queued message back to the line.
    async fn take_back(&mut self) {
        let mut queued = self.app.agent.clear_queue().await;
        let last = queued.follow_up.pop().or_else(|| queued.steering.pop());
        let steering = queued.steering.into_iter().map(|input| (input, Delivery::Steer));
        let later = queued.follow_up.into_iter().map(|input| (input, Delivery::FollowUp));
        for (input, delivery) in steering.chain(later) {
            let (text, images, id) = (input.typed, input.images, input.id);
            self.queue(Input { text, below: None, images, source: InputSource::Interactive, id }, delivery);
        }
        last.into_iter().for_each(|input| self.face.event(Event::TakenBack(input.typed)));
    }

    /// The draft that a process left behind in this folder.
    pub fn left_draft(&self) -> Option<String> {
        self.draft.as_ref().and_then(DraftFile::take_left_behind)
    }

    /// Leaves a prompt out of later requests that was stopped before it had an answer: the person has
    /// it in the line again.
    async fn leave_out_prompt(&self) {
        let messages = self.app.agent.messages();
        let is_prompt = |message: &AgentMessage| matches!(*message.body, MessageBody::User { .. });
        let Some(prompt) = messages.last().filter(|message| is_prompt(message)) else { return };
        let range = MessageRange { first: &prompt.id.0, last: None };
        if let Err(error) = self.app.agent.delete_messages(range).await {
            self.problem(&error.to_string());
        }
    }

    /// Stores the image of the clipboard, and mentions it in the line.
    fn paste_image(&self) {
        // Of our own folders, this one alone is readable for mentions.
        let Some(cache) = self.app.settings.user_folders.cache.clone() else { return };
        let face = self.face.clone();
        drop(tokio::task::spawn_blocking(move || match clipboard::store_image(&cache.join("images")) {
            Ok(path) => face.event(Event::Insert(format!("@{} ", path.display()))),
            Err(error) => face.agent(AgentUpdate::Note(error.to_string())),
        }));
    }

    /// Stops whatever runs.
    pub fn stop(&mut self) {
        self.questions.clear();
        self.was_stopped.store(true, Ordering::Relaxed);
        self.app.agent.abort_shell_command();
        self.app.agent.stop();
    }

    /// Stops what still runs and waits for its end, but not for long. What has not ended then is dropped: a
    /// run that nobody polls would block the agent.
    pub async fn finish(&mut self) {
        if tokio::time::timeout(STOP_TIME, self.stop_pending()).await.is_err() {
            self.pending = FuturesUnordered::new();
            self.note("what still ran did not stop, and is not waited for");
        }
    }

    async fn stop_pending(&mut self) {
        while self.has_pending() {
            self.stop();
            tokio::select! {
                Some(outcome) = self.next_outcome() => self.report(outcome).await,
                // Stops runs that have started in the meantime, too.
                () = tokio::time::sleep(STOP_PAUSE) => {}
            }
        }
    }

    fn count_failure(&mut self, exit_code: u8) {
        let count = self.failure.map_or(0, |failure| failure.count) + 1;
        self.failure = Some(RunFailure { count, exit_code });
    }

    /// Shows what became of an input. The events before it have been shown.
    pub async fn report(&mut self, outcome: PendingOutcome) {
        outcome.exit_code().into_iter().for_each(|code| self.count_failure(code));
        match outcome {
            PendingOutcome::Input(Ok(InputOutcome::Command { output })) => {
                // The command may have led to another conversation.
                let session_id = self.app.agent.session().0;
                if session_id != self.session_id {
                    self.session_id = session_id;
                    self.restore_mode();
                } else {
                    // Or to another branch of it, where another mode is stored.
                    modes::store_mode(&self.app.agent, self.current_mode()).await;
                }
                output.into_iter().for_each(|text| self.face.agent(AgentUpdate::Reply(text)));
            }
            PendingOutcome::Input(Ok(InputOutcome::Ran(end))) => {
                self.app.save_state().await;
                modes::store_mode(&self.app.agent, self.current_mode()).await;
                if std::mem::take(&mut self.is_prompt_taken_back) && end == RunEnd::Aborted {
                    self.leave_out_prompt().await;
                }
                if end == RunEnd::Done {
                    self.ask_about_plan();
                }
                if self.after_run == AfterRun::ShowHud
                    && let Some(hud) = display::render_hud(&self.app.agent)
                {
                    self.face.agent(AgentUpdate::Reply(hud));
                }
            }
            PendingOutcome::Input(Ok(InputOutcome::Handled | InputOutcome::Queued(_))) => {}
            PendingOutcome::Ping(Ok(spent)) => self.tell_of_ping(&spent),
            PendingOutcome::NotSent { refusal, text } => {
                self.note(&refusal.to_string());
                self.face.event(Event::TakenBack(text));
            }
            PendingOutcome::Shell(Ok((output, exit_code))) => self.show_shell(&output, exit_code),
            PendingOutcome::Input(Err(error))
            | PendingOutcome::Ping(Err(error))
            | PendingOutcome::Shell(Err(error)) => self.problem(&error.to_string()),
        }
        self.tell_if_idle();
    }

    /// Tells the face that nothing runs, if that is so.
    fn tell_if_idle(&self) {
        if !self.has_pending() && !self.app.agent.is_busy() {
            self.face.agent(AgentUpdate::Idle);
        }
    }

    /// Shows how the person's own command ended.
    fn show_shell(&self, output: &str, exit_code: Option<i32>) {
        let was_stopped = exit_code.is_none() && self.was_stopped.load(Ordering::Relaxed);
        let fact = match exit_code {
            Some(0) => None,
            Some(code) => Some(format!("exit {code}")),
            None => was_stopped.then(|| "stopped".to_owned()),
        };
        self.face.agent(AgentUpdate::ToolEnded(ToolEnd {
            id: SHELL_CALL.into(),
            facts: fact.into_iter().collect(),
            is_error: exit_code != Some(0),
            ..ToolEnd::default()
        }));
        let output = output.trim_end();
        if !output.is_empty() {
            self.face.agent(AgentUpdate::Output(output.to_owned()));
        }
    }

    /// Keeps the provider's cache warm.
    pub fn keep_warm(&mut self) {
        let agent = self.app.agent.clone();
        self.pending.push(Box::pin(async move { PendingOutcome::Ping(agent.ping_cache().await) }));
    }

    fn tell_of_ping(&self, spent: &Spending) {
        let warmth = self.app.agent.cache_warmth();
        let left = warmth
            .map_or_else(String::new, |warmth| format!("; {}", display::cache_countdown(&warmth, true)));
        self.note(&format!(
            "kept the cache warm for {}{left}; `keep_alive = false` in config.toml stops this",
            dollars(spent.dollars)
        ));
    }

    fn note(&self, text: &str) {
        self.face.agent(AgentUpdate::Note(text.to_owned()));
    }

    fn problem(&self, text: &str) {
        self.face.agent(AgentUpdate::Problem(text.to_owned()));
    }
}

/// Waits until it is time to keep the provider's cache warm; forever if that would not pay off.
pub async fn wait_for_ping(app: &ConversationApp) {
    let is_wanted = app.settings.config.keep_alive.unwrap_or(false) && !app.is_simulated();
    match app.agent.cache_warmth().filter(|_| is_wanted).and_then(|warmth| warmth.ping_due_in()) {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}
