//! The interactive session with the terminal face: [`converse`] connects the
//! agent with `hardpan_terminal`, which owns the terminal on a thread of its own.

mod agent_updates; // EventMapper: from the agent's events to what the face shows
mod call_preview; // what a person sees of a call before it runs
mod command_warnings; // what in a command is dangerous, in words
mod diff_lines; // a stored diff as lines
mod face_host; // PageHost: what the face asks of the program around it
mod history_blocks; // earlier_blocks: what was said before a session was resumed
mod page_prompter; // PagePrompter: asks in the face, as its mode says
mod session; // Session: does with the agent what the person asks for
mod status; // the status line and the end of a run, in figures

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hardpan_agent::events::{BeforeCompactReply, SessionBeforeCompact};
use hardpan_app::settings::ScreenKind;
use hardpan_app::{ConversationApp, FaceHooks, IndexProgress, NoticeSink};
use hardpan_terminal::editor::{
    CommandSource, CompletionSources, Editor, FileSource, FuzzyList, History, short_count,
};
use hardpan_terminal::keymap::Keymap;
use hardpan_terminal::model::{AgentUpdate, BlockKind, Effect, Event, Model, ViewKind};
use hardpan_terminal::runner::{self, Clock, FaceMessage};
use hardpan_terminal::screen::{Rewrap, ScreenSize};
use hardpan_terminal::theme::Theme;
use hardpan_terminal::transcript::BlockSource;
use ratatui::text::Line;
use tokio::sync::mpsc as async_channel;

use crate::args::ChatArgs;
use crate::chat::commands::arguments::ArgumentSource;
use crate::chat::{ExitError, SIGNALS_UNAVAILABLE, commands, display, signals::Signals};
use crate::event_reader::EventReader;
use crate::output::safe_lines;
use crate::trust;
use agent_updates::EventMapper;
use face_host::{PageHost, PageNotices, history_file};
use page_prompter::{PagePrompter, PendingQuestions};
use session::{AfterRun, Session};

/// Files that `@` completes at most.
const MAX_FILES: usize = 200_000;

/// How often the status line is computed while nothing happens: it counts the minutes of the cache.
const STATUS_TIME: Duration = Duration::from_secs(20);

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
    let after_run = if flags.hud { AfterRun::ShowHud } else { AfterRun::Rest };
    let mut session = Session::new(app.clone(), face.clone(), questions, mode, after_run);
    let mut mapper = EventMapper::new(
        app.clone(),
        theme,
        shown_calls,
        session.printed.clone(),
        session.was_stopped.clone(),
    );
    tell_of_compactions(&app, &face);
    let events = face.clone();
    let reader = EventReader::start(&agent, move |event| {
        mapper.map(event).into_iter().for_each(|event| events.event(event));
    });
    let (context, shown) = (app.context.clone(), notices.clone());
    drop(tokio::task::spawn_blocking(move || {
        context.warm_up(&mut |done, total| shown.index_progress(IndexProgress::Indexed { done, total }));
        shown.index_progress(IndexProgress::Finished);
    }));
    agent.start().await;
    let mut signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;

    let clock = program_clock();
    let (effects_sender, mut effects) = async_channel::unbounded_channel();
    let mut model = new_model(&app, theme)?;
    model.replace_transcript(history_blocks::earlier_blocks(&agent));
    model.say(BlockKind::Greeting, BlockSource::Lines(greeting(&app)));
    model.status = status::status_line(&app);
    fill_file_source(&app, &face);
    let rewrap = Rewrap::detect(|name| std::env::var(name).ok());
    let mut host = PageHost::new(app.clone(), effects_sender);
    notices.start();
    if app.settings.config.screen == Some(ScreenKind::Full) {
        let _ = sender.send(FaceMessage::Open(ViewKind::Full));
    }
    let terminal = std::thread::Builder::new()
        .name("terminal".into())
        .spawn(move || runner::run(model, clock, rewrap, sender, &messages, &mut host))
        .context("cannot start the terminal's thread")?;

    let mut interrupt = None;
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
            () = session::wait_for_ping(&app), if is_idle => session.keep_warm().await,
            () = tokio::time::sleep(STATUS_TIME) => {}
            signal = signals.next() => {
                interrupt = Some(signal);
                break;
            }
        }
        face.event(Event::Status(status::status_line(&app)));
    }
    let was_left_early = interrupt.is_some();
    session.finish().await;
    app.save_state().await;
    agent.shutdown().await?;
    app.stop_background_work().await;
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

/// Tells the face when a conversation is being compacted, and how much of it.
fn tell_of_compactions(app: &ConversationApp, face: &FaceSender) {
    let face = face.clone();
    app.agent.events().subscribe::<SessionBeforeCompact, _>("terminal", move |event, _| {
        let messages = commands::pluralize(event.messages, "message");
        let tokens = short_count(usize::try_from(event.tokens_before).unwrap_or(usize::MAX));
        face.agent(AgentUpdate::Compacting { text: format!("{messages} of {tokens} tokens") });
        std::future::ready(Ok(BeforeCompactReply::Continue))
    });
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
    let arguments = ArgumentSource::new(app);
    editor.set_sources(vec![Arc::new(CommandSource::new(descriptions)), Arc::new(arguments)]);
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
        let arguments = ArgumentSource::new(&app);
        let sources = CompletionSources(vec![Arc::new(commands), Arc::new(arguments), Arc::new(files)]);
        face.event(Event::Sources(sources));
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
