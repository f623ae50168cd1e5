//! The pickers, the tree, help, and the price before an act: views from plain values.

mod choices;
mod help;
mod models;
mod price;
mod sessions;
#[cfg(test)]
mod tests;
mod tree;

use ratatui::text::{Line, Span};

use crate::text::{escape, width};
use crate::theme::{Role, Theme};

pub use choices::{Choice, ChoicePicker};
pub use help::help_lines;
pub use models::{ModelPicker, ModelPrices, ModelRow, ModelState};
pub use price::{ActPrice, PriceChoice};
pub use sessions::{GoingOn, SessionPicker, SessionRow};
pub use tree::{StepBack, TreeStep, TreeView};

/// From this width on, pickers have all columns.
pub const WIDE: usize = 100;

/// What is typed into a picker, with the place of the cursor: ` model › op`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// What is typed.
    pub text: String,
}

impl Filter {
    /// The first line of a picker, with what stands to the right of it in column `at`.
    fn line(&self, name: &str, right: &str, at: usize, theme: &Theme) -> Line<'static> {
        let typed = format!(" {name} {} {}", theme.glyphs.prompt, escape(&self.text));
        let gap = " ".repeat(at.saturating_sub(width(&typed)).max(2));
        let right = Span::styled(right.to_owned(), theme.style(Role::Quiet));
        Line::from(vec![Span::raw(typed), Span::raw(gap), right])
    }
}

/// What stands before a row: the marker if it is chosen.
fn marker(is_chosen: bool, theme: &Theme) -> Span<'static> {
    let glyph = if is_chosen { theme.glyphs.prompt } else { " " };
    Span::styled(format!(" {glyph} "), theme.style(Role::Accent))
}
