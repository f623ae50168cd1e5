//! [`run`]: the loop that owns the terminal. One thread reads input, the agent sits behind a channel:
//! a stalled provider, disk or index never delays the echo of a key.

mod input_reader; // InputReader: the threads behind the terminal
mod view_stack; // views on top of the page

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use thiserror::Error;

use crate::input::InputEvent;
use crate::model::{Effect, Event, Model};
use crate::screen::{
    GuardError, GuardOptions, PageScreen, RestoreHandle, Rewrap, SystemRawMode, TerminalGuard,
};
use crate::view::view;
use crate::views::{View, ViewData, ViewKind, ViewOutcome, ViewScreen, open_view};
use input_reader::{InputReader, screen_size};

/// What is not asked for by a key is drawn at most this often.
const FRAME_TIME: Duration = Duration::from_millis(33);
/// The terminal's size settles this long after it changed.
const RESIZE_TIME: Duration = Duration::from_millis(60);
/// The longest wait for anything.
const LONG_TIME: Duration = Duration::from_secs(3600);

/// Time since the program started, from whoever may look at a clock.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Why the face ended before its time.
#[derive(Debug, Error)]
pub enum FaceError {
    /// The terminal could not be taken.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The terminal could not be read or written.
    #[error("the terminal is gone")]
    Terminal(#[from] io::Error),
}

/// What the terminal can do, and what the person wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaceOptions {
    /// Whether it wraps its lines again.
    pub rewrap: Rewrap,
    /// Whether views take the mouse.
    pub takes_mouse: bool,
}

/// Something for the loop.
#[derive(Clone, Debug)]
pub enum FaceMessage {
    /// Input, and when it was read.
    Input(InputEvent, Duration),
    /// Something that happened elsewhere.
    Event(Event),
    /// The data of a view, if it is still open.
    ViewData(ViewKind, ViewData),
    /// Open a view.
    Open(ViewKind),
    /// Draw everything again: the terminal was somebody else's.
    Redraw,
    /// End the loop.
    Quit,
}

/// What the loop needs of the program around it.
pub trait FaceHost {
    /// Carries out an effect. Must not block: what comes of it comes back as an event.
    fn perform(&mut self, effect: Effect);
    /// What a view is made of. Must not block either: what takes time comes as
    /// [`FaceMessage::ViewData`].
    fn view_data(&mut self, view: &ViewKind, model: &Model) -> ViewData;
    /// Lets the person change a text in an editor; the terminal is free meanwhile.
    fn edit_text(&mut self, text: &str) -> Option<String>;
    /// Stops the process until it is continued; the terminal is free meanwhile.
    fn suspend(&mut self);
    /// The terminal is taken: from now on a signal has to restore it.
    fn terminal_taken(&mut self, handle: RestoreHandle);
}

/// The terminal and what is drawn on it.
struct Face<'a> {
    model: Model,
    page: PageScreen<io::Stdout>,
    guard: TerminalGuard,
    input: InputReader,
    /// What lies on top of the page, the topmost last.
    views: Vec<Box<dyn View>>,
    view_screen: ViewScreen,
    /// Whether the person has been told that something asks.
    has_rung: bool,
    host: &'a mut dyn FaceHost,
    clock: Clock,
    /// When the screen was drawn last.
    drawn_at: Duration,
    /// When the next frame is due; none if nothing has changed.
    due: Option<Duration>,
    /// Nothing is drawn before: the terminal's size is settling.
    settles_at: Duration,
    has_ended: bool,
}

/// Runs the face until the person leaves. `messages` gives what happens, `sender` is its other end.
pub fn run(
    model: Model,
    clock: Clock,
    options: FaceOptions,
    sender: Sender<FaceMessage>,
    messages: &Receiver<FaceMessage>,
    host: &mut dyn FaceHost,
) -> Result<(), FaceError> {
    let FaceOptions { rewrap, takes_mouse } = options;
    let page = PageScreen::new(io::stdout(), rewrap);
    let options = GuardOptions { rows_above_cursor: Some(page.rows_above_cursor()), takes_mouse };
    let guard = TerminalGuard::enter(SystemRawMode, io::stdout(), options)?;
    guard.handle().restore_on_panic();
    host.terminal_taken(guard.handle());
    let input = InputReader::start(sender, clock.clone())?;
    let mut face = Face {
        model,
        page,
        guard,
        input,
        views: Vec::new(),
        view_screen: ViewScreen::default(),
        has_rung: false,
        host,
        clock,
        drawn_at: Duration::ZERO,
        due: Some(Duration::ZERO),
        settles_at: Duration::ZERO,
        has_ended: false,
    };
    face.run(messages)
}

impl Face<'_> {
    fn run(&mut self, messages: &Receiver<FaceMessage>) -> Result<(), FaceError> {
        while !self.has_ended {
            self.draw_if_due()?;
            match messages.recv_timeout(self.time_to_wait()) {
                Ok(message) => {
                    self.take(message)?;
                    // Everything that is there already goes into the same frame.
                    while !self.has_ended
                        && let Ok(message) = messages.try_recv()
                    {
                        self.take(message)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.tick()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.close_views()?;
        // What was said last stays; the live area goes.
        if self.guard.is_taken() {
            self.draw()?;
            self.page.erase(self.model.size, (self.clock)())?;
        } else {
            // A signal has given the terminal back already.
            self.page.print(self.model.page.lines(), self.model.size)?;
        }
        Ok(())
    }

    fn time_to_wait(&self) -> Duration {
        let now = (self.clock)();
        let due = self.due.map(|due| due.max(self.settles_at));
        let next = [due, self.next_tick()].into_iter().flatten().min();
        next.map_or(LONG_TIME, |next| next.saturating_sub(now)).min(LONG_TIME)
    }

    fn next_tick(&self) -> Option<Duration> {
        let view = self.views.last().and_then(|view| view.next_tick(&self.model));
        [self.model.next_tick(), view].into_iter().flatten().min()
    }

    fn tick(&mut self) -> Result<(), FaceError> {
        let now = (self.clock)();
        if self.next_tick().is_some_and(|next| next <= now) {
            let effects = self.model.update(Event::Tick, now);
            self.due = Some(now);
            self.perform(effects)?;
        }
        Ok(())
    }

    fn take(&mut self, message: FaceMessage) -> Result<(), FaceError> {
        let now = (self.clock)();
        match message {
            FaceMessage::Quit => self.has_ended = true,
            FaceMessage::Open(kind) => self.open_view(kind)?,
            FaceMessage::Redraw => self.take_terminal_back()?,
            FaceMessage::Input(InputEvent::Resize(_), _) => {
                self.page.note_resize(now);
                self.settles_at = now + RESIZE_TIME;
                self.due = Some(self.settles_at);
            }
            FaceMessage::Input(input, at) => {
                self.due = Some(now);
                // Whoever types has seen it.
                if matches!(input, InputEvent::Key(_)) {
                    self.guard.clear_title()?;
                }
                // Where the person is belongs to the page, whatever lies on top.
                let view = self.views.last_mut().filter(|_| !matches!(input, InputEvent::Focus { .. }));
                let outcome = view.map(|view| view.take_input(&input, at, &self.model));
                match outcome {
                    None | Some(ViewOutcome::Pass) => {
                        let effects = self.model.update(Event::Input(input), at);
                        self.perform(effects)?;
                    }
                    Some(outcome) => self.follow(outcome)?,
                }
            }
            FaceMessage::ViewData(kind, data) => {
                self.due = Some(now);
                let Some(index) = self.views.iter().position(|view| view.kind() == kind) else {
                    return Ok(());
                };
                if !self.views[index].is_waiting() {
                    self.views[index].take_data(data);
                } else if let Some(view) = open_view(kind, data) {
                    self.views[index] = view;
                } else {
                    self.views.remove(index);
                    self.leave_empty_stack()?;
                }
            }
            FaceMessage::Event(event) => {
                let is_status = matches!(event, Event::Status(_));
                let effects = self.model.update(event, now);
                self.due.get_or_insert((self.drawn_at + FRAME_TIME).max(now));
                self.perform(effects)?;
                if is_status {
                    self.refresh_views();
                }
            }
        }
        Ok(())
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Result<(), FaceError> {
        for effect in effects {
            match effect {
                Effect::Leave => {
                    self.host.perform(Effect::Leave);
                    self.has_ended = true;
                }
                Effect::Redraw => {
                    self.page.redraw();
                    self.view_screen.forget();
                }
                Effect::Notify(text) => self.notify(&text)?,
                Effect::SetTitle(text) => {
                    let text: String = text.chars().filter(|c| !c.is_control()).collect();
                    self.guard.set_title(&text)?;
                }
                Effect::Suspend => self.lend_terminal(|host| host.suspend())?,
                Effect::OpenEditor(text) => {
                    let mut edited = None;
                    self.lend_terminal(|host| edited = host.edit_text(&text))?;
                    if let Some(text) = edited {
                        self.model.update(Event::EditorClosed(text), (self.clock)());
                    }
                }
                Effect::EditCall { id, text } => {
                    let mut edited = None;
                    self.lend_terminal(|host| edited = host.edit_text(&text))?;
                    if let Some(text) = edited {
                        // An editor ends a text with a line end.
                        let text = text.strip_suffix('\n').map_or(text.clone(), str::to_owned);
                        let effects = self.model.update(Event::CallEdited { id, text }, (self.clock)());
                        self.perform(effects)?;
                    }
                }
                Effect::Open(kind) => self.open_view(kind)?,
                effect => self.host.perform(effect),
            }
        }
        Ok(())
    }

    /// Gives the terminal to somebody else for a while.
    fn lend_terminal(&mut self, use_it: impl FnOnce(&mut dyn FaceHost)) -> Result<(), FaceError> {
        self.input.pause();
        self.page.erase(self.model.size, (self.clock)())?;
        self.guard.suspend()?;
        use_it(self.host);
        self.input.resume();
        self.take_terminal_back()
    }

    /// Takes the terminal after it was somebody else's, with the view that was open.
    fn take_terminal_back(&mut self) -> Result<(), FaceError> {
        self.guard.resume()?;
        if !self.views.is_empty() {
            self.guard.enter_alternate()?;
            self.view_screen.forget();
        }
        self.page.redraw();
        self.due = Some((self.clock)());
        Ok(())
    }

    fn notify(&mut self, text: &str) -> Result<(), FaceError> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.guard.set_title(&format!("hardpan: {text}"))?;
        let out = self.page.writer();
        out.write_all(format!("\x07\x1b]9;hardpan: {text}\x07").as_bytes())?;
        out.flush()?;
        Ok(())
    }

    fn draw_if_due(&mut self) -> Result<(), FaceError> {
        let now = (self.clock)();
        match self.due {
            Some(due) if due <= now && self.settles_at <= now => self.draw(),
            _ => Ok(()),
        }
    }

    fn draw(&mut self) -> Result<(), FaceError> {
        self.due = None;
        if !self.guard.is_taken() {
            return Ok(());
        }
        let now = (self.clock)();
        // Before every frame: a signal may be late.
        let size = screen_size()?;
        if size != self.model.size {
            self.model.update(Event::Input(InputEvent::Resize(size)), now);
        }
        if self.views.is_empty() {
            let frame = view(&self.model);
            self.page.draw(&frame, size, now)?;
            self.model.update(Event::Drawn, (self.clock)());
        } else {
            self.draw_view(size)?;
        }
        self.drawn_at = now;
        Ok(())
    }
}
