//! What a conversation tells about files, and what of it has become garbage.
//!
//! A file is *known* once the model has been given all of it: read whole, in parts that together cover it, or written. Edits are
//! applied to the content held here; one that does not apply, or a command that may have changed the file, makes it unknown,
//! and nothing that follows is called garbage until the file is known again. Everything that told about a known file is a
//! [`Touch`]; those of one *generation* can be replaced by the body as it was after the last of them, and those of an
//! earlier generation by nothing, since a newer body has been given.

mod patch; // Codex's patches, applied
mod path; // names of files made comparable
mod shell; // what a command does to files
mod shown; // the text of a file in a tool's answer
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::import::{Act, Call, CallResult, Change};
use path::Folder;
use shell::{Reach, Seen};
use shown::Shown;

/// A call and its result that told about a known file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Touch {
    pub file: usize,
    /// The pieces of the conversation: the call and its result.
    pub call: usize,
    pub result: usize,
    /// All touches between two times that the whole body was given, from 1.
    pub generation: u32,
    /// The body after it, in counted tokens.
    pub body: usize,
    /// The piece that gave the body of this generation: it tells how counted tokens compare with billed ones.
    pub carrier: usize,
    /// How it told.
    pub told: Told,
}

/// How the model was told about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The result shows the body, or some of it.
    Shown,
    /// The call says what changed.
    Changed,
}

/// What is known of one file.
#[derive(Clone, Debug, Default)]
enum Known {
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
pub(crate) struct Files<'a> {
    count: &'a dyn Fn(&str) -> usize,
    folder: Folder,
    names: BTreeMap<String, usize>,
    known: Vec<Known>,
    generations: Vec<u32>,
    pub touches: Vec<Touch>,
}

impl<'a> Files<'a> {
    pub fn new(cwd: Option<&str>, count: &'a dyn Fn(&str) -> usize) -> Self {
        Files {
            count,
            folder: Folder::new(cwd.unwrap_or("/")),
            names: BTreeMap::new(),
            known: Vec::new(),
            generations: Vec::new(),
            touches: Vec::new(),
        }
    }

    /// Whether the model has the whole of it, as it is now.
    #[cfg(test)]
    pub fn text(&self, path: &str) -> Option<&str> {
        match &self.known[*self.names.get(&self.folder.resolve(path))?] {
            Known::Whole { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Forgets all that is known, because the conversation was cut. Files keep their numbers.
    pub fn forget_all(&mut self) {
        self.known.fill(Known::Nothing);
        self.generations.fill(0);
        self.touches.clear();
    }

    /// Takes in a call and its result: the pieces `call_piece` and `result_piece` of the conversation.
    pub fn observe(&mut self, call_piece: usize, call: &Call, result_piece: usize, result: &CallResult) {
        let pieces = (call_piece, result_piece);
        match &call.act {
            Act::Shell { command, cwd } => self.run(pieces, command, cwd.as_deref(), &result.text),
            _ if result.failed => {}
            Act::Read { path, from, lines } => {
                let file = self.file(path);
                self.read(pieces, file, Shown::of_tool(&result.text, *from, *lines));
            }
            Act::Write { path, content } => {
                let file = self.file(path);
                self.whole(pieces, file, content.to_string(), call_piece);
            }
            Act::Edit { path, changes } => {
                let file = self.file(path);
                self.edit(pieces, file, |text| replaced(text, changes));
            }
            Act::Patch { patch } => self.patch(pieces, patch),
            Act::Other => {}
        }
    }

    fn file(&mut self, path: &str) -> usize {
        let name = self.folder.resolve(path);
        let next = self.known.len();
        let file = *self.names.entry(name).or_insert(next);
        if file == next {
            self.known.push(Known::Nothing);
            self.generations.push(0);
        }
        file
    }

    fn touch(
        &mut self,
        (call, result): (usize, usize),
        file: usize,
        body: usize,
        carrier: usize,
        told: Told,
    ) {
        let generation = self.generations[file];
        self.touches.push(Touch { file, call, result, generation, body, carrier, told });
    }

    /// The whole body was given.
    fn whole(&mut self, pieces: (usize, usize), file: usize, text: String, carrier: usize) {
        let tokens = (self.count)(&text);
        self.known[file] = Known::Whole { text, tokens, carrier };
        self.generations[file] += 1;
        let told = if carrier == pieces.1 { Told::Shown } else { Told::Changed };
        self.touch(pieces, file, tokens, carrier, told);
    }

    fn edit(&mut self, pieces: (usize, usize), file: usize, apply: impl Fn(&str) -> Option<String>) {
        let Known::Whole { text, tokens, carrier } = &mut self.known[file] else {
            self.known[file] = Known::Nothing; // parts may have moved
            return;
        };
        let Some(new) = apply(text) else {
            self.known[file] = Known::Nothing;
            return;
        };
        *tokens = (self.count)(&new);
        *text = new;
        let (tokens, carrier) = (*tokens, *carrier);
        self.touch(pieces, file, tokens, carrier, Told::Changed);
    }

    fn read(&mut self, pieces: (usize, usize), file: usize, shown: Option<Shown>) {
        let Some(shown) = shown else { return };
        if shown.is_whole() {
            return self.whole(pieces, file, shown.text(), pieces.1);
        }
        if let Known::Whole { text, tokens, carrier } = &self.known[file] {
            if shown.agrees_with(text) {
                let (tokens, carrier) = (*tokens, *carrier);
                self.touch(pieces, file, tokens, carrier, Told::Shown);
                return;
            }
            self.known[file] = Known::Nothing; // it was changed by something that was not recorded
        }
        self.part(pieces, file, &shown);
    }

    /// Parts that together cover the file make it known.
    fn part(&mut self, pieces: (usize, usize), file: usize, shown: &Shown) {
        let (mut lines, mut last, mut touches) = match std::mem::take(&mut self.known[file]) {
            Known::Parts { lines, last, touches } => (lines, last, touches),
            Known::Nothing | Known::Whole { .. } => (BTreeMap::new(), None, Vec::new()),
        };
        let contradicts =
            |(number, line): (u64, &String)| lines.get(&number).is_some_and(|known| known != line);
        if shown.numbered().any(contradicts) || last.zip(shown.last).is_some_and(|(one, other)| one != other)
        {
            (lines, last, touches) = (BTreeMap::new(), None, Vec::new());
        }
        lines.extend(shown.numbered().map(|(number, line)| (number, line.clone())));
        last = last.or(shown.last);
        touches.push(pieces);
        let covered = lines.keys().zip(1..).take_while(|(number, wanted)| **number == *wanted).count() as u64;
        if last != Some(covered) {
            self.known[file] = Known::Parts { lines, last, touches };
            return;
        }
        let text = lines.into_values().map(|line| line + "\n").collect::<String>();
        let tokens = (self.count)(&text);
        self.known[file] = Known::Whole { text, tokens, carrier: pieces.1 };
        self.generations[file] += 1;
        for part in touches {
            self.touch(part, file, tokens, pieces.1, Told::Shown);
        }
    }

    fn patch(&mut self, pieces: (usize, usize), patch: &str) {
        let changes = patch::parse(patch);
        let (told, several) = (self.touches.len(), changes.len() > 1);
        for change in changes {
            let file = self.file(change.path);
            match change.action {
                patch::Action::Add(text) => self.whole(pieces, file, text, pieces.0),
                patch::Action::Delete => self.known[file] = Known::Nothing,
                patch::Action::Update { hunks, moved_to } => {
                    self.edit(pieces, file, |text| patch::apply(text, &hunks));
                    if let Some(target) = moved_to {
                        let target = self.file(target);
                        self.known[target] = Known::Nothing;
                        self.known[file] = Known::Nothing;
                    }
                }
            }
        }
        if several {
            self.touches.truncate(told); // one stub cannot stand for several files: such a patch stays
        }
    }

    fn run(&mut self, pieces: (usize, usize), command: &str, cwd: Option<&str>, output: &str) {
        let folder = cwd.map_or_else(|| self.folder.clone(), |cwd| self.folder.below(cwd));
        let effect = shell::effect(command, &folder);
        for reach in &effect.changes {
            self.forget(reach, command);
        }
        if let Some(Seen { path, from, lines }) = effect.seen {
            let file = self.file(&path);
            self.read(pieces, file, Shown::of_command(output, from, lines));
        }
    }

    fn forget(&mut self, reach: &Reach, command: &str) {
        for (name, &file) in &self.names {
            let is_reached = match reach {
                Reach::Everything => true,
                Reach::Path(path) => {
                    name == path || name.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
                }
                Reach::Mentioned => {
                    let base = name.rsplit('/').next().unwrap_or(name);
                    command.contains(base)
                }
            };
            if is_reached {
                self.known[file] = Known::Nothing;
            }
        }
    }
}

/// The text with all changes made; none if one of them cannot be.
fn replaced(text: &str, changes: &[Change]) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let mut text = text.to_owned();
    for Change { old, new, everywhere } in changes {
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
