//! Extracts search terms from a question, the most specific first.

use super::source_kind::has_file_ending;

/// Words that say nothing about where to search, sorted.
#[rustfmt::skip] // one line for each word would hide the code
const STOP_WORDS: &[&str] = &[
    "a", "about", "add", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "between", "both", "but", "by", "call", "called", "caller", "callers",
    "calls", "can", "cannot", "change", "class", "code", "codebase", "come", "comes", "constant", "contain",
    "contains", "content", "contents", "could", "create", "declared", "defined", "definition", "depend",
    "depends", "describe", "did", "do", "does", "doing", "done", "during", "each", "edit", "enum", "every",
    "explain", "few", "file", "files", "find", "fix", "for", "from", "function", "functions", "get", "give",
    "got", "had", "happen", "happens", "has", "have", "here", "how", "i", "if", "implement", "implemented",
    "in", "inside", "interface", "into", "is", "it", "its", "just", "let", "like", "line", "lines", "list",
    "locate", "look", "made", "make", "many", "may", "me", "mean", "means", "method", "methods", "module",
    "more", "most", "move", "much", "must", "my", "need", "never", "no", "not", "nothing", "now", "of",
    "on", "one", "only", "or", "organised", "organized", "other", "our", "out", "over", "part", "parts",
    "place", "places", "please", "project", "really", "refactor", "reference", "referenced", "references",
    "remove", "rename", "replace", "repo", "repository", "rewrite", "same", "say", "says", "search", "see",
    "shall", "should", "show", "since", "so", "some", "something", "still", "struct", "structured", "such",
    "take", "takes", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "thing", "things", "this", "those", "through", "to", "too", "trait", "try", "type", "under", "up",
    "update", "upon", "us", "usage", "usages", "use", "used", "user", "users", "uses", "using", "variable",
    "very", "want", "was", "way", "we", "well", "were", "what", "when", "where", "which", "while", "who",
    "whole", "whose", "why", "will", "with", "without", "work", "works", "would", "write", "yes", "you",
    "your",
];

/// Words of a greeting, or of a question about the assistant itself, sorted.
#[rustfmt::skip] // one line for each word would hide the code
const GREETINGS: &[&str] = &[
    "afternoon", "evening", "good", "greetings", "hello", "help", "hey", "hi", "morning", "okay", "ping",
    "test", "thank", "thanks", "welcome",
];

/// Endings that are cut off, so that `caching` finds `cache`: the search matches parts of words.
const ENDINGS: &[&str] = &["ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "es", "s"];

/// A word to search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchTerm {
    /// The word, matched in any case and anywhere in a line.
    pub word: String,
    /// The word as it stands in the question.
    pub asked: String,
    /// How specific it is: a path counts more than a name, a name more than a word.
    pub weight: usize,
}

/// The search terms of a question, the most specific first.
pub fn terms(question: &str) -> Vec<SearchTerm> {
    let mut terms: Vec<SearchTerm> = Vec::new();
    let mut add = |word: &str, asked: &str, weight: usize| {
        let known = terms.iter_mut().find(|term| term.word.eq_ignore_ascii_case(word));
        match known {
            Some(term) => term.weight = term.weight.max(weight),
            None => terms.push(SearchTerm { word: word.to_owned(), asked: asked.to_owned(), weight }),
        }
    };
    let is_part = |c: char| c.is_alphanumeric() || "_./:-".contains(c);
    for token in question.split(|c| !is_part(c)) {
        let token = token.trim_matches(|c: char| "./:-".contains(c));
        if is_path_word(token) {
            add(token, token, 6);
            continue;
        }
        for name in token.split([':', '.', '-']).filter(|name| !name.is_empty()) {
            let parts = identifier_parts(name);
            let [only] = &parts[..] else {
                add(name, name, 5);
                parts.iter().filter(|part| is_specific(part)).for_each(|part| add(&stem(part), part, 1));
                continue;
            };
            if is_specific(only) {
                // A long word is more specific than a short one.
                let weight = 2 + usize::from(only.len() >= 7) + usize::from(token.contains(':'));
                add(&stem(only), only, weight);
            }
        }
    }
    terms.sort_by_key(|term| std::cmp::Reverse(term.weight)); // stable: then as they were asked
    terms
}

/// Whether a word says anything about where to search.
pub fn is_specific(word: &str) -> bool {
    let word = word.to_lowercase();
    word.chars().count() >= 3
        && STOP_WORDS.binary_search(&&*word).is_err()
        && GREETINGS.binary_search(&&*word).is_err()
        && !word.chars().all(|c| c.is_ascii_digit())
}

/// Files that are known without an ending.
const FILE_NAMES: [&str; 8] =
    ["Makefile", "Dockerfile", "Justfile", "justfile", "LICENSE", "README", "CHANGELOG", "Rakefile"];

/// Whether a word names a file or a folder, by the look of it.
pub fn is_path_word(word: &str) -> bool {
    let has_folder =
        word.contains('/') && word.split('/').all(|part| part.len() != 1) && !word.contains("//");
    word.len() > 3 && (has_folder || has_file_ending(word)) || FILE_NAMES.contains(&word)
}

/// The words of an identifier: `parseConfig`, `parse_config` and `HTTPServer` have two each.
pub fn identifier_parts(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut parts = vec![String::new()];
    for (index, &c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| chars[before]);
        let next_is_lower = chars.get(index + 1).is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase()
            && before
                .is_some_and(|b| b.is_lowercase() || b.is_numeric() || (b.is_uppercase() && next_is_lower));
        if c == '_' || begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn stem(word: &str) -> String {
    let kept = |ending: &&&str| word.len() >= ending.len() + 4 && word.ends_with(**ending);
    let Some(ending) = ENDINGS.iter().find(kept) else { return word.to_owned() };
    let stem = &word[..word.len() - ending.len()];
    // `planned` and `planning` double a letter that `plan` does not have; `class` and `call` have
    // theirs.
    let mut ends = stem.chars().rev();
    let doubled = matches!((ends.next(), ends.next()), (Some(last), Some(before)) if last == before && !"sl".contains(last));
    let most = if doubled && stem.is_ascii() && stem.len() > 4 { stem.len() - 1 } else { stem.len() };
    stem[..most].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(question: &str) -> Vec<String> {
        terms(question).into_iter().map(|term| term.word).collect()
    }

    #[test]
    fn the_lists_can_be_searched() {
        assert!(STOP_WORDS.is_sorted() && GREETINGS.is_sorted());
    }

    #[test]
    fn names_come_before_words_and_stop_words_not_at_all() {
        assert_eq!(
            words("Where is parseConfig defined, and how does caching work?"),
            ["parseConfig", "cach", "parse", "Config"]
        );
        assert_eq!(
            words("What does `CacheModel::plan` do with prices?"),
            ["CacheModel", "plan", "pric", "Cache", "Model"]
        );
        assert_eq!(words("explain src/main.rs please"), ["src/main.rs"]);
        assert_eq!(
            words("HTTPServer in snake_case_name"),
            ["HTTPServer", "snake_case_name", "HTTP", "Server", "snake", "case", "name"]
        );
    }

    #[test]
    fn endings_are_left_off() {
        assert_eq!(words("planned errors settings classes"), ["plan", "sett", "class", "error"]);
    }

    #[test]
    fn a_greeting_has_no_words() {
        for greeting in ["Hello!", "hi", "Good morning, who are you?", "What can you do?", "", "???"] {
            assert_eq!(words(greeting), [] as [&str; 0], "{greeting}");
        }
    }
}
