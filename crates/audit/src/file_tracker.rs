//! [`FileTracker`]: what a conversation tells about files, and what of it has become garbage.
//!
//! A file is *known* once the model has been given all of it: read whole, in parts that together
//! cover it, or written. Edits are applied to the content held here; an edit that does not apply,
//! or a command that may have changed the file, makes it unknown, and nothing that follows counts
//! as garbage until the file is known again. Every call that told about a known file is a
//! [`FileTouch`]. The touches of one *generation* can be replaced by the body as it was after the
//! last of them, and those of an earlier generation by nothing, since a newer body has been sent.

mod patch; // Codex's patches, applied
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::import::{FileAction, RecordedCall, RecordedResult, TextReplacement};
use hardpan_context::knowledge::{AffectedFiles, FileExcerpt, ShownRange, WorkingFolder, analyze_command};

/// A call and its result that told the model about a known file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FileTouch {
    pub file: usize,
    /// The units of the conversation that are the call and its result.
    pub call: usize,
    pub result: usize,
    /// How often the whole body has been sent up to here: touches between two such times form a
    /// generation.
    pub generation: u32,
    /// The size of the file after it, in counted tokens.
    pub body: usize,
    /// The unit that sent the body of this generation. Its size tells how counted tokens compare
    /// with billed ones.
    pub carrier: usize,
    /// How the model was told.
    pub kind: TouchKind,
}

/// How the model was told about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TouchKind {
    /// The result shows the file, or a part of it.
    Shown,
    /// The call contains the change.
    Changed,
}

/// The content of one file as far as a recording tells it. Recordings of other agents say nothing of
/// files by themselves, so it is put together from texts; our own agent records it
/// (`hardpan_context::knowledge`).
#[derive(Clone, Debug, Default)]
enum TrackedContent {
    #[default]
    Nothing,
    Whole {
        text: String,
        tokens: usize,
        carrier: usize,
    },
    Parts {
        lines: BTreeMap<u64, String>,
        last: Option<u64>,
        touches: Vec<(usize, usize)>,
    },
}

/// The files of one conversation.
pub(crate) struct FileTracker<'a> {
    count: &'a dyn Fn(&str) -> usize,
    folder: WorkingFolder,
    names: BTreeMap<String, usize>,
    known: Vec<TrackedContent>,
    generations: Vec<u32>,
    pub touches: Vec<FileTouch>,
}

impl<'a> FileTracker<'a> {
    pub fn new(cwd: Option<&str>, count: &'a dyn Fn(&str) -> usize) -> Self {
        FileTracker {
            count,
            folder: WorkingFolder::new(cwd.unwrap_or("/")),
            names: BTreeMap::new(),
            known: Vec::new(),
            generations: Vec::new(),
            touches: Vec::new(),
        }
    }

    /// The content of a file, if the model has been given all of it.
    #[cfg(test)]
    pub fn text(&self, path: &str) -> Option<&str> {
        match &self.known[*self.names.get(&self.folder.resolve(path))?] {
            TrackedContent::Whole { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Forgets everything, because the conversation was cut. Files keep their numbers.
    pub fn forget_all(&mut self) {
        self.known.fill(TrackedContent::Nothing);
        self.generations.fill(0);
        self.touches.clear();
    }

    /// Learns from a call and its result, which are these units of the conversation.
    pub fn observe(
        &mut self,
        call_unit: usize,
        call: &RecordedCall,
        result_unit: usize,
        result: &RecordedResult,
    ) {
        let units = (call_unit, result_unit);
        match &call.action {
            FileAction::Shell { command, cwd } => {
                self.observe_command(units, command, cwd.as_deref(), &result.text);
            }
            _ if result.failed => {}
            FileAction::Read { path, from, lines } => {
                let file = self.file_number(path);
                self.record_excerpt(units, file, FileExcerpt::from_read_result(&result.text, *from, *lines));
            }
            FileAction::Write { path, content } => {
                let file = self.file_number(path);
                self.record_whole(units, file, content.to_string(), call_unit);
            }
            FileAction::Edit { path, changes } => {
                let file = self.file_number(path);
                self.apply_edit(units, file, |text| apply_replacements(text, changes));
            }
            FileAction::Patch { patch } => self.apply_patch(units, patch),
            FileAction::Other => {}
        }
    }

    fn file_number(&mut self, path: &str) -> usize {
        let name = self.folder.resolve(path);
        let next = self.known.len();
        let file = *self.names.entry(name).or_insert(next);
        if file == next {
            self.known.push(TrackedContent::Nothing);
            self.generations.push(0);
        }
        file
    }

    fn add_touch(
        &mut self,
        (call, result): (usize, usize),
        file: usize,
        body: usize,
        carrier: usize,
        kind: TouchKind,
    ) {
        let generation = self.generations[file];
        self.touches.push(FileTouch { file, call, result, generation, body, carrier, kind });
    }

    /// Records that the whole content of a file was sent, by the unit `carrier`.
    fn record_whole(&mut self, units: (usize, usize), file: usize, text: String, carrier: usize) {
        let tokens = (self.count)(&text);
        self.known[file] = TrackedContent::Whole { text, tokens, carrier };
        self.generations[file] += 1;
        let told = if carrier == units.1 { TouchKind::Shown } else { TouchKind::Changed };
        self.add_touch(units, file, tokens, carrier, told);
    }

    fn apply_edit(&mut self, units: (usize, usize), file: usize, apply: impl Fn(&str) -> Option<String>) {
        let TrackedContent::Whole { text, tokens, carrier } = &mut self.known[file] else {
            self.known[file] = TrackedContent::Nothing; // parts may have moved
            return;
        };
        let Some(new) = apply(text) else {
            self.known[file] = TrackedContent::Nothing;
            return;
        };
        *tokens = (self.count)(&new);
        *text = new;
        let (tokens, carrier) = (*tokens, *carrier);
        self.add_touch(units, file, tokens, carrier, TouchKind::Changed);
    }

    fn record_excerpt(&mut self, units: (usize, usize), file: usize, shown: Option<FileExcerpt>) {
        let Some(shown) = shown else { return };
        if shown.is_whole() {
            return self.record_whole(units, file, shown.text(), units.1);
        }
        if let TrackedContent::Whole { text, tokens, carrier } = &self.known[file] {
            if shown.agrees_with(text) {
                let (tokens, carrier) = (*tokens, *carrier);
                self.add_touch(units, file, tokens, carrier, TouchKind::Shown);
                return;
            }
            self.known[file] = TrackedContent::Nothing; // it was changed by something that was not recorded
        }
        self.record_part(units, file, &shown);
    }

    /// Adds an excerpt. Excerpts that together cover the file make it known.
    fn record_part(&mut self, units: (usize, usize), file: usize, shown: &FileExcerpt) {
        let (mut lines, mut last, mut touches) = match std::mem::take(&mut self.known[file]) {
            TrackedContent::Parts { lines, last, touches } => (lines, last, touches),
            TrackedContent::Nothing | TrackedContent::Whole { .. } => (BTreeMap::new(), None, Vec::new()),
        };
        let contradicts =
            |(number, line): (u64, &String)| lines.get(&number).is_some_and(|known| known != line);
        if shown.numbered().any(contradicts) || last.zip(shown.last).is_some_and(|(one, other)| one != other)
        {
            (lines, last, touches) = (BTreeMap::new(), None, Vec::new());
        }
        lines.extend(shown.numbered().map(|(number, line)| (number, line.clone())));
        last = last.or(shown.last);
        touches.push(units);
        let covered = lines.keys().zip(1..).take_while(|(number, wanted)| **number == *wanted).count() as u64;
        if last != Some(covered) {
            self.known[file] = TrackedContent::Parts { lines, last, touches };
            return;
        }
        let text = lines.into_values().map(|line| line + "\n").collect::<String>();
        let tokens = (self.count)(&text);
        self.known[file] = TrackedContent::Whole { text, tokens, carrier: units.1 };
        self.generations[file] += 1;
        for part in touches {
            self.add_touch(part, file, tokens, units.1, TouchKind::Shown);
        }
    }

    fn apply_patch(&mut self, units: (usize, usize), patch: &str) {
        let changes = patch::parse(patch);
        let (told, is_several) = (self.touches.len(), changes.len() > 1);
        for change in changes {
            let file = self.file_number(change.path);
            match change.action {
                patch::PatchAction::Add(text) => self.record_whole(units, file, text, units.0),
                patch::PatchAction::Delete => self.known[file] = TrackedContent::Nothing,
                patch::PatchAction::Update { hunks, moved_to } => {
                    self.apply_edit(units, file, |text| patch::apply(text, &hunks));
                    if let Some(target) = moved_to {
                        let target = self.file_number(target);
                        self.known[target] = TrackedContent::Nothing;
                        self.known[file] = TrackedContent::Nothing;
                    }
                }
            }
        }
        if is_several {
            self.touches.truncate(told); // one stub cannot stand for several files: such a patch stays
        }
    }

    fn observe_command(&mut self, units: (usize, usize), command: &str, cwd: Option<&str>, output: &str) {
        let folder = cwd.map_or_else(|| self.folder.clone(), |cwd| self.folder.change_folder(cwd));
        let effect = analyze_command(command, &folder);
        for affected in &effect.changes {
            self.forget_affected(affected, command);
        }
        if let Some(ShownRange { path, from, lines }) = effect.shown {
            let file = self.file_number(&path);
            self.record_excerpt(units, file, FileExcerpt::from_command_output(output, from, lines));
        }
    }

    fn forget_affected(&mut self, affected: &AffectedFiles, command: &str) {
        for (name, &file) in &self.names {
            let is_reached = match affected {
                AffectedFiles::Everything => true,
                AffectedFiles::Path(path) => {
                    name == path || name.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
                }
                AffectedFiles::Mentioned => {
                    let base = name.rsplit('/').next().unwrap_or(name);
                    command.contains(base)
                }
            };
            if is_reached {
                self.known[file] = TrackedContent::Nothing;
            }
        }
    }
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
