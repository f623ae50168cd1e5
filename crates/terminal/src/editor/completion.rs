//! [`CompletionList`]: what could stand where the cursor is, for a command or a file.

use std::ops::Range;
use std::sync::Arc;

use super::fuzzy::FuzzyList;

/// Rows of a list.
pub const LIST_ROWS: usize = 8;

/// Something that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What replaces the word.
    pub text: String,
    /// What it is: a command's help, a file's tokens and price.
    pub detail: String,
    /// Whether more can follow: a folder, a command with arguments.
    pub continues: bool,
}

/// What is being completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionQuery {
    /// Which source is asked.
    pub kind: CompletionKind,
    /// The word in the text, with its mark.
    pub range: Range<usize>,
    /// What was typed of it, without its mark; for an argument, without its command.
    pub typed: String,
}

/// What kind of word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// `/` at the start of the line.
    Command,
    /// A word behind a command.
    Argument {
        /// The command's name, without `/`.
        command: String,
        /// What stands between the name and this word, with a space at its end; empty for the first.
        before: String,
    },
    /// `@` at the start of a word.
    File,
}

/// Where completions come from. A source answers at once: what takes longer, it prepares elsewhere.
pub trait CompletionSource: Send + Sync {
    /// The best completions of a word, the best first.
    fn complete(&self, query: &CompletionQuery, limit: usize) -> Vec<Completion>;
}

/// Sources, as a value that events can carry.
#[derive(Clone)]
pub struct CompletionSources(pub Vec<Arc<dyn CompletionSource>>);

impl std::fmt::Debug for CompletionSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} sources", self.0.len())
    }
}

impl PartialEq for CompletionSources {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

/// The word at the cursor, if it can be completed.
pub fn query_at(text: &str, cursor: usize) -> Option<CompletionQuery> {
    let before = &text[..cursor];
    if let Some(line) = before.strip_prefix('/')
        && !line.contains('\n')
    {
        return Some(match line.rsplit_once(' ') {
            None => {
                CompletionQuery { kind: CompletionKind::Command, range: 0..cursor, typed: line.to_owned() }
            }
            Some((rest, word)) => {
                let (command, before) = rest.split_once(' ').unwrap_or((rest, ""));
                let before = if before.is_empty() { String::new() } else { format!("{before} ") };
                let kind = CompletionKind::Argument { command: command.to_owned(), before };
                CompletionQuery { kind, range: cursor - word.len()..cursor, typed: word.to_owned() }
            }
        });
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let typed = before[start..].strip_prefix('@')?;
    Some(CompletionQuery { kind: CompletionKind::File, range: start..cursor, typed: typed.to_owned() })
}

/// The slash commands, with their help.
#[derive(Clone, Debug, Default)]
pub struct CommandSource {
    commands: Vec<(String, String)>,
    names: FuzzyList,
    texts: FuzzyList,
}

impl CommandSource {
    /// The commands' names, without `/`, and what each does.
    pub fn new(commands: Vec<(String, String)>) -> Self {
        let names = FuzzyList::new(commands.iter().map(|(name, _)| name));
        let texts = FuzzyList::new(commands.iter().map(|(name, help)| format!("{name} {help}")));
        CommandSource { commands, names, texts }
    }
}

impl CompletionSource for CommandSource {
    fn complete(&self, query: &CompletionQuery, limit: usize) -> Vec<Completion> {
        if query.kind != CompletionKind::Command {
            return Vec::new();
        }
        let is_prefix = |index: &usize| self.commands[*index].0.starts_with(&query.typed);
        let mut found: Vec<usize> = (0..self.commands.len()).filter(is_prefix).collect();
        for index in self.names.best(&query.typed, limit) {
            if !found.contains(&index) {
                found.push(index);
            }
        }
        // The words of the help find a command whose name one does not know. Where a name matches, they
        // would only be in the way.
        if found.is_empty() {
            found = self.texts.best(&query.typed, limit);
        }
        let completion = |index: usize| {
            let (name, help) = &self.commands[index];
            Completion { text: format!("/{name} "), detail: help.clone(), continues: true }
        };
        found.into_iter().take(limit).map(completion).collect()
    }
}

/// Says something about a file by its path: its tokens and its price.
pub type DescribeFile = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The files of the workspace. Somebody else watches the folder and gives a new list.
#[derive(Clone, Default)]
pub struct FileSource {
    files: Arc<FuzzyList>,
    describe: Option<DescribeFile>,
}

impl FileSource {
    /// Paths relative to the workspace, folders with a slash at their end, and what is said about one.
    pub fn new(files: Arc<FuzzyList>, describe: DescribeFile) -> Self {
        FileSource { files, describe: Some(describe) }
    }
}

impl CompletionSource for FileSource {
    fn complete(&self, query: &CompletionQuery, limit: usize) -> Vec<Completion> {
        if query.kind != CompletionKind::File {
            return Vec::new();
        }
        let names =
            self.files.best(&query.typed, limit).into_iter().filter_map(|index| self.files.name(index));
        let completion = |name: String| {
            let continues = name.ends_with('/');
            let detail = self.describe.as_ref().map_or_else(String::new, |describe| describe(&name));
            let name = if name.contains(' ') { format!("@\"{name}\"") } else { format!("@{name}") };
            Completion { text: if continues { name } else { name + " " }, detail, continues }
        };
        names.map(completion).collect()
    }
}

/// The completions that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionList {
    /// The word that they would replace.
    pub query: CompletionQuery,
    /// The best first; never empty.
    pub items: Vec<Completion>,
    /// Index of the marked one.
    pub marked: usize,
}

impl CompletionList {
    /// Marks another item, `steps` further down; goes round at the ends.
    pub fn mark(&mut self, steps: isize) {
        let count = isize::try_from(self.items.len().max(1)).unwrap_or(1);
        let marked = isize::try_from(self.marked).unwrap_or(0);
        self.marked = usize::try_from((marked + steps).rem_euclid(count)).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<(CompletionKind, String)> {
        query_at(text, text.len()).map(|query| (query.kind, query.typed))
    }

    #[test]
    fn a_slash_at_the_start_and_an_at_sign_at_a_word_are_completed() {
        let argument = CompletionKind::Argument { command: "model".into(), before: String::new() };
        let second = CompletionKind::Argument { command: "price".into(), before: "model ".into() };
        assert_eq!(kind("/price model cla"), Some((second, "cla".into())));
        assert_eq!(kind("/mo"), Some((CompletionKind::Command, "mo".into())));
        assert_eq!(kind("/model son"), Some((argument, "son".into())));
        assert_eq!(kind("look at @src/f"), Some((CompletionKind::File, "src/f".into())));
        assert_eq!(kind("@"), Some((CompletionKind::File, String::new())));
        for text in ["a/b", "mail@example", "see /etc", "/a\nb", "@file then"] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    #[test]
    fn commands_are_found_by_name_first_then_by_what_they_do() {
        let command = |name: &str, help: &str| (name.to_owned(), help.to_owned());
        let source = CommandSource::new(vec![
            command("undo", "undo what the last run did to files"),
            command("model", "choose the model"),
            command("cost", "how much the conversation has cost"),
        ]);
        let query = |typed: &str| CompletionQuery {
            kind: CompletionKind::Command,
            range: 0..typed.len() + 1,
            typed: typed.to_owned(),
        };
        let found = |typed: &str| -> Vec<String> {
            source.complete(&query(typed), 8).into_iter().map(|found| found.text).collect()
        };
        assert_eq!(found("mo"), ["/model "], "not `cost`, whose help has an m and an o");
        assert_eq!(found("files"), ["/undo "]);
        assert_eq!(found("").len(), 3);
    }

    #[test]
    fn marking_goes_round() {
        let item = |text: &str| Completion { text: text.into(), detail: String::new(), continues: false };
        let query = CompletionQuery { kind: CompletionKind::File, range: 0..1, typed: String::new() };
        let mut list = CompletionList { query, items: vec![item("a"), item("b"), item("c")], marked: 0 };
        list.mark(-1);
        assert_eq!(list.marked, 2);
        list.mark(2);
        assert_eq!(list.marked, 1);
    }
}
