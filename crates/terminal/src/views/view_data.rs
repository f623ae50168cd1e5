//! [`ViewKind`] and [`ViewData`]: which view is open, and the values that it is made of.

use ratatui::text::Line;

use crate::blocks::ContextView;

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
    /// The whole conversation.
    Full,
    /// The same at its last call.
    LastCall,
}

/// What a view is made of. The program around the face has it at once, or sends it later.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewData {
    /// There is nothing to show: no view opens.
    Nothing,
    /// It comes later, as a message.
    Loading,
    /// For the full screen: what stands beside the conversation, which the model has.
    Conversation(Option<Box<ContextView>>),
    /// Lines to look at.
    Lines(Vec<Line<'static>>),
}
