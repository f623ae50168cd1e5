//! Commands of Claude Code as templates, and rules of Cursor as skills.

use std::path::Path;

use hardpan_files::FileGuard;
use hardpan_workspace::{CursorRule, FrontMatter, RuleScope};

use super::discover::{MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, is_listed, location, shortened, template_name};
use super::frontmatter::one_line;
use super::{ExpansionFault, FolderOwner, Skill, Template, read_file};

/// Reads a command: `frontend/component.md` below the folder `top` is `/frontend:component`.
pub(super) fn read_command(
    guard: &FileGuard,
    top: &Path,
    path: &Path,
    owner: &FolderOwner,
    reserved: &[&str],
) -> Result<Template, ExpansionFault> {
    let mut name = template_name(path)?.to_owned();
    let folders = path.parent().and_then(|folder| folder.strip_prefix(top).ok()).unwrap_or(Path::new(""));
    for folder in folders.iter().rev() {
        name = format!("{}:{name}", template_name(Path::new(folder))?);
    }
    if reserved.contains(&name.as_str()) {
        return Err(ExpansionFault::Reserved { name });
    }
    let text = read_file::read_text(guard, path, owner)?;
    let matter = FrontMatter::parse(&text);
    let Some(first) = matter.body.lines().next() else { return Err(ExpansionFault::EmptyTemplate) };
    let field = |key| matter.get(key).map(one_line).filter(|text| !text.is_empty());
    let mut notes = Vec::new();
    if field("allowed-tools").is_some() {
        notes.push("its `allowed-tools` are ignored: your own rules decide what tools may do".to_owned());
    }
    if let Some(command) = shell_command(matter.body) {
        notes.push(format!(
            "!`{command}` is not run, the model reads it as text: run what you want it to see with `!` first"
        ));
    }
    Ok(Template {
        description: field("description").unwrap_or_else(|| shortened(first.trim_start_matches('#'))),
        argument_hint: field("argument-hint"),
        path: path.to_owned(),
        body: matter.body.to_owned(),
        listed: is_listed(owner),
        name,
        notes,
    })
}

/// The first command that another agent would run to fill in its output: `` !`git status` ``.
fn shell_command(body: &str) -> Option<String> {
    let after = body.split_once("!`")?.1;
    let command = after.split(['`', '\n']).next()?.trim();
    (!command.is_empty()).then(|| shortened(command))
}

/// Reads a rule. None if it is no skill, because it applies always or by the files that are open.
pub(super) fn read_rule(
    guard: &FileGuard,
    path: &Path,
    owner: &FolderOwner,
) -> Result<Option<Skill>, ExpansionFault> {
    let text = read_file::read_text(guard, path, owner)?;
    let shown = location(path, owner);
    let rule = CursorRule::parse(&shown, &text);
    let (description, listed) = match rule.scope {
        RuleScope::Always | RuleScope::Files(_) => return Ok(None),
        RuleScope::Described(description) => (one_line(&description), true),
        RuleScope::Named => (shortened(rule.body.lines().next().unwrap_or_default()), false),
    };
    let characters = description.chars().count();
    if characters > MAX_DESCRIPTION_CHARS {
        return Err(ExpansionFault::LongDescription { characters });
    }
    if rule.body.is_empty() {
        return Ok(None);
    }
    let name = skill_name(template_name(path)?);
    Ok(Some(Skill {
        name,
        description,
        location: shown,
        path: path.to_owned(),
        body: rule.body,
        listed,
        is_kept_back: false,
    }))
}

/// A name that a skill can have: `My_Rule` is `my-rule`.
fn skill_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::super::{Expansions, Folder, ForeignFolders, UsedExpansion};
    use super::*;

    fn found(files: &[(&str, &str)], foreign: ForeignFolders) -> (tempfile::TempDir, Expansions) {
        let place =
            tempfile::Builder::new().tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
        let mut trusted = BTreeMap::new();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            trusted.insert(PathBuf::from(name), text.as_bytes().to_vec());
        }
        let folders = Folder::defaults(None, None, Some((place.path(), &Arc::new(trusted))), foreign);
        let found = Expansions::discover(&FileGuard::for_folder(place.path()), &folders, &["help"]);
        (place, found)
    }

    #[test]
    fn commands_of_claude_code_are_templates() {
        let command = "---\ndescription: Fixes: an issue\nargument-hint: [issue] [crate]\nallowed-tools: Bash(git:*)\nmodel: opus\n---\nFix $1 in $ARGUMENTS.\nStatus: !`git status`\n";
        let files = [
            (".claude/commands/fix.md", command),
            (".claude/commands/web/page.md", "# A page\nMake $1."),
            (".claude/commands/help.md", "x"),
        ];
        let (_place, found) = found(&files, ForeignFolders::ALL);
        let names: Vec<&str> = found.templates.iter().map(|template| template.name.as_str()).collect();
        assert_eq!(names, ["fix", "web:page"]);
        assert_eq!(found.templates[0].description, "Fixes: an issue");
        assert_eq!(found.templates[0].argument_hint.as_deref(), Some("[issue] [crate]"));
        assert_eq!(found.templates[1].description, "A page");
        assert_eq!(found.problems.len(), 1);
        let expanded = found.expand("/fix 12 cli");
        assert_eq!(expanded.text, "Fix 12 in 12 cli.\nStatus: !`git status`");
        assert_eq!(expanded.used, Some(UsedExpansion::Template("fix".into())));
        let notes = [
            "/fix: its `allowed-tools` are ignored: your own rules decide what tools may do",
            "/fix: !`git status` is not run, the model reads it as text: run what you want it to see with `!` first",
        ];
        assert_eq!(expanded.notes, notes);
        assert_eq!(found.expand("/web:page home").text, "# A page\nMake home.");
    }

    #[test]
    fn described_rules_of_cursor_are_skills() {
        let files = [
            (
                ".cursor/rules/Api_Style.mdc",
                "---\ndescription: How the API looks\nglobs:\nalwaysApply: false\n---\nUse nouns.\n",
            ),
            (".cursor/rules/always.mdc", "---\nalwaysApply: true\n---\nx"),
            (".cursor/rules/files.mdc", "---\nglobs: *.rs\n---\nx"),
            (".cursor/rules/named.mdc", "By hand.\n"),
        ];
        let (_place, all) = found(&files, ForeignFolders::ALL);
        let names: Vec<(&str, bool)> =
            all.skills.iter().map(|skill| (skill.name.as_str(), skill.listed)).collect();
        assert_eq!(names, [("api-style", true), ("named", false)]);
        assert_eq!(all.skills[0].location, ".cursor/rules/Api_Style.mdc");
        let (_place, none) = found(&files, ForeignFolders { cursor_rules: false, ..ForeignFolders::ALL });
        assert!(none.skills.is_empty() && none.problems.is_empty());
    }
}
