//! The interactive session with the terminal face (`screen = "page"`): [`converse`] connects the
//! agent with `hardpan_terminal`, which owns the terminal on a thread of its own.

mod agent_updates; // EventMapper: from the agent's events to what the face shows
mod call_preview; // what a person sees of a call before it runs
mod command_warnings; // what in a command is dangerous, in words
mod diff_lines; // a stored diff as lines
mod face_host; // PageHost: what the face asks of the program around it
mod page_prompter; // PagePrompter: asks in the face, as its mode says
mod status; // the status line and the end of a run, in figures

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hardpan_agent::{AgentError, Delivery, Input, InputOutcome, InputSource, ShellVisibility};
use hardpan_app::mentions::PromptSource;
use hardpan_app::{Attachments, ConversationApp, FaceHooks};
use hardpan_prompt::MessageBody;
use hardpan_terminal::blocks::Subject;
use hardpan_terminal::editor::{
    CommandSource, CompletionSources, Editor, FileSource, FuzzyList, History, Submission, SubmissionKind,
    short_count,
};
use hardpan_terminal::keymap::Keymap;
use hardpan_terminal::model::{AgentUpdate, BlockKind, Effect, Event, Model, ToolEnd};
use hardpan_terminal::runner::{self, Clock, FaceMessage};
use hardpan_terminal::screen::{Rewrap, ScreenSize};
use hardpan_terminal::theme::Theme;
use ratatui::text::Line;
use tokio::sync::mpsc as async_channel;

use crate::args::ChatArgs;
use crate::chat::{ExitError, SIGNALS_UNAVAILABLE, commands, display, signals::Signals};
use crate::event_reader::EventReader;
use crate::output::safe_lines;
use crate::trust;
use agent_updates::EventMapper;
use face_host::{PageHost, PageNotices, history_file};
use page_prompter::{PagePrompter, PendingQuestions};

/// The id of the person's own command, among those of the model's calls.
const SHELL_CALL: &str = "own-command";

/// Files that `@` completes at most.
const MAX_FILES: usize = 200_000;

/// How often the status line is computed while nothing happens: it counts the minutes of the cache.
const STATUS_TIME: Duration = Duration::from_secs(20);

type Pending = FuturesUnordered<BoxFuture<'static, PendingOutcome>>;

/// What became of an input.
enum PendingOutcome {
    Input(Result<InputOutcome, AgentError>),
    /// The output of the person's own command, and its exit code.
    Shell(Result<(String, Option<i32>), AgentError>),
}

/// Sends what happens to the face.
#[derive(Clone)]
struct FaceSender(mpsc::Sender<FaceMessage>);

impl FaceSender {
    fn event(&self, event: Event) {
        // Fails if the face has ended; nobody looks any more.
        let _ = self.0.send(FaceMessage::Event(event));
    }

    fn agent(&self, update: AgentUpdate) {
        self.event(Event::Agent(update));
    }
}

/// Runs the session until the person leaves.
pub async fn converse(flags: &ChatArgs) -> Result<()> {
    let (sender, messages) = mpsc::channel();
    let face = FaceSender(sender.clone());
    let theme = Theme::from_environment(|name| std::env::var(name).ok());
    let options = flags.conversation.options()?;
    trust::review_changes(&options.folder)?;
    let questions = PendingQuestions::default();
    let (prompter, mut asked) = PagePrompter::new(questions.clone(), theme, options.folder.clone());
    let (mode, shown_calls) = (prompter.mode(), prompter.shown_calls());
    let notices = Arc::new(PageNotices::new(face.clone()));
    let hooks = FaceHooks { prompter: Some(Arc::new(prompter)), notices: notices.clone() };
    let app = Arc::new(crate::chat::open_or_ask(options, &hooks)?);
    let agent = app.agent.clone();
    let quit_requested = commands::register_commands(&app);
    let mut mapper = EventMapper::new(app.clone(), theme, shown_calls);
    let events = face.clone();
    let reader = EventReader::start(&agent, move |event| {
        mapper.map(event).into_iter().for_each(|event| events.event(event));
    });
    let context = app.context.clone();
    drop(tokio::task::spawn_blocking(move || context.warm_up()));
    agent.start().await;
    let mut signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;

    let clock = program_clock();
    let (effects_sender, mut effects) = async_channel::unbounded_channel();
    let mut model = new_model(&app, theme)?;
    model.page.push(BlockKind::Greeting, greeting(&app));
    model.status = status::status_line(&app);
    fill_file_source(&app, &face);
    let rewrap = Rewrap::detect(|name| std::env::var(name).ok());
    let mut host = PageHost::new(app.clone(), effects_sender);
    notices.start();
    let terminal = std::thread::Builder::new()
        .name("terminal".into())
        .spawn(move || runner::run(model, clock, rewrap, sender, &messages, &mut host))
        .context("cannot start the terminal's thread")?;

    let mut session = Session {
        app: app.clone(),
        face: face.clone(),
        pending: FuturesUnordered::new(),
        questions,
        mode,
        was_stopped: Arc::default(),
    };
    let mut interrupt = None;
    while !quit_requested.load(Ordering::Relaxed) {
        tokio::select! {
            effect = effects.recv() => match effect {
                Some(Effect::Leave) | None => break,
                Some(effect) => session.perform(effect).await,
            },
            Some(question) = asked.recv() => {
                // What was said before the question stands above it.
                reader.catch_up().await;
                session.questions.ask(question, &face);
            }
            Some(outcome) = session.pending.next() => {
                reader.catch_up().await;
                session.report(outcome).await;
            }
            () = tokio::time::sleep(STATUS_TIME) => {}
            signal = signals.next() => {
                interrupt = Some(signal);
                break;
            }
        }
        face.event(Event::Status(status::status_line(&app)));
    }
    let was_left_early = interrupt.is_some();
    session.stop();
    while session.pending.next().await.is_some() {}
    app.save_state().await;
    agent.shutdown().await?;
    reader.finish().await;
    notices.stop();
    let _ = face.0.send(FaceMessage::Quit);
    let ended = tokio::task::spawn_blocking(move || terminal.join()).await;
    if let (Ok(Ok(Err(error))), false) = (ended, was_left_early) {
        return Err(error.into());
    }
    let (id, path) = agent.session();
    if path.exists() && !flags.conversation.no_session {
        display::print_wrapped(&format!(
            "to continue this conversation: hardpan --resume {}",
            crate::output::safe(&id)
        ));
    }
    interrupt.map_or(Ok(()), |interrupt| Err(ExitError::interrupted(interrupt).into()))
}

#[expect(clippy::disallowed_methods, reason = "the edge: from here on, time is an argument")]
fn program_clock() -> Clock {
    let started = Instant::now();
    Arc::new(move || started.elapsed())
}

fn new_model(app: &Arc<ConversationApp>, theme: Theme) -> Result<Model> {
    let history = history_file(app).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let mut editor = Editor::new(History::parse(&history), |text| text.len().div_ceil(4));
    let descriptions = commands::descriptions(&app.agent);
    editor.set_sources(vec![Arc::new(CommandSource::new(descriptions))]);
    let own: &BTreeMap<String, Vec<String>> = &app.settings.config.keys;
    let keymap = Keymap::new(own).context("the keys in config.toml cannot be used")?;
    let (columns, rows) = crate::chat::screen::screen_size();
    let limit = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let size = ScreenSize { columns: limit(columns), rows: limit(rows) };
    Ok(Model::new(editor, keymap, theme, size))
}

/// Reads the names of the files behind the first frame, and gives them to the line.
fn fill_file_source(app: &Arc<ConversationApp>, face: &FaceSender) {
    let (app, face) = (app.clone(), face.clone());
    drop(tokio::task::spawn_blocking(move || {
        let tree = hardpan_workspace::list_files(&app.scope.guard(), &app.scope.root, MAX_FILES);
        let files = Arc::new(FuzzyList::new(&tree.files));
        let root = app.scope.root.clone();
        // About four bytes are a token.
        let describe = move |path: &str| match std::fs::metadata(root.join(path)) {
            Ok(found) if found.is_file() => {
                let tokens = usize::try_from(found.len().div_ceil(4)).unwrap_or(usize::MAX);
                format!("about {} tokens", short_count(tokens))
            }
            _ => String::new(),
        };
        let commands = CommandSource::new(commands::descriptions(&app.agent));
        let files = FileSource::new(files, Arc::new(describe));
        face.event(Event::Sources(CompletionSources(vec![Arc::new(commands), Arc::new(files)])));
    }));
}

fn greeting(app: &ConversationApp) -> Vec<Line<'static>> {
    let agent = &app.agent;
    let messages = agent.messages();
    let resumed = match messages.len() {
        0 => String::new(),
        count => format!(" · {} so far", commands::pluralize(count, "message")),
    };
    let mut text = format!("hardpan · {} · {}{resumed}\n", agent.target().model.name(), agent.layout());
    if let Some(last) = display::last_exchange(&messages) {
        text.push_str(&format!("\n{last}\n"));
    }
    safe_lines(&text).lines().map(|line| Line::from(line.to_owned())).collect()
}

/// What the session does with what the face asks for.
struct Session {
    app: Arc<ConversationApp>,
    face: FaceSender,
    pending: Pending,
    questions: PendingQuestions,
    mode: page_prompter::SharedMode,
    was_stopped: Arc<AtomicBool>,
}

impl Session {
    async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Send(submission) => self.send(&submission, Delivery::Steer),
            Effect::Steer(submission) => self.send(&submission, Delivery::Steer),
            Effect::QueueForEnd(submission) => self.send(&submission, Delivery::FollowUp),
            Effect::TakeBack => self.take_back().await,
            Effect::Stop | Effect::Kill => self.stop(),
            Effect::Answer { id, answer } => {
                if self.questions.answer(id, answer) {
                    self.stop();
                }
            }
            Effect::AnswerQuestion { id, answer } => self.questions.answer_text(id, answer),
            Effect::SetMode(mode) => {
                *self.mode.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = mode;
            }
            Effect::AppendHistory(line) => face_host::append_history(&self.app, &line),
            // The face does these itself.
            Effect::Open(_)
            | Effect::OpenEditor(_)
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Leave
            | Effect::Notify(_) => {}
        }
    }

    /// Sends a line: a prompt, a command, a command of the shell.
    fn send(&mut self, submission: &Submission, delivery: Delivery) {
        let text = submission.text.trim().to_owned();
        match submission.kind {
            SubmissionKind::Shell => return self.run_shell(&text[1..], ShellVisibility::Model),
            SubmissionKind::PrivateShell => return self.run_shell(&text[2..], ShellVisibility::UserOnly),
            SubmissionKind::Command => {
                if let Some(hint) = commands::unknown_command_hint(&self.app.agent, &text) {
                    return self.face.agent(AgentUpdate::Note(hint));
                }
            }
            SubmissionKind::Prompt => {}
        }
        let (text, delivery) = match text.strip_prefix("/later ") {
            Some(later) => (later.trim().to_owned(), Delivery::FollowUp),
            None => (text, delivery),
        };
        let Attachments { images, notes } = self.app.attach_mentions(&text, PromptSource::Typed);
        notes.iter().for_each(|note| self.face.agent(AgentUpdate::Note(note.to_string())));
        let agent = self.app.agent.clone();
        let input = Input { text, below: None, images, source: InputSource::Interactive, id: None };
        self.pending.push(Box::pin(async move { PendingOutcome::Input(agent.queue(input, delivery).await) }));
    }

    fn run_shell(&mut self, command: &str, visibility: ShellVisibility) {
        let command = command.trim().to_owned();
        if command.is_empty() {
            let text = "expected a command: !COMMAND, or !!COMMAND to keep it from the model";
            return self.face.agent(AgentUpdate::Note(text.to_owned()));
        }
        let is_alone = self.pending.is_empty();
        if is_alone {
            self.face.agent(AgentUpdate::RunStarted);
        }
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
        let rest = queued.steering.into_iter().map(|input| (input, Delivery::Steer));
        for (input, delivery) in
            rest.chain(queued.follow_up.into_iter().map(|input| (input, Delivery::FollowUp)))
        {
            let text = input.typed;
            let again =
                Input { text, below: None, images: input.images, source: InputSource::Interactive, id: None };
            let agent = self.app.agent.clone();
            self.pending
                .push(Box::pin(async move { PendingOutcome::Input(agent.queue(again, delivery).await) }));
        }
        last.into_iter().for_each(|input| self.face.event(Event::TakenBack(input.typed)));
    }

    /// Stops whatever runs.
    fn stop(&mut self) {
        self.questions.clear();
        self.was_stopped.store(true, Ordering::Relaxed);
        self.app.agent.abort_shell_command();
        self.app.agent.abort();
    }

    /// Shows what became of an input.
    async fn report(&mut self, outcome: PendingOutcome) {
        match outcome {
            PendingOutcome::Input(Ok(InputOutcome::Command { output })) => {
                output.into_iter().for_each(|text| self.face.agent(AgentUpdate::Output(text)));
            }
            PendingOutcome::Input(Ok(InputOutcome::Ran(_))) => self.app.save_state().await,
            PendingOutcome::Input(Ok(InputOutcome::Handled | InputOutcome::Queued(_))) => {}
            PendingOutcome::Input(Err(error)) => {
                let problem = Some(error.to_string());
                self.face.agent(AgentUpdate::RunEnded { summary: None, problem });
            }
            PendingOutcome::Shell(ran) => {
                let (output, exit_code) = ran.unwrap_or_else(|error| (error.to_string(), None));
                let facts = exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}"));
                self.face.agent(AgentUpdate::ToolEnded(ToolEnd {
                    id: SHELL_CALL.into(),
                    facts: facts.into_iter().collect(),
                    ..ToolEnd::default()
                }));
                let output = output.trim_end().to_owned();
                if !output.is_empty() {
                    self.face.agent(AgentUpdate::Output(output));
                }
                if !self.app.agent.is_busy() {
                    self.face.agent(AgentUpdate::RunEnded { summary: None, problem: None });
                }
            }
        }
    }
}
