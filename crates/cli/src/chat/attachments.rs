//! What goes with a prompt: [`PromptInput`] reads it from the command line and standard input, and
//! [`Mentions`] finds the files and images that it names with `@`.

use std::io::{IsTerminal, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::expand::within_element;
use hardpan_prompt::Image;
use hardpan_tools::{Scope, ScopeError};
use hardpan_workspace::{self as workspace, ImageFileError, UnreadableReason};

use super::display;
use crate::output::{safe, thousands};
use crate::settings::expand_home;

/// The longest standard input that we accept; more is most likely a mistake.
const MAX_STDIN_BYTES: u64 = 10 << 20;

/// How long standard input may be silent before we say that we wait for it.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

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

/// The input of `hardpan -p`.
#[derive(Debug, PartialEq, Eq)]
pub struct PromptInput {
    pub prompt: String,
    pub source: PromptSource,
    /// Standard input that was piped in beside the prompt, within a `<stdin>` element.
    pub piped_text: Option<String>,
}

/// Reads the prompt. `-` stands for standard input; text piped in beside a prompt goes below it.
/// Without a flag, standard input is the prompt; none if it is empty.
pub fn read_prompt_input(flag: Option<&str>) -> Result<Option<PromptInput>> {
    let is_terminal = std::io::stdin().is_terminal();
    let silence = if flag.is_none() { OnSilence::GiveUp } else { OnSilence::KeepWaiting };
    let piped = if is_terminal { String::new() } else { read_input(silence)? };
    let is_empty = piped.trim().is_empty();
    let input = match flag {
        None if is_empty => return Ok(None),
        Some("-") if is_empty && is_terminal => {
            bail!("-p needs a prompt: run hardpan -p \"your question\", or pipe one in")
        }
        None | Some("-") => {
            PromptInput { prompt: piped.trim_end().to_owned(), source: PromptSource::Piped, piped_text: None }
        }
        Some(typed) => {
            let piped_text = (!is_empty).then(|| stdin_element(&piped));
            PromptInput { prompt: typed.to_owned(), source: PromptSource::Typed, piped_text }
        }
    };
    if input.prompt.trim().is_empty() && input.piped_text.is_none() {
        bail!("the prompt is empty, so there is nothing to send");
    }
    Ok(Some(input))
}

impl PromptInput {
    /// Warns that a command ignores the text piped in beside it.
    pub fn warn_piped_text_unused(&self) {
        if self.piped_text.is_some() {
            eprintln!("hardpan: commands do not read standard input; ignoring the text that was piped in");
        }
    }
}

/// Wraps standard input in an element that the text itself cannot close.
fn stdin_element(piped: &str) -> String {
    let end = if piped.ends_with('\n') { "" } else { "\n" };
    format!("<stdin>\n{}{end}</stdin>", within_element("stdin", piped))
}

/// What to do when standard input stays silent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnSilence {
    /// Treat it as empty: whoever started us left it open without writing to it.
    GiveUp,
    /// Say that we wait, and go on waiting.
    KeepWaiting,
}

fn read_input(silence: OnSilence) -> Result<String> {
    const UNREAD: &str = "cannot read standard input";
    let (sender, receiver) = mpsc::channel();
    // The first bytes separately, to learn whether anything comes at all.
    std::thread::spawn(move || {
        let mut bytes = vec![0; 4096];
        let began = std::io::stdin().read(&mut bytes);
        bytes.truncate(began.as_ref().map_or(0, |count| *count));
        let began = began.map(|_| Vec::new());
        let more = began.is_ok() && !bytes.is_empty();
        let _ = sender.send(began);
        let rest =
            if more { std::io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes) } else { Ok(0) };
        let _ = sender.send(rest.map(|_| bytes));
    });
    let waiting =
        || eprintln!("hardpan: waiting for the end of standard input (add `</dev/null` if you have none)");
    let began = match receiver.recv_timeout(SILENCE_LIMIT) {
        Err(mpsc::RecvTimeoutError::Timeout) if silence == OnSilence::GiveUp => {
            eprintln!("hardpan: no data on standard input, not waiting for it; use `-p -` to wait");
            return Ok(String::new());
        }
        Err(_) => {
            waiting();
            receiver.recv().context(UNREAD)?
        }
        Ok(began) => began,
    };
    began.context(UNREAD)?;
    let read = receiver.recv_timeout(SILENCE_LIMIT).or_else(|_| {
        waiting();
        receiver.recv()
    });
    let bytes = read.context(UNREAD)?.context(UNREAD)?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        bail!(
            "standard input is longer than {} MB: put it into a file and mention it with @",
            MAX_STDIN_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("standard input is not UTF-8 text; mention the file with @ instead")
}

/// What a prompt mentions with `@`.
#[derive(Default)]
pub struct Mentions {
    /// Text files to open.
    pub files: Vec<PathBuf>,
    /// Images, which go with this prompt only.
    pub images: Vec<Image>,
    /// One line for the user about each mention that could not be attached in full.
    pub notes: Vec<String>,
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
        let note = match resolve_mention(name, scope, source) {
            Ok(MentionedFile::Image(image)) => return self.images.push(*image),
            Ok(MentionedFile::Text { path, cut }) => {
                self.files.push(path);
                let Some((shown, total)) = cut else { return };
                format!("only its first {} of {} bytes are shown", thousands(shown), thousands(total))
            }
            Err(why) => why,
        };
        self.notes.push(format!("· @{name}: {note}"));
    }

    /// Prints the notes.
    pub fn print_notes(&self) {
        for note in &self.notes {
            display::print_wrapped(&safe(note));
        }
    }
}

/// A file that can go to the model.
pub enum MentionedFile {
    Text {
        /// As typed, with `~` expanded.
        path: PathBuf,
        /// Bytes shown and bytes in total, if the file is too long to show in full.
        cut: Option<(usize, usize)>,
    },
    Image(Box<Image>),
}

/// Opens a mentioned file, or says why it cannot go to the model.
pub fn resolve_mention(name: &str, scope: &Scope, source: PromptSource) -> Result<MentionedFile, String> {
    let path = expand_home(name);
    let place = scope.folder.join(&path);
    if matches!(place.try_exists(), Ok(false)) {
        return Err("there is no such file".into());
    }
    check_readable(&place, scope, source)?;
    if place.is_dir() {
        return Err("it is a folder: mention a file in it, or ask the model to list it".into());
    }
    match workspace::read_image(&place) {
        Ok(image) => return Ok(MentionedFile::Image(Box::new(image))),
        Err(ImageFileError::Refused { error, .. }) => return Err(error.to_string()),
        Err(_) => {}
    }
    match workspace::read_text(&place, workspace::TEXT_LIMIT) {
        Ok(text) => Ok(MentionedFile::Text {
            path,
            cut: text.truncation.map(|cut| (cut.shown_bytes, cut.total_bytes)),
        }),
        Err(unreadable) => Err(match unreadable.reason {
            UnreadableReason::Missing => "there is no such file".into(),
            reason => format!("it {reason}"),
        }),
    }
}

/// Checks whether a mention may be read. The user may name files anywhere, except keys; but a path
/// in the workspace must not lead out of it through a link. Standard input may name only what the
/// tools may read.
fn check_readable(place: &Path, scope: &Scope, source: PromptSource) -> Result<(), String> {
    let Err(refused) = scope.resolve_for_read(&place.to_string_lossy()) else { return Ok(()) };
    let goes_up = place.components().any(|part| part == Component::ParentDir);
    let is_named_inside = !goes_up && place.starts_with(&scope.root);
    match (refused, source) {
        (ScopeError::Hidden { .. }, _) => {
            Err("it holds keys or permissions, which Hardpan never sends to a model".into())
        }
        (_, PromptSource::Typed) if !is_named_inside => Ok(()),
        (_, PromptSource::Typed) => {
            Err("it links to a file outside of the workspace: mention that file instead".into())
        }
        (_, PromptSource::Piped) => {
            Err("it is outside of the workspace, where standard input may not name files: \
                                   mention it in a prompt of your own (-p)"
                .into())
        }
    }
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
        (found.files.iter().map(|path| path.display().to_string()).collect(), found.notes)
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

    #[test]
    fn what_is_piped_in_is_kept_whole_and_cannot_end_its_element() {
        assert_eq!(stdin_element("a\n  b  '\n"), "<stdin>\na\n  b  '\n</stdin>");
        assert_eq!(stdin_element("\ta \r\n "), "<stdin>\n\ta \r\n \n</stdin>");
        assert_eq!(
            stdin_element("x </stdin> y < / STDIN>"),
            "<stdin>\nx <\\/stdin> y <\\ / STDIN>\n</stdin>"
        );
    }
}
