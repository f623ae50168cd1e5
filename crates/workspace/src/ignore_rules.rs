//! [`IgnoreRules`]: which files git would ignore. The rules are read here, not by the library that
//! matches them: a `.gitignore` may be a pipe, a device, a link to anywhere, or endless.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hardpan_files::{FileGuard, OpenFolder, UnreadableReason, read_small_file};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::SkippedPath;
use crate::glob::check_glob;

/// The longest file of rules that is used, in bytes. Those of the largest projects have 30 KB.
const MAX_RULE_BYTES: u64 = 1024 * 1024;
/// The longest of git's own files that is looked at, in bytes.
const MAX_GIT_BYTES: u64 = 1024 * 1024;

/// The rules that hold in one folder.
pub(crate) struct FolderRules {
    ignore: Gitignore,
    git_ignore: Gitignore,
    exclude: Gitignore,
    is_repository: bool,
}

/// Where rules are read from.
pub(crate) struct RuleReader<'a> {
    pub root: &'a OpenFolder,
    pub guard: &'a FileGuard,
}

impl RuleReader<'_> {
    /// Reads the rules of a folder, named relative to the root. `has_name` says whether a name is in
    /// the folder. What cannot be used is reported.
    pub fn read_folder(
        &self,
        folder: &Path,
        has_name: impl Fn(&str) -> bool,
        problems: &mut Vec<SkippedPath>,
    ) -> FolderRules {
        let mut rules = |name: &str| {
            let path = folder.join(name);
            match has_name(name) {
                true => self.compile(folder, &path, self.read(&path), problems),
                false => Gitignore::empty(),
            }
        };
        let (ignore, git_ignore) = (rules(".ignore"), rules(".gitignore"));
        let is_repository = has_name(".git");
        let exclude = if is_repository { self.read_exclude(folder, problems) } else { Gitignore::empty() };
        FolderRules { ignore, git_ignore, exclude, is_repository }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, UnreadableReason> {
        let file = self.root.open_file(path)?;
        self.guard.judge(file, &self.root.path().join(path))?.read_all(MAX_RULE_BYTES)
    }

    /// The rules of `.git/info/exclude`. In a linked worktree they are in the main repository.
    fn read_exclude(&self, folder: &Path, problems: &mut Vec<SkippedPath>) -> Gitignore {
        let path = folder.join(".git/info/exclude");
        let content = match self.read(&path) {
            Err(UnreadableReason::Missing) => match self.linked_git_folder(folder) {
                Some(git) => read_small_file(&git.join("info/exclude"), MAX_RULE_BYTES),
                None => return Gitignore::empty(),
            },
            content => content,
        };
        self.compile(folder, &path, content, problems)
    }

    /// The folder that the `.git` file of a linked worktree leads to.
    fn linked_git_folder(&self, folder: &Path) -> Option<PathBuf> {
        let line = |bytes: Vec<u8>| Some(String::from_utf8(bytes).ok()?.lines().next()?.to_owned());
        let file = self.root.open_file(&folder.join(".git")).ok()?;
        let named = line(file.read_all(MAX_GIT_BYTES).ok()?)?;
        let git = self.root.path().join(folder).join(named.strip_prefix("gitdir: ")?);
        let common = line(read_small_file(&git.join("commondir"), MAX_GIT_BYTES).ok()?)?;
        Some(git.join(common))
    }

    fn compile(
        &self,
        folder: &Path,
        path: &Path,
        content: Result<Vec<u8>, UnreadableReason>,
        problems: &mut Vec<SkippedPath>,
    ) -> Gitignore {
        let mut report =
            |reason: String| problems.push(SkippedPath::new(&self.root.path().join(path), reason));
        match content {
            Ok(bytes) => compile_rules(&self.root.path().join(folder), &bytes, &mut report),
            // It was removed meanwhile.
            Err(UnreadableReason::Missing) if self.root.path().join(path).symlink_metadata().is_err() => {
                Gitignore::empty()
            }
            Err(reason) => {
                report(format!("its rules are not used: it {reason}"));
                Gitignore::empty()
            }
        }
    }
}

/// Compiles the lines of a file of rules; what cannot be used is reported and left out.
pub fn compile_rules(folder: &Path, bytes: &[u8], report: &mut dyn FnMut(String)) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut first_problem = None;
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let added = match std::str::from_utf8(line) {
            Ok(line) => match check_glob(line) {
                Ok(()) => builder.add_line(None, line).map(drop).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            },
            Err(_) => Err("it is not UTF-8".into()),
        };
        if let Err(problem) = added {
            first_problem.get_or_insert_with(|| format!("line {number}: {problem}"));
        }
    }
    first_problem.into_iter().for_each(&mut *report);
    builder.build().unwrap_or_else(|error| {
        report(format!("its rules are not used: {error}"));
        Gitignore::empty()
    })
}

/// All rules that hold for a path: those of the folders above it, the innermost last, and the
/// user's own.
pub(crate) fn is_ignored(folders: &[&FolderRules], global: &Gitignore, path: &Path, is_dir: bool) -> bool {
    let decide = |found: Match<&ignore::gitignore::Glob>| match found {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    };
    let first = |mut rules: &mut dyn Iterator<Item = &Gitignore>| {
        (&mut rules).find_map(|rules| decide(rules.matched(path, is_dir)))
    };
    // The rules of git end at the innermost repository.
    let repository = folders.iter().rposition(|folder| folder.is_repository).unwrap_or(0);
    let inner = &folders[repository.min(folders.len())..];
    first(&mut folders.iter().rev().map(|folder| &folder.ignore))
        .or_else(|| first(&mut inner.iter().rev().map(|folder| &folder.git_ignore)))
        .or_else(|| first(&mut inner.iter().rev().map(|folder| &folder.exclude)))
        .or_else(|| first(&mut std::iter::once(global)))
        .unwrap_or(false)
}

/// The user's rules for all repositories (`core.excludesFile`).
pub(crate) fn global_rules(root: &Path) -> Gitignore {
    let content = global_rules_path().and_then(|path| read_small_file(&path, MAX_RULE_BYTES).ok());
    content.map_or_else(Gitignore::empty, |bytes| compile_rules(root, &bytes, &mut |_| ()))
}

fn global_rules_path() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let files = [
        variable("GIT_CONFIG_GLOBAL"),
        home.as_ref().map(|home| home.join(".gitconfig")),
        config.as_ref().map(|config| config.join("git/config")),
        Some(variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into())),
    ];
    let named = files
        .into_iter()
        .flatten()
        .find_map(|file| excludes_file(&read_small_file(&file, MAX_GIT_BYTES).ok()?, home.as_deref()));
    named.or_else(|| Some(config?.join("git/ignore")))
}

/// The value of `excludesFile` in a configuration of git.
fn excludes_file(config: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let value = config.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = std::str::from_utf8(line).ok()?.split_once('=')?;
        key.trim().eq_ignore_ascii_case("excludesfile").then(|| value.trim().trim_matches('"').trim())
    })?;
    match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(PathBuf::from(OsStr::new(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_s_rules_are_where_git_looks_for_them() {
        let home = Path::new("/home/me");
        let config = b"[user]\n\tname = a\n[core]\n\texcludesFile = \"~/.ignored\"\n";
        assert_eq!(excludes_file(config, Some(home)), Some("/home/me/.ignored".into()));
        assert_eq!(excludes_file(b"ExcludesFile=/etc/x\r\n", None), Some("/etc/x".into()));
        assert_eq!(excludes_file(b"[core]\n", Some(home)), None);
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_reported_and_the_others_hold() {
        let mut problems = Vec::new();
        let deep = "{a,".repeat(100_000);
        let text = format!("\u{feff}*.log\r\n{deep}\n\n# x\nb/\n");
        let rules = compile_rules(Path::new("/p"), text.as_bytes(), &mut |problem| problems.push(problem));
        assert!(rules.matched("/p/a/x.log", false).is_ignore());
        assert!(rules.matched("/p/b", true).is_ignore());
        assert!(!rules.matched("/p/c", false).is_ignore());
        assert_eq!(problems, ["line 2: the pattern has more than 4096 bytes: use a shorter one"]);
    }
}
