//! Codex's patch format: `*** Begin Patch`, files with hunks of ` `, `-` and `+` lines, `*** End
//! Patch`.

pub(super) struct PatchedFile<'a> {
    pub path: &'a str,
    pub action: PatchAction<'a>,
}

pub(super) enum PatchAction<'a> {
    Add(String),
    Delete,
    Update { hunks: Vec<Hunk<'a>>, moved_to: Option<&'a str> },
}

/// Lines that are removed, and those that replace them. Both contain the context.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    pub old: Vec<&'a str>,
    pub new: Vec<&'a str>,
}

pub(super) fn parse(patch: &str) -> Vec<PatchedFile<'_>> {
    let mut changes: Vec<PatchedFile<'_>> = Vec::new();
    for line in patch.lines() {
        let named = |mark: &str| line.strip_prefix(mark).map(str::trim);
        if let Some(path) = named("*** Add File: ") {
            changes.push(PatchedFile { path, action: PatchAction::Add(String::new()) });
        } else if let Some(path) = named("*** Delete File: ") {
            changes.push(PatchedFile { path, action: PatchAction::Delete });
        } else if let Some(path) = named("*** Update File: ") {
            let action = PatchAction::Update { hunks: Vec::new(), moved_to: None };
            changes.push(PatchedFile { path, action });
        } else if let Some(change) = changes.last_mut() {
            read_line(&mut change.action, line);
        }
    }
    changes
}

fn read_line<'a>(action: &mut PatchAction<'a>, line: &'a str) {
    match action {
        PatchAction::Add(text) => {
            if let Some(line) = line.strip_prefix('+') {
                text.push_str(line);
                text.push('\n');
            }
        }
        PatchAction::Delete => {}
        PatchAction::Update { hunks, moved_to } => {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                *moved_to = Some(path.trim());
            } else if line.starts_with("@@") {
                hunks.push(Hunk::default());
            } else if !line.starts_with("***") {
                if hunks.is_empty() {
                    hunks.push(Hunk::default());
                }
                if let Some(hunk) = hunks.last_mut() {
                    push_hunk_line(hunk, line);
                }
            }
        }
    }
}

fn push_hunk_line<'a>(hunk: &mut Hunk<'a>, line: &'a str) {
    match line.as_bytes().first() {
        Some(b'-') => hunk.old.push(&line[1..]),
        Some(b'+') => hunk.new.push(&line[1..]),
        Some(b' ') => {
            hunk.old.push(&line[1..]);
            hunk.new.push(&line[1..]);
        }
        _ => {
            hunk.old.push(line);
            hunk.new.push(line);
        }
    }
}

/// The text with all hunks applied, each after the one before. `None` if one does not match.
pub(super) fn apply(text: &str, hunks: &[Hunk<'_>]) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut result: Vec<&str> = Vec::new();
    let mut at = 0;
    for Hunk { old, new } in hunks {
        let found = if old.is_empty() { lines.len() } else { find_hunk(&lines, at, old)? };
        result.extend(&lines[at..found]);
        result.extend(new);
        at = found + old.len();
    }
    result.extend(&lines[at..]);
    Some(result.iter().flat_map(|line| [*line, "\n"]).collect())
}

/// The first line at which `wanted` matches: exactly, or else ignoring trailing white space.
fn find_hunk(lines: &[&str], from: usize, wanted: &[&str]) -> Option<usize> {
    let places = || from..(lines.len() + 1).saturating_sub(wanted.len());
    let exact = places().find(|&at| lines[at..at + wanted.len()] == *wanted);
    let is_near = |at: &usize| lines[*at..].iter().zip(wanted).all(|(a, b)| a.trim_end() == b.trim_end());
    exact.or_else(|| places().find(is_near))
}
