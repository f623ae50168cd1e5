//! Finding and reading the skills and templates of the configured folders.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hardpan_files::FileGuard;
use serde::Deserialize;

use super::frontmatter::{self, FrontMatterSplit, one_line};
use super::{
    AgentDefinition, ExpansionFault, ExpansionProblem, Expansions, Folder, FolderContents, FolderOwner,
    Skill, Template, commands, read_file,
};

/// The longest name of a skill, in characters.
pub(super) const MAX_NAME_CHARS: usize = 64;
/// The longest description of a skill, in characters: it is in every prompt.
pub(super) const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// How much of a template's first line serves as its description, in characters.
const MAX_DERIVED_DESCRIPTION_CHARS: usize = 80;
/// How deep folders of commands are searched.
const MAX_COMMAND_DEPTH: usize = 3;

/// See [`Expansions::discover`].
pub fn discover(guard: &FileGuard, folders: &[Folder], reserved: &[&str]) -> Expansions {
    let mut search = Search {
        guard,
        reserved,
        skills: BTreeMap::new(),
        templates: BTreeMap::new(),
        agents: BTreeMap::new(),
        problems: Vec::new(),
        is_home: false,
    };
    for folder in folders {
        search.is_home = matches!(folder.owner, FolderOwner::Home { .. });
        for path in search.named_entries(folder) {
            match folder.contents {
                FolderContents::Skills => search.add_skill(&path, &folder.owner),
                FolderContents::Templates => search.add_template(&path, &folder.owner),
                FolderContents::Agents => search.add_agent(&path, &folder.owner),
                FolderContents::Commands => search.add_command(&folder.path, &path, &folder.owner, 0),
                FolderContents::Rules => search.add_rule(&path, &folder.owner),
            }
        }
    }
    for agent in AgentDefinition::builtin() {
        search.agents.entry(agent.name.clone()).or_insert(agent);
    }
    Expansions {
        skills: search.skills.into_values().collect(),
        templates: search.templates.into_values().collect(),
        agents: search.agents.into_values().collect(),
        problems: search.problems,
    }
}

struct Search<'a> {
    guard: &'a FileGuard,
    reserved: &'a [&'a str],
    skills: BTreeMap<String, Skill>,
    templates: BTreeMap<String, Template>,
    agents: BTreeMap<String, AgentDefinition>,
    problems: Vec<ExpansionProblem>,
    /// Whether the folder is one that the user has for another agent.
    is_home: bool,
}

impl Search<'_> {
    /// The entries of a folder; a path may also be that of one file, or of the folder of one skill.
    fn named_entries(&mut self, folder: &Folder) -> Vec<PathBuf> {
        let is_skill = folder.contents == FolderContents::Skills && folder.path.join("SKILL.md").is_file();
        if is_skill || folder.path.is_file() {
            return vec![folder.path.clone()];
        }
        self.entries(&folder.path)
    }

    /// The entries of a folder, sorted, without hidden files and READMEs. A folder that does not
    /// exist has none.
    fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let read = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = match read {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound && folder.symlink_metadata().is_err() => {
                Vec::new()
            }
            Err(error) => {
                self.report(folder, read_file::read_fault(folder, error));
                Vec::new()
            }
        };
        let is_meant = |name: &OsStr| {
            let name = name.as_encoded_bytes();
            !name.starts_with(b".") && !name.eq_ignore_ascii_case(b"README.md")
        };
        let mut paths: Vec<PathBuf> =
            entries.iter().filter(|entry| is_meant(&entry.file_name())).map(fs::DirEntry::path).collect();
        paths.sort();
        paths
    }

    fn add_skill(&mut self, entry: &Path, owner: &FolderOwner) {
        let path = if entry.is_dir() {
            entry.join("SKILL.md")
        } else if is_markdown(entry) || is_broken_link(entry) {
            entry.to_owned()
        } else {
            return;
        };
        if entry.is_dir() && path.symlink_metadata().is_err() {
            return self.report(entry, ExpansionFault::NoSkillFile);
        }
        let read = read_skill(self.guard, &path, owner);
        self.take_skill(&path, read);
    }

    fn take_skill(&mut self, path: &Path, read: Result<Skill, ExpansionFault>) {
        match read {
            Ok(skill) => match self.skills.get(&skill.name).map(|first| first.path.clone()) {
                Some(first) => self.report_duplicate(path, format!("the skill {}", skill.name), first),
                None => drop(self.skills.insert(skill.name.clone(), skill)),
            },
            Err(fault) => self.report(path, fault),
        }
    }

    fn add_template(&mut self, path: &Path, owner: &FolderOwner) {
        if (!is_markdown(path) || path.is_dir()) && !is_broken_link(path) {
            return;
        }
        let read = read_template(self.guard, path, owner, self.reserved);
        self.take_template(path, read);
    }

    /// Commands of another agent; a folder among them is part of their names.
    fn add_command(&mut self, top: &Path, path: &Path, owner: &FolderOwner, depth: usize) {
        if path.is_dir() {
            if depth < MAX_COMMAND_DEPTH {
                for entry in self.entries(path) {
                    self.add_command(top, &entry, owner, depth + 1);
                }
            }
        } else if is_markdown(path) || is_broken_link(path) {
            let read = commands::read_command(self.guard, top, path, owner, self.reserved);
            self.take_template(path, read);
        }
    }

    fn add_rule(&mut self, path: &Path, owner: &FolderOwner) {
        if path.extension().is_none_or(|end| end != "mdc") {
            return;
        }
        match commands::read_rule(self.guard, path, owner) {
            Ok(None) => {}
            Ok(Some(skill)) => self.take_skill(path, Ok(skill)),
            Err(fault) => self.report(path, fault),
        }
    }

    fn take_template(&mut self, path: &Path, read: Result<Template, ExpansionFault>) {
        match read {
            Ok(template) => match self.templates.get(&template.name).map(|first| first.path.clone()) {
                Some(first) => self.report_duplicate(path, format!("the template {}", template.name), first),
                None => drop(self.templates.insert(template.name.clone(), template)),
            },
            Err(fault) => self.report(path, fault),
        }
    }

    fn add_agent(&mut self, path: &Path, owner: &FolderOwner) {
        if (!is_markdown(path) || path.is_dir()) && !is_broken_link(path) {
            return;
        }
        match read_agent(self.guard, path, owner) {
            Ok(agent) => match self.agents.get(&agent.name).and_then(|first| first.path.clone()) {
                Some(first) => self.report_duplicate(path, format!("the agent {}", agent.name), first),
                None => drop(self.agents.insert(agent.name.clone(), agent)),
            },
            Err(fault) => self.report(path, fault),
        }
    }

    /// Reports a file whose name is already taken, unless both paths lead to the same file.
    fn report_duplicate(&mut self, path: &Path, what: String, first: PathBuf) {
        let real = |path: &Path| path.canonicalize().ok();
        if real(path) != real(&first) {
            self.report(path, ExpansionFault::Duplicate { what, first });
        }
    }

    fn report(&mut self, path: &Path, fault: ExpansionFault) {
        let is_taken = matches!(fault, ExpansionFault::Duplicate { .. } | ExpansionFault::Reserved { .. });
        if self.is_home && is_taken {
            return;
        }
        self.problems.push(ExpansionProblem { path: path.to_owned(), fault });
    }
}

/// The front matter of a skill. Fields that other agents write there are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct SkillMatter {
    name: Option<String>,
    description: Option<String>,
    disable_model_invocation: bool,
}

/// The front matter of a template; every field is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct TemplateMatter {
    description: Option<String>,
    argument_hint: Option<String>,
}

fn read_skill(guard: &FileGuard, path: &Path, owner: &FolderOwner) -> Result<Skill, ExpansionFault> {
    let text = read_file::read_text(guard, path, owner)?;
    let FrontMatterSplit { yaml, body } = frontmatter::split(&text)?;
    let Some(yaml) = yaml else {
        return Err(ExpansionFault::NoFrontMatter);
    };
    let matter: SkillMatter = frontmatter::parse(yaml)?;
    let name = matter.name.ok_or(ExpansionFault::NoName)?;
    check_skill_name(&name)?;
    let description = one_line(&matter.description.unwrap_or_default());
    if description.is_empty() {
        return Err(ExpansionFault::NoDescription);
    }
    let characters = description.chars().count();
    if characters > MAX_DESCRIPTION_CHARS {
        return Err(ExpansionFault::LongDescription { characters });
    }
    if body.is_empty() {
        return Err(ExpansionFault::NoBody);
    }
    Ok(Skill {
        name,
        description,
        location: location(path, owner),
        path: path.to_owned(),
        body: body.to_owned(),
        listed: is_listed(owner) && !matter.disable_model_invocation,
        is_kept_back: !is_listed(owner) && !matter.disable_model_invocation,
    })
}

fn read_agent(
    guard: &FileGuard,
    path: &Path,
    owner: &FolderOwner,
) -> Result<AgentDefinition, ExpansionFault> {
    let text = read_file::read_text(guard, path, owner)?;
    let agent = AgentDefinition::parse(template_name(path)?, Some(path), &text)?;
    Ok(AgentDefinition { listed: is_listed(owner), ..agent })
}

/// Whether the model is told of skills and agents of an owner.
pub(super) fn is_listed(owner: &FolderOwner) -> bool {
    !matches!(owner, FolderOwner::Home { listed: false })
}

pub(super) fn check_skill_name(name: &str) -> Result<(), ExpansionFault> {
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    let is_allowed = |c: char| c == '-' || c.is_ascii_lowercase() || c.is_ascii_digit();
    if fits && name.chars().all(is_allowed) {
        return Ok(());
    }
    Err(ExpansionFault::SkillName { name: name.to_owned() })
}

fn read_template(
    guard: &FileGuard,
    path: &Path,
    owner: &FolderOwner,
    reserved: &[&str],
) -> Result<Template, ExpansionFault> {
    let name = template_name(path)?;
    if reserved.contains(&name) {
        return Err(ExpansionFault::Reserved { name: name.to_owned() });
    }
    let text = read_file::read_text(guard, path, owner)?;
    let FrontMatterSplit { yaml, body } = frontmatter::split(&text)?;
    let matter: TemplateMatter = frontmatter::parse(yaml.unwrap_or_default())?;
    let Some(first) = body.lines().next() else {
        return Err(ExpansionFault::EmptyTemplate);
    };
    let described = matter.description.map(|text| one_line(&text)).filter(|text| !text.is_empty());
    Ok(Template {
        name: name.to_owned(),
        description: described.unwrap_or_else(|| shortened(first.trim_start_matches('#'))),
        argument_hint: matter.argument_hint.map(|text| one_line(&text)).filter(|text| !text.is_empty()),
        path: path.to_owned(),
        body: body.to_owned(),
        listed: is_listed(owner),
        notes: Vec::new(),
    })
}

/// The name of a template: its file's name, if that can be typed after a slash as one word.
pub(super) fn template_name(path: &Path) -> Result<&str, ExpansionFault> {
    let name = path.file_stem().and_then(OsStr::to_str);
    let is_allowed = |c: char| matches!(c, '-' | '_' | '.') || c.is_alphanumeric();
    name.filter(|name| name.chars().all(is_allowed)).ok_or(ExpansionFault::TemplateName)
}

pub(super) fn shortened(line: &str) -> String {
    let line = one_line(line);
    match line.char_indices().nth(MAX_DERIVED_DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// How a prompt refers to a file. A project's prompt must not depend on where the project lies, so
/// its paths are relative.
pub(super) fn location(path: &Path, owner: &FolderOwner) -> String {
    let shown = match owner {
        FolderOwner::User | FolderOwner::Home { .. } => path,
        FolderOwner::Project { root, .. } => path.strip_prefix(root).unwrap_or(path),
    };
    shown.display().to_string()
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Whether a path is a link that leads nowhere or in circles. Such links are reported, because they
/// may have been meant as skills.
fn is_broken_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink()) && path.metadata().is_err()
}
