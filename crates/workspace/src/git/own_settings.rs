//! [`OwnSettings`]: what git gets of the user's own settings. The repository's settings come on top
//! of them, as usual.

use std::fs;
use std::path::{Path, PathBuf};

use hardpan_prompt::Hash;

/// The settings that git gets, in lower case as git lists them. None of them names a program.
const PASSED: [&str; 22] = [
    "author.email",
    "author.name",
    "commit.cleanup",
    "committer.email",
    "committer.name",
    "core.attributesfile",
    "core.autocrlf",
    "core.checkstat",
    "core.commentchar",
    "core.commentstring",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.hookspath",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.trustctime",
    "i18n.commitencoding",
    "safe.directory",
    "user.email",
    "user.name",
];

/// Settings that Hardpan itself asks for.
const KEPT: [&str; 2] = ["commit.gpgsign", "core.editor"];

/// The user's own settings of git, as far as they are used.
#[derive(Debug, Default)]
pub(super) struct OwnSettings {
    settings: Vec<(String, String)>,
    /// A file for `GIT_CONFIG_GLOBAL`.
    file: Option<PathBuf>,
}

impl OwnSettings {
    /// Takes what is used from `git config --list -z`, and writes it to a file in `cache`.
    /// `config_home` is where git looks for its default files.
    pub fn new(list: &str, home: Option<&Path>, config_home: Option<&Path>, cache: Option<&Path>) -> Self {
        let settings =
            list.split_terminator('\0').map(|setting| setting.split_once('\n').unwrap_or((setting, "true")));
        let settings = settings.filter(|(name, _)| PASSED.contains(name) || KEPT.contains(name));
        // git gets no home folder to look for `~` in.
        let expand = |value: &str| match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
            _ => value.to_owned(),
        };
        let mut settings: Vec<(String, String)> =
            settings.map(|(name, value)| (name.to_owned(), expand(value))).collect();
        for (name, default) in
            [("core.excludesfile", "git/ignore"), ("core.attributesfile", "git/attributes")]
        {
            let default = config_home.map(|folder| folder.join(default)).filter(|file| file.is_file());
            if let Some(file) = default.filter(|_| !settings.iter().any(|(known, _)| known == name)) {
                settings.push((name.to_owned(), file.to_string_lossy().into_owned()));
            }
        }
        let passed = settings.iter().filter(|(name, _)| PASSED.contains(&&**name));
        let text: String = passed.map(|(name, value)| config_lines(name, value)).collect();
        let file = cache.filter(|_| !text.is_empty()).and_then(|cache| write_once(cache, &text));
        OwnSettings { settings, file }
    }

    /// The values of a setting, the one that counts last.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.settings.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// The files that git must be able to read.
    pub fn readable(&self) -> Vec<PathBuf> {
        let named =
            ["core.excludesfile", "core.attributesfile"].into_iter().flat_map(|name| self.values(name));
        self.file.iter().cloned().chain(named.map(PathBuf::from)).collect()
    }

    /// The file for `GIT_CONFIG_GLOBAL`.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// A setting as a file of git has it.
fn config_lines(name: &str, value: &str) -> String {
    let (section, key) = name.split_once('.').unwrap_or((name, ""));
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("[{section}]\n\t{key} = \"{value}\"\n")
}

/// The path of a file in `cache` with this content. Its name is the hash of it, so that a file that
/// is there is never written again.
fn write_once(cache: &Path, text: &str) -> Option<PathBuf> {
    let folder = cache.join("git");
    let file = folder.join(format!("{}.gitconfig", Hash::of(text.as_bytes())));
    if fs::read_to_string(&file).is_ok_and(|there| there == text) {
        return Some(file);
    }
    fs::create_dir_all(&folder).ok()?;
    let beside = folder.join(format!("{}.new", std::process::id()));
    fs::write(&beside, text).ok()?;
    fs::rename(&beside, &file).ok()?;
    Some(file)
}
