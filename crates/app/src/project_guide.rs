//! [`ProjectGuide`]: an AGENTS.md made of what is known without a model: languages, layout, and the
//! commands that the project's own manifests name.

mod manifests; // the commands of manifests: Cargo, npm, Python, Go, Make, Maven, Gradle

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hardpan_workspace as workspace;
use hardpan_workspace::FileGuard;
use similar::TextDiff;

pub use manifests::ProjectCommand;

/// The name of the file.
pub const GUIDE_FILE: &str = "AGENTS.md";

/// Files that are listed at most.
const MAX_FILES: usize = 20_000;
/// The largest manifest that is read, in bytes.
const MAX_MANIFEST: usize = 256 * 1024;
/// Folders that are named at most.
const MAX_NAMED: usize = 12;
/// Languages that are named at most: the others have few files.
const MAX_LANGUAGES: usize = 5;

/// What is known about a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectGuide {
    /// The folder's name.
    pub name: String,
    /// Languages with their number of files, the most first.
    pub languages: Vec<(String, usize)>,
    /// Top folders with their number of files, by name.
    pub folders: Vec<(String, usize)>,
    /// How to build, test and check.
    pub commands: Vec<ProjectCommand>,
    /// Documents that say more: README.md, CONTRIBUTING.md.
    pub documents: Vec<String>,
}

impl ProjectGuide {
    /// Looks at a project. Reads the names of its files and its manifests.
    pub fn read(guard: &FileGuard, root: &Path) -> Self {
        let tree = workspace::list_files(guard, root, MAX_FILES);
        let read = |path: &str| -> Option<String> {
            let file = guard.open(&root.join(path)).ok()?;
            Some(workspace::read_open_text(&file, MAX_MANIFEST).ok()?.text)
        };
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        ProjectGuide::from_files(name, &tree.files, &read)
    }

    /// The same from a list of files and a way to read them.
    pub fn from_files(name: String, files: &[String], read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
        let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files.iter().filter(|file| *file != GUIDE_FILE) {
            if let Some(language) = language(file) {
                *languages.entry(language).or_default() += 1;
            }
            if let Some((folder, _)) = file.split_once('/') {
                *folders.entry(folder).or_default() += 1;
            }
        }
        let mut languages: Vec<(String, usize)> =
            languages.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        languages.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let is_document = |file: &&String| {
            let lower = file.to_lowercase();
            ["readme.md", "readme.rst", "contributing.md", "architecture.md"].contains(&lower.as_str())
        };
        ProjectGuide {
            name,
            languages,
            folders: folders.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            commands: manifests::commands(files, read),
            documents: files.iter().filter(is_document).cloned().collect(),
        }
    }

    /// The change from a text to this guide's, as a unified diff; empty if there is none.
    pub fn diff_from(&self, before: &str) -> String {
        let text = self.to_markdown();
        TextDiff::from_lines(before, &text).unified_diff().header(GUIDE_FILE, GUIDE_FILE).to_string()
    }

    /// The text of AGENTS.md.
    pub fn to_markdown(&self) -> String {
        let mut text =
            format!("# {}\n\nNotes for agents that work in this repository.\n", one_line(&self.name));
        if !self.commands.is_empty() {
            text.push_str("\n## Commands\n\n");
            for ProjectCommand { purpose, command, source } in &self.commands {
                text.push_str(&format!("- {purpose}: `{}` ({})\n", one_line(command), one_line(source)));
            }
        }
        if !self.languages.is_empty() {
            let named = self.languages.iter().take(MAX_LANGUAGES);
            let named: Vec<String> =
                named.map(|(name, count)| format!("{name} ({})", files(*count))).collect();
            text.push_str(&format!("\n## Languages\n\n{}\n", named.join(", ")));
        }
        if !self.folders.is_empty() {
            text.push_str("\n## Layout\n\n");
            for (folder, count) in self.folders.iter().take(MAX_NAMED) {
                text.push_str(&format!("- `{}/`: {}\n", one_line(folder), files(*count)));
            }
            if self.folders.len() > MAX_NAMED {
                text.push_str(&format!("- and {} more folders\n", self.folders.len() - MAX_NAMED));
            }
        }
        if !self.documents.is_empty() {
            text.push_str(&format!("\n## Read first\n\n{}\n", self.documents.join(", ")));
        }
        text
    }
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// A name that cannot begin a line of its own.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect()
}

/// The language of a file, by its ending.
fn language(path: &str) -> Option<&'static str> {
    let ending = path.rsplit('/').next()?.rsplit_once('.')?.1;
    Some(match ending {
        "rs" => "Rust",
        "py" | "pyi" => "Python",
        "go" => "Go",
        "ts" | "tsx" | "mts" => "TypeScript",
        "js" | "jsx" | "mjs" | "cjs" => "JavaScript",
        "java" => "Java",
        "kt" | "kts" => "Kotlin",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hpp" => "C++",
        "cs" => "C#",
        "rb" => "Ruby",
        "php" => "PHP",
        "swift" => "Swift",
        "scala" => "Scala",
        "sh" | "bash" => "Shell",
        "sql" => "SQL",
        "html" | "css" | "scss" => "HTML and CSS",
        _ => return None,
    })
}

/// Where the guide of a project is or would be.
pub fn guide_path(root: &Path) -> PathBuf {
    root.join(GUIDE_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_tells_commands_languages_layout_and_documents() {
        let files: Vec<String> =
            ["Cargo.toml", "src/main.rs", "src/lib.rs", "web/a.ts", "README.md"].map(str::to_owned).to_vec();
        let read = |path: &str| (path == "Cargo.toml").then(|| "[package]\nname = \"x\"\n".to_owned());
        let guide = ProjectGuide::from_files("demo\n# evil".into(), &files, &read);
        assert_eq!(
            guide.to_markdown(),
            "# demo # evil\n\nNotes for agents that work in this repository.\n\n## Commands\n\n\
             - build: `cargo build` (Cargo.toml)\n- test: `cargo test` (Cargo.toml)\n\
             - lint: `cargo clippy --all-targets` (Cargo.toml)\n- format: `cargo fmt` (Cargo.toml)\n\n\
             ## Languages\n\nRust (2 files), TypeScript (1 file)\n\n\
             ## Layout\n\n- `src/`: 2 files\n- `web/`: 1 file\n\n## Read first\n\nREADME.md\n"
        );
        assert_eq!(guide.diff_from(&guide.to_markdown()), "");
        assert!(guide.diff_from("").starts_with("--- AGENTS.md\n+++ AGENTS.md\n"));
    }
}
