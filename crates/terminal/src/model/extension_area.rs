//! [`ExtensionArea`]: what extensions show beside the conversation.

/// What extensions show beside the conversation: words and lines that others wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionArea {
    /// Words for the row below the status line.
    pub statuses: Vec<String>,
    /// Lines above the input line.
    pub above: Vec<String>,
    /// Lines below it.
    pub below: Vec<String>,
    /// What the face says while the model has not begun to answer.
    pub working: Option<String>,
}
