//! [`Question`]: what a person wants to know, read off the words of the question.

use super::search_terms::{self, SearchTerm, identifier_parts, is_path_word, is_specific};

/// What a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Nothing that can be searched for: a greeting, or a question about the assistant.
    Greeting,
    /// What the folder holds.
    Map,
    /// Where a name is used.
    Users(String),
    /// Where a name is defined, and what it looks like.
    Definition(String),
    /// What a file or a folder contains.
    Contents(String),
    /// Places that match the words.
    Search,
}

/// A question, understood as far as words allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked for.
    pub intent: Intent,
    /// The words to search for, the most specific first.
    pub terms: Vec<SearchTerm>,
    /// Whether the person wants something to be changed, which the assistant cannot do.
    pub wants_change: bool,
    /// Whether documents are meant rather than code.
    pub wants_documents: bool,
}

/// Words that ask for the users of a name.
const USE_WORDS: &[&str] = &[
    "call",
    "called",
    "caller",
    "callers",
    "calls",
    "depend",
    "depends",
    "import",
    "imported",
    "imports",
    "reference",
    "referenced",
    "references",
    "usage",
    "usages",
    "use",
    "used",
    "user",
    "users",
    "uses",
    "using",
];
/// Words that ask for the place of a definition.
const PLACE_WORDS: &[&str] =
    &["declared", "defined", "definition", "find", "implemented", "locate", "show", "where"];
/// Words that mean the folder as a whole.
const WHOLE_WORDS: &[&str] = &[
    "architecture",
    "codebase",
    "directory",
    "folder",
    "layout",
    "map",
    "organised",
    "organized",
    "outline",
    "overview",
    "project",
    "repo",
    "repository",
    "structure",
    "structured",
    "tree",
];
/// Words that mean documents.
const DOCUMENT_WORDS: &[&str] = &[
    "changelog",
    "doc",
    "docs",
    "document",
    "documentation",
    "documented",
    "documents",
    "licence",
    "license",
    "manual",
    "readme",
];
/// Verbs that, at the beginning, ask for a change.
const CHANGE_WORDS: &[&str] = &[
    "add",
    "build",
    "change",
    "create",
    "delete",
    "edit",
    "fix",
    "implement",
    "make",
    "move",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "update",
    "write",
];
/// Words that stand for what was asked about before.
const PRONOUNS: &[&str] = &["it", "its", "one", "that", "them", "there", "they", "this", "those"];

impl Question {
    /// Reads a question. `earlier` are the questions before it, the newest first: `who uses it?` means
    /// what they were about.
    pub fn read(text: &str, earlier: &[String]) -> Self {
        let words: Vec<String> = plain_words(text);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let mut terms: Vec<SearchTerm> = search_terms::terms(text)
            .into_iter()
            .filter(|term| !WHOLE_WORDS.contains(&&*term.word.to_lowercase()))
            .collect();
        if let Some(name) = quoted_name(text).filter(|_| terms.is_empty()) {
            // A name in quotes is meant, however common it is.
            terms.push(SearchTerm { word: name.to_owned(), asked: name.to_owned(), weight: 5 });
        }
        let mut question = Question {
            intent: Intent::Search,
            terms,
            wants_change: wants_change(&words),
            wants_documents: has(DOCUMENT_WORDS),
        };
        let subject = match question.terms.is_empty() {
            false => Subject::of(text, question.terms.len()),
            true if has(PRONOUNS) && (has(USE_WORDS) || has(PLACE_WORDS)) => {
                let before = earlier.iter().find(|text| !search_terms::terms(text).is_empty());
                question.terms = before.map(|text| search_terms::terms(text)).unwrap_or_default();
                before.and_then(|text| Subject::of(text, question.terms.len()))
            }
            true => None,
        };
        question.intent = match subject {
            _ if question.terms.is_empty() && has(WHOLE_WORDS) => Intent::Map,
            _ if question.terms.is_empty() => Intent::Greeting,
            Some(Subject::Path(path)) => Intent::Contents(path),
            Some(Subject::Name(name)) if has(USE_WORDS) && !asks_what_it_calls(&words) => Intent::Users(name),
            Some(Subject::Name(name)) => Intent::Definition(name),
            Some(Subject::Word(word)) if has(USE_WORDS) => Intent::Users(word),
            Some(Subject::Word(word)) if has(PLACE_WORDS) => Intent::Definition(word),
            Some(Subject::Word(_)) | None => Intent::Search,
        };
        question
    }
}

impl Question {
    /// The name that is asked about, if it is spelled as one: a lower-case word may mean other names, too.
    pub fn asked_name(&self) -> Option<&str> {
        let (Intent::Users(name) | Intent::Definition(name)) = &self.intent else { return None };
        let name = name.rsplit(['.', ':', '#']).next().unwrap_or(name);
        let is_word = identifier_parts(name).len() == 1 && !name.contains(char::is_uppercase);
        (!is_word).then_some(name)
    }
}

/// The words of a text in lower case, without marks.
fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a request begins with a verb that changes something, as in `please fix the parser`.
fn wants_change(words: &[String]) -> bool {
    let polite = ["can", "could", "you", "please", "now", "then", "and"];
    let first = words.iter().find(|word| !polite.contains(&word.as_str()));
    first.is_some_and(|word| CHANGE_WORDS.contains(&word.as_str()))
}

/// `what does parse call?` asks for the body of `parse`, not for its users.
fn asks_what_it_calls(words: &[String]) -> bool {
    words.starts_with(&["what".to_owned(), "does".to_owned()])
        && words.last().is_some_and(|last| ["call", "use"].contains(&last.as_str()))
}

/// What a question is about.
enum Subject {
    /// A file or a folder.
    Path(String),
    /// An identifier, by the look of it.
    Name(String),
    /// The only word that says anything.
    Word(String),
}

impl Subject {
    fn of(text: &str, terms: usize) -> Option<Self> {
        if let Some(name) = quoted_name(text) {
            return Some(if is_path_word(name) {
                Subject::Path(name.into())
            } else {
                Subject::Name(name.into())
            });
        }
        let is_part = |c: char| c.is_alphanumeric() || "_./:#-()".contains(c);
        let tokens: Vec<&str> =
            text.split(|c| !is_part(c)).map(trim_marks).filter(|token| !token.is_empty()).collect();
        if let Some(path) = tokens.iter().find(|token| is_path_word(token)) {
            return Some(Subject::Path((*path).trim_end_matches('/').to_owned()));
        }
        let look =
            |(index, token): (usize, &&str)| Some((NameLook::of(token, index == 0)?, token.to_string()));
        let best = tokens.iter().enumerate().filter_map(look).min_by_key(|(look, _)| *look);
        if let Some((_, name)) = best {
            return Some(Subject::Name(name));
        }
        let mut specific = tokens.iter().filter(|token| is_specific(token));
        specific.next().filter(|_| terms == 1).map(|word| Subject::Word((*word).to_owned()))
    }
}

/// The first name between backticks.
fn quoted_name(text: &str) -> Option<&str> {
    let name = text.split('`').nth(1)?.trim_end_matches("()");
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

fn trim_marks(token: &str) -> &str {
    token.trim_end_matches("()").trim_matches(|c: char| "./:-()#".contains(c))
}

/// How much a word looks like a name of the code, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameLook {
    /// `Client::send`, `Client.send`
    Qualified,
    /// `retry_policy`, `RetryPolicy`
    Compound,
    /// `Budget`, but not at the beginning of a sentence
    Capitalised,
}

impl NameLook {
    fn of(token: &str, is_first: bool) -> Option<Self> {
        let is_name = |name: &str| {
            name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let parts: Vec<&str> = token.split(['.', ':', '#']).filter(|part| !part.is_empty()).collect();
        if parts.len() > 1 && parts.iter().all(|part| is_name(part) && part.len() > 1) {
            return Some(NameLook::Qualified);
        }
        let [name] = parts[..] else { return None };
        if !is_name(name) || name.chars().count() < 2 {
            return None;
        }
        if identifier_parts(name).len() > 1 {
            return Some(NameLook::Compound);
        }
        let is_capitalised = name.starts_with(char::is_uppercase) && is_specific(name);
        (is_capitalised && !is_first).then_some(NameLook::Capitalised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(text: &str) -> Intent {
        Question::read(text, &[]).intent
    }

    #[test]
    fn questions_are_told_apart_by_their_words() {
        let name = "RetryPolicy".to_owned();
        for text in [
            "who uses RetryPolicy?",
            "Where is `RetryPolicy` used?",
            "callers of RetryPolicy",
            "usages of RetryPolicy",
        ] {
            assert_eq!(intent(text), Intent::Users(name.clone()), "{text}");
        }
        for text in [
            "where is RetryPolicy defined?",
            "RetryPolicy",
            "Wo ist RetryPolicy definiert?",
            "explain RetryPolicy",
        ] {
            assert_eq!(intent(text), Intent::Definition(name.clone()), "{text}");
        }
        assert_eq!(intent("who calls Client.send()?"), Intent::Users("Client.send".into()));
        assert_eq!(intent("What does CacheModel::plan call?"), Intent::Definition("CacheModel::plan".into()));
        assert_eq!(intent("Where is the Budget struct?"), Intent::Definition("Budget".into()));
        assert_eq!(intent("who uses retry?"), Intent::Users("retry".into()));
        for text in ["what does src/a.rs contain?", "explain src/a.rs", "what is in @src/a.rs?"] {
            assert_eq!(intent(text), Intent::Contents("src/a.rs".into()), "{text}");
        }
        assert_eq!(intent("what is in the Makefile?"), Intent::Contents("Makefile".into()));
        for text in [
            "what is this project?",
            "map",
            "give me an overview of the repository",
            "How is this codebase organised?",
        ] {
            assert_eq!(intent(text), Intent::Map, "{text}");
        }
        for text in ["where are retries decided?", "how do retries work", "why is the build slow"] {
            assert_eq!(intent(text), Intent::Search, "{text}");
        }
        for text in ["", "hi", "Who are you?", "👋", "???", "2 + 2"] {
            assert_eq!(intent(text), Intent::Greeting, "{text}");
        }
    }

    #[test]
    fn a_pronoun_means_what_the_last_question_was_about() {
        let earlier = ["thanks".to_owned(), "where is RetryPolicy defined?".to_owned()];
        assert_eq!(Question::read("and who uses it?", &earlier).intent, Intent::Users("RetryPolicy".into()));
        assert_eq!(Question::read("and who uses it?", &[]).intent, Intent::Greeting);
        assert_eq!(Question::read("who uses Budget in it?", &earlier).intent, Intent::Users("Budget".into()));
    }

    #[test]
    fn a_wish_for_a_change_is_known() {
        assert!(Question::read("Please fix the parser", &[]).wants_change);
        assert!(Question::read("can you add a test for RetryPolicy?", &[]).wants_change);
        assert!(!Question::read("where is the fix for the parser?", &[]).wants_change);
        assert!(Question::read("what does the readme say about keys?", &[]).wants_documents);
    }
}
