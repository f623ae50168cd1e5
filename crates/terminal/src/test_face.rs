//! A face for tests: events in, effects and drawings out.

use std::time::Duration;

use crate::editor::{Editor, History};
use crate::input::InputEvent;
use crate::keymap::{KeyPress, Keymap};
use crate::model::{AgentUpdate, Effect, Event, Model};
use crate::screen::{PageScreen, Rewrap, ScreenSize};
use crate::theme::Theme;
use crate::view::view;

/// A model with a clock that the test moves.
pub struct TestFace {
    pub model: Model,
    pub now: Duration,
    pub effects: Vec<Effect>,
    /// Everything that was printed.
    pub printed: Vec<String>,
    page: PageScreen<Vec<u8>>,
}

impl TestFace {
    pub fn new(columns: u16, rows: u16) -> Self {
        TestFace::with_theme(columns, rows, Theme::default())
    }

    pub fn with_theme(columns: u16, rows: u16, theme: Theme) -> Self {
        let editor = Editor::new(History::default(), |text| text.len() / 4);
        let size = ScreenSize { columns, rows };
        let model = Model::new(editor, Keymap::default(), theme, size);
        let page = PageScreen::new(Vec::new(), Rewrap::Reported);
        let now = Duration::from_secs(100);
        TestFace { model, now, effects: Vec::new(), printed: Vec::new(), page }
    }

    /// An event now; its effects are also kept.
    pub fn event(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.model.update(event, self.now);
        self.effects.extend(effects.iter().cloned());
        effects
    }

    pub fn agent(&mut self, update: AgentUpdate) -> Vec<Effect> {
        self.event(Event::Agent(update))
    }

    /// A key, a little later than whatever was before.
    pub fn press(&mut self, key: &str) -> Vec<Effect> {
        self.now += Duration::from_millis(1);
        self.event(Event::Input(InputEvent::Key(KeyPress::parse(key).unwrap())))
    }

    pub fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            let key = if c == ' ' { "space".to_owned() } else { c.to_string() };
            self.press(&key);
        }
    }

    pub fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.event(Event::Input(InputEvent::Paste(text.to_owned())))
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.event(Event::Tick);
    }

    /// Draws a frame, as the loop does.
    pub fn draw(&mut self) {
        let frame = view(&self.model);
        self.page.draw(&frame, self.model.size, self.now).unwrap();
        self.printed.extend(frame.print.iter().map(ToString::to_string));
        self.event(Event::Drawn);
    }

    /// The line's text.
    pub fn line(&self) -> String {
        self.model.editor.buffer().expanded()
    }

    /// What was printed, then the live area, with `▏` at the cursor.
    pub fn drawing(&mut self) -> String {
        self.draw();
        let frame = view(&self.model);
        let mut rows: Vec<String> = frame.live.iter().map(ToString::to_string).collect();
        let row = &mut rows[frame.cursor.row];
        let mut used = 0;
        let at = crate::text::clusters(row).find_map(|(cluster, width)| {
            let start =
                (used >= frame.cursor.column).then(|| cluster.as_ptr() as usize - row.as_ptr() as usize);
            used += width;
            start
        });
        let at = at.unwrap_or(row.len());
        row.insert(at, '▏');
        let divider = "── live".to_owned();
        let lines = self.printed.iter().chain([&divider]).chain(&rows).map(|row| row.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Every byte that was written so far.
    pub fn bytes(&mut self) -> &[u8] {
        self.page.writer()
    }
}
