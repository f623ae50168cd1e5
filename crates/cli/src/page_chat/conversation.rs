//! [`FaceConversation`]: the conversation behind a face, whichever that is. A face gets what happens
//! through its [`FaceSender`], and says through [`Effect`]s what is to be done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use hardpan_app::options::{ForeignSessions, OpenOptions};
use hardpan_app::{ConversationApp, FaceHooks, IndexProgress, NoticeSink, OpenError};
use hardpan_terminal::model::{AgentUpdate, Effect, Event};
use hardpan_terminal::theme::Theme;
use tokio::sync::mpsc::UnboundedReceiver;

use super::agent_updates::EventMapper;
use super::modes;
use super::page_prompter::{PagePrompter, PageQuestion, PendingQuestions};
use super::session::{self, AfterRun, RunFailure, Session};
use super::status::status_line;
use crate::args::ChatArgs;
use crate::chat::compaction_price::tell_of_compactions;
use crate::chat::signals::{Interrupt, Signals};
use crate::chat::{ExitError, SIGNALS_UNAVAILABLE, commands, display};
use crate::event_reader::EventReader;
use crate::output::safe;
use crate::trust;

/// How often the status line is computed while nothing happens: it counts the minutes of the cache.
const STATUS_TIME: Duration = Duration::from_secs(20);

/// Sends what happens to a face.
#[derive(Clone)]
pub struct FaceSender(Arc<dyn Fn(Event) + Send + Sync>);

impl FaceSender {
    /// `send` drops events once its face has ended.
    pub fn new(send: impl Fn(Event) + Send + Sync + 'static) -> Self {
        FaceSender(Arc::new(send))
    }

    pub fn event(&self, event: Event) {
        (self.0)(event);
    }

    pub fn agent(&self, update: AgentUpdate) {
        self.event(Event::Agent(update));
    }
}

/// A conversation that a face shows.
pub struct FaceConversation {
    pub app: Arc<ConversationApp>,
    session: Session,
    reader: EventReader,
    asked: UnboundedReceiver<PageQuestion>,
    quit_requested: Arc<AtomicBool>,
    signals: Signals,
}

impl FaceConversation {
    /// Opens the conversation that the flags ask for.
    pub async fn open(
        flags: &ChatArgs,
        face: &FaceSender,
        notices: Arc<dyn NoticeSink>,
        theme: Theme,
    ) -> Result<Self> {
        let options = flags.conversation.options()?;
        trust::review_changes(&options.folder)?;
        let questions = PendingQuestions::default();
        let (prompter, asked) = PagePrompter::new(questions.clone(), theme, options.folder.clone());
        let (mode, shown_calls) = (prompter.mode(), prompter.shown_calls());
        let hooks = FaceHooks { prompter: Some(Arc::new(prompter)), notices: notices.clone() };
        let app = Arc::new(open_or_ask(options, &hooks)?);
        let quit_requested = commands::register_commands(&app);
        let after_run = if flags.hud { AfterRun::ShowHud } else { AfterRun::Rest };
        let session = Session::new(app.clone(), face.clone(), questions, mode, after_run);
        let (printed, was_stopped) = (session.printed.clone(), session.was_stopped.clone());
        let mut mapper = EventMapper::new(app.clone(), theme, shown_calls, printed, was_stopped);
        tell_of_compactions(&app, face);
        modes::block_changes_in_plan(&app, &session.mode);
        session.restore_mode();
        let events = face.clone();
        let reader = EventReader::start(&app.agent, move |event| {
            mapper.map(event).into_iter().for_each(|event| events.event(event));
        });
        let context = app.context.clone();
        drop(tokio::task::spawn_blocking(move || {
            context
                .warm_up(&mut |done, total| notices.index_progress(IndexProgress::Indexed { done, total }));
            notices.index_progress(IndexProgress::Finished);
        }));
        app.load_extensions().await?;
        app.agent.start().await;
        app.watch_extensions();
        let signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;
        Ok(FaceConversation { app, session, reader, asked, quit_requested, signals })
    }

    /// What a process typed in this folder that ended before it could send it.
    pub fn left_draft(&self) -> Option<String> {
        self.session.left_draft()
    }

    /// Does what the face asks for until the person leaves or a signal ends it, which is returned.
    /// `on_interrupt` takes Ctrl-C; without it, that ends the conversation.
    pub async fn run(
        &mut self,
        effects: &mut UnboundedReceiver<Effect>,
        on_interrupt: Option<&(dyn Fn() + Sync)>,
    ) -> Option<Interrupt> {
        let FaceConversation { app, session, reader, asked, quit_requested, signals, .. } = self;
        let face = session.face.clone();
        while !quit_requested.load(Ordering::Relaxed) {
            let is_idle = !session.has_pending();
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
                Some(outcome) = session.next_outcome() => {
                    reader.catch_up().await;
                    session.report(outcome).await;
                }
                () = session::wait_for_ping(app), if is_idle => session.keep_warm(),
                () = tokio::time::sleep(STATUS_TIME) => {}
                signal = signals.next() => match on_interrupt {
                    Some(on_interrupt) if signal == Interrupt::Stop => on_interrupt(),
                    _ => return Some(signal),
                },
            }
            face.event(Event::Status(status_line(app)));
        }
        None
    }

    /// Stops what runs and stores everything. A signal meanwhile ends it at once: whoever sends one does not
    /// want to wait.
    pub async fn close(self) -> Result<EndedConversation> {
        let FaceConversation { app, session, reader, mut signals, .. } = self;
        tokio::select! {
            biased;
            ended = store_and_end(&app, session, reader) => ended,
            signal = signals.next() => Err(ExitError::interrupted(signal).into()),
        }
    }
}

async fn store_and_end(
    app: &ConversationApp,
    mut session: Session,
    reader: EventReader,
) -> Result<EndedConversation> {
    session.finish().await;
    modes::store_mode(&app.agent, session.current_mode()).await;
    app.close().await?;
    reader.finish().await;
    let (id, path) = app.agent.session();
    let failure = session.failure.take();
    Ok(EndedConversation { id, can_go_on: path.exists() && app.is_stored(), failure })
}

/// A conversation that is over.
pub struct EndedConversation {
    id: Arc<str>,
    can_go_on: bool,
    failure: Option<RunFailure>,
}

impl EndedConversation {
    /// The exit code for the last input that failed, if any did. Its reason has been shown.
    pub fn failure(&self) -> Option<ExitError> {
        self.failure.map(|failure| ExitError {
            code: failure.exit_code,
            message: match failure.count {
                1 => "1 prompt or command failed".to_owned(),
                count => format!("{count} prompts and commands failed"),
            },
        })
    }

    /// Says how to go on with it.
    pub fn say_goodbye(&self) {
        if self.can_go_on {
            let id = safe(&self.id);
            display::print_wrapped(&format!("to continue this conversation: hardpan --resume {id}"));
        }
    }
}

/// Opens the conversation; asks first if it comes from elsewhere.
fn open_or_ask(mut options: OpenOptions, face: &FaceHooks) -> Result<ConversationApp> {
    match ConversationApp::open(&options, face) {
        Err(OpenError::ForeignSession(origin)) if trust::can_ask() => {
            let origin = safe(&origin.to_string());
            note!(
                "hardpan: {origin}. What it says, somebody else may have written, and the model believes it."
            );
            if !trust::confirm("Continue it here?")? {
                return Err(ExitError { code: 130, message: "nothing was opened".into() }.into());
            }
            options.foreign_sessions = ForeignSessions::Accept;
            Ok(ConversationApp::open(&options, face)?)
        }
        opened => Ok(opened?),
    }
}
