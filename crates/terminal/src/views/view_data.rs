//! [`ViewKind`] and [`ViewData`]: which view is open, and the values that it is made of.

use ratatui::text::Line;

use super::context::ContextData;
use super::models::{ChoiceData, ModelData};
use super::price::PriceData;
use super::sessions::SessionData;
use super::tree::TreeData;
use crate::blocks::{ContextView, FileDiff};

/// The views.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names")]
pub enum ViewKind {
    Context,
    Model,
    Sessions,
    /// The sessions of all folders.
    AllSessions,
    Tree,
    Layout,
    Agent,
    Tools,
    Help,
    /// The whole of the call that is asked about.
    WholeCall,
    /// The whole conversation.
    Full,
    /// The same at its last call.
    LastCall,
    /// The file that the call in question changes, before and after.
    CallDiff,
    /// What the session has changed in files.
    Changes,
    /// The text of something in the context, by its key.
    Item(String),
    /// How the last request used the cache.
    Why,
    /// The request as it is sent.
    RequestBytes,
    /// What differs from the request before.
    RequestDiff,
    /// What a slash command costs, before it is run.
    Price(String),
}

impl ViewKind {
    /// Whether it shows a conversation that goes on: it is given new data with each change.
    pub fn follows_conversation(&self) -> bool {
        match self {
            ViewKind::Context
            | ViewKind::Model
            | ViewKind::Sessions
            | ViewKind::AllSessions
            | ViewKind::Tree
            | ViewKind::Layout
            | ViewKind::Agent
            | ViewKind::Tools
            | ViewKind::Changes
            | ViewKind::Full
            | ViewKind::LastCall => true,
            ViewKind::Help
            | ViewKind::WholeCall
            | ViewKind::CallDiff
            | ViewKind::Item(_)
            | ViewKind::Why
            | ViewKind::RequestBytes
            | ViewKind::RequestDiff
            | ViewKind::Price(_) => false,
        }
    }

    /// The view that a slash command without arguments opens.
    pub fn for_command(line: &str) -> Option<Self> {
        Some(match line.trim() {
            "/context" => ViewKind::Context,
            "/model" => ViewKind::Model,
            "/resume" => ViewKind::Sessions,
            "/tree" => ViewKind::Tree,
            "/layout" => ViewKind::Layout,
            "/agent" => ViewKind::Agent,
            "/tools" => ViewKind::Tools,
            "/changes" => ViewKind::Changes,
            _ => return None,
        })
    }
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
    /// The context.
    Context(Box<ContextData>),
    /// Models and efforts.
    Models(ModelData),
    /// Sessions.
    Sessions(SessionData),
    /// The tree of the session.
    Tree(TreeData),
    /// Names to choose from.
    Choices(ChoiceData),
    /// The price of an act.
    Price(PriceData),
    /// Changed files.
    Diff(Vec<FileDiff>),
}
