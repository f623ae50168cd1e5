//! [`complete`]: what can stand behind a command's name, for completion in every face.

use std::sync::{Arc, Weak};
use std::time::Duration;

use hardpan_app::ConversationApp;
use hardpan_terminal::editor::{
    CommandSource, Completion, CompletionKind, CompletionQuery, CompletionSource, FuzzyList,
};

/// How long an extension may take to complete a word.
const MAX_COMPLETION_TIME: Duration = Duration::from_millis(150);

use super::SlashCommand;
use super::choice_lists::{ChoiceLists, branch_entries};

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
    lists: &'a ChoiceLists,
}

impl ArgumentQuery<'_> {
    /// Whether the first word is completed.
    pub fn is_first(&self) -> bool {
        self.before.is_empty()
    }

    /// What another command could be followed by.
    pub fn of_command(&self, name: &str, before: &[&str]) -> Vec<Choice> {
        let command = super::all().find(|command| command.name == name.trim_start_matches('/'));
        let query = ArgumentQuery { before, ..*self };
        command.map(|command| (command.choices)(&query)).unwrap_or_default()
    }

    /// This folder's other conversations.
    pub fn sessions(&self) -> Vec<Choice> {
        self.lists.sessions(self.app)
    }

    /// The messages of all branches of this conversation.
    pub fn entries(&self) -> Vec<Choice> {
        self.lists.entries(self.app)
    }

    /// The messages that requests are made of; also the second one of a range such as `e3..e7`.
    pub fn sent_entries(&self) -> Vec<Choice> {
        let first = self.typed.split_once("..").map(|(first, _)| format!("{first}..")).unwrap_or_default();
        let entries = branch_entries(self.app).into_iter();
        entries.map(|entry| choice(format!("{first}{}", entry.text), entry.detail)).collect()
    }
}

/// For commands whose first argument is a message that is sent.
pub fn sent_entry(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    if query.is_first() { query.sent_entries() } else { Vec::new() }
}

/// For commands whose first argument is a message of any branch.
pub fn any_entry(query: &ArgumentQuery<'_>) -> Vec<Choice> {
    if query.is_first() { query.entries() } else { Vec::new() }
}

/// For commands that take no argument, or one that cannot be foreseen.
pub fn nothing(_query: &ArgumentQuery<'_>) -> Vec<Choice> {
    Vec::new()
}

/// What can follow a command's name.
pub fn first_choices(command: &SlashCommand, app: &ConversationApp) -> Vec<Choice> {
    let lists = ChoiceLists::default();
    (command.choices)(&ArgumentQuery { app, before: &[], typed: "", lists: &lists })
}

/// The best choices for the last word of a call such as `/price mo`, the best first. None for a text
/// that is no call with arguments.
pub fn complete(app: &ConversationApp, call: &str, limit: usize) -> Vec<Choice> {
    complete_from(&ChoiceLists::default(), app, call, limit)
}

fn complete_from(lists: &ChoiceLists, app: &ConversationApp, call: &str, limit: usize) -> Vec<Choice> {
    let Some((rest, typed)) = call.strip_prefix('/').and_then(|call| call.rsplit_once(' ')) else {
        return Vec::new();
    };
    let mut words = rest.split_whitespace();
    let name = words.next().unwrap_or_default();
    let Some(command) = super::all().find(|command| command.name == name) else {
        let arguments = call.strip_prefix('/').and_then(|call| call.split_once(' '));
        return extension_choices(app, name, arguments.map_or("", |(_, arguments)| arguments), limit);
    };
    let before: Vec<&str> = words.collect();
    let query = ArgumentQuery { app, before: &before, typed, lists };
    best_choices((command.choices)(&query), typed, limit)
}

/// The choices that begin with what is typed, then those that contain it, by their text or by what
/// they are.
fn best_choices(choices: Vec<Choice>, typed: &str, limit: usize) -> Vec<Choice> {
    let (mut best, others): (Vec<Choice>, Vec<Choice>) =
        choices.into_iter().partition(|choice| choice.text.starts_with(typed));
    let texts = FuzzyList::new(others.iter().map(|choice| &choice.text));
    let mut found = texts.best(typed, limit);
    let wanted = typed.to_lowercase();
    let is_about = |index: &usize| others[*index].detail.to_lowercase().contains(&wanted);
    let about: Vec<usize> = (0..others.len()).filter(|at| !found.contains(at)).filter(is_about).collect();
    found.extend(about);
    best.extend(found.into_iter().map(|index| others[index].clone()));
    best.truncate(limit);
    best
}

/// What the command of an extension says about its arguments, if it says it soon: a person types on.
fn extension_choices(app: &ConversationApp, name: &str, arguments: &str, limit: usize) -> Vec<Choice> {
    let found = app.extensions.complete(&app.agent, name, arguments, MAX_COMPLETION_TIME);
    found.into_iter().take(limit).map(|found| choice(found.text, found.detail)).collect()
}

/// The commands that there are, those of extensions included: a reload changes them.
pub struct CommandNames {
    app: Weak<ConversationApp>,
}

impl CommandNames {
    pub fn new(app: &Arc<ConversationApp>) -> Self {
        CommandNames { app: Arc::downgrade(app) }
    }
}

impl CompletionSource for CommandNames {
    fn complete(&self, query: &CompletionQuery, limit: usize) -> Vec<Completion> {
        let Some(app) = self.app.upgrade().filter(|_| query.kind == CompletionKind::Command) else {
            return Vec::new();
        };
        CommandSource::new(super::descriptions(&app.agent)).complete(query, limit)
    }
}

/// Completes arguments in the terminal face.
pub struct ArgumentSource {
    app: Weak<ConversationApp>,
    lists: ChoiceLists,
}

impl ArgumentSource {
    /// Begins to read what can be completed.
    pub fn new(app: &Arc<ConversationApp>) -> Self {
        let lists = ChoiceLists::prepared();
        lists.sessions(app);
        ArgumentSource { app: Arc::downgrade(app), lists }
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
        complete_from(&self.lists, &app, &call, limit).into_iter().map(completion).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_the_word_comes_first_then_what_contains_it_or_is_about_it() {
        let choices = vec![
            choice("3f2a", "port the parser"),
            choice("a93f", "cap the penalty"),
            choice("77b0", "why does the retry test hang?"),
        ];
        let best = |typed: &str| -> Vec<String> {
            best_choices(choices.clone(), typed, 8).into_iter().map(|choice| choice.text).collect()
        };
        assert_eq!(best("3f"), ["3f2a", "a93f"]);
        assert_eq!(best("retry"), ["77b0"]);
        assert_eq!(best(""), ["3f2a", "a93f", "77b0"]);
        assert_eq!(best("zzz"), [""; 0]);
    }
}
