//! Codex's patches: `*** Begin Patch`, files with hunks of ` `, `-` and `+` lines, `*** End Patch`.

pub(super) struct FileChange<'a> {
    pub path: &'a str,
    pub action: Action<'a>,
}

pub(super) enum Action<'a> {
    Add(String),
    Delete,
    Update { hunks: Vec<Hunk<'a>>, moved_to: Option<&'a str> },
}

/// Lines that are taken out, and those that come in their place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    pub old: Vec<&'a str>,
    pub new: Vec<&'a str>,
}

pub(super) fn parse(patch: &str) -> Vec<FileChange<'_>> {
    let mut changes: Vec<FileChange<'_>> = Vec::new();
    for line in patch.lines() {
        let named = |mark: &str| line.strip_prefix(mark).map(str::trim);
        if let Some(path) = named("*** Add File: ") {
            changes.push(FileChange { path, action: Action::Add(String::new()) });
        } else if let Some(path) = named("*** Delete File: ") {
            changes.push(FileChange { path, action: Action::Delete });
        } else if let Some(path) = named("*** Update File: ") {
            let action = Action::Update { hunks: Vec::new(), moved_to: None };
            changes.push(FileChange { path, action });
        } else if let Some(change) = changes.last_mut() {
            read_line(&mut change.action, line);
        }
    }
    changes
}

fn read_line<'a>(action: &mut Action<'a>, line: &'a str) {
    match action {
        Action::Add(text) => {
            if let Some(line) = line.strip_prefix('+') {
                text.push_str(line);
                text.push('\n');
            }
        }
        Action::Delete => {}
        Action::Update { hunks, moved_to } => {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                *moved_to = Some(path.trim());
            } else if line.starts_with("@@") {
                hunks.push(Hunk::default());
            } else if !line.starts_with("***") {
                if hunks.is_empty() {
                    hunks.push(Hunk::default());
                }
                if let Some(hunk) = hunks.last_mut() {
                    add(hunk, line);
                }
            }
        }
    }
}

fn add<'a>(hunk: &mut Hunk<'a>, line: &'a str) {
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

/// The text with all hunks applied, each after the one before; none if one is not found.
pub(super) fn apply(text: &str, hunks: &[Hunk<'_>]) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut result: Vec<&str> = Vec::new();
    let mut at = 0;
    for Hunk { old, new } in hunks {
        let found = if old.is_empty() { lines.len() } else { find(&lines, at, old)? };
        result.extend(&lines[at..found]);
        result.extend(new);
        at = found + old.len();
    }
    result.extend(&lines[at..]);
    Some(result.iter().flat_map(|line| [*line, "\n"]).collect())
}

/// As it stands, or but for spaces at the ends of lines.
fn find(lines: &[&str], from: usize, wanted: &[&str]) -> Option<usize> {
    let places = || from..(lines.len() + 1).saturating_sub(wanted.len());
    let exact = places().find(|&at| lines[at..at + wanted.len()] == *wanted);
    let is_near = |at: &usize| lines[*at..].iter().zip(wanted).all(|(a, b)| a.trim_end() == b.trim_end());
    exact.or_else(|| places().find(is_near))
}
