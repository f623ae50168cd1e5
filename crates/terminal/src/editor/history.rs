//! [`History`]: earlier prompts, kept from session to session, and the search in them.

use std::sync::Arc;

/// Prompts that are kept.
const LIMIT: usize = 5000;
/// Longer prompts are not kept: nobody looks for them, and every start would read them.
const LONGEST: usize = 64 * 1024;

/// Earlier prompts, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    entries: Vec<Arc<str>>,
}

impl History {
    /// Reads the text of a history file. Lines that it does not understand are left out.
    pub fn parse(file: &str) -> Self {
        let mut history = History::default();
        file.lines().filter_map(decode_line).for_each(|entry| drop(history.add(&entry)));
        history
    }

    /// The earlier prompts, oldest first.
    pub fn entries(&self) -> &[Arc<str>] {
        &self.entries
    }

    /// Adds a prompt, unless it is the last one again. Returns the line for the history file.
    pub fn add(&mut self, prompt: &str) -> Option<String> {
        let is_repeated = self.entries.last().is_some_and(|last| **last == *prompt);
        if prompt.trim().is_empty() || prompt.len() > LONGEST || is_repeated {
            return None;
        }
        self.entries.push(prompt.into());
        let excess = self.entries.len().saturating_sub(LIMIT);
        self.entries.drain(..excess);
        Some(encode_line(prompt))
    }

    /// The rest of the newest prompt that begins with this text: the suggestion behind the cursor.
    pub fn suggestion(&self, text: &str) -> Option<&str> {
        if text.is_empty() || text.contains('\n') {
            return None;
        }
        let found =
            self.entries.iter().rev().find(|entry| entry.len() > text.len() && entry.starts_with(text));
        found.map(|entry| &entry[text.len()..]).filter(|rest| !rest.contains('\n'))
    }

    /// The newest prompt before index `before` that contains the query; capitals matter if the query
    /// has any.
    pub fn find_older(&self, query: &str, before: usize) -> Option<usize> {
        self.entries[..before.min(self.entries.len())].iter().rposition(|entry| contains(entry, query))
    }

    /// The oldest prompt after index `after` that contains the query.
    pub fn find_newer(&self, query: &str, after: usize) -> Option<usize> {
        let rest = self.entries.get(after + 1..)?;
        rest.iter().position(|entry| contains(entry, query)).map(|at| after + 1 + at)
    }

    /// The last word of the newest prompt.
    pub fn last_word(&self) -> Option<&str> {
        self.entries.last()?.split_whitespace().next_back()
    }
}

fn contains(entry: &str, query: &str) -> bool {
    if query.chars().any(char::is_uppercase) {
        entry.contains(query)
    } else {
        entry.to_lowercase().contains(query)
    }
}

/// A prompt as one line of the history file.
fn encode_line(prompt: &str) -> String {
    let mut line = String::with_capacity(prompt.len() + 1);
    for c in prompt.chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            c => line.push(c),
        }
    }
    line.push('\n');
    line
}

/// The reverse; none for a line that [`encode_line`] cannot have written.
fn decode_line(line: &str) -> Option<String> {
    let mut prompt = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        prompt.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(prompt)
}

/// A search in the history, as Ctrl-R opens it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistorySearch {
    /// What is searched for.
    pub query: String,
    /// Index of the prompt that was found.
    pub found: Option<usize>,
}

impl HistorySearch {
    /// Searches for another text, from the newest prompt on.
    pub fn set_query(&mut self, history: &History, query: String) {
        self.found = history.find_older(&query, history.entries().len());
        self.query = query;
    }

    /// Goes to the match before.
    pub fn older(&mut self, history: &History) {
        let before = self.found.unwrap_or(history.entries().len());
        self.found = history.find_older(&self.query, before).or(self.found);
    }

    /// Goes to the match after.
    pub fn newer(&mut self, history: &History) {
        let Some(after) = self.found else { return };
        self.found = history.find_newer(&self.query, after).or(self.found);
    }

    /// The prompt that was found.
    pub fn prompt<'a>(&self, history: &'a History) -> Option<&'a str> {
        history.entries().get(self.found?).map(|entry| &**entry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn history(prompts: &[&str]) -> History {
        let mut history = History::default();
        prompts.iter().for_each(|prompt| drop(history.add(prompt)));
        history
    }

    proptest! {
        #[test]
        fn a_history_file_gives_back_what_was_added(prompts in prop::collection::vec(".{0,20}[\\\\\n\r]?.{0,5}", 0..20)) {
            let mut history = History::default();
            let file: String = prompts.iter().filter_map(|prompt| history.add(prompt)).collect();
            prop_assert_eq!(History::parse(&file), history);
        }
    }

    #[test]
    fn the_search_goes_back_and_forth_and_stays_at_its_last_match() {
        let history = history(&["fix the parser", "run tests", "Fix the docs", "ls"]);
        let mut search = HistorySearch::default();
        search.set_query(&history, "fix".into());
        assert_eq!(search.prompt(&history), Some("Fix the docs"));
        search.older(&history);
        search.older(&history);
        assert_eq!(search.prompt(&history), Some("fix the parser"));
        search.newer(&history);
        assert_eq!(search.prompt(&history), Some("Fix the docs"));
        search.set_query(&history, "Fix the p".into());
        assert_eq!(search.prompt(&history), None);
    }

    #[test]
    fn a_suggestion_continues_the_newest_prompt_that_begins_so() {
        let history = history(&["run the tests", "run the linter", "two\nlines"]);
        assert_eq!(history.suggestion("run"), Some(" the linter"));
        assert_eq!(history.suggestion("run the t"), Some("ests"));
        assert_eq!((history.suggestion("two"), history.suggestion("")), (None, None));
    }
}
