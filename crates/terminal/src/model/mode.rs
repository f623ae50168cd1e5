//! [`Mode`]: how much the agent may do without asking.

/// How much the agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Whatever changes something asks.
    #[default]
    Ask,
    /// Edits in the workspace run, commands ask.
    Edits,
    /// Only reading tools; the answer is a plan.
    Plan,
    /// Everything runs. Only a command leads here, and no key.
    All,
}

impl Mode {
    /// Every mode.
    pub const EVERY: [Mode; 4] = [Mode::Ask, Mode::Edits, Mode::Plan, Mode::All];

    /// The next mode of the Shift-Tab ring. `All` is not in it.
    pub fn next(self) -> Self {
        match self {
            Mode::Ask => Mode::Edits,
            Mode::Edits => Mode::Plan,
            Mode::Plan | Mode::All => Mode::Ask,
        }
    }

    /// The mode of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Mode::EVERY.into_iter().find(|mode| mode.name() == name)
    }

    /// The word in the status line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Ask => "ask",
            Mode::Edits => "edits",
            Mode::Plan => "plan",
            Mode::All => "all",
        }
    }

    /// What the mode means, for the line that is printed when it changes.
    pub fn meaning(self) -> &'static str {
        match self {
            Mode::Ask => "edits and commands ask first",
            Mode::Edits => "edits in this folder run, commands ask first",
            Mode::Plan => "reading tools only; the answer is a plan",
            Mode::All => "nothing asks",
        }
    }
}
