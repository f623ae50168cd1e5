//! [`KeyPress`]: a key with its modifiers, as all terminals mean it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key, independent of how a terminal encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A character; capital letters are characters of their own.
    Char(char),
    /// F1 to F24.
    Function(u8),
    /// A key with a name.
    Named(NamedKey),
}

macro_rules! named_keys {
    ($($variant:ident $name:literal $shown:literal $code:pat,)*) => {
        /// Keys that are no characters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum NamedKey { $($variant,)* }

        impl NamedKey {
            fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(NamedKey::$variant),)* _ => None }
            }

            fn shown(self) -> &'static str {
                match self { $(NamedKey::$variant => $shown,)* }
            }

            fn from_code(code: KeyCode) -> Option<Self> {
                match code { $($code => Some(NamedKey::$variant),)* _ => None }
            }
        }
    };
}

named_keys! {
    Enter "enter" "Enter" KeyCode::Enter,
    Tab "tab" "Tab" KeyCode::Tab | KeyCode::BackTab,
    Escape "esc" "Esc" KeyCode::Esc,
    Backspace "backspace" "⌫" KeyCode::Backspace,
    Delete "delete" "Del" KeyCode::Delete,
    Up "up" "↑" KeyCode::Up,
    Down "down" "↓" KeyCode::Down,
    Left "left" "←" KeyCode::Left,
    Right "right" "→" KeyCode::Right,
    Home "home" "Home" KeyCode::Home,
    End "end" "End" KeyCode::End,
    PageUp "pageup" "PgUp" KeyCode::PageUp,
    PageDown "pagedown" "PgDn" KeyCode::PageDown,
}

/// A key with the modifiers that were held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPress {
    key: Key,
    ctrl: bool,
    alt: bool,
    shift: bool,
}

impl KeyPress {
    /// A key of the terminal. None for releases and for keys that nothing can be bound to.
    pub fn from_event(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let has = |modifier| event.modifiers.contains(modifier);
        let (ctrl, alt, mut shift) =
            (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT), has(KeyModifiers::SHIFT));
        let key = match event.code {
            // 0x1F: Ctrl-_ and, on most keyboards, Ctrl-/ and Ctrl-7.
            KeyCode::Char('7' | '/' | '_') if ctrl => Key::Char('_'),
            KeyCode::Char(c) if ctrl => Key::Char(c.to_ascii_lowercase()),
            KeyCode::Char(c) => Key::Char(c),
            KeyCode::F(number) => Key::Function(number),
            code => Key::Named(NamedKey::from_code(code)?),
        };
        // A character says by itself whether shift was held.
        shift &= !matches!(key, Key::Char(_));
        shift |= event.code == KeyCode::BackTab;
        Some(KeyPress { key, ctrl, alt, shift })
    }

    /// Reads `ctrl-x`, `alt-enter`, `shift-tab`, `f2`, `y`, `-`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut press = KeyPress { key: Key::Char(' '), ctrl: false, alt: false, shift: false };
        let mut rest = text;
        loop {
            let (modifier, after) = match rest.split_once('-') {
                Some((modifier @ ("ctrl" | "alt" | "shift"), after)) if !after.is_empty() => {
                    (modifier, after)
                }
                _ => break,
            };
            match modifier {
                "ctrl" => press.ctrl = true,
                "alt" => press.alt = true,
                _ => press.shift = true,
            }
            rest = after;
        }
        let mut chars = rest.chars();
        press.key = match (chars.next(), chars.next()) {
            (Some(c), None) => Key::Char(c),
            _ if rest == "space" => Key::Char(' '),
            _ => match NamedKey::parse(rest) {
                Some(named) => Key::Named(named),
                None => Key::Function(rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n))?),
            },
        };
        let is_shifted_char = press.shift && matches!(press.key, Key::Char(_));
        (!is_shifted_char).then_some(press)
    }

    /// The character that the key types: none with Ctrl or Alt.
    pub fn typed(self) -> Option<char> {
        match self.key {
            Key::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }
}

impl std::fmt::Display for KeyPress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (is_held, name) in [(self.ctrl, "Ctrl-"), (self.alt, "Alt-"), (self.shift, "Shift-")] {
            f.write_str(if is_held { name } else { "" })?;
        }
        match self.key {
            Key::Char(' ') => f.write_str("Space"),
            Key::Char(c) if self.ctrl || self.alt => write!(f, "{}", c.to_uppercase()),
            Key::Char(c) => write!(f, "{c}"),
            Key::Function(number) => write!(f, "F{number}"),
            Key::Named(named) => f.write_str(named.shown()),
        }
    }
}
