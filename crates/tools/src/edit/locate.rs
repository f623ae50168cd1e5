//! [`locate_text`] finds the one place that an edit replaces; [`EditError`] says why there is none,
//! and what would help.

use std::fmt;

/// The most characters of the file that an error quotes.
const MAX_QUOTED_CHARACTERS: usize = 2000;

/// The most line numbers that are listed for a text that occurs more than once.
const MAX_LISTED_LINES: usize = 20;

/// The least similarity (Sørensen-Dice, 1 means equal) of a line that is shown as the nearest
/// place.
const MIN_SIMILARITY: f64 = 0.5;

/// Why an edit cannot be made. Its text is for the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EditError {
    /// `old_text` is empty.
    EmptyOldText,
    /// `old_text` and `new_text` are equal.
    NoChange,
    /// `old_text` occurs more than once, beginning on these lines.
    Ambiguous { lines: Vec<usize> },
    /// `old_text` does not occur, but `new_text` does, on this line.
    AlreadyApplied { line: usize },
    /// `old_text` would match if white space did not count; `text` is what the file has from `line`
    /// on.
    WhitespaceMismatch { line: usize, text: String },
    /// `old_text` does not occur. `nearest` is the most similar place, as its first line and text.
    NotFound { nearest: Option<(usize, String)> },
    /// The edit changes text that another edit of the same call (by its index, from 0) changes.
    OverlappingEdits { with: usize },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::EmptyOldText => f.write_str(
                "old_text is empty. Give the text that is to be replaced; to insert, give a neighbouring line and repeat it in new_text.",
            ),
            EditError::NoChange => f.write_str("old_text and new_text are the same: there is nothing to change."),
            EditError::Ambiguous { lines } => {
                let named: Vec<_> = lines.iter().take(MAX_LISTED_LINES).map(ToString::to_string).collect();
                let more = if lines.len() > MAX_LISTED_LINES { ", …" } else { "" };
                let (count, named) = (lines.len(), named.join(", "));
                write!(f, "old_text occurs {count} times (on lines {named}{more}). Include more of the lines around the one you mean.")
            }
            EditError::AlreadyApplied { line } => {
                write!(f, "old_text is not there, but new_text already is (line {line}): the edit seems to have been made before.")
            }
            EditError::WhitespaceMismatch { line, text } => {
                write!(f, "old_text differs from the file only in white space. The exact text, from line {line}:\n\n{text}")
            }
            EditError::NotFound { nearest: None } => {
                f.write_str("old_text was not found, nor anything like it. Read the file again.")
            }
            EditError::NotFound { nearest: Some((line, text)) } => {
                write!(f, "old_text was not found. The nearest place, from line {line}:\n\n{text}")
            }
            EditError::OverlappingEdits { with } => {
                write!(f, "It changes text that edit {} changes, too. Make one edit of the two.", with + 1)
            }
        }
    }
}

/// The byte offset of the only occurrence of `old`.
pub(super) fn locate_text(text: &str, old: &str, new: &str) -> Result<usize, EditError> {
    if old.is_empty() {
        return Err(EditError::EmptyOldText);
    }
    if old == new {
        return Err(EditError::NoChange);
    }
    let places = occurrences(text, old);
    match places[..] {
        [place] => Ok(place),
        [] => Err(explain_missing_text(text, old, new, Extent::Anywhere)),
        _ => Err(EditError::Ambiguous {
            lines: places.iter().map(|&place| line_number_at(text, place)).collect(),
        }),
    }
}

/// The byte offset of the only occurrence of `old` that begins at the beginning of a line and ends
/// at the end of one.
pub(super) fn locate_lines(text: &str, old: &str, new: &str) -> Result<usize, EditError> {
    if old == new {
        return Err(EditError::NoChange);
    }
    let places = line_occurrences(text, old);
    match places[..] {
        [place] => Ok(place),
        [] => Err(match explain_missing_text(text, old, new, Extent::WholeLines) {
            EditError::AlreadyApplied { .. } => match line_occurrences(text, new)[..] {
                [place] => EditError::AlreadyApplied { line: line_number_at(text, place) },
                // Lines that are in many places tell nothing about this one.
                _ => EditError::NotFound { nearest: nearest_place(text, old) },
            },
            error => error,
        }),
        _ => Err(EditError::Ambiguous {
            lines: places.iter().map(|&place| line_number_at(text, place)).collect(),
        }),
    }
}

/// The byte offsets at which whole lines occur.
fn line_occurrences(text: &str, lines: &str) -> Vec<usize> {
    let mut places = occurrences(text, lines);
    places.retain(|&place| {
        let end = place + lines.len();
        let begins = place == 0 || text[..place].ends_with('\n');
        begins && (lines.ends_with('\n') || end == text.len() || text[end..].starts_with('\n'))
    });
    places
}

/// The byte offsets at which a text occurs. Overlapping occurrences count: "aa" is in "aaa" twice.
fn occurrences(text: &str, old: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find(old) {
        places.push(from + found);
        from += found + text[from + found..].chars().next().map_or(1, char::len_utf8);
    }
    places
}

/// Where a text may begin and end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Also in the middle of a line.
    Anywhere,
    WholeLines,
}

fn explain_missing_text(text: &str, old: &str, new: &str, extent: Extent) -> EditError {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    if let Some(start) = find_ignoring_whitespace(&lines, &wanted, extent) {
        return EditError::WhitespaceMismatch {
            line: start + 1,
            text: quote_lines(&lines, start, wanted.len()),
        };
    }
    if !new.trim().is_empty()
        && let Some(place) = text.find(new)
    {
        return EditError::AlreadyApplied { line: line_number_at(text, place) };
    }
    EditError::NotFound { nearest: nearest_place(text, old) }
}

/// The first line of the place that is most like `old`, and its text.
fn nearest_place(text: &str, old: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.trim_matches('\n').lines().collect();
    find_nearest(&lines, &wanted).map(|start| (start + 1, quote_lines(&lines, start, wanted.len())))
}

/// The index of the first line of the only place that matches when white space is ignored. `None`
/// where there are several.
fn find_ignoring_whitespace(lines: &[&str], wanted: &[&str], extent: Extent) -> Option<usize> {
    let bare = |line: &&str| line.split_whitespace().collect::<String>();
    let wanted: Vec<String> = wanted.iter().map(bare).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(bare).collect();
    let fits = |window: &[String]| match (window, &wanted[..]) {
        _ if extent == Extent::WholeLines => window == wanted,
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

/// The index of the line where most of the wanted lines match; failing that, where the line is that
/// is most similar to the longest of them.
fn find_nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
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
        alike.enumerate().filter(|&(_, alike)| alike >= MIN_SIMILARITY).max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(line.saturating_sub(offset))
}

fn quote_lines(lines: &[&str], start: usize, count: usize) -> String {
    let text = lines[start..(start + count).min(lines.len())].join("\n");
    match text.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn line_number_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}
