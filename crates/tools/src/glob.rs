//! Globs over paths in a folder.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::tool::Outcome;

/// A pattern for paths.
pub(crate) struct Glob {
    matcher: GlobMatcher,
    over: Over,
    sense: Sense,
}

/// What a pattern is compared with.
enum Over {
    Names,
    Paths,
}

enum Sense {
    Matching,
    Others,
}

impl Glob {
    /// A pattern with `/` is meant from the folder, one without for names at any depth; `!` in front means all others.
    pub fn new(pattern: &str) -> Result<Self, Outcome> {
        let (sense, positive) = match pattern.strip_prefix('!') {
            Some(rest) => (Sense::Others, rest),
            None => (Sense::Matching, pattern),
        };
        let path = positive.trim_start_matches("./").trim_start_matches('/');
        let over = if positive.trim_end_matches('/').contains('/') { Over::Paths } else { Over::Names };
        let matcher = GlobBuilder::new(path.trim_end_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| Outcome::failed(format!("The glob cannot be used: {error}")))?
            .compile_matcher();
        Ok(Glob { matcher, over, sense })
    }

    /// Whether it matches a path that is relative to the folder.
    pub fn matches(&self, path: &Path) -> bool {
        let matches = match self.over {
            Over::Names => path.file_name().is_some_and(|name| self.matcher.is_match(name)),
            Over::Paths => self.matcher.is_match(path),
        };
        match self.sense {
            Sense::Matching => matches,
            Sense::Others => !matches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_is_for_names_and_one_with_it_for_paths() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("*.rs", "a.rs/b", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/deep/er/a.rs", true),
            ("./src/*.rs", "src/a.rs", true),
            ("/*.rs", "a.rs", true),
            ("/*.rs", "src/a.rs", false),
            ("**/test/**", "a/test/b", true),
            ("*.{ts,tsx}", "a/b.tsx", true),
            ("src/", "src", true),
            ("!*.rs", "a.rs", false),
            ("!*.rs", "a.py", true),
        ];
        for (pattern, path, expected) in cases {
            let matches = Glob::new(pattern).map(|glob| glob.matches(Path::new(path)));
            assert_eq!(matches, Ok(expected), "{pattern} {path}");
        }
    }

    #[test]
    fn a_broken_pattern_is_told_as_such() {
        let expected = Outcome::failed(
            "The glob cannot be used: error parsing glob '[a': unclosed character class; missing ']'",
        );
        assert_eq!(Glob::new("[a").map(|_| ()), Err(expected));
    }
}
