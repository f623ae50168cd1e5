//! [`Mentions`]: the files and images that a prompt names with `@`.

use std::fmt;
use std::path::{Path, PathBuf};

use hardpan_economy::format::format_number;
use hardpan_prompt::{Image, ImageError};
use hardpan_tools::Scope;
use hardpan_workspace::{self as workspace, FileGuard, ImageFileError, RegularFile, UnreadableReason};

use crate::settings::expand_home;

/// Extensions that make a word mean a file even if it does not exist. `@app.route` and
/// `@example.com` mean something else.
const FILE_EXTENSIONS: &str = "bash bin bmp c cc cfg conf cpp cs css csv dart dat db diff doc docx env ex exs gif go gz h hpp \
     hs htm html ini ipynb java jpeg jpg js json jsonl jsx kt lock log lua md mdx mjs ml mm mts nix odt patch pdf php \
     png proto ps1 py rb rs rst scala scss sh sql sqlite svg swift tar tex toml ts tsv tsx txt vue webp xls xlsx xml \
     yaml yml zig zip zsh";

/// Who wrote a prompt. This limits which files it may name and whether it may run commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptSource {
    /// The user typed it.
    Typed,
    /// It came on standard input, so somebody else may have written it.
    Piped,
}

/// What a prompt mentions with `@`.
#[derive(Default)]
pub struct Mentions {
    /// Text files to open.
    pub files: Vec<PathBuf>,
    /// Images and the paths by which they were named.
    pub images: Vec<(PathBuf, Image)>,
    /// The mentions that could not be attached in full.
    pub notes: Vec<MentionNote>,
}

/// What the user should know about a mention.
#[derive(Debug)]
pub struct MentionNote {
    /// The file's name as typed, without the `@`.
    pub name: String,
    /// What became of it.
    pub problem: MentionProblem,
}

/// Why a mention is not attached in full.
#[derive(Debug)]
pub enum MentionProblem {
    /// Only the beginning of the file is shown.
    Cut {
        /// Bytes that are shown.
        shown: usize,
        /// Bytes of the whole file.
        total: usize,
    },
    /// The file is not attached.
    NotAttached(MentionError),
}

/// Why a file cannot go to the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MentionError {
    /// There is none of this name.
    #[error("there is no such file")]
    Missing,
    /// It is a folder.
    #[error("it is a folder: mention a file in it, or ask the model to list it")]
    Folder,
    /// It is an image that every provider would reject.
    #[error(transparent)]
    Image(ImageError),
    /// It is neither text nor an image, or the system does not let us read it.
    #[error("it {0}")]
    Unreadable(UnreadableReason),
    /// It is one of our own files.
    #[error(
        "it is one of Hardpan's own files (keys, permissions, settings, sessions) or holds the keys of another program, which never go to a model"
    )]
    Private,
    /// It is a link in the workspace that leads out of it.
    #[error("it links to a file outside of the workspace: mention that file instead")]
    LinkLeadsOut,
    /// It is outside of the workspace, and standard input named it.
    #[error(
        "it is outside of the workspace, where standard input may not name files: mention it in a prompt of your own (-p)"
    )]
    OutsideOfWorkspace,
}

impl fmt::Display for MentionNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "· @{}: ", self.name)?;
        match &self.problem {
            MentionProblem::Cut { shown, total } => write!(
                f,
                "only its first {} of {} bytes are shown",
                format_number(*shown as u64),
                format_number(*total as u64)
            ),
            MentionProblem::NotAttached(error) => error.fmt(f),
        }
    }
}

impl Mentions {
    /// Finds files mentioned with `@`: `@src/a.rs`, `@"a name with spaces.md"`, `@~/notes.md`. A
    /// missing file gets a note only if the word cannot mean anything else.
    pub fn find(prompt: &str, scope: &Scope, source: PromptSource) -> Self {
        let mut found = Mentions::default();
        let mut before = ' ';
        let mut seen: Vec<&str> = Vec::new();
        for (at, c) in prompt.char_indices() {
            if c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ',')) {
                let word = MentionWord::at(&prompt[at + 1..]);
                let exists = |name: &&str| scope.folder.join(expand_home(name)).symlink_metadata().is_ok();
                let name = word.names().into_iter().find(exists);
                match name.or_else(|| word.means_a_file().then_some(word.trimmed)) {
                    Some(name) if !seen.contains(&name) => {
                        seen.push(name);
                        found.add(name, scope, source);
                    }
                    _ => {}
                }
            }
            before = c;
        }
        found
    }

    fn add(&mut self, name: &str, scope: &Scope, source: PromptSource) {
        let problem = match resolve_mention(name, scope, source) {
            Ok(MentionedFile::Image { path, image }) => return self.images.push((path, *image)),
            Ok(MentionedFile::Text { path, cut }) => {
                self.files.push(path);
                let Some((shown, total)) = cut else { return };
                MentionProblem::Cut { shown, total }
            }
            Err(error) => MentionProblem::NotAttached(error),
        };
        self.notes.push(MentionNote { name: name.to_owned(), problem });
    }
}

/// A file that can go to the model.
pub enum MentionedFile {
    /// A text file, to be opened.
    Text {
        /// As typed, with `~` expanded.
        path: PathBuf,
        /// Bytes shown and bytes in total, if the file is too long to show in full.
        cut: Option<(usize, usize)>,
    },
    /// An image.
    Image {
        /// As typed, with `~` expanded.
        path: PathBuf,
        /// Its content.
        image: Box<Image>,
    },
}

/// Opens a mentioned file, or says why it cannot go to the model.
pub fn resolve_mention(
    name: &str,
    scope: &Scope,
    source: PromptSource,
) -> Result<MentionedFile, MentionError> {
    let path = expand_home(name);
    let place = scope.folder.join(&path);
    // The user may name files anywhere, except keys; but a path in the workspace must not lead out
    // of it through a link. Standard input may name only what the tools may read.
    let guard = scope.guard();
    let opened = match source {
        PromptSource::Typed => guard.open_named_by_user(&place),
        PromptSource::Piped => open_resolved(&guard, &place),
    };
    let file = opened.map_err(|reason| match (reason, source) {
        (UnreadableReason::Missing, _) => MentionError::Missing,
        (UnreadableReason::Directory, _) => MentionError::Folder,
        (UnreadableReason::Private, _) => MentionError::Private,
        (UnreadableReason::Outside, PromptSource::Typed) => MentionError::LinkLeadsOut,
        (UnreadableReason::Outside, PromptSource::Piped) => MentionError::OutsideOfWorkspace,
        (reason, _) => MentionError::Unreadable(reason),
    })?;
    match workspace::read_open_image(&file, &place) {
        Ok(image) => return Ok(MentionedFile::Image { path, image: Box::new(image) }),
        Err(ImageFileError::Refused { error, .. }) => return Err(MentionError::Image(error)),
        Err(_) => {}
    }
    match workspace::read_open_text(&file, workspace::TEXT_LIMIT) {
        Ok(text) => Ok(MentionedFile::Text {
            path,
            cut: text.truncation.map(|cut| (cut.shown_bytes, cut.total_bytes)),
        }),
        Err(reason) => Err(MentionError::Unreadable(reason)),
    }
}

/// Opens a file that tools may read, by a path that may go through any links to it.
fn open_resolved(guard: &FileGuard, place: &Path) -> Result<RegularFile, UnreadableReason> {
    guard.open(&place.canonicalize()?)
}

/// The word after an `@`.
struct MentionWord<'a> {
    whole: &'a str,
    /// Without trailing punctuation, which may belong to the sentence.
    trimmed: &'a str,
    is_quoted: bool,
}

impl<'a> MentionWord<'a> {
    fn at(text: &'a str) -> Self {
        if let Some(quoted) = text.strip_prefix('"') {
            let whole = quoted.split('"').next().unwrap_or_default();
            return MentionWord { whole, trimmed: whole, is_quoted: true };
        }
        let whole = text.split(char::is_whitespace).next().unwrap_or_default();
        let trimmed = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
        MentionWord { whole, trimmed, is_quoted: false }
    }

    /// The candidates for the file's name, longest first. Dots alone belong to the sentence.
    fn names(&self) -> Vec<&'a str> {
        let is_name = |name: &&str| !name.trim_matches('.').is_empty();
        [self.whole, self.trimmed].into_iter().filter(is_name).collect()
    }

    /// Whether the word cannot mean anything but a file: if it is quoted, if it begins like a path
    /// (`/`, `~/`, `./`, `../`, `.name`), if it has a folder and an extension of at most five
    /// letters, or if it has a well-known extension. A package scope (`@types/node`), a decorator
    /// (`@app.route`), an address and a word with other characters do not count.
    fn means_a_file(&self) -> bool {
        let name = self.trimmed;
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '/' | '~');
        if self.is_quoted || name.is_empty() || !name.chars().all(is_plain) {
            return self.is_quoted && !name.is_empty();
        }
        let begins_as_path = ["/", "~/", "./", "../"].iter().any(|start| name.starts_with(start));
        let is_hidden = name.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
        let has_ending = ending.starts_with(char::is_alphabetic) && ending.chars().count() <= 5;
        let is_known = FILE_EXTENSIONS.split_whitespace().any(|known| known.eq_ignore_ascii_case(ending));
        begins_as_path || is_hidden || (!folder.is_empty() && has_ending) || is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentioned(text: &str, folder: &Path) -> (Vec<String>, Vec<String>) {
        let found = Mentions::find(text, &Scope::new(folder, folder), PromptSource::Typed);
        let notes = found.notes.iter().map(ToString::to_string).collect();
        (found.files.iter().map(|path| path.display().to_string()).collect(), notes)
    }

    #[test]
    fn a_file_is_mentioned_by_its_name_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.rs", "b c.md", "d"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |text: &str| mentioned(text, folder.path()).0;
        assert_eq!(found("look at @a.rs, please"), ["a.rs"]);
        assert_eq!(found("@\"b c.md\" and (@d) and @d."), ["b c.md", "d"]);
        assert!(found("me@a.rs @missing.rs @ @\"\"").is_empty());
    }

    #[test]
    fn what_can_mean_nothing_but_a_file_is_reported_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("types")).unwrap();
        let notes = |text: &str| mentioned(text, folder.path()).1;
        let files = ["missing.md", "src/gone.zig", "/no/such", "./x", "../y.z", ".env", "a.TXT", "Straße.rs"];
        for name in files {
            assert_eq!(notes(&format!("see @{name}.")), [format!("· @{name}: there is no such file")]);
        }
        assert_eq!(notes("(@\"a b\")"), ["· @a b: there is no such file"]);
        assert_eq!(notes("@gone.md and @gone.md").len(), 1);
        let others = [
            "me@example.com",
            "@example.com",
            "@someone",
            "@decorator",
            "@app.route(\"/x.md\")",
            "@app.route",
            "@pytest.fixture",
            "@types/node",
            "@types/lodash.debounce",
            "@types/node@20.1.2",
            "@scope/a.b@c.md",
            "@socket.io/emitter",
            "@user@host.social",
            "@1.2.3",
            "@...",
            "@",
            "@{x.md}",
            "@https://a.b/c.md",
        ];
        for word in others {
            assert_eq!(notes(&format!("see {word} there")), [""; 0], "{word}");
        }
    }
}
