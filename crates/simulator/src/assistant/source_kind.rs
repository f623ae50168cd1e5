//! [`SourceKind`]: whether a file is code, a test, data or a document.

/// What kind of file a path names. Questions about code are answered from code first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    Code,
    Test,
    /// Settings, lock files, recorded data.
    Data,
    Document,
}

const CODE_ENDINGS: &str = "bash c cc clj cpp cs css cu cxx dart ex exs erl f90 go gradle groovy h hh hpp hs html java jl js \
    jsx kt kts lua m mjs cjs ml mm mts nim php pl proto ps1 py pyi r rb rs scala scss sh sol sql svelte swift tf ts tsx v vue \
    zig zsh";
const DOCUMENT_ENDINGS: &str = "adoc markdown md mdx org pdf rst tex txt";
/// Documents whatever their ending.
const DOCUMENT_NAMES: &str =
    "authors changelog changes contributing copying history licence license news notice readme";

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

impl SourceKind {
    pub fn of(path: &str) -> Self {
        let path = path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or_default();
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let begin = stem.split(['.', '-', '_']).next().unwrap_or_default();
        if is_listed(DOCUMENT_ENDINGS, ending)
            || (!is_listed(CODE_ENDINGS, ending) && is_listed(DOCUMENT_NAMES, begin))
        {
            return SourceKind::Document;
        }
        let is_code = is_listed(CODE_ENDINGS, ending)
            || ["makefile", "dockerfile", "justfile", "rakefile", "jenkinsfile"].contains(&name);
        let in_tests =
            path.split('/').any(|part| ["test", "tests", "__tests__", "spec", "testdata"].contains(&part));
        let is_test = in_tests
            || stem.starts_with("test_")
            || ["_test", ".test", ".spec", "_spec", "tests"].iter().any(|end| stem.ends_with(end));
        match (is_code, is_test) {
            (true, false) => SourceKind::Code,
            (true, true) => SourceKind::Test,
            (false, _) => SourceKind::Data,
        }
    }

    /// How much a match in such a file counts.
    pub fn weight(self, wants_documents: bool) -> usize {
        match self {
            SourceKind::Document if wants_documents => 16,
            SourceKind::Code => 12,
            SourceKind::Test => 3,
            SourceKind::Data => 2,
            SourceKind::Document => 1,
        }
    }

    /// Whether it belongs to the program, tests included.
    pub fn is_code(self) -> bool {
        matches!(self, SourceKind::Code | SourceKind::Test)
    }
}

/// Whether a word ends like a file.
pub fn has_file_ending(word: &str) -> bool {
    const OTHER: &str = "cfg conf csv env ini json jsonl lock log toml xml yaml yml";
    let name = word.rsplit('/').next().unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let ending = ending.to_lowercase();
    // A single letter is more often the end of `e.g` than a file of C.
    let is_letter = ending.len() == 1 && stem.len() < 2;
    !stem.is_empty()
        && !is_letter
        && [CODE_ENDINGS, DOCUMENT_ENDINGS, OTHER].iter().any(|list| is_listed(list, &ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_paths() {
        let cases = [
            ("src/retry.rs", SourceKind::Code),
            ("news.py", SourceKind::Code),
            ("Makefile", SourceKind::Code),
            ("tests/retry.rs", SourceKind::Test),
            ("pkg/retry_test.go", SourceKind::Test),
            ("src/retry.spec.ts", SourceKind::Test),
            ("src/test/java/RetryTests.java", SourceKind::Test),
            ("Cargo.lock", SourceKind::Data),
            ("package.json", SourceKind::Data),
            ("CHANGELOG", SourceKind::Document),
            ("docs/a.md", SourceKind::Document),
            ("LICENSE-MIT", SourceKind::Document),
        ];
        for (path, kind) in cases {
            assert_eq!(SourceKind::of(path), kind, "{path}");
        }
        assert!(has_file_ending("a/main.c") && has_file_ending("notes.TXT"));
        assert!(!has_file_ending("e.g") && !has_file_ending("Client.send") && !has_file_ending(".rs"));
    }
}
