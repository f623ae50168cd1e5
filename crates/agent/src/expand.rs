//! Skills and templates: texts that a person keeps in files and calls by name.
//!
//! `/skill:name args` becomes the skill's text in a `<skill>` element, followed by the arguments as typed;
//! `/name args` becomes the template's text with the arguments put in. Both are plain substitutions, made once: what an
//! argument holds is never expanded. The format of the files is in `docs/skills-and-templates.md`.
//!
//! ```
//! use hardpan_agent::expand::{Expansions, Folder, Holds, Owner};
//!
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().to_path_buf();
//! std::fs::write(path.join("fix.md"), "Fix $1, then run the tests of ${@:2}.")?;
//!
//! let folders = [Folder { path, holds: Holds::Templates, owner: Owner::User }];
//! let known = Expansions::discover(&folders, &["help", "quit"]);
//! assert_eq!(known.expand("/fix '#12 and $2' parser").text, "Fix #12 and $2, then run the tests of parser.");
//! assert_eq!(known.expand("/fxi").text, "/fxi");
//! assert_eq!(known.nearest("fxi", &["help"]), ["fix"]);
//! # Ok::<(), std::io::Error>(())
//! ```

mod arguments; // words of a command line, and where they go in a template
mod discover; // from folders to skills and templates
mod frontmatter; // the YAML at the top of a file
mod reading; // one file, whatever it is
mod skill; // what a skill is, and what the model reads of it
mod template; // what a template is
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

pub use skill::{Skill, within_element};
pub use template::Template;

/// What stands before the name of a skill where it is called: `/skill:name`.
const SKILL: &str = "skill:";

/// A folder that skills or templates are looked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Where it is. It need not exist.
    pub path: PathBuf,
    /// What its files are.
    pub holds: Holds,
    /// Whose it is.
    pub owner: Owner,
}

/// What the files of a folder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Skills.
    Skills,
    /// Templates.
    Templates,
}

/// Who put a file there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user.
    User,
    /// The project, which the user trusts. Its files must lie below its root, links followed: a project does not decide
    /// which of the user's other files are sent to a provider.
    Project {
        /// The project's folder. Paths below it are shown relative to it.
        root: PathBuf,
    },
}

impl Folder {
    /// The usual folders, in order of precedence: the user's in `config`, then those of the project at `trusted`.
    /// The user's come first, so that no project changes what a name means that the user has given.
    ///
    /// Give no `trusted` for a project that the person has not said to trust.
    pub fn usual(config: Option<&Path>, trusted: Option<&Path>) -> Vec<Folder> {
        let user = |below: &'static str, holds| {
            config.map(|config| Folder { path: config.join(below), holds, owner: Owner::User })
        };
        let project = |below: &'static str, holds| {
            trusted.map(|root| Folder {
                path: root.join(below),
                holds,
                owner: Owner::Project { root: root.to_owned() },
            })
        };
        let folders = [
            user("skills", Holds::Skills),
            project(".hardpan/skills", Holds::Skills),
            project(".agents/skills", Holds::Skills),
            user("templates", Holds::Templates),
            project(".hardpan/templates", Holds::Templates),
        ];
        folders.into_iter().flatten().collect()
    }
}

/// A file that is left out, and what to do about it. Nothing is ever fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong, and the remedy.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

/// Every skill and template that can be called, by name, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansions {
    /// The skills, sorted by name.
    pub skills: Vec<Skill>,
    /// The templates, sorted by name.
    pub templates: Vec<Template>,
    /// What was left out, in the order it was met.
    pub problems: Vec<Problem>,
}

/// A name that can be called, for completion and `/help`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// What is typed after the slash: `review`, `skill:sort`.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// Which arguments it takes, where its file says so.
    pub argument_hint: Option<String>,
}

/// What a text became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The text to go on with.
    pub text: String,
    /// What was called, if anything.
    pub used: Option<Used>,
    /// What the person should know: arguments that nothing was done with, a quote that was not closed.
    pub notes: Vec<String>,
}

/// What was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Used {
    /// The skill of this name.
    Skill(String),
    /// The template of this name.
    Template(String),
}

impl Expansions {
    /// Reads the folders. Of several skills (or templates) of one name the first is taken, and the others are reported.
    /// A template cannot have one of the `reserved` names: those of the built-in commands, without the slash.
    pub fn discover(folders: &[Folder], reserved: &[&str]) -> Expansions {
        discover::discover(folders, reserved)
    }

    /// The text with a call at its very start expanded. Any other text comes back as it is; so does a call of a name
    /// that is not known.
    pub fn expand(&self, text: &str) -> Expanded {
        let Some((name, rest)) = call(text) else { return Expanded::unchanged(text) };
        if let Some(skill) = name.strip_prefix(SKILL).and_then(|name| self.skill(name)) {
            return skill.expand(rest);
        }
        match self.template(name) {
            Some(template) => template.expand(rest),
            None => Expanded::unchanged(text),
        }
    }

    /// Whether something can be called by this name, given without the slash: `review`, `skill:sort`.
    pub fn known(&self, name: &str) -> bool {
        match name.strip_prefix(SKILL) {
            Some(skill) => self.skill(skill).is_some(),
            None => self.template(name).is_some(),
        }
    }

    /// Every name that can be called, templates first.
    pub fn names(&self) -> Vec<Name> {
        let templates = self.templates.iter().map(|template| Name {
            name: template.name.clone(),
            description: template.description.clone(),
            argument_hint: template.argument_hint.clone(),
        });
        let skills = self.skills.iter().map(|skill| Name {
            name: format!("{SKILL}{}", skill.name),
            description: skill.description.clone(),
            argument_hint: None,
        });
        templates.chain(skills).collect()
    }

    /// Up to three names, of these and of the built-in commands, that were probably meant by `name`.
    pub fn nearest(&self, name: &str, builtin: &[&str]) -> Vec<String> {
        let names = self.names();
        let known = names.iter().map(|known| known.name.as_str()).chain(builtin.iter().copied());
        hardpan_models::nearest(name, known)
    }

    /// The skills that the model is told about, for the snapshot: all but those that only a person calls.
    pub fn listing(&self) -> Vec<hardpan_context::Skill> {
        self.skills.iter().filter(|skill| skill.listed).map(Skill::entry).collect()
    }

    fn skill(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn template(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == name)
    }
}

impl Expanded {
    fn unchanged(text: &str) -> Self {
        Expanded { text: text.to_owned(), used: None, notes: Vec::new() }
    }
}

/// The name after a slash at the very start, and what follows it.
fn call(text: &str) -> Option<(&str, &str)> {
    let line = text.strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}
