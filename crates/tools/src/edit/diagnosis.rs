//! Why an edit cannot be made, and what would help.

use std::fmt;

/// How much of a file's text a diagnosis quotes.
const QUOTED: usize = 2000;

/// How many places are named where a text occurs more than once.
const PLACES: usize = 20;

/// A line that is less alike than this is not worth showing (1 is equal).
const ALIKE: f64 = 0.5;

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Diagnosis {
    /// The old text is empty.
    Empty,
    /// Old and new text are the same.
    Same,
    /// The old text is there more than once, on these lines.
    Ambiguous { lines: Vec<usize> },
    /// The old text is not there, but the new one is, on this line.
    Applied { line: usize },
    /// The old text would be there but for white space.
    WhiteSpace { line: usize, text: String },
    /// The old text is not there; this is the place most like it.
    NotFound { nearest: Option<(usize, String)> },
    /// It changes text that another edit of the call changes.
    Overlaps { with: usize },
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Diagnosis::Empty => f.write_str(
                "old_text is empty. Give the text that is to be replaced; to insert, give a neighbouring line and repeat it in new_text.",
            ),
            Diagnosis::Same => f.write_str("old_text and new_text are the same: there is nothing to change."),
            Diagnosis::Ambiguous { lines } => {
                let named: Vec<_> = lines.iter().take(PLACES).map(ToString::to_string).collect();
                let more = if lines.len() > PLACES { ", …" } else { "" };
                let (count, named) = (lines.len(), named.join(", "));
                write!(f, "old_text occurs {count} times (on lines {named}{more}). Include more of the lines around the one you mean.")
            }
            Diagnosis::Applied { line } => {
                write!(f, "old_text is not there, but new_text already is (line {line}): the edit seems to have been made before.")
            }
            Diagnosis::WhiteSpace { line, text } => {
                write!(f, "old_text differs from the file only in white space. The exact text, from line {line}:\n\n{text}")
            }
            Diagnosis::NotFound { nearest: None } => {
                f.write_str("old_text was not found, nor anything like it. Read the file again.")
            }
            Diagnosis::NotFound { nearest: Some((line, text)) } => {
                write!(f, "old_text was not found. The nearest place, from line {line}:\n\n{text}")
            }
            Diagnosis::Overlaps { with } => {
                write!(f, "It changes text that edit {} changes, too. Make one edit of the two.", with + 1)
            }
        }
    }
}

/// Where the one place is that is to be replaced.
pub(super) fn place(text: &str, old: &str, new: &str) -> Result<usize, Diagnosis> {
    if old.is_empty() {
        return Err(Diagnosis::Empty);
    }
    if old == new {
        return Err(Diagnosis::Same);
    }
    let places = occurrences(text, old);
    match places[..] {
        [place] => Ok(place),
        [] => Err(missing(text, old, new)),
        _ => Err(Diagnosis::Ambiguous { lines: places.iter().map(|&place| line_of(text, place)).collect() }),
    }
}

/// Where a text occurs. Occurrences that overlap count, too: "aa" is in "aaa" twice.
fn occurrences(text: &str, old: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find(old) {
        places.push(from + found);
        from += found + text[from + found..].chars().next().map_or(1, char::len_utf8);
    }
    places
}

fn missing(text: &str, old: &str, new: &str) -> Diagnosis {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    if let Some(start) = window(&lines, &wanted) {
        return Diagnosis::WhiteSpace { line: start + 1, text: quoted(&lines, start, wanted.len()) };
    }
    if !new.trim().is_empty()
        && let Some(place) = text.find(new)
    {
        return Diagnosis::Applied { line: line_of(text, place) };
    }
    let nearest = nearest(&lines, &wanted).map(|start| (start + 1, quoted(&lines, start, wanted.len())));
    Diagnosis::NotFound { nearest }
}

/// Where the wanted lines are, if white space did not count. Not told where that is in more than one place.
fn window(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let bare = |line: &&str| line.split_whitespace().collect::<String>();
    let wanted: Vec<String> = wanted.iter().map(bare).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(bare).collect();
    // Old text may begin and end in the middle of a line.
    let fits = |window: &[String]| match (window, &wanted[..]) {
        ([line], [wanted]) => line.contains(wanted),
        ([first, between @ .., last], [wanted_first, wanted_between @ .., wanted_last]) => {
            between == wanted_between && first.ends_with(wanted_first) && last.starts_with(wanted_last)
        }
        _ => false,
    };
    let mut starts = lines.windows(wanted.len()).enumerate().filter(|(_, window)| fits(window));
    let (start, _) = starts.next()?;
    starts.next().is_none().then_some(start)
}

/// Where most of the wanted lines are; failing that, where the line is that is most like the longest of them.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let count = wanted.len().min(lines.len()).max(1);
    let same = |window: &[&str]| {
        let pairs = window.iter().zip(wanted);
        pairs.filter(|(line, wanted)| !wanted.trim().is_empty() && line.trim() == wanted.trim()).count()
    };
    let best = lines.windows(count).map(same).enumerate().rev().max_by_key(|&(_, same)| same);
    if let Some((start, 1..)) = best {
        return Some(start);
    }
    let alike = lines.iter().map(|line| strsim::sorensen_dice(line.trim(), longest.trim()));
    let (line, _) =
        alike.enumerate().filter(|&(_, alike)| alike >= ALIKE).max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(line.saturating_sub(offset))
}

fn quoted(lines: &[&str], start: usize, count: usize) -> String {
    let text = lines[start..(start + count).min(lines.len())].join("\n");
    match text.char_indices().nth(QUOTED) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}
