//! [`Expansions`]: skills and templates, texts that users keep in files and call by name.
//!
//! `/skill:name args` becomes the skill's text in a `<skill>` element, followed by the arguments as
//! typed; `/name args` becomes the template's text with the arguments filled in. Both are plain
//! substitutions, made once: what an argument contains is never expanded.
//! `docs/skills-and-templates.md` describes the file format.
//!
//! ```
//! use hardpan_files::FileGuard;
//! use hardpan_agent::expand::{Expansions, Folder, FolderContents, FolderOwner};
//!
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().to_path_buf();
//! std::fs::write(path.join("fix.md"), "Fix $1, then run the tests of ${@:2}.")?;
//!
//! let folders = [Folder { path, contents: FolderContents::Templates, owner: FolderOwner::User }];
//! let known = Expansions::discover(&FileGuard::default(), &folders, &["help", "quit"]);
//! assert_eq!(
//!     known.expand("/fix '#12 and $2' parser").text,
//!     "Fix #12 and $2, then run the tests of parser."
//! );
//! assert_eq!(known.expand("/fxi").text, "/fxi");
//! assert_eq!(known.nearest("fxi", &["help"]), ["fix"]);
//! # Ok::<(), std::io::Error>(())
//! ```

mod agent_definition; // AgentDefinition: another system prompt, with its tools and its model
mod arguments; // splitting a call's arguments, and filling them into a template
mod commands; // commands and rules that were written for other agents
mod discover; // finding and reading skills and templates
mod frontmatter; // the YAML at the top of a file
mod problem; // ExpansionProblem: a file that was skipped, and why
mod read_file; // reading one file safely
mod skill; // Skill: what the model reads of it
mod template; // Template: a prompt with placeholders
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_files::FileGuard;
use hardpan_workspace::CURSOR_RULES_FOLDER;

pub use agent_definition::{AgentDefinition, DEFAULT_AGENT, TaskBudget};
pub use problem::{ExpansionFault, ExpansionProblem};
pub use skill::{Skill, within_element};
pub use template::Template;

/// Prefix of a skill's name in a call: `/skill:name`.
const SKILL_PREFIX: &str = "skill:";

/// The folder of a project's commands for Claude Code, below its root.
pub const CLAUDE_COMMANDS_FOLDER: &str = ".claude/commands";

/// A folder that is searched for skills, templates or agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Path of the folder; it need not exist.
    pub path: PathBuf,
    /// What the folder's files are.
    pub contents: FolderContents,
    /// Who put the files there, which decides where links may lead.
    pub owner: FolderOwner,
}

/// What the files of a folder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderContents {
    /// One folder with a `SKILL.md`, or one Markdown file, per skill.
    Skills,
    /// One Markdown file per template.
    Templates,
    /// One Markdown file per agent.
    Agents,
    /// One Markdown file per command of another agent, in folders that are part of the name: templates
    /// here.
    Commands,
    /// Rules of Cursor: those that the model chooses by their description are skills here.
    Rules,
}

/// Who put the files of a folder there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderOwner {
    /// The user: links may lead anywhere.
    User,
    /// The user, for another agent: as the user's own, but nobody is told of names that are taken, since
    /// the other agent does not know ours.
    Home {
        /// Whether the model is told of what is there.
        listed: bool,
    },
    /// The project, which the user trusts. Its files must lie below its root, links followed: a
    /// project must not decide which of the user's other files are sent to a provider.
    Project {
        /// The project's root. Paths below it are shown relative to it.
        root: PathBuf,
        /// What the user trusts. What the files say by now does not count.
        files: TrustedFiles,
    },
}

/// The content of the files that the user trusts, by path relative to the project's root.
pub type TrustedFiles = Arc<BTreeMap<PathBuf, Vec<u8>>>;

/// Which folders that were made for other agents are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFolders {
    /// `.agents/skills`.
    pub agents_skills: bool,
    /// `.claude/skills`.
    pub claude_skills: bool,
    /// `.claude/commands`.
    pub claude_commands: bool,
    /// `.cursor/rules`.
    pub cursor_rules: bool,
    /// `~/.claude/commands`.
    pub home_claude_commands: bool,
    /// `~/.codex/prompts`.
    pub home_codex_prompts: bool,
    /// `~/.claude/skills`.
    pub home_claude_skills: bool,
    /// `~/.agents/skills`.
    pub home_agents_skills: bool,
    /// `~/.claude/agents`.
    pub home_claude_agents: bool,
    /// Whether the model is told of the skills and agents of the home folder. Otherwise they are there for
    /// the user to call: their descriptions would be in every prompt.
    pub home_listed: bool,
}

impl ForeignFolders {
    /// All of them.
    pub const ALL: ForeignFolders = ForeignFolders {
        agents_skills: true,
        claude_skills: true,
        claude_commands: true,
        cursor_rules: true,
        home_claude_commands: true,
        home_codex_prompts: true,
        home_claude_skills: true,
        home_agents_skills: true,
        home_claude_agents: true,
        home_listed: true,
    };

    /// The folders of skills in the home folder.
    pub fn home_skills(&self) -> impl Iterator<Item = &'static str> + use<> {
        let folders =
            [(".claude/skills", self.home_claude_skills), (".agents/skills", self.home_agents_skills)];
        folders.into_iter().filter(|(_, is_used)| *is_used).map(|(folder, _)| folder)
    }
}

impl Folder {
    /// The default folders, in order of precedence: the user's in `config`, those that the user has for
    /// other agents in `home`, then those of the project at the root `trusted`. The user's come first, so that no project changes the meaning
    /// of a name that the user has given.
    ///
    /// Pass `None` as `trusted` for a project that the user has not trusted.
    pub fn defaults(
        config: Option<&Path>,
        home: Option<&Path>,
        trusted: Option<(&Path, &TrustedFiles)>,
        foreign: ForeignFolders,
    ) -> Vec<Folder> {
        let user = |below: &'static str, contents| {
            config.map(|config| Folder { path: config.join(below), contents, owner: FolderOwner::User })
        };
        let owner = FolderOwner::Home { listed: foreign.home_listed };
        let home = |below: &str, contents| {
            home.map(|home| Folder { path: home.join(below), contents, owner: owner.clone() })
        };
        let home_skills = foreign.home_skills().filter_map(|below| home(below, FolderContents::Skills));
        let project = |below: &'static str, contents| {
            trusted.map(|(root, files)| Folder {
                path: root.join(below),
                contents,
                owner: FolderOwner::Project { root: root.to_path_buf(), files: files.clone() },
            })
        };
        let user_skills = user("skills", FolderContents::Skills).into_iter().chain(home_skills);
        let folders = [
            project(".hardpan/skills", FolderContents::Skills),
            project(".agents/skills", FolderContents::Skills).filter(|_| foreign.agents_skills),
            project(".claude/skills", FolderContents::Skills).filter(|_| foreign.claude_skills),
            project(CURSOR_RULES_FOLDER, FolderContents::Rules).filter(|_| foreign.cursor_rules),
            user("templates", FolderContents::Templates),
            home(".claude/commands", FolderContents::Commands).filter(|_| foreign.home_claude_commands),
            home(".codex/prompts", FolderContents::Commands).filter(|_| foreign.home_codex_prompts),
            project(".hardpan/templates", FolderContents::Templates),
            project(CLAUDE_COMMANDS_FOLDER, FolderContents::Commands).filter(|_| foreign.claude_commands),
            user("agents", FolderContents::Agents),
            home(".claude/agents", FolderContents::Agents).filter(|_| foreign.home_claude_agents),
            project(".hardpan/agents", FolderContents::Agents),
            project(".claude/agents", FolderContents::Agents),
        ];
        user_skills.chain(folders.into_iter().flatten()).collect()
    }
}

/// Every skill, template and agent that can be called, and what was skipped.
#[derive(Clone, Debug, Default)]
pub struct Expansions {
    /// The skills, sorted by name.
    pub skills: Vec<Skill>,
    /// The templates, sorted by name.
    pub templates: Vec<Template>,
    /// The agents, sorted by name: the built-in ones, and those of files, which come before built-in
    /// ones of the same name.
    pub agents: Vec<AgentDefinition>,
    /// Files that were skipped, in the order they were found.
    pub problems: Vec<ExpansionProblem>,
}

/// What an [`ExpansionName`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpansionKind {
    /// A prompt template.
    Template,
    /// A skill.
    Skill,
}

/// A skill or template that can be called, for completion and `/help`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpansionName {
    /// Whether it is a skill or a template.
    pub kind: ExpansionKind,
    /// What is typed after the slash: `review`, `skill:sort`.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// Which arguments it takes, if its file says so.
    pub argument_hint: Option<String>,
}

/// An input's text after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text that goes to the model.
    pub text: String,
    /// What was called; `None` if the text is unchanged.
    pub used: Option<UsedExpansion>,
    /// Notes for the user: unused arguments, an unclosed quote.
    pub notes: Vec<String>,
}

/// The skill or template that an input called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsedExpansion {
    /// The skill of this name.
    Skill(String),
    /// The template of this name.
    Template(String),
}

impl Expansions {
    /// These, and those of `more` whose names are free.
    pub(crate) fn with(mut self, more: Expansions) -> Self {
        let is_free = |skill: &Skill| !self.skills.iter().any(|known| known.name == skill.name);
        let skills: Vec<Skill> = more.skills.into_iter().filter(is_free).collect();
        self.skills.extend(skills);
        self.skills.sort_by(|a, b| a.name.cmp(&b.name));
        let is_free = |template: &Template| !self.templates.iter().any(|known| known.name == template.name);
        let templates: Vec<Template> = more.templates.into_iter().filter(is_free).collect();
        self.templates.extend(templates);
        self.templates.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }

    /// Reads the folders; files of a project are opened by its guard. Of several skills (or templates) with the same name the first is used,
    /// and the others are reported. A template cannot have one of the `reserved` names: those of
    /// the built-in commands, without the slash.
    pub fn discover(guard: &FileGuard, folders: &[Folder], reserved: &[&str]) -> Expansions {
        discover::discover(guard, folders, reserved)
    }

    /// Expands a call at the very start of the text. Any other text, and a call of an unknown name,
    /// comes back unchanged.
    pub fn expand(&self, text: &str) -> ExpandedText {
        let Some((name, rest)) = split_call(text) else { return ExpandedText::unchanged(text) };
        if let Some(skill) = name.strip_prefix(SKILL_PREFIX).and_then(|name| self.skill(name)) {
            return skill.expand(rest);
        }
        match self.template(name) {
            Some(template) => template.expand(rest),
            None => ExpandedText::unchanged(text),
        }
    }

    /// Whether this name can be called. It is given without the slash: `review`, `skill:sort`.
    pub fn is_known(&self, name: &str) -> bool {
        match name.strip_prefix(SKILL_PREFIX) {
            Some(skill) => self.skill(skill).is_some(),
            None => self.template(name).is_some(),
        }
    }

    /// Every name that can be called, templates first.
    pub fn names(&self) -> Vec<ExpansionName> {
        let templates = self.templates.iter().map(|template| ExpansionName {
            kind: ExpansionKind::Template,
            name: template.name.clone(),
            description: template.description.clone(),
            argument_hint: template.argument_hint.clone(),
        });
        let skills = self.skills.iter().map(|skill| ExpansionName {
            kind: ExpansionKind::Skill,
            name: format!("{SKILL_PREFIX}{}", skill.name),
            description: skill.description.clone(),
            argument_hint: None,
        });
        templates.chain(skills).collect()
    }

    /// Up to three names, of these and of the built-in commands, that a misspelt `name` probably
    /// meant.
    pub fn nearest(&self, name: &str, builtin: &[&str]) -> Vec<String> {
        let names = self.names();
        let known = names.iter().map(|known| known.name.as_str()).chain(builtin.iter().copied());
        hardpan_models::nearest(name, known)
    }

    /// The file of what can be called by a name.
    pub fn file_of(&self, name: &str) -> Option<&Path> {
        match name.strip_prefix(SKILL_PREFIX) {
            Some(skill) => self.skill(skill).map(|skill| &*skill.path),
            None => self.templates.iter().find(|template| template.name == name).map(|found| &*found.path),
        }
    }

    /// The skills that the system prompt lists: all except those with `disable-model-invocation`.
    pub fn model_listing(&self) -> Vec<hardpan_context::Skill> {
        self.skills.iter().filter(|skill| skill.listed).map(Skill::listing_entry).collect()
    }

    /// The skills of the home folder that the system prompt would list if the user wanted that.
    pub fn unlisted_home_skills(&self) -> Vec<hardpan_context::Skill> {
        self.skills.iter().filter(|skill| skill.is_kept_back).map(Skill::listing_entry).collect()
    }

    fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn template(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == name)
    }
}

impl ExpandedText {
    pub(crate) fn unchanged(text: &str) -> Self {
        ExpandedText { text: text.to_owned(), used: None, notes: Vec::new() }
    }
}

/// Splits arguments as a shell splits words, at blanks but not within quotes. Nothing is expanded.
pub fn split_words(line: &str) -> Vec<String> {
    arguments::split(line).list
}

/// Splits `/name rest`; `None` if the text does not begin with a slash and a name.
fn split_call(text: &str) -> Option<(&str, &str)> {
    let line = text.strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}
