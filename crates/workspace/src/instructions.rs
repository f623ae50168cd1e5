//! [`read_instructions`]: the instructions that the user and the project give every agent, in
//! AGENTS.md, CLAUDE.md and the files of other agents.

mod imports; // find_imports: what a file names with `@path`

use std::path::{Path, PathBuf};

use hardpan_files::{FileGuard, RegularFile, UnreadableReason};

use self::imports::{find_imports, is_imports_alone};
use crate::cursor_rules::{RuleScope, read_cursor_rules};
use crate::{TEXT_LIMIT, TextFile, Truncation, display_path, read_open_text};

/// How many files may lie between an instruction file and one that it imports.
const MAX_IMPORT_DEPTH: usize = 5;
/// The most files that are imported in all.
const MAX_IMPORTS: usize = 50;

/// Which instruction files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionKinds {
    /// `AGENTS.md`.
    pub agents_md: bool,
    /// `CLAUDE.md` and `.claude/CLAUDE.md`.
    pub claude_md: bool,
    /// `CLAUDE.local.md`.
    pub claude_local_md: bool,
    /// `.github/copilot-instructions.md`.
    pub copilot_instructions: bool,
    /// Those of `.cursor/rules` that always apply.
    pub cursor_rules: bool,
    /// Files that instruction files name with `@path`.
    pub imports: bool,
    /// `~/.claude/CLAUDE.md`.
    pub home_claude_md: bool,
    /// `~/.codex/AGENTS.md`.
    pub home_codex_md: bool,
}

impl InstructionKinds {
    /// All of them.
    pub const ALL: InstructionKinds = InstructionKinds {
        agents_md: true,
        claude_md: true,
        claude_local_md: true,
        copilot_instructions: true,
        cursor_rules: true,
        imports: true,
        home_claude_md: true,
        home_codex_md: true,
    };

    /// What the user wrote for other agents in the home folder, in order of preference.
    fn home_names(self) -> impl Iterator<Item = &'static str> {
        let names = [(".claude/CLAUDE.md", self.home_claude_md), (".codex/AGENTS.md", self.home_codex_md)];
        names.into_iter().filter(|(_, is_read)| *is_read).map(|(name, _)| name)
    }

    /// The names of the files that every folder may have, in order.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let names = [
            ("AGENTS.md", self.agents_md),
            ("CLAUDE.md", self.claude_md),
            (".claude/CLAUDE.md", self.claude_md),
            ("CLAUDE.local.md", self.claude_local_md),
        ];
        names.into_iter().filter(|(_, is_read)| *is_read).map(|(name, _)| name)
    }
}

/// Whose files are read, and from where.
#[derive(Clone, Copy, Debug)]
pub struct InstructionPlaces<'a> {
    /// The root of the project.
    pub root: &'a Path,
    /// Where the agent works: instructions count from the root down to it.
    pub working_directory: &'a Path,
    /// The user's config folder.
    pub user_folder: Option<&'a Path>,
    /// The user's home folder: what `~` means in an import of the user's own file, and where other agents
    /// keep the user's instructions.
    pub home: Option<&'a Path>,
}

/// Reads the instructions that apply in the working directory, most general first: the user's, then
/// those of each folder from the root down. If the config folder has none, the user's are those of the
/// first other agent that has some in the home folder. Each is a path for display and a text; the user's files
/// are shown without their path on the machine. A file that another one imports follows it.
///
/// A file that exists but cannot be read is returned with a note instead of its text, so that its
/// absence is noticed. A project's file that links to a place outside the root is not read, nor can it
/// import one: a foreign project must not decide which of the user's files are sent to a provider.
/// Neither is one of our own files, by whatever name. Empty files are left out, and so is what was
/// read before, by its path or by what it says.
pub fn read_instructions(
    guard: &FileGuard,
    places: &InstructionPlaces<'_>,
    kinds: InstructionKinds,
) -> Vec<(String, String)> {
    let InstructionPlaces { root, working_directory, user_folder, home } = *places;
    let mut reader =
        InstructionReader { guard, root, home, kinds, found: Vec::new(), read: Vec::new(), imported: 0 };
    for name in user_folder.iter().flat_map(|_| kinds.names()) {
        if let Some(path) = user_folder.map(|folder| folder.join(name)).filter(|path| is_there(path)) {
            reader.add(&path, format!("{name} (user)"), Owner::User);
        }
    }
    for name in home.iter().flat_map(|_| kinds.home_names()) {
        if !reader.found.is_empty() {
            break;
        }
        if let Some(path) = home.map(|home| home.join(name)).filter(|path| is_there(path)) {
            reader.add(&path, format!("~/{name}"), Owner::User);
        }
    }
    for folder in folders_down_to(root, working_directory) {
        // The user's own folder may be one of these folders; its files are already in the list.
        if Some(folder.as_path()) == user_folder {
            continue;
        }
        for path in kinds.names().map(|name| folder.join(name)).filter(|path| is_there(path)) {
            reader.add(&path, display_path(root, &path), Owner::Project);
        }
    }
    let copilot = root.join(".github/copilot-instructions.md");
    if kinds.copilot_instructions && is_there(&copilot) {
        reader.add(&copilot, display_path(root, &copilot), Owner::Project);
    }
    if kinds.cursor_rules {
        let rules = read_cursor_rules(guard, root).into_iter().filter(|rule| rule.scope == RuleScope::Always);
        for rule in rules {
            reader.push(rule.path, rule.body);
        }
    }
    reader.found
}

/// Who decides what a file may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    User,
    Project,
}

struct InstructionReader<'a> {
    guard: &'a FileGuard,
    root: &'a Path,
    home: Option<&'a Path>,
    kinds: InstructionKinds,
    found: Vec<(String, String)>,
    /// The real paths of what was read.
    read: Vec<PathBuf>,
    imported: usize,
}

impl InstructionReader<'_> {
    /// Adds a file that is there, and what it imports.
    fn add(&mut self, path: &Path, shown: String, owner: Owner) {
        let opened = self.open(path, owner);
        self.add_open(path, shown, owner, opened, 0);
    }

    fn open(&self, path: &Path, owner: Owner) -> Result<RegularFile, UnreadableReason> {
        match owner {
            Owner::User => self.guard.open_user_file(path),
            Owner::Project => self.guard.open(path),
        }
    }

    fn add_open(
        &mut self,
        path: &Path,
        shown: String,
        owner: Owner,
        opened: Result<RegularFile, UnreadableReason>,
        depth: usize,
    ) {
        let real = opened.as_ref().ok().and_then(RegularFile::real_path);
        if let Some(real) = &real {
            if self.read.contains(real) {
                return;
            }
            self.read.push(real.clone());
        }
        let is_read = opened.is_ok();
        let text = read_or_explain(opened);
        let imports: Vec<String> = match is_read && self.kinds.imports {
            true => find_imports(&text).into_iter().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        if imports.is_empty() || !is_imports_alone(&text) {
            self.push(shown, text);
        }
        // A file of the workspace speaks for the project, whoever named it.
        let is_project = real.as_deref().unwrap_or(path).starts_with(self.root);
        let owner = if is_project && self.guard.root().is_some() { Owner::Project } else { owner };
        for import in imports {
            self.add_import(&import, path, owner, depth + 1);
        }
    }

    fn add_import(&mut self, import: &str, importer: &Path, owner: Owner, depth: usize) {
        let home = import.strip_prefix("~/");
        let path = match (home, self.home) {
            (Some(below), Some(home)) => home.join(below),
            (Some(_), None) => return,
            (None, _) => importer.parent().unwrap_or(Path::new("/")).join(import),
        };
        let shown = match owner {
            Owner::User => format!("{import} (user)"),
            Owner::Project => display_path(self.root, &plain(&path)),
        };
        if owner == Owner::Project && home.is_some() {
            // Whether such a file exists is nobody's business.
            return self.push(
                import.to_owned(),
                "[not read: a project's file cannot import from your home folder]".into(),
            );
        }
        let path = plain(&path);
        let opened = self.open(&path, owner);
        match &opened {
            // A word that only looks like an import, such as the name of a package or a person.
            Err(UnreadableReason::Missing | UnreadableReason::Directory) => return,
            Err(UnreadableReason::Io(_)) if !is_there(&path) => return,
            _ => {}
        }
        if depth > MAX_IMPORT_DEPTH || self.imported == MAX_IMPORTS {
            return self.push(
                shown,
                format!("[not read: at most {MAX_IMPORTS} files are imported, {MAX_IMPORT_DEPTH} deep]"),
            );
        }
        self.imported += 1;
        self.add_open(&path, shown, owner, opened, depth);
    }

    /// Adds a text, unless it is empty or there already.
    fn push(&mut self, shown: String, text: String) {
        let is_new = |(path, known): &(String, String)| {
            known.trim() != text.trim() || (text.starts_with("[not read") && *path != shown)
        };
        if !text.trim().is_empty() && self.found.iter().all(is_new) {
            self.found.push((shown, text));
        }
    }
}

/// The path without `.` and `..`, as it reads.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// `root` and the folders below it on the way to `working_directory`.
fn folders_down_to(root: &Path, working_directory: &Path) -> Vec<PathBuf> {
    let below = working_directory.strip_prefix(root).unwrap_or(Path::new(""));
    let mut folders = vec![root.to_owned()];
    for part in below {
        folders.extend(folders.last().map(|folder| folder.join(part)));
    }
    folders
}

fn read_or_explain(file: Result<RegularFile, UnreadableReason>) -> String {
    match file.and_then(|file| read_open_text(&file, TEXT_LIMIT)) {
        Ok(TextFile { text, truncation: None }) => text,
        Ok(TextFile { text, truncation: Some(Truncation { shown_bytes, total_bytes }) }) => {
            format!("{text}\n[cut here: {shown_bytes} of {total_bytes} bytes]")
        }
        Err(UnreadableReason::Missing) => "[not read: it links to a file that does not exist]".into(),
        Err(UnreadableReason::Outside) => "[not read: it links to a place outside the project]".into(),
        Err(reason) => format!("[not read: it {}]", reason.model_text()),
    }
}

#[cfg(test)]
mod tests;
