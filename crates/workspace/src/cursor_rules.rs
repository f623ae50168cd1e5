//! [`CursorRule`]: a file of `.cursor/rules`, which says itself when it applies.

use std::path::Path;

use hardpan_files::FileGuard;

use crate::{FrontMatter, TEXT_LIMIT, compile_glob, display_path, folder_names, read_open_text};

/// Where they are, below the root of a project.
pub const CURSOR_RULES_FOLDER: &str = ".cursor/rules";

/// The most files of the folder that are read.
const MAX_RULES: usize = 200;

/// When a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// Always: it is an instruction like any other.
    Always,
    /// When a file that one of these globs matches is in the conversation.
    Files(Vec<String>),
    /// When the model decides by this description that it does.
    Described(String),
    /// When the person names it.
    Named,
}

/// A rule of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorRule {
    /// Path relative to the root, forward slashes.
    pub path: String,
    /// When it applies.
    pub scope: RuleScope,
    /// The text below the front matter.
    pub body: String,
}

impl CursorRule {
    /// Reads the text of a rule.
    pub fn parse(path: &str, text: &str) -> Self {
        let matter = FrontMatter::parse(text);
        let globs: Vec<String> = matter.list("globs").into_iter().map(str::to_owned).collect();
        let scope = match matter.get("description") {
            _ if matter.get("alwaysApply") == Some("true") => RuleScope::Always,
            _ if !globs.is_empty() => RuleScope::Files(globs),
            Some(description) => RuleScope::Described(description.to_owned()),
            None => RuleScope::Named,
        };
        CursorRule { path: path.to_owned(), scope, body: matter.body.to_owned() }
    }

    /// Whether it applies to one of these files, named relative to the root.
    pub fn applies_to(&self, files: &[&str]) -> bool {
        let RuleScope::Files(globs) = &self.scope else { return false };
        globs.iter().any(|glob| {
            // As other tools take it: a pattern without a folder is about names anywhere.
            let anywhere = if glob.contains('/') { glob.clone() } else { format!("**/{glob}") };
            let pattern = anywhere.trim_start_matches("./").trim_start_matches('/');
            compile_glob(pattern).is_ok_and(|glob| files.iter().any(|file| glob.is_match(file)))
        })
    }
}

/// The rules of the project at `root`, sorted by path. Files that cannot be read, or that lead out of
/// the project, are left out.
pub fn read_cursor_rules(guard: &FileGuard, root: &Path) -> Vec<CursorRule> {
    let folder = root.join(CURSOR_RULES_FOLDER);
    let Ok(names) =
        guard.open_folder(&folder).map_err(drop).and_then(|open| folder_names(&open).map_err(drop))
    else {
        return Vec::new();
    };
    let mut names: Vec<_> = names.take(MAX_RULES).map(|(name, _)| name).collect();
    names.sort();
    let is_rule = |name: &&std::ffi::OsString| Path::new(name).extension().is_some_and(|end| end == "mdc");
    let read = |name: &std::ffi::OsString| {
        let path = folder.join(name);
        let file = guard.open(&path).ok()?;
        let text = read_open_text(&file, TEXT_LIMIT).ok()?.text;
        Some(CursorRule::parse(&display_path(root, &path), &text))
    };
    names.iter().filter(is_rule).filter_map(read).filter(|rule| !rule.body.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_when_it_applies() {
        let scope = |text: &str| CursorRule::parse("r.mdc", text).scope;
        let files = |globs: &[&str]| RuleScope::Files(globs.iter().map(|&glob| glob.into()).collect());
        assert_eq!(scope("---\nalwaysApply: true\nglobs: *.rs\n---\nx"), RuleScope::Always);
        assert_eq!(scope("---\nglobs: *.rs,src/*.ts\ndescription: d\n---\nx"), files(&["*.rs", "src/*.ts"]));
        assert_eq!(scope("---\ndescription: d\nglobs:\n---\nx"), RuleScope::Described("d".into()));
        assert_eq!(scope("x"), RuleScope::Named);
    }

    #[test]
    fn globs_match_as_other_tools_match_them() {
        let applies = |glob: &str, file: &str| {
            let rule = CursorRule::parse("r.mdc", &format!("---\nglobs: {glob}\n---\nx"));
            rule.applies_to(&[file])
        };
        assert!(applies("*.ts", "src/deep/a.ts"));
        assert!(applies("src/**/*.ts", "src/a.ts"));
        assert!(applies("*.{ts,tsx}", "a.tsx"));
        assert!(applies("/src/*.ts", "src/a.ts"));
        assert!(!applies("src/*.ts", "src/deep/a.ts"));
        assert!(!applies("[", "["));
    }
}
