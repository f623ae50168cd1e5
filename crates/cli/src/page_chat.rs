//! The interactive session with the terminal face: [`converse`] connects the
//! agent with `hardpan_terminal`, which owns the terminal on a thread of its own.

mod agent_updates; // EventMapper: from the agent's events to what the face shows
mod appearance; // colours, signs and motion
mod call_preview; // what a person sees of a call before it runs
mod clipboard; // an image from the clipboard
pub mod command_warnings; // what in a command is dangerous, in words
pub mod conversation; // FaceConversation: the conversation behind a face
mod diff_lines; // a stored diff as lines
mod drafts; // DraftFile: what is typed and not sent
mod editable_part; // what of a call can be changed in an editor
mod extension_face; // ExtensionFace: what extensions show and take
pub mod face_host; // PageHost: what the face asks of the program around it
pub mod history_blocks; // earlier_blocks: what was said before a session was resumed
pub mod modes; // what the modes mean for the agent
mod page_prompter; // PagePrompter: asks in the face, as its mode says
mod session; // Session: does with the agent what the person asks for
mod status; // the status line and the end of a run, in figures
mod view_sources; // ViewSources: what the views are made of

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hardpan_app::ConversationApp;
use hardpan_app::attachment_price::first_price;
use hardpan_app::settings::MotionSetting;
use hardpan_app::settings::ScreenKind;
use hardpan_terminal::blocks::format::dollars;
use hardpan_terminal::editor::{CompletionSources, Editor, FileSource, FuzzyList, History, short_count};
use hardpan_terminal::keymap::Keymap;
use hardpan_terminal::model::{AgentUpdate, BlockKind, Event, Model, ViewKind};
use hardpan_terminal::runner::{self, Clock, FaceMessage, FaceOptions};
use hardpan_terminal::screen::{PictureProtocol, Rewrap, ScreenSize};
use hardpan_terminal::text::wrap;
use hardpan_terminal::theme::Theme;
use hardpan_terminal::transcript::BlockSource;
use ratatui::text::{Line, Span};
use tokio::sync::mpsc as async_channel;

use crate::args::ChatArgs;
use crate::chat::commands::arguments::{ArgumentSource, CommandNames};
use crate::chat::{ExitError, display};
use crate::first_minute;
use crate::output::safe_lines;
use conversation::{FaceConversation, FaceSender};
use face_host::{PageHost, PageNotices, history_file};

/// Prose is not wider than this.
const MAX_COLUMNS: usize = 100;

/// How long the terminal's last drawing is waited for.
const FACE_END: Duration = Duration::from_secs(10);

/// Files that `@` completes at most.
const MAX_FILES: usize = 200_000;

/// Runs the session in the page until the person leaves.
pub async fn converse(flags: &ChatArgs) -> Result<()> {
    let (sender, messages) = mpsc::channel();
    let events = sender.clone();
    let face = FaceSender::new(move |event| drop(events.send(FaceMessage::Event(event))));
    let theme = appearance::theme(
        &crate::chat::load_settings(flags).map(|settings| settings.config).unwrap_or_default(),
    );
    let notices = Arc::new(PageNotices::new(face.clone()));
    let mut conversation = FaceConversation::open(flags, &face, notices.clone(), theme).await?;
    let app = conversation.app.clone();

    let (effects_sender, mut effects) = async_channel::unbounded_channel();
    let mut model = new_model(&app, theme)?;
    model.page.protocol = PictureProtocol::detect(|name| std::env::var(name).ok());
    model.has_motion = app.settings.config.motion.unwrap_or_default() == MotionSetting::On;
    if let Some(draft) = conversation.left_draft() {
        model.editor.set_text(&draft);
    }
    model.replace_transcript(history_blocks::earlier_blocks(&app.agent));
    model.say(BlockKind::Greeting, BlockSource::Lines(greeting(&app)));
    if app.is_offline(&app.agent.target()) {
        notices.simulator_is_told();
    }
    model.status = status::status_line(&app);
    fill_file_source(&app, &face);
    show_outlook(&app, &face);
    let options = FaceOptions {
        rewrap: Rewrap::detect(|name| std::env::var(name).ok()),
        takes_mouse: app.settings.config.mouse.unwrap_or_default(),
    };
    let clock = program_clock();
    let mut host = PageHost::new(app.clone(), sender.clone(), effects_sender);
    notices.start();
    extension_face::extension_keys(&app).into_iter().for_each(|event| face.event(event));
    if app.settings.config.screen == Some(ScreenKind::Full) {
        let _ = sender.send(FaceMessage::Open(ViewKind::Full));
    }
    let input = sender.clone();
    let terminal = std::thread::Builder::new()
        .name("terminal".into())
        .spawn(move || runner::run(model, clock, options, input, &messages, &mut host))
        .context("cannot start the terminal's thread")?;

    let interrupt = conversation.run(&mut effects, None).await;
    let ended = conversation.close().await;
    notices.stop();
    let _ = sender.send(FaceMessage::Quit);
    let terminal = tokio::task::spawn_blocking(move || terminal.join());
    // A face that has much to draw keeps nobody who does not want to wait.
    let limit = if ended.is_ok() { FACE_END } else { FACE_END / 10 };
    let terminal = tokio::time::timeout(limit, terminal).await;
    let ended = ended?;
    if let (Ok(Ok(Ok(Err(error)))), None) = (terminal, interrupt) {
        return Err(error.into());
    }
    ended.say_goodbye();
    interrupt.map_or(Ok(()), |interrupt| Err(ExitError::interrupted(interrupt).into()))
}

#[expect(clippy::disallowed_methods, reason = "the edge: from here on, time is an argument")]
pub fn program_clock() -> Clock {
    let started = Instant::now();
    Arc::new(move || started.elapsed())
}

fn new_model(app: &Arc<ConversationApp>, theme: Theme) -> Result<Model> {
    let history = history_file(app).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let mut editor = Editor::new(History::parse(&history), |text| text.len().div_ceil(4));
    let (names, arguments) = (CommandNames::new(app), ArgumentSource::new(app));
    editor.set_sources(vec![Arc::new(names), Arc::new(arguments)]);
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
        let conversation = Arc::downgrade(&app);
        // About four bytes are a token. The price is that of the model at this moment.
        let describe = move |path: &str| match std::fs::metadata(root.join(path)) {
            Ok(found) if found.is_file() => {
                let tokens = usize::try_from(found.len().div_ceil(4)).unwrap_or(usize::MAX);
                let target = conversation.upgrade().map(|app| (app.agent.target(), app));
                let price = target.filter(|(target, app)| !app.is_offline(target));
                let price = price.and_then(|(target, _)| first_price(&target));
                let price = price.map(|price| format!(", {}", dollars(tokens as f64 * price / 1e6)));
                format!("about {} tokens{}", short_count(tokens), price.unwrap_or_default())
            }
            _ => String::new(),
        };
        let commands = CommandNames::new(&app);
        let files = FileSource::new(files, Arc::new(describe));
        let arguments = ArgumentSource::new(&app);
        let sources = CompletionSources(vec![Arc::new(commands), Arc::new(arguments), Arc::new(files)]);
        face.event(Event::Sources(sources));
    }));
}

pub fn greeting(app: &ConversationApp) -> Vec<Line<'static>> {
    let mut lines = first_minute::Opening::of(app).lines();
    lines.extend(display::last_exchange(&app.agent.messages()).map(|last| format!("\n{last}")));
    let (columns, _) = crate::chat::screen::screen_size();
    wrapped(&lines, columns)
}

/// Prose for a terminal of so many columns.
fn wrapped(lines: &[String], columns: usize) -> Vec<Line<'static>> {
    let text = safe_lines(&lines.join("\n"));
    text.lines().flat_map(|line| wrap(&[Span::raw(line.to_owned())], columns.min(MAX_COLUMNS))).collect()
}

/// Shows what takes longer to find out, below the greeting, unless the person has begun by then.
pub fn show_outlook(app: &Arc<ConversationApp>, face: &FaceSender) {
    if !app.agent.messages().is_empty() {
        return;
    }
    let (app, face) = (app.clone(), face.clone());
    tokio::spawn(async move {
        let outlook = first_minute::Outlook::gather(&app, now()).await;
        if app.agent.messages().is_empty() && !app.agent.is_busy() {
            let (columns, _) = crate::chat::screen::screen_size();
            face.agent(AgentUpdate::Lines(wrapped(&outlook.lines(columns), columns)));
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the edge: from here on, time is an argument")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
