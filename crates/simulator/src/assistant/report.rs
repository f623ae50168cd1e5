//! What the assistant says.

use std::fmt::Write;

use super::hits::{Found, Line, definition};
use super::words::Term;

/// The most places told.
const PLACES: usize = 6;
/// A longer line is cut, in characters.
const WIDTH: usize = 120;

const WHO: &str =
    "I am Hardpan's offline assistant: there is no language model behind this answer, only a search.";
const HOW: &str = "For real answers, set a provider's key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, and start again; \
                   `hardpan providers` lists them.";

/// The answer to a greeting.
pub fn greeting() -> String {
    format!(
        "{WHO} Ask where something is (\"Where is the cache model?\", \"Who uses parse_config?\"), and I will look for the \
         files, symbols and lines that match.\n\n{HOW}"
    )
}

/// What is said with the first calls.
pub fn searching(terms: &[Term]) -> String {
    format!("{WHO} I look for {}.", quoted(terms))
}

/// What is said with the next.
pub fn reading() -> String {
    "I look closer.".to_owned()
}

/// Nothing matched.
pub fn nothing(terms: &[Term]) -> String {
    format!(
        "{WHO} I looked for {} and found nothing that matches. Other words may help: names as they stand in the code.\n\n{HOW}",
        quoted(terms)
    )
}

/// What matched, with lines where they are known.
pub fn found(terms: &[Term], found: &[Found], read: &[Line]) -> String {
    let mut text = format!("{WHO} These places match {}, the best first:\n", quoted(terms));
    for Found { place, hits, .. } in found.iter().take(PLACES) {
        let _ = write!(text, "\n- `{place}`"); // writing to a string cannot fail
        for hit in hits {
            let said = shorten(&hit.line.text);
            let _ = match hit.line.number {
                Some(number) => write!(text, "\n  - line {number}: `{said}`"),
                None => write!(text, "\n  - `{said}`"),
            };
        }
    }
    if found.len() > PLACES {
        let _ = write!(text, "\n- and {} more", found.len() - PLACES);
    }
    let symbols = symbols(terms, found);
    if !symbols.is_empty() {
        let _ = write!(text, "\n\nDefined there: {}.", symbols.join(", "));
    }
    if let [first, .., last] = read
        && let (Some(from), Some(to)) = (first.number, last.number)
    {
        let _ = write!(text, "\n\n`{}`, lines {from} to {to}:\n\n```\n", first.place);
        read.iter().for_each(|line| text.extend([line.text.as_str(), "\n"]));
        text.push_str("```");
    }
    text + "\n\n" + HOW
}

/// The names that matching lines define, with where: `Budget` (src/b.rs:9).
fn symbols(terms: &[Term], found: &[Found]) -> Vec<String> {
    let hits = found.iter().take(PLACES).flat_map(|found| &found.hits);
    let symbol = |line: &Line| {
        let name = definition(&line.text)?;
        let is_asked = terms.iter().any(|term| name.to_lowercase().contains(&term.word.to_lowercase()));
        let place =
            line.number.map_or_else(|| line.place.clone(), |number| format!("{}:{number}", line.place));
        is_asked.then(|| format!("`{name}` ({place})"))
    };
    hits.filter_map(|hit| symbol(&hit.line)).take(8).collect()
}

fn quoted(terms: &[Term]) -> String {
    terms.iter().map(|term| format!("`{}`", term.word)).collect::<Vec<_>>().join(", ")
}

fn shorten(line: &str) -> String {
    let line = line.trim().replace('`', "'");
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
