//! [`PageHost`]: what the face asks of the program around it; and notices, which go to the face while
//! it has the terminal.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use hardpan_app::{ConversationApp, IndexProgress, Notice, NoticeSink};
use hardpan_terminal::blocks::pickers;
use hardpan_terminal::model::{AgentUpdate, Effect, Event, Model, ViewKind};
use hardpan_terminal::runner::{FaceHost, FaceMessage};
use hardpan_terminal::screen::{RestoreHandle, restore_on_signals};
use hardpan_terminal::text::wrap;
use hardpan_terminal::views::ViewData;
use ratatui::text::{Line, Span};
use rustix::process::{Signal, getpid, kill_process};
use tokio::sync::mpsc::UnboundedSender;

use super::conversation::FaceSender;
use super::view_sources::ViewSources;
use crate::command_setup::StderrNotices;

/// Passes effects on to the session, and shows what is known at once.
pub struct PageHost {
    app: Arc<ConversationApp>,
    effects: UnboundedSender<Effect>,
    sources: ViewSources,
}

impl PageHost {
    pub fn new(
        app: Arc<ConversationApp>,
        face: mpsc::Sender<FaceMessage>,
        effects: UnboundedSender<Effect>,
    ) -> Self {
        let sources = ViewSources::new(app.clone(), face, effects.clone());
        PageHost { app, effects, sources }
    }
}

impl FaceHost for PageHost {
    fn perform(&mut self, effect: Effect) {
        // Fails if the session has ended.
        let _ = self.effects.send(effect);
    }

    fn view_data(&mut self, view: &ViewKind, model: &Model) -> ViewData {
        self.sources.data(view, model)
    }

    fn edit_text(&mut self, text: &str) -> Option<String> {
        let editor = ["VISUAL", "EDITOR"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        let folder = self.app.settings.user_folders.state.clone().unwrap_or_else(std::env::temp_dir);
        hardpan_files::create_private_folder(&folder).ok()?;
        let path = folder.join(format!("prompt-{}.md", std::process::id()));
        std::fs::write(&path, text).ok()?;
        // The variable may hold arguments.
        let ran = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path).status();
        let edited = std::fs::read_to_string(&path).ok();
        let _ = std::fs::remove_file(&path);
        edited.filter(|_| ran.is_ok_and(|status| status.success()))
    }

    fn suspend(&mut self) {
        let _ = kill_process(getpid(), Signal::STOP);
    }

    fn terminal_taken(&mut self, handle: RestoreHandle) {
        // The session ends the process after the others, once everything is stored.
        let _ = restore_on_signals(handle, |signal| {
            if signal == Signal::QUIT.as_raw() {
                std::process::exit(131);
            }
        });
    }
}

/// The help of `?`, from the table of keys.
pub fn help_lines(model: &Model) -> Vec<Line<'static>> {
    const NOTES: [&str; 2] = [
        "@ names a file, / a command, ! runs a command for you and the model, !! for you alone",
        "/help COMMAND explains one; all keys, and how to change them: /keys",
    ];
    let columns = usize::from(model.size.columns);
    let item = |(key, words): (String, &str)| (key, words.to_owned());
    let groups = model.keymap.help().into_iter();
    let groups: Vec<(String, Vec<(String, String)>)> = groups
        .map(|(group, items)| (group.name().to_owned(), items.into_iter().map(item).collect()))
        .collect();
    let mut lines = pickers::help_lines(&groups, columns, &model.theme);
    lines.push(Line::default());
    for note in NOTES {
        for mut line in wrap(&[Span::raw(note)], columns.saturating_sub(1)) {
            line.spans.insert(0, Span::raw(" "));
            lines.push(line);
        }
    }
    lines
}

/// Where earlier prompts are stored.
pub fn history_file(app: &ConversationApp) -> Option<PathBuf> {
    app.settings.user_folders.state.as_ref().map(|folder| folder.join("history"))
}

/// Adds a line to the file of earlier prompts.
pub fn append_history(app: &ConversationApp, line: &str) {
    let Some(path) = history_file(app) else { return };
    let append = || -> std::io::Result<()> {
        path.parent().map_or(Ok(()), hardpan_files::create_private_folder)?;
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.create(true).append(true).open(&path)?.write_all(line.as_bytes())
    };
    // A prompt that is missing from the history is not worth a word.
    let _ = append();
}

/// Shows notices in the face once it has the terminal; before, on standard error.
pub struct PageNotices {
    face: FaceSender,
    has_terminal: AtomicBool,
    /// How far the index is, as the face was told last.
    progress: Mutex<Option<String>>,
    /// The greeting said that the simulator answers.
    is_simulator_told: AtomicBool,
}

impl PageNotices {
    pub fn new(face: FaceSender) -> Self {
        let (has_terminal, is_simulator_told) = Default::default();
        PageNotices { face, has_terminal, progress: Mutex::default(), is_simulator_told }
    }

    /// The first notice that the simulator answers would say what the greeting has said.
    pub fn simulator_is_told(&self) {
        self.is_simulator_told.store(true, Ordering::Relaxed);
    }

    pub fn start(&self) {
        self.has_terminal.store(true, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.has_terminal.store(false, Ordering::Relaxed);
    }
}

impl NoticeSink for PageNotices {
    fn notice(&self, notice: Notice) {
        let is_known = matches!(notice, Notice::SimulatorAnswers { .. })
            && self.is_simulator_told.swap(false, Ordering::Relaxed);
        if is_known {
            return;
        }
        if self.has_terminal.load(Ordering::Relaxed) {
            self.face.agent(AgentUpdate::Note(notice.to_string()));
        } else {
            StderrNotices.notice(notice);
        }
    }

    fn index_progress(&self, progress: IndexProgress) {
        let text = match progress {
            IndexProgress::Indexed { done, total } => {
                Some(format!("indexing {}%, Esc stops it", done * 100 / total.max(1)))
            }
            IndexProgress::Finished => None,
        };
        let mut shown = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if self.has_terminal.load(Ordering::Relaxed) && *shown != text {
            shown.clone_from(&text);
            self.face.event(Event::BackgroundWork(text));
        }
    }
}
