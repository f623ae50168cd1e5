//! [`ToolEventOrder`]: in which order an extension hears of a tool call.

/// The order of the events around a tool call.
///
/// The default is that of the document which the API is written after. Newer releases of the system it
/// describes tell of a call's beginning first and of its end last, so that the end carries what
/// `tool_result` made of the result. Extensions written for those rely on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolEventOrder {
    /// `tool_call`, `tool_execution_start`, `tool_execution_end`, `tool_result`.
    #[default]
    QuestionsAround,
    /// `tool_execution_start`, `tool_call`, `tool_result`, `tool_execution_end`.
    AroundQuestions,
}

/// The scope that packages of the newer releases are published under; none of the older order is.
const NEWER_SCOPE: &str = "@earendil-works/";

/// What an extension of the older scope, or without imports, writes to get the newer order.
const DECLARATION: &str = "@tool-events around-questions";

impl ToolEventOrder {
    /// The order that the files of an extension ask for, its manifest among them.
    pub fn of_sources<'a>(mut sources: impl Iterator<Item = &'a str>) -> Self {
        let is_newer = sources.any(|source| source.contains(NEWER_SCOPE) || source.contains(DECLARATION));
        if is_newer { ToolEventOrder::AroundQuestions } else { ToolEventOrder::QuestionsAround }
    }
}
