//! Places that match: out of tool results and out of the context of a request.

use std::collections::BTreeMap;

use super::words::Term;

/// A line somewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The file, or what else it is a line of.
    pub place: String,
    /// Its number, from 1, where it is known.
    pub number: Option<usize>,
    /// What it says.
    pub text: String,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The line.
    pub line: Line,
    /// How well.
    pub score: usize,
}

/// What matches in one place, the best lines by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file, or what else it is.
    pub place: String,
    /// Its lines.
    pub hits: Vec<Hit>,
    /// How well it matches.
    pub score: usize,
}

/// The most lines told of one place.
const LINES: usize = 6;
/// What a definition tells more than a use.
const DEFINITION: usize = 24;

/// The places that match, the best first. Each has its best lines in their order.
pub fn rank(lines: Vec<Line>, terms: &[Term]) -> Vec<Found> {
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
    let with_terms = |line: Line| {
        let found = matched(&line.text);
        (line, found)
    };
    let lines: Vec<(Line, Vec<usize>)> = lines.into_iter().map(with_terms).collect();
    // A word that stands everywhere tells less about each place.
    let rarity: Vec<usize> = (0..terms.len())
        .map(|term| {
            let count = lines.iter().filter(|(_, found)| found.contains(&term)).count();
            terms[term].weight * 12 / (1 + (count + 1).ilog2() as usize)
        })
        .collect();
    let mut places: BTreeMap<String, Found> = BTreeMap::new();
    for (line, found) in lines {
        let by_name = matched(&line.place);
        let mut score: usize = found.iter().map(|term| rarity[*term]).sum();
        // A part of a longer name is not enough to name a file by.
        if score == 0 && !by_name.iter().any(|term| terms[*term].weight > 1) {
            continue;
        }
        if let Some(name) = definition(&line.text)
            && !matched(name).is_empty()
        {
            score += DEFINITION;
        }
        let found = places.entry(line.place.clone()).or_insert_with(|| {
            let bonus = by_name.iter().map(|term| rarity[*term]).sum();
            Found { place: line.place.clone(), hits: Vec::new(), score: bonus }
        });
        if score > 0 {
            found.hits.push(Hit { line, score });
        }
    }
    let mut places: Vec<Found> = places.into_values().collect();
    for place in &mut places {
        place.hits.sort_by(|a, b| b.score.cmp(&a.score).then(a.line.cmp(&b.line)));
        place.hits.dedup_by(|a, b| a.line == b.line);
        place.score += place.hits.iter().take(3).map(|hit| hit.score).sum::<usize>();
        place.hits.truncate(LINES);
        place.hits.sort_by(|a, b| a.line.cmp(&b.line));
    }
    places.sort_by(|a, b| b.score.cmp(&a.score).then(a.place.cmp(&b.place)));
    places
}

/// The name that a line defines, in the languages most in use.
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
    let end = word.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(word.len());
    Some(&word[..end]).filter(|name| !name.is_empty())
}

/// The lines of a search: `path:12:text`, or a path and under it `12:text`.
pub fn of_grep(text: &str) -> Vec<Line> {
    let (mut lines, mut heading) = (Vec::new(), None);
    for line in text.lines() {
        if let Some((place, number, text)) = with_path(line) {
            lines.push(Line { place: place.to_owned(), number: Some(number), text: text.to_owned() });
        } else if let Some((number, text)) = numbered(line) {
            let place: Option<&str> = heading;
            lines.extend(place.map(|place| Line {
                place: place.to_owned(),
                number: Some(number),
                text: text.to_owned(),
            }));
        } else {
            heading = Some(line.trim().trim_end_matches(':')).filter(|path| is_path(path));
        }
    }
    lines
}

/// The paths of a list of files.
pub fn of_list(text: &str, folder: &str) -> Vec<Line> {
    let folder = folder.trim_end_matches('/');
    let path = |line: &str| {
        let name = line.trim().trim_start_matches("- ").trim_start_matches("./").to_owned();
        let whole = if folder.is_empty() || folder == "." || name.contains('/') {
            name
        } else {
            format!("{folder}/{name}")
        };
        Line { text: String::new(), number: None, place: whole }
    };
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().contains(char::is_whitespace))
        .map(path)
        .collect()
}

/// The lines of a file that was read from line `first` on, with or without numbers in front.
pub fn of_read(text: &str, place: &str, first: usize) -> Vec<Line> {
    let line = |(index, line): (usize, &str)| {
        let (number, text) = numbered(line).unwrap_or((first + index, line));
        Line { place: place.to_owned(), number: Some(number), text: text.to_owned() }
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

/// `12:text`, `12→text`, `  12 | text`, `12<tab>text`, `Line 12: text`.
pub fn numbered(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("Line ").or(line.strip_prefix("line ")).unwrap_or(line);
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = line[..digits].parse().ok()?;
    let rest = &line[digits..];
    let text = rest.strip_prefix(':').or(rest.strip_prefix('\t')).or(rest.strip_prefix('→'));
    text.or(rest.trim_start_matches(' ').strip_prefix('|')).map(|text| (number, text))
}

/// Whether a line is nothing but a path.
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
    use super::super::words::terms;
    use super::*;

    fn line(place: &str, number: usize, text: &str) -> Line {
        Line { place: place.into(), number: Some(number), text: text.into() }
    }

    #[test]
    fn both_forms_of_a_search_are_read() {
        let flat = "src/a.rs:12:fn one()\nsrc/b.rs:3: x::y\n(2 matches)\n";
        assert_eq!(of_grep(flat), [line("src/a.rs", 12, "fn one()"), line("src/b.rs", 3, " x::y")]);
        let headed = "src/a.rs\n12:fn one()\n  40: two\n\nb.py:\nLine 7: three\nnothing more\n9: lost\n";
        assert_eq!(
            of_grep(headed),
            [line("src/a.rs", 12, "fn one()"), line("src/a.rs", 40, " two"), line("b.py", 7, " three")]
        );
        assert_eq!(of_grep("No matches found."), []);
    }

    #[test]
    fn a_read_counts_from_where_it_began() {
        assert_eq!(of_read("a\nb", "x.rs", 10), [line("x.rs", 10, "a"), line("x.rs", 11, "b")]);
        assert_eq!(of_read("  7\ta\n  8\tb", "x.rs", 1), [line("x.rs", 7, "a"), line("x.rs", 8, "b")]);
    }

    #[test]
    fn a_definition_ranks_before_its_uses() {
        let lines = vec![
            line("a.rs", 1, "use crate::Budget;"),
            line("a.rs", 2, "let budget = Budget::new();"),
            line("b.rs", 9, "pub struct Budget {"),
            line("c.rs", 5, "nothing"),
        ];
        let found = rank(lines, &terms("Where is the Budget?"));
        let places: Vec<&str> = found.iter().map(|found| found.place.as_str()).collect();
        assert_eq!(places, ["b.rs", "a.rs"]);
        assert_eq!(definition("pub(crate) async fn run_it<T>(x: T)"), Some("run_it"));
        assert_eq!(definition("definitely not"), None);
    }

    #[test]
    fn a_file_matches_by_its_name() {
        let found = rank(of_list("src/budget.rs\nsrc/other.rs\n", "."), &terms("budget"));
        assert_eq!(found.iter().map(|found| found.place.as_str()).collect::<Vec<_>>(), ["src/budget.rs"]);
    }
}
