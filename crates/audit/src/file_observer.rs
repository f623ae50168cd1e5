//! [`FileObserver`]: translates the calls of a recording into what the live agent would have
//! recorded about files.
//!
//! Our own tools say what each call tells about files. Recordings of other agents do not, so it is put
//! together from texts: what a read shows, what a write contains, what an edit makes of the content
//! that is known. The live agent knows the whole file even when the model reads a part of it. A
//! recording may tell only later what the file held, so an observation of a part is completed once
//! the whole is known.

mod patch; // Codex's patches, applied
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hardpan_context::knowledge::{
    AffectedFiles, FileExcerpt, FileObservation, LineRanges, ObservationKind, ShownRange, WorkingFolder,
    analyze_command, count_lines,
};
use hardpan_prompt::Text;

use crate::import::{FileAction, RecordedCall, RecordedResult, TextReplacement};

/// The content of one file as far as a recording tells it.
#[derive(Clone, Debug, Default)]
enum TrackedContent {
    /// Never seen, or changed by something that the recording does not show.
    #[default]
    Unknown,
    Whole(Text),
    /// Lines that messages showed, and the observations to complete once they make a whole.
    Parts {
        lines: BTreeMap<u64, String>,
        last: Option<u64>,
        observations: Vec<usize>,
    },
}

/// What the calls of a recording tell about files, in order.
pub(crate) struct FileObserver {
    folder: WorkingFolder,
    /// By absolute path.
    files: BTreeMap<String, TrackedContent>,
    /// Every observation so far; calls refer to them by index.
    observations: Vec<FileObservation>,
}

impl FileObserver {
    /// Starts in the working folder of a session.
    pub fn new(cwd: Option<&str>) -> Self {
        let folder = WorkingFolder::new(cwd.unwrap_or("/"));
        FileObserver { folder, files: BTreeMap::new(), observations: Vec::new() }
    }

    /// What was observed: an observation's index is what [`observe`](Self::observe) returned.
    pub fn observations(&self) -> &[FileObservation] {
        &self.observations
    }

    /// Learns from a call and its result. Returns the indexes of what they tell about files.
    pub fn observe(&mut self, call: &RecordedCall, result: &RecordedResult) -> std::ops::Range<usize> {
        let first = self.observations.len();
        match &call.action {
            FileAction::Shell { command, cwd } => {
                self.observe_command(command, cwd.as_deref(), &result.text);
            }
            _ if result.failed => {}
            FileAction::Read { path, from, lines } => {
                let file = self.folder.resolve(path);
                self.observe_excerpt(&file, FileExcerpt::from_read_result(&result.text, *from, *lines));
            }
            FileAction::Write { path, content } => {
                let file = self.folder.resolve(path);
                self.observe_whole(&file, ObservationKind::Written, content);
            }
            FileAction::Edit { path, changes } => {
                let file = self.folder.resolve(path);
                self.observe_edit(&file, |text| apply_replacements(text, changes));
            }
            FileAction::Patch { patch } => self.observe_patch(patch),
            FileAction::Other => {}
        }
        first..self.observations.len()
    }

    /// The whole content of a file, if the recording tells it.
    #[cfg(test)]
    fn text(&self, path: &str) -> Option<&str> {
        match self.files.get(&self.folder.resolve(path))? {
            TrackedContent::Whole(text) => Some(text),
            TrackedContent::Unknown | TrackedContent::Parts { .. } => None,
        }
    }

    fn content(&mut self, file: &str) -> &mut TrackedContent {
        self.files.entry(file.to_owned()).or_default()
    }

    /// The path as the live agent names it: relative to the working folder where it is inside.
    fn workspace_path<'a>(&self, file: &'a str) -> &'a str {
        let root = self.folder.resolve(".");
        file.strip_prefix(&root).and_then(|rest| rest.strip_prefix('/')).unwrap_or(file)
    }

    fn push(&mut self, file: &str, kind: ObservationKind, text: &str, shown: LineRanges) {
        let path = self.workspace_path(file);
        self.observations.push(FileObservation::of_text(path, kind, text, shown));
    }

    /// A message shows or contains the whole content.
    fn observe_whole(&mut self, file: &str, kind: ObservationKind, text: &str) {
        self.complete_parts(file, text);
        self.push(file, kind, text, LineRanges::all(count_lines(text)));
        *self.content(file) = TrackedContent::Whole(Text::new(text));
    }

    /// The parts that were shown belong to this content, if they agree with it.
    fn complete_parts(&mut self, file: &str, text: &str) {
        let TrackedContent::Parts { lines, observations, .. } = self.content(file) else { return };
        let whole: Vec<&str> = text.lines().collect();
        let agrees =
            |(number, line): (&u64, &String)| whole.get(*number as usize - 1) == Some(&line.as_str());
        if !lines.iter().all(agrees) {
            return;
        }
        let observations = std::mem::take(observations);
        let path = self.workspace_path(file).to_owned();
        for index in observations {
            let shown = self.observations[index].shown.clone();
            self.observations[index] = FileObservation::of_text(&path, ObservationKind::Shown, text, shown);
        }
    }

    fn observe_edit(&mut self, file: &str, apply: impl Fn(&str) -> Option<String>) {
        let TrackedContent::Whole(before) = self.content(file) else {
            *self.content(file) = TrackedContent::Unknown; // parts may have moved
            return;
        };
        let before = before.clone();
        let Some(after) = apply(&before) else {
            *self.content(file) = TrackedContent::Unknown;
            return;
        };
        self.push(file, ObservationKind::Edited, &after, changed_lines(&before, &after));
        *self.content(file) = TrackedContent::Whole(Text::new(after));
    }

    fn observe_excerpt(&mut self, file: &str, excerpt: Option<FileExcerpt>) {
        let Some(excerpt) = excerpt else { return };
        if excerpt.is_whole() {
            let text = match self.content(file) {
                // An excerpt does not tell whether the last line has an end.
                TrackedContent::Whole(known) if is_same_text(known, &excerpt.text()) => known.to_string(),
                _ => excerpt.text(),
            };
            return self.observe_whole(file, ObservationKind::Shown, &text);
        }
        let shown = excerpt.line_ranges();
        match self.content(file) {
            TrackedContent::Whole(text) if excerpt.agrees_with(text) => {
                let text = text.clone();
                self.push(file, ObservationKind::Shown, &text, shown);
            }
            _ => self.observe_part(file, &excerpt, shown),
        }
    }

    /// Adds an excerpt of a file that is not known whole. Excerpts that together cover it make it
    /// known.
    fn observe_part(&mut self, file: &str, excerpt: &FileExcerpt, shown: LineRanges) {
        let path = self.workspace_path(file).to_owned();
        self.observations.push(FileObservation::of_unknown(&path, shown));
        let index = self.observations.len() - 1;
        let (mut lines, mut last, mut observations) = match std::mem::take(self.content(file)) {
            TrackedContent::Parts { lines, last, observations } => (lines, last, observations),
            TrackedContent::Unknown | TrackedContent::Whole(_) => (BTreeMap::new(), None, Vec::new()),
        };
        let contradicts =
            |(number, line): (u64, &String)| lines.get(&number).is_some_and(|known| known != line);
        let is_other_length = last.zip(excerpt.last).is_some_and(|(one, other)| one != other);
        if is_other_length || excerpt.numbered().any(contradicts) {
            (lines, last, observations) = (BTreeMap::new(), None, Vec::new());
        }
        lines.extend(excerpt.numbered().map(|(number, line)| (number, line.clone())));
        last = last.or(excerpt.last);
        observations.push(index);
        let covered = lines.keys().zip(1..).take_while(|(number, wanted)| **number == *wanted).count() as u64;
        let text =
            (last == Some(covered)).then(|| lines.values().flat_map(|line| [line, "\n"]).collect::<String>());
        *self.content(file) = TrackedContent::Parts { lines, last, observations };
        if let Some(text) = text {
            self.complete_parts(file, &text);
            *self.content(file) = TrackedContent::Whole(Text::new(text));
        }
    }

    fn observe_patch(&mut self, patch: &str) {
        for change in patch::parse(patch) {
            let file = self.folder.resolve(change.path);
            match change.action {
                patch::PatchAction::Add(text) => self.observe_whole(&file, ObservationKind::Written, &text),
                patch::PatchAction::Delete => *self.content(&file) = TrackedContent::Unknown,
                patch::PatchAction::Update { hunks, moved_to } => {
                    self.observe_edit(&file, |text| patch::apply(text, &hunks));
                    if let Some(target) = moved_to {
                        let target = self.folder.resolve(target);
                        *self.content(&target) = TrackedContent::Unknown;
                        *self.content(&file) = TrackedContent::Unknown;
                    }
                }
            }
        }
    }

    fn observe_command(&mut self, command: &str, cwd: Option<&str>, output: &str) {
        let folder = cwd.map_or_else(|| self.folder.clone(), |cwd| self.folder.change_folder(cwd));
        let effect = analyze_command(command, &folder);
        for affected in &effect.changes {
            self.forget_affected(affected, command);
        }
        if let Some(ShownRange { path, from, lines }) = effect.shown {
            self.observe_excerpt(&path, FileExcerpt::from_command_output(output, from, lines));
        }
    }

    fn forget_affected(&mut self, affected: &AffectedFiles, command: &str) {
        for (name, content) in &mut self.files {
            let is_reached = match affected {
                AffectedFiles::Everything => true,
                AffectedFiles::Path(path) => {
                    name == path || name.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
                }
                AffectedFiles::Mentioned => command.contains(name.rsplit('/').next().unwrap_or(name)),
            };
            if is_reached {
                *content = TrackedContent::Unknown;
            }
        }
    }
}

fn is_same_text(one: &str, other: &str) -> bool {
    one.strip_suffix('\n').unwrap_or(one) == other.strip_suffix('\n').unwrap_or(other)
}

/// The lines of `after` that `before` does not have at its beginning or its end.
fn changed_lines(before: &str, after: &str) -> LineRanges {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (first, last) = (head as u64 + 1, (new.len() - tail) as u64);
    if first <= last { LineRanges::span(first, last) } else { LineRanges::default() }
}

/// The text with all replacements made. `None` if one of them does not apply.
fn apply_replacements(text: &str, changes: &[TextReplacement]) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let mut text = text.to_owned();
    for TextReplacement { old, new, everywhere } in changes {
        let found = if old.is_empty() { usize::from(text.is_empty()) } else { text.matches(&**old).count() };
        text = match (found, everywhere) {
            (0, _) => return None,
            (_, _) if old.is_empty() => new.to_string(),
            (1, _) | (_, true) => text.replace(&**old, new),
            (_, false) => return None, // which of them was meant is not recorded
        };
    }
    Some(text)
}
