//! Patterns over model ids.

/// Whether `name` matches one of the patterns that `|` separates.
///
/// `*` is any text, `/` included; `?` one character; `[6-9]` one of a set. The whole name must
/// match.
pub(crate) fn matches(patterns: &str, name: &str) -> bool {
    patterns.split('|').any(|pattern| matches_one(pattern.trim(), name))
}

fn matches_one(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches_one(rest.as_str(), &name[at..]))
        }
        Some('[') if rest.as_str().contains(']') => {
            let (set, rest) = rest.as_str().split_once(']').unwrap_or_default();
            let mut name = name.chars();
            name.next().is_some_and(|c| in_set(set, c)) && matches_one(rest, name.as_str())
        }
        Some(wanted) => {
            let mut name = name.chars();
            name.next().is_some_and(|c| wanted == '?' || wanted == c)
                && matches_one(rest.as_str(), name.as_str())
        }
    }
}

fn in_set(set: &str, wanted: char) -> bool {
    let mut rest = set.chars();
    while let Some(first) = rest.next() {
        let mut range = rest.clone();
        let last = match (range.next(), range.next()) {
            (Some('-'), Some(last)) => {
                rest = range;
                last
            }
            _ => first,
        };
        if (first..=last).contains(&wanted) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_matches_the_whole_name() {
        assert!(matches("gpt-4", "gpt-4"));
        assert!(!matches("gpt-4", "gpt-4o"));
        assert!(matches("gpt-4-*", "gpt-4-turbo"));
        assert!(matches("anthropic/*", "anthropic/claude-opus-4.1"));
        assert!(matches("*", ""));
        assert!(matches("gp?-*o", "gpt-4o"));
    }

    #[test]
    fn sets_and_alternatives_choose_versions() {
        let later = "gpt-5.[6-9]* | gpt-5.[1-9][0-9]*";
        for name in ["gpt-5.6", "gpt-5.6-sol", "gpt-5.9", "gpt-5.10-mini"] {
            assert!(matches(later, name), "{name}");
        }
        for name in ["gpt-5", "gpt-5.1", "gpt-5.1-codex", "gpt-5.5-pro", "gpt-5-2025-08-07"] {
            assert!(!matches(later, name), "{name}");
        }
        assert!(matches("a[b-dx]", "ac") && matches("a[b-dx]", "ax") && !matches("a[b-dx]", "a-"));
        assert!(matches("a[x", "a[x"), "an open bracket that is never closed is itself");
    }
}
