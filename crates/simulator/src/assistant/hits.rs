//! Finds and ranks lines that match search terms, in tool results and in the context of a request.

use std::collections::BTreeMap;

use super::search_terms::SearchTerm;
use super::source_kind::SourceKind;

/// A line with its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The path of the file, or a name for another source, such as `the system prompt`.
    pub source: String,
    /// The line number, from 1; `None` if it is not known.
    pub number: Option<usize>,
    /// The line without its number; empty for a file that is only named.
    pub text: String,
}

/// A line that matches at least one term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The line with its source.
    pub line: SourceLine,
    /// How well it matches: rare terms and definitions count more.
    pub score: usize,
}

/// The matches in one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceMatch {
    /// The path of the file, or a name for another source.
    pub source: String,
    /// The best matching lines, by line number.
    pub hits: Vec<Hit>,
    /// The score of the best lines and of the name.
    pub score: usize,
}

/// The maximum number of lines to report per source.
const MAX_LINES: usize = 6;
/// The score of a definition in addition to that of a use.
const DEFINITION: usize = 24;

/// The sources that match, the best first, each with its best lines in order.
/// Code counts more than documents, unless these are wanted.
pub fn rank(lines: Vec<SourceLine>, terms: &[SearchTerm], wants_documents: bool) -> Vec<SourceMatch> {
    let lower: Vec<String> = terms.iter().map(|term| term.word.to_lowercase()).collect();
    let matched = |text: &str| {
        let text = text.to_lowercase();
        lower
            .iter()
            .enumerate()
            .filter(|(_, word)| text.contains(word.as_str()))
            .map(|(index, _)| index)
            .collect::<Vec<_>>()
    };
    let with_terms = |line: SourceLine| {
        let found = matched(&line.text);
        (line, found)
    };
    let lines: Vec<(SourceLine, Vec<usize>)> = lines.into_iter().map(with_terms).collect();
    // A term that occurs everywhere says less about each source.
    let rarity: Vec<usize> = (0..terms.len())
        .map(|term| {
            let count = lines.iter().filter(|(_, found)| found.contains(&term)).count();
            terms[term].weight * 12 / (1 + (count + 1).ilog2() as usize)
        })
        .collect();
    let mut sources: BTreeMap<String, SourceMatch> = BTreeMap::new();
    for (line, found) in lines {
        let by_name = matched(&line.source);
        let mut score: usize = found.iter().map(|term| rarity[*term]).sum();
        // A term that is only a part of an identifier is not enough to match a file name.
        if score == 0 && !by_name.iter().any(|term| terms[*term].weight > 1) {
            continue;
        }
        if let Some(name) = definition(&line.text)
            && !matched(name).is_empty()
        {
            score += DEFINITION;
        }
        let found = sources.entry(line.source.clone()).or_insert_with(|| {
            let bonus = by_name.iter().map(|term| rarity[*term]).sum();
            SourceMatch { source: line.source.clone(), hits: Vec::new(), score: bonus }
        });
        if score > 0 {
            found.hits.push(Hit { line, score });
        }
    }
    let mut sources: Vec<SourceMatch> = sources.into_values().collect();
    for source in &mut sources {
        source.hits.sort_by(|a, b| b.score.cmp(&a.score).then(a.line.cmp(&b.line)));
        source.hits.dedup_by(|a, b| a.line == b.line);
        source.score += source.hits.iter().take(3).map(|hit| hit.score).sum::<usize>();
        source.score *= SourceKind::of(&source.source).weight(wants_documents);
        source.hits.truncate(MAX_LINES);
        source.hits.sort_by(|a, b| a.line.cmp(&b.line));
    }
    sources.sort_by(|a, b| b.score.cmp(&a.score).then(a.source.cmp(&b.source)));
    sources
}

/// The name that a line defines, in the most common languages.
pub fn definition(line: &str) -> Option<&str> {
    const BEFORE: [&str; 12] = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "async",
        "export",
        "default",
        "public",
        "private",
        "protected",
        "static",
        "abstract",
        "unsafe",
    ];
    const KEYWORDS: [&str; 16] = [
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "mod",
        "class",
        "def",
        "function",
        "interface",
        "func",
        "macro_rules!",
        "module",
        "record",
        "object",
    ];
    let mut words = line.split_whitespace().skip_while(|word| BEFORE.contains(word));
    let keyword = words.next()?;
    if !KEYWORDS.contains(&keyword) {
        return None;
    }
    let word = words.next()?;
    // A method of Go names its receiver first: `func (c *Client) Send()`.
    let word = if keyword == "func" && word.starts_with('(') {
        words.find(|word| !word.ends_with(')'))?
    } else {
        word
    };
    let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(word.len());
    Some(&word[..end]).filter(|name| !name.is_empty())
}

/// Parses search results: `path:12:text`, or a path with lines `12:text` below it.
pub fn parse_grep_output(text: &str) -> Vec<SourceLine> {
    let (mut lines, mut heading) = (Vec::new(), None);
    for line in text.lines() {
        if let Some((source, number, text)) = with_path(line) {
            lines.push(SourceLine { source: source.to_owned(), number: Some(number), text: text.to_owned() });
        } else if let Some((number, text)) = numbered(line) {
            let source: Option<&str> = heading;
            lines.extend(source.map(|source| SourceLine {
                source: source.to_owned(),
                number: Some(number),
                text: text.to_owned(),
            }));
        } else {
            heading = Some(line.trim().trim_end_matches(':')).filter(|path| is_path(path));
        }
    }
    lines
}

/// Parses a list of paths, relative to `folder`.
pub fn parse_file_list(text: &str, folder: &str) -> Vec<SourceLine> {
    let folder = folder.trim_end_matches('/');
    let path = |line: &str| {
        let name = line.trim().trim_start_matches("- ").trim_start_matches("./").to_owned();
        let whole = if folder.is_empty() || folder == "." || name.contains('/') {
            name
        } else {
            format!("{folder}/{name}")
        };
        SourceLine { text: String::new(), number: None, source: whole }
    };
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().contains(char::is_whitespace))
        .map(path)
        .collect()
}

/// Parses the content of a file that was read from line `first` on, with or without line numbers.
pub fn parse_read_output(text: &str, source: &str, first: usize) -> Vec<SourceLine> {
    let line = |(index, line): (usize, &str)| {
        let (number, text) = numbered(line).unwrap_or((first + index, line));
        SourceLine { source: source.to_owned(), number: Some(number), text: text.to_owned() }
    };
    text.lines().enumerate().map(line).collect()
}

fn with_path(line: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    loop {
        let at = from + line[from..].find(':')?;
        let path = &line[..at];
        if path.is_empty() || path.contains(char::is_whitespace) {
            return None;
        }
        let rest = &line[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let (Ok(number), Some(text)) = (rest[..digits].parse(), rest[digits..].strip_prefix(':'))
            && !path.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Some((path, number, text));
        }
        from = at + 1;
    }
}

/// Splits a numbered line: `12:text`, `12→text`, `  12 | text`, `12<tab>text`, `Line 12: text`.
pub fn numbered(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("Line ").or(line.strip_prefix("line ")).unwrap_or(line);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = line[..digits].parse().ok()?;
    let rest = &line[digits..];
    let text = rest.strip_prefix(':').or(rest.strip_prefix('\t')).or(rest.strip_prefix('→'));
    text.or(rest.trim_start_matches(' ').strip_prefix('|')).map(|text| (number, text))
}

/// Whether a line consists of a path only.
pub fn is_path(line: &str) -> bool {
    let name = line.rsplit('/').next().unwrap_or_default();
    let has_ending = name.rsplit_once('.').is_some_and(|(stem, end)| {
        (1..=10).contains(&end.len())
            && end.chars().all(|c| c.is_ascii_alphanumeric())
            && !stem.ends_with('.')
    });
    !line.contains(char::is_whitespace)
        && line.len() < 400
        && (line.contains('/') || has_ending)
        && !line.contains("://")
}

#[cfg(test)]
mod tests {
    use super::super::search_terms::terms;
    use super::*;

    fn line(source: &str, number: usize, text: &str) -> SourceLine {
        SourceLine { source: source.into(), number: Some(number), text: text.into() }
    }

    #[test]
    fn both_forms_of_a_search_are_read() {
        let flat = "src/a.rs:12:fn one()\nsrc/b.rs:3: x::y\n(2 matches)\n";
        assert_eq!(parse_grep_output(flat), [line("src/a.rs", 12, "fn one()"), line("src/b.rs", 3, " x::y")]);
        let headed = "src/a.rs\n12:fn one()\n  40: two\n\nb.py:\nLine 7: three\nnothing more\n9: lost\n";
        assert_eq!(
            parse_grep_output(headed),
            [line("src/a.rs", 12, "fn one()"), line("src/a.rs", 40, " two"), line("b.py", 7, " three")]
        );
        assert_eq!(parse_grep_output("No matches found."), []);
    }

    #[test]
    fn a_read_counts_from_where_it_began() {
        assert_eq!(parse_read_output("a\nb", "x.rs", 10), [line("x.rs", 10, "a"), line("x.rs", 11, "b")]);
        assert_eq!(
            parse_read_output("  7\ta\n  8\tb", "x.rs", 1),
            [line("x.rs", 7, "a"), line("x.rs", 8, "b")]
        );
    }

    #[test]
    fn a_definition_ranks_before_its_uses() {
        let lines = vec![
            line("a.rs", 1, "use crate::Budget;"),
            line("a.rs", 2, "let budget = Budget::new();"),
            line("b.rs", 9, "pub struct Budget {"),
            line("c.rs", 5, "nothing"),
        ];
        let found = rank(lines, &terms("Where is the Budget?"), false);
        let sources: Vec<&str> = found.iter().map(|found| found.source.as_str()).collect();
        assert_eq!(sources, ["b.rs", "a.rs"]);
        assert_eq!(definition("pub(crate) async fn run_it<T>(x: T)"), Some("run_it"));
        assert_eq!(definition("definitely not"), None);
        assert_eq!(definition("func (c *Client) Send(x int) error {"), Some("Send"));
    }

    #[test]
    fn a_file_matches_by_its_name() {
        let found = rank(parse_file_list("src/budget.rs\nsrc/other.rs\n", "."), &terms("budget"), false);
        assert_eq!(found.iter().map(|found| found.source.as_str()).collect::<Vec<_>>(), ["src/budget.rs"]);
    }
}
