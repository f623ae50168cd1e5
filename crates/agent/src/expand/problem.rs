//! [`ExpansionProblem`]: a file that is no skill and no template, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::str::Utf8Error;
use std::sync::Arc;

use thiserror::Error;

use super::discover::{MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS};
use super::read_file::MAX_BYTES;

/// A file that was skipped, and what to do about it. No problem is fatal.
#[derive(Clone, Debug, Error)]
#[error("{}: {fault}", path.display())]
pub struct ExpansionProblem {
    /// Path of the skipped file or folder.
    pub path: PathBuf,
    /// What is wrong and how to fix it; its text continues a sentence that begins with the path.
    #[source]
    pub fault: ExpansionFault,
}

/// What is wrong with a skill or a template.
#[derive(Clone, Debug, Error)]
pub enum ExpansionFault {
    /// It is a link, and its target is missing.
    #[error("links to a file that does not exist: correct the link")]
    BrokenLink(#[source] Arc<io::Error>),
    /// It is a link in a loop of links, or to a place that cannot be entered.
    #[error("is a link that cannot be followed ({0}): correct the link")]
    UnfollowableLink(#[source] Arc<io::Error>),
    /// A project's file is a link to a place outside the project.
    #[error("links to a place outside the project: copy the file into the project")]
    OutsideProject,
    /// It is one of our own files by another name.
    #[error("is another name of a file with keys, permissions or sessions: put a text file in its place")]
    Private,
    /// Permissions forbid reading it.
    #[error("may not be read: its permissions, or those of a folder above it, forbid it")]
    Permission(#[source] Arc<io::Error>),
    /// The operating system refuses for another reason.
    #[error("cannot be read: {0}")]
    Io(#[source] Arc<io::Error>),
    /// It is a pipe, a device or a socket.
    #[error("is not a regular file: put a text file in its place")]
    NotAFile,
    /// It was not there when the project's trust was checked.
    #[error("has changed since you trusted the project: run `hardpan trust`")]
    Untrusted,
    /// It is larger than any prompt should be.
    #[error("is larger than {} KB: shorten it, and move details to files that it refers to", MAX_BYTES / 1024)]
    TooLarge,
    /// It is text in another encoding, or no text.
    #[error("is not UTF-8 (byte {} is the first wrong one): convert it, for example with iconv", .0.valid_up_to())]
    NotUtf8(#[source] Utf8Error),
    /// A folder among the skills has no `SKILL.md`.
    #[error("contains no SKILL.md: add one, or move the folder elsewhere")]
    NoSkillFile,
    /// A skill does not begin with front matter.
    #[error("has no front matter: begin it with lines of ---, `name: …`, `description: …`, ---")]
    NoFrontMatter,
    /// The front matter has no second line of `---`.
    #[error("its front matter is not closed: put a line of --- below it")]
    OpenFrontMatter,
    /// The front matter is no YAML, or has fields of another type.
    #[error(
        "its front matter cannot be read ({}): correct it; a text that holds \": \" needs quotes",
        .0.without_snippet()
    )]
    FrontMatter(#[source] Arc<serde_saphyr::Error>),
    /// A skill has no name.
    #[error("its front matter has no `name`: add one")]
    NoName,
    /// A skill's name has other characters than a call can have, or too many.
    #[error(
        "the name {name:?} cannot be used: take lower case letters, digits and hyphens, {MAX_NAME_CHARS} at most"
    )]
    SkillName {
        /// The name in the front matter.
        name: String,
    },
    /// A skill does not say when to use it.
    #[error("its front matter has no `description`: say there when to use the skill")]
    NoDescription,
    /// A skill's description is too long to be in every prompt.
    #[error(
        "its description has {characters} characters: shorten it to {MAX_DESCRIPTION_CHARS}, and say the rest below the front matter"
    )]
    LongDescription {
        /// How long it is.
        characters: usize,
    },
    /// A skill has nothing below its front matter.
    #[error("has no text below its front matter: write what to do there")]
    NoBody,
    /// A template has no text at all.
    #[error("has no text: write the prompt into it, or remove it")]
    EmptyTemplate,
    /// The name of a template's file is not one word.
    #[error("its name cannot be typed as a command: take letters, digits, hyphens, underscores and points")]
    TemplateName,
    /// A template is named like a command of Hardpan.
    #[error("/{name} is a built-in command: rename the file")]
    Reserved {
        /// Name of the command, without the slash.
        name: String,
    },
    /// An agent is named like the one that Hardpan has without any file.
    #[error("`default` is Hardpan's own agent: take another name, or write prompts/system.md")]
    DefaultAgent,
    /// Another file has the same name and comes first.
    #[error("{what} is already in {}, which is used: rename one of them", first.display())]
    Duplicate {
        /// `the skill sort`, `the template fix`.
        what: String,
        /// The file that is used.
        first: PathBuf,
    },
}
