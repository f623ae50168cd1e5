//! [`Memories`] (P6): what is worth knowing in the next conversation, too.
//!
//! One plain file per memory, below `.hardpan/memories`, so that a team can read, edit and merge them.
//! What is read is somebody's text like any other file of the repository; what looks like a secret is
//! never written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_context::SecretScanner;
use hardpan_files::FileGuard;
use hardpan_prompt::Volatility;
use hardpan_tools::{CallSubject, Effect, Scope, remove_below, write_below};
use hardpan_workspace::{WatchPosition, WorkspaceWatch, folder_names};

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy, Revision};

/// Where memories lie, relative to the root of the project.
pub const MEMORY_FOLDER: &str = ".hardpan/memories";
/// The longest memory, in bytes.
const MAX_BYTES: usize = 8 * 1024;
/// How many names of the folder are looked at.
const MAX_NAMES: usize = 10_000;
/// How many are read.
const MAX_MEMORIES: usize = 100;

/// The memories of a project.
pub struct Memories {
    scope: Scope,
    scanner: SecretScanner,
    memories: Mutex<MemoryFiles>,
    /// Up to where the memories know the changes of the watch.
    position: Mutex<WatchPosition>,
    revision: Revision,
}

#[derive(Debug, Default, PartialEq)]
struct MemoryFiles {
    texts: BTreeMap<String, String>,
    /// What is not shown, with the reason.
    problems: Vec<String>,
}

impl Memories {
    /// The memories of the project that `scope` is about. `scanner` knows the secrets of this machine.
    pub fn new(scope: Scope, scanner: SecretScanner) -> Self {
        let (memories, position, revision) = Default::default();
        let memories = Memories { scope, scanner, memories, position, revision };
        memories.read();
        memories
    }

    /// Reads the files again.
    fn read(&self) {
        let files = read_files(&self.scope.guard(), &self.scope.root);
        let mut current = self.lock();
        if *current != files {
            *current = files;
            drop(current);
            self.revision.bump();
        }
    }

    /// Whether the files may be others than they were. A folder that is not there is not watched.
    fn may_differ(&self, watch: &WorkspaceWatch) -> bool {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = watch.changes_since(&mut position);
        let is_memory = |path: &String| Path::new(path).starts_with(MEMORY_FOLDER);
        changes.everything
            || changes.files.iter().any(is_memory)
            || !watch.covers(&self.scope.root.join(memory_path("any")))
    }

    fn write(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let (name, text) = (checked_name(call.target()?)?, call.text()?);
        if text.len() > MAX_BYTES {
            return Err(ActionError::Full { what: "a memory", limit: format!("{MAX_BYTES} bytes") });
        }
        if let Some(secret) = self.scanner.find(&format!("{name} {text}")).first() {
            return Err(ActionError::Secret { kind: secret.kind.to_string() });
        }
        let is_new = !self.lock().texts.contains_key(name);
        if is_new && self.lock().texts.len() >= MAX_MEMORIES {
            return Err(ActionError::Full { what: "the memory", limit: format!("{MAX_MEMORIES} files") });
        }
        let text = format!("{}\n", text.trim_end());
        write_below(&self.scope.root, &memory_path(name), text.as_bytes()).map_err(ActionError::failed)?;
        self.read();
        Ok(format!("remembered in {}", memory_path(name).display()))
    }

    fn remove(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let name = checked_name(call.target()?)?;
        if !self.lock().texts.contains_key(name) {
            let known = self.lock().texts.keys().cloned().collect();
            return Err(ActionError::NotFound { what: "memory", name: name.into(), known });
        }
        remove_below(&self.scope.root, &memory_path(name)).map_err(ActionError::failed)?;
        self.read();
        Ok(format!("forgot {name}"))
    }

    fn lock(&self) -> MutexGuard<'_, MemoryFiles> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn memory_path(name: &str) -> PathBuf {
    Path::new(MEMORY_FOLDER).join(format!("{name}.md"))
}

/// A name that is a file name on every system.
fn checked_name(name: &str) -> Result<&str, ActionError> {
    let name = name.strip_suffix(".md").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(name);
    }
    let expected = "1 to 64 small letters, digits, - and _";
    Err(ActionError::Invalid { what: "name of a memory", name: name.chars().take(80).collect(), expected })
}

fn read_files(guard: &FileGuard, root: &Path) -> MemoryFiles {
    let mut files = MemoryFiles::default();
    let folder = root.join(MEMORY_FOLDER);
    let Ok(opened) = guard.open_folder(&folder) else { return files };
    let mut names: Vec<String> = folder_names(&opened)
        .into_iter()
        .flatten()
        .take(MAX_NAMES)
        .filter_map(|(name, _)| name.into_string().ok())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .collect();
    names.sort_unstable();
    let left_out = names.len().saturating_sub(MAX_MEMORIES);
    if left_out > 0 {
        files.problems.push(format!("{left_out} more are not read"));
    }
    for name in names.into_iter().take(MAX_MEMORIES) {
        let Ok(name) = checked_name(&name).map(str::to_owned) else { continue };
        let read =
            guard.open(&folder.join(format!("{name}.md"))).and_then(|file| file.read_text(MAX_BYTES as u64));
        match read {
            Ok(text) => drop(files.texts.insert(name, text.trim_end().to_owned())),
            Err(reason) => files.problems.push(format!("{name} is left out: {}", reason.model_text())),
        }
    }
    files
}

impl Panel for Memories {
    fn key(&self) -> &str {
        "memories"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P6")
    }

    fn title(&self) -> String {
        "Memories".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Watched
    }

    fn volatility(&self) -> Volatility {
        Volatility::Slow
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let MemoryFiles { texts, problems } = &*self.lock();
        let shown = texts.iter().map(|(name, text)| format!("[{name}]\n{text}"));
        let shown: Vec<String> = shown.chain(problems.iter().cloned()).collect();
        (!shown.is_empty()).then(|| shown.join("\n\n"))
    }

    fn refresh(&self, context: &RefreshContext<'_>) {
        if context.watch.is_none_or(|watch| self.may_differ(watch)) {
            self.read();
        }
    }

    fn actions(&self) -> &'static [PanelAction] {
        const {
            &[
                PanelAction {
                    name: "memory_write",
                    arguments: "target: name, text; kept for later conversations",
                    effect: Effect::Changes,
                },
                PanelAction { name: "memory_remove", arguments: "target: name", effect: Effect::Changes },
            ]
        }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        match call.action {
            "memory_write" => self.write(call),
            "memory_remove" => self.remove(call),
            _ => Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        }
    }

    fn subject(&self, _action: &str, target: &str) -> CallSubject {
        checked_name(target).map_or(CallSubject::Other, |name| {
            CallSubject::File(memory_path(name).to_string_lossy().into_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;

    fn memories(folder: &Path) -> Memories {
        Memories::new(Scope::new(folder, folder), SecretScanner::default())
    }

    fn act(memories: &Memories, action: &str, target: &str, text: &str) -> Result<String, String> {
        let (target, text) = (Some(target), Some(text));
        let call = ActionCall { target, text, ..ActionCall::new(action, Timestamp::UNIX_EPOCH) };
        memories.act(&call).map_err(|error| error.to_string())
    }

    #[test]
    fn memories_are_plain_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let memories = memories(&root);
        assert_eq!(memories.render(), None);
        act(&memories, "memory_write", "build", "Use cargo check.\n").unwrap();
        act(&memories, "memory_write", "style", "Short names.").unwrap();
        let file = root.join(".hardpan/memories/build.md");
        assert_eq!(fs::read_to_string(&file).unwrap(), "Use cargo check.\n");
        // A person edits one, and another one comes by a merge.
        fs::write(&file, "Use cargo build.\n").unwrap();
        fs::write(root.join(".hardpan/memories/merged.md"), "From a colleague.\n").unwrap();
        let revision = memories.revision();
        let scope = Scope::new(&root, &root);
        let context = RefreshContext::new(&scope, Timestamp::UNIX_EPOCH);
        memories.refresh(&context);
        assert_ne!(memories.revision(), revision);
        let shown = "[build]\nUse cargo build.\n\n[merged]\nFrom a colleague.\n\n[style]\nShort names.";
        assert_eq!(memories.render().unwrap(), shown);
        let revision = memories.revision();
        memories.refresh(&context);
        assert_eq!(memories.revision(), revision);
        act(&memories, "memory_remove", "merged", "").unwrap();
        assert!(!root.join(".hardpan/memories/merged.md").exists());
        assert_eq!(
            act(&memories, "memory_remove", "merged", "").unwrap_err(),
            "there is no memory merged; there is build, style"
        );
    }

    #[test]
    fn secrets_and_strange_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let memories = memories(folder.path());
        let key = format!("The key is sk-ant-api03-{}", "a1B2c3D4e5".repeat(9));
        let refused = act(&memories, "memory_write", "key", &key).unwrap_err();
        assert!(refused.starts_with("not stored: the text holds what looks like a secret"), "{refused}");
        for name in ["../escape", "a/b", "", "A", ".hidden", &"x".repeat(65)] {
            assert!(act(&memories, "memory_write", name, "text").is_err(), "{name}");
        }
        assert!(act(&memories, "memory_write", "long", &"x".repeat(MAX_BYTES + 1)).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_hostile_folder_is_bounded_and_led_nowhere() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        let below = root.join(MEMORY_FOLDER);
        fs::create_dir_all(&below).unwrap();
        fs::write(outside.path().join("secret.md"), "private words").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.md"), below.join("link.md")).unwrap();
        fs::write(below.join("huge.md"), "x".repeat(MAX_BYTES + 1)).unwrap();
        fs::create_dir_all(below.join("folder.md").join("deep/".repeat(200))).unwrap();
        fs::write(below.join("binary.md"), [0_u8, 159, 146, 150]).unwrap();
        fs::File::create(below.join("gigantic.md")).unwrap().set_len(50 << 20).unwrap();
        // Whoever opens a pipe to read waits for a writer.
        let pipe = std::process::Command::new("mkfifo").arg(below.join("pipe.md")).status().unwrap();
        assert!(pipe.success());
        for number in 0..200 {
            fs::write(below.join(format!("m{number:03}.md")), "text").unwrap();
        }
        // Before the others in the order of names, so that they are not left out for their number.
        for name in ["pipe", "link", "huge", "folder", "gigantic", "binary"] {
            fs::rename(below.join(format!("{name}.md")), below.join(format!("a-{name}.md"))).unwrap();
        }
        let memories = memories(&root);
        let shown = memories.render().unwrap();
        assert!(!shown.contains("private words"), "{shown}");
        assert!(shown.contains("106 more are not read"), "{shown}");
        for name in ["pipe", "link", "huge", "folder", "gigantic", "binary"] {
            assert!(shown.contains(&format!("a-{name} is left out: ")), "{name}: {shown}");
        }
        assert!(shown.len() < 20_000);
        // A folder that leads out of the project is not written through.
        fs::remove_dir_all(root.join(".hardpan")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join(".hardpan")).unwrap();
        assert!(act(&memories, "memory_write", "build", "text").is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}
