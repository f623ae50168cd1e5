//! Suggestions for names that do not exist.

use std::cmp::Reverse;

use thiserror::Error;

/// A name that the catalogue does not contain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {what} \"{name}\"{}; `hardpan {what}s` lists all that are known", did_you_mean(.nearest))]
pub struct UnknownName {
    /// What was looked up: `model` or `provider`.
    pub what: &'static str,
    /// The name as it was given.
    pub name: String,
    /// Up to three known names that were probably meant, best first.
    pub nearest: Vec<String>,
}

/// ` (did you mean a, b or c?)`, to be appended to an error; empty if there is nothing to suggest.
pub fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [only] => format!(" (did you mean {only}?)"),
        [first @ .., last] => format!(" (did you mean {} or {last}?)", first.join(", ")),
    }
}

/// Returns up to three of `known` that are most similar to `name`.
///
/// A name that begins with or contains what was typed comes before one that is merely spelled
/// similarly. Among equals the shorter one comes first, since it is the more general, and of two
/// versions the later one.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_lowercase();
    let mut scored: Vec<(u32, &str)> = known
        .map(|known| (likeness(&name, &known.to_lowercase()), known))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|&(score, known)| (Reverse(score), known.len(), Reverse(known)));
    scored.dedup();
    scored.into_iter().take(3).map(|(_, known)| known.to_owned()).collect()
}

/// How similar `known` is to `name`; 0 means not at all. Spelling counts in hundredths.
fn likeness(name: &str, known: &str) -> u32 {
    let length = name.chars().count();
    let spelled = |text: &str| {
        let other = text.chars().count();
        // They differ by more than half anyway, and comparing takes time by the product of their lengths.
        let is_hopeless = length.max(other) > 2 * length.min(other);
        if is_hopeless { 0 } else { (strsim::normalized_damerau_levenshtein(name, text) * 100.0) as u32 }
    };
    if name.is_empty() {
        return 0;
    }
    if known.starts_with(name) {
        return 400;
    }
    if known.contains(name) {
        return 300;
    }
    let whole = spelled(known);
    let part = known.split(['-', '/', '.']).map(spelled).max().unwrap_or_default();
    // Half the letters may be wrong in a whole name, but only a letter or so in one of its parts.
    match (whole, part) {
        (80.., _) => 200 + whole,
        (_, 80..) => 100 + part,
        (50.., _) => whole,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] =
        ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-sonnet-4-6", "claude-sonnet-5", "gpt-5.5"];

    fn of(name: &str) -> Vec<String> {
        nearest(name, KNOWN.into_iter())
    }

    #[test]
    fn part_of_a_name_finds_the_latest_first() {
        assert_eq!(of("Sonnet"), ["claude-sonnet-5", "claude-sonnet-4-6", "claude-sonnet-4-5"]);
        assert_eq!(of("claude-sonnet"), of("sonnet"));
    }

    #[test]
    fn a_misspelling_finds_the_name() {
        assert_eq!(of("claude-sonet-5")[0], "claude-sonnet-5");
        assert_eq!(of("sonet")[0], "claude-sonnet-5");
        assert_eq!(of("gtp-5.5"), ["gpt-5.5"]);
    }

    #[test]
    fn nothing_alike_finds_nothing() {
        assert!(of("zzzzzzzz").is_empty());
        assert!(of("").is_empty());
        // Comparing such a name letter by letter with all of them would take minutes.
        let long = "x".repeat(1_000_000);
        assert!(nearest(&long, std::iter::repeat_n("a-name-of-some-length", 1000)).is_empty());
    }

    #[test]
    fn the_message_names_what_was_meant_and_the_remedy() {
        let mut unknown = UnknownName { what: "model", name: "sonnet".into(), nearest: of("sonnet") };
        assert_eq!(
            unknown.to_string(),
            "unknown model \"sonnet\" (did you mean claude-sonnet-5, claude-sonnet-4-6 or claude-sonnet-4-5?); \
             `hardpan models` lists all that are known"
        );
        unknown.nearest.clear();
        assert_eq!(
            unknown.to_string(),
            "unknown model \"sonnet\"; `hardpan models` lists all that are known"
        );
    }
}
