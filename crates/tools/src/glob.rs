//! [`Glob`]: patterns for paths below a folder.

use std::path::Path;

use globset::GlobSet;
use hardpan_workspace::compile_glob;

use crate::tool::ToolOutcome;

/// A compiled pattern, such as `*.rs`, `src/**/*.ts` or `!*.lock`.
pub(crate) struct Glob {
    matcher: GlobSet,
    target: MatchTarget,
    polarity: Polarity,
}

enum MatchTarget {
    Names,
    Paths,
}

enum Polarity {
    Include,
    Exclude,
}

impl Glob {
    /// Compiles a pattern. One with a `/` matches paths relative to the folder, one without matches
    /// names at any depth; a leading `!` inverts it.
    pub fn new(pattern: &str) -> Result<Self, ToolOutcome> {
        let (polarity, positive) = match pattern.strip_prefix('!') {
            Some(rest) => (Polarity::Exclude, rest),
            None => (Polarity::Include, pattern),
        };
        let path = positive.trim_start_matches("./").trim_start_matches('/');
        let target = if positive.trim_end_matches('/').contains('/') {
            MatchTarget::Paths
        } else {
            MatchTarget::Names
        };
        let matcher = compile_glob(path.trim_end_matches('/'))
            .map_err(|error| ToolOutcome::failed(format!("The glob cannot be used: {error}")))?;
        Ok(Glob { matcher, target, polarity })
    }

    /// Whether the pattern matches a path that is relative to the folder.
    pub fn matches(&self, path: &Path) -> bool {
        let matches = match self.target {
            MatchTarget::Names => path.file_name().is_some_and(|name| self.matcher.is_match(name)),
            MatchTarget::Paths => self.matcher.is_match(path),
        };
        match self.polarity {
            Polarity::Include => matches,
            Polarity::Exclude => !matches,
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
        let expected = ToolOutcome::failed(
            "The glob cannot be used: error parsing glob '[a': unclosed character class; missing ']'",
        );
        assert_eq!(Glob::new("[a").map(|_| ()), Err(expected));
    }
}
