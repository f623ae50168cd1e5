//! [`complete`]: what can stand behind a command's name, for completion in every face.

use std::sync::{Arc, Weak};

use hardpan_app::ConversationApp;
use hardpan_terminal::editor::{Completion, CompletionKind, CompletionQuery, CompletionSource, FuzzyList};

/// Something that can be an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is typed.
    pub text: String,
    /// What it is; may be empty.
    pub detail: String,
}

/// A choice by its text and what it is.
pub fn choice(text: impl Into<String>, detail: impl Into<String>) -> Choice {
    Choice { text: text.into(), detail: detail.into() }
}

/// The place in the arguments that is completed.
pub struct ArgumentQuery<'a> {
    /// The conversation that the choices are of.
    pub app: &'a ConversationApp,
    /// The words before it.
    pub before: &'a [&'a str],
    /// What was typed of the word itself.
    pub typed: &'a str,
}

impl ArgumentQuery<'_> {
    /// Whether the first word is completed.
    pub fn is_first(&self) -> bool {
        self.before.is_empty()
    }
}

/// For commands that take no argument, or one that cannot be foreseen.
pub fn nothing(_query: &ArgumentQuery<'_>) -> Vec<Choice> {
    Vec::new()
}

/// The best choices for the last word of a call such as `/price mo`, the best first. None for a text
/// that is no call with arguments.
pub fn complete(app: &ConversationApp, call: &str, limit: usize) -> Vec<Choice> {
    let Some((rest, typed)) = call.strip_prefix('/').and_then(|call| call.rsplit_once(' ')) else {
        return Vec::new();
    };
    let mut words = rest.split_whitespace();
    let Some(command) = words.next().and_then(|name| super::all().find(|command| command.name == name))
    else {
        return Vec::new();
    };
    let before: Vec<&str> = words.collect();
    let choices = (command.choices)(&ArgumentQuery { app, before: &before, typed });
    let (mut best, others): (Vec<Choice>, Vec<Choice>) =
        choices.into_iter().partition(|choice| choice.text.starts_with(typed));
    let fuzzy = FuzzyList::new(others.iter().map(|choice| &choice.text));
    best.extend(fuzzy.best(typed, limit).into_iter().map(|index| others[index].clone()));
    best.truncate(limit);
    best
}

/// Completes arguments in the terminal face.
pub struct ArgumentSource {
    app: Weak<ConversationApp>,
}

impl ArgumentSource {
    pub fn new(app: &Arc<ConversationApp>) -> Self {
        ArgumentSource { app: Arc::downgrade(app) }
    }
}

impl CompletionSource for ArgumentSource {
    fn complete(&self, query: &CompletionQuery, limit: usize) -> Vec<Completion> {
        let (CompletionKind::Argument { command, before }, Some(app)) = (&query.kind, self.app.upgrade())
        else {
            return Vec::new();
        };
        let call = format!("/{command} {before}{}", query.typed);
        let completion = |choice: Choice| {
            let continues = choice.text.ends_with('/');
            let text = if continues { choice.text } else { choice.text + " " };
            Completion { text, detail: choice.detail, continues }
        };
        complete(&app, &call, limit).into_iter().map(completion).collect()
    }
}
