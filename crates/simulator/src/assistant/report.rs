//! The texts of the assistant's answers.

use std::fmt::Write;

use super::hits::{SourceLine, SourceMatch, definition};
use super::search_terms::SearchTerm;

/// The maximum number of sources to report.
const MAX_SOURCES: usize = 6;
/// Longer lines are cut, in characters.
const MAX_LINE_CHARS: usize = 120;

const INTRODUCTION: &str =
    "I am Hardpan's offline assistant: there is no language model behind this answer, only a search.";
const KEY_HINT: &str = "For real answers, set a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, and start again; \
                   `hardpan providers` lists them.";

/// The answer to a greeting.
pub fn greeting() -> String {
    format!(
        "{INTRODUCTION} Ask where something is (\"Where is the cache model?\", \"Who uses parse_config?\"), and I will look for the \
         files, symbols and lines that match.\n\n{KEY_HINT}"
    )
}

/// The text before the search calls.
pub fn announce_search(terms: &[SearchTerm]) -> String {
    format!("{INTRODUCTION} I look for {}.", quoted(terms))
}

/// The text before the read call.
pub fn announce_read() -> String {
    "I look closer.".to_owned()
}

/// The report if nothing matched.
pub fn report_no_match(terms: &[SearchTerm]) -> String {
    format!(
        "{INTRODUCTION} I looked for {} and found nothing that matches. Other words may help: names as they stand in the code.\n\n{KEY_HINT}",
        quoted(terms)
    )
}

/// The report of all matches, with the lines that were read around the best one.
pub fn report_matches(terms: &[SearchTerm], found: &[SourceMatch], read: &[SourceLine]) -> String {
    let mut text = format!("{INTRODUCTION} These places match {}, the best first:\n", quoted(terms));
    for SourceMatch { source, hits, .. } in found.iter().take(MAX_SOURCES) {
        let _ = write!(text, "\n- `{source}`"); // writing to a string cannot fail
        for hit in hits {
            let excerpt = shorten(&hit.line.text);
            let _ = match hit.line.number {
                Some(number) => write!(text, "\n  - line {number}: `{excerpt}`"),
                None => write!(text, "\n  - `{excerpt}`"),
            };
        }
    }
    if found.len() > MAX_SOURCES {
        let _ = write!(text, "\n- and {} more", found.len() - MAX_SOURCES);
    }
    let symbols = symbols(terms, found);
    if !symbols.is_empty() {
        let _ = write!(text, "\n\nDefined there: {}.", symbols.join(", "));
    }
    if let [first, .., last] = read
        && let (Some(from), Some(to)) = (first.number, last.number)
    {
        let _ = write!(text, "\n\n`{}`, lines {from} to {to}:\n\n```\n", first.source);
        read.iter().for_each(|line| text.extend([line.text.as_str(), "\n"]));
        text.push_str("```");
    }
    text + "\n\n" + KEY_HINT
}

/// The names that matching lines define, with their location: `Budget` (src/b.rs:9).
fn symbols(terms: &[SearchTerm], found: &[SourceMatch]) -> Vec<String> {
    let hits = found.iter().take(MAX_SOURCES).flat_map(|found| &found.hits);
    let symbol = |line: &SourceLine| {
        let name = definition(&line.text)?;
        let is_asked = terms.iter().any(|term| name.to_lowercase().contains(&term.word.to_lowercase()));
        let location =
            line.number.map_or_else(|| line.source.clone(), |number| format!("{}:{number}", line.source));
        is_asked.then(|| format!("`{name}` ({location})"))
    };
    hits.filter_map(|hit| symbol(&hit.line)).take(8).collect()
}

fn quoted(terms: &[SearchTerm]) -> String {
    terms.iter().map(|term| format!("`{}`", term.word)).collect::<Vec<_>>().join(", ")
}

fn shorten(line: &str) -> String {
    let line = line.trim().replace('`', "'");
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
