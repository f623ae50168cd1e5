//! [`ViewKind`] and [`ViewData`]: which view is open, and the values that it is made of.

use ratatui::text::Line;

/// The views.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names")]
pub enum ViewKind {
    Context,
    Model,
    Sessions,
    Tree,
    Help,
    /// The whole of the call that is asked about.
    WholeCall,
}

/// What a view is made of. The program around the face has it at once, or sends it later.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewData {
    /// There is nothing to show: no view opens.
    Nothing,
    /// It comes later, as a message.
    Loading,
    /// Lines to look at.
    Lines(Vec<Line<'static>>),
}
