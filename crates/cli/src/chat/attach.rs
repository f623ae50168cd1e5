//! What goes with a prompt: files named with `@`, images, standard input.

use std::io::{IsTerminal, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::expand::within_element;
use hardpan_prompt::Image;
use hardpan_tools::{OutOfScope, Scope};
use hardpan_workspace::{self as workspace, ImageFileError, Reason};

use super::show;
use crate::output::{safe, thousands};
use crate::settings::at_home;

/// More than this on standard input is a mistake, not a prompt.
const MOST_INPUT: u64 = 10 << 20;

/// How long nothing may come on standard input before the person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Endings by which a word is known to mean a file, there or not: `@app.route` and `@example.com` mean something else.
const ENDINGS: &str = "bash bin bmp c cc cfg conf cpp cs css csv dart dat db diff doc docx env ex exs gif go gz h hpp \
     hs htm html ini ipynb java jpeg jpg js json jsonl jsx kt lock log lua md mdx mjs ml mm mts nix odt patch pdf php \
     png proto ps1 py rb rs rst scala scss sh sql sqlite svg swift tar tex toml ts tsv tsx txt vue webp xls xlsx xml \
     yaml yml zig zip zsh";

/// Who a prompt comes from. What it may make us read and run depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The person typed it.
    Typed,
    /// It came on standard input: somebody else may have written it.
    Piped,
}

/// What a conversation of one prompt is given.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    pub prompt: String,
    pub source: Source,
    /// What was piped in beside the prompt, in its element.
    pub below: Option<String>,
}

/// The prompt of the command line: `-` stands for standard input, and what is piped in beside a prompt goes below it. Without
/// a flag, what is piped in is the prompt; none if that is nothing.
pub fn given(flag: Option<&str>) -> Result<Option<Given>> {
    let is_terminal = std::io::stdin().is_terminal();
    let silence = if flag.is_none() { Silence::Ends } else { Silence::IsTold };
    let piped = if is_terminal { String::new() } else { read_input(silence)? };
    let is_empty = piped.trim().is_empty();
    let given = match flag {
        None if is_empty => return Ok(None),
        Some("-") if is_empty && is_terminal => {
            bail!("-p needs a prompt: hardpan -p \"your question\", or pipe one in")
        }
        None | Some("-") => Given { prompt: piped.trim_end().to_owned(), source: Source::Piped, below: None },
        Some(typed) => {
            let below = (!is_empty).then(|| element(&piped));
            Given { prompt: typed.to_owned(), source: Source::Typed, below }
        }
    };
    if given.prompt.trim().is_empty() && given.below.is_none() {
        bail!("there is nothing to send: the prompt is empty");
    }
    Ok(Some(given))
}

impl Given {
    /// Says that a command takes nothing from standard input.
    pub fn is_not_sent(&self) {
        if self.below.is_some() {
            eprintln!("hardpan: a command takes nothing from standard input; what was piped in is not used");
        }
    }
}

/// What was piped in, whole, in an element that it cannot end.
fn element(piped: &str) -> String {
    let end = if piped.ends_with('\n') { "" } else { "\n" };
    format!("<stdin>\n{}{end}</stdin>", within_element("stdin", piped))
}

/// What it means that nothing comes on standard input for a while.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// Whoever started us left it open and has nothing to say.
    Ends,
    /// It is waited for, and that is said.
    IsTold,
}

fn read_input(silence: Silence) -> Result<String> {
    const UNREAD: &str = "standard input cannot be read";
    let (sender, receiver) = mpsc::channel();
    // The first bytes by themselves, then all: so it is known whether anything comes at all.
    std::thread::spawn(move || {
        let mut bytes = vec![0; 4096];
        let began = std::io::stdin().read(&mut bytes);
        bytes.truncate(began.as_ref().map_or(0, |count| *count));
        let began = began.map(|_| Vec::new());
        let more = began.is_ok() && !bytes.is_empty();
        let _ = sender.send(began);
        let rest = if more { std::io::stdin().take(MOST_INPUT + 1).read_to_end(&mut bytes) } else { Ok(0) };
        let _ = sender.send(rest.map(|_| bytes));
    });
    let waiting =
        || eprintln!("hardpan: waiting for the end of standard input (`</dev/null` if there is none)");
    let began = match receiver.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) if silence == Silence::Ends => {
            eprintln!("hardpan: nothing comes on standard input; -p - waits for it");
            return Ok(String::new());
        }
        Err(_) => {
            waiting();
            receiver.recv().context(UNREAD)?
        }
        Ok(began) => began,
    };
    began.context(UNREAD)?;
    let read = receiver.recv_timeout(PATIENCE).or_else(|_| {
        waiting();
        receiver.recv()
    });
    let bytes = read.context(UNREAD)?.context(UNREAD)?;
    if bytes.len() as u64 > MOST_INPUT {
        bail!("standard input is longer than {} MB: put it into a file and name it with @", MOST_INPUT >> 20);
    }
    String::from_utf8(bytes).context("standard input is not UTF-8 text; name the file with @ instead")
}

/// What a prompt names.
#[derive(Default)]
pub struct Mentioned {
    /// Texts, as they are opened.
    pub files: Vec<PathBuf>,
    /// Images, which go with this prompt alone.
    pub images: Vec<Image>,
    /// What the person should know of the rest: a line each.
    pub notes: Vec<String>,
}

impl Mentioned {
    /// Looks for files named with `@`: `@src/a.rs`, `@"a name with spaces.md"`, `@~/notes.md`. What is there is attached or
    /// said to be none that can be; what is not there is only mentioned if it cannot mean anything but a file.
    pub fn by(prompt: &str, scope: &Scope, source: Source) -> Self {
        let mut found = Mentioned::default();
        let mut before = ' ';
        let mut seen: Vec<&str> = Vec::new();
        for (at, c) in prompt.char_indices() {
            if c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ',')) {
                let word = Word::at(&prompt[at + 1..]);
                let exists = |name: &&str| scope.folder.join(at_home(name)).symlink_metadata().is_ok();
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

    fn add(&mut self, name: &str, scope: &Scope, source: Source) {
        let note = match look(name, scope, source) {
            Ok(Found::Image(image)) => return self.images.push(*image),
            Ok(Found::Text { path, cut }) => {
                self.files.push(path);
                let Some((shown, total)) = cut else { return };
                format!("only its first {} of {} bytes are shown", thousands(shown), thousands(total))
            }
            Err(why) => why,
        };
        self.notes.push(format!("· @{name}: {note}"));
    }

    /// Tells the person what could not be attached.
    pub fn tell(&self) {
        for note in &self.notes {
            show::say(&safe(note));
        }
    }
}

/// What a name leads to.
pub enum Found {
    /// A text.
    Text {
        /// The path to open.
        path: PathBuf,
        /// The bytes that are shown and all of them, where it is too long.
        cut: Option<(usize, usize)>,
    },
    /// An image.
    Image(Box<Image>),
}

/// What a name leads to, or why that cannot be shown to a model.
pub fn look(name: &str, scope: &Scope, source: Source) -> Result<Found, String> {
    let path = at_home(name);
    let place = scope.folder.join(&path);
    if matches!(place.try_exists(), Ok(false)) {
        return Err("there is no such file".into());
    }
    may_be_read(&place, scope, source)?;
    if place.is_dir() {
        return Err("it is a folder: name a file in it, or ask, and the model lists it".into());
    }
    match workspace::read_image(&place) {
        Ok(image) => return Ok(Found::Image(Box::new(image))),
        Err(ImageFileError::Refused { error, .. }) => return Err(error.to_string()),
        Err(_) => {}
    }
    match workspace::read_text(&place, workspace::TEXT_LIMIT) {
        Ok(text) => Ok(Found::Text { path, cut: text.cut.map(|cut| (cut.shown_bytes, cut.total_bytes)) }),
        Err(unreadable) => Err(match unreadable.reason {
            Reason::Missing => "there is no such file".into(),
            reason => format!("it {reason}"),
        }),
    }
}

/// A person may name files anywhere, but a name in the workspace means what is in it, and keys are nobody's. What comes on
/// standard input may name what the tools may read.
fn may_be_read(place: &Path, scope: &Scope, source: Source) -> Result<(), String> {
    let Err(refused) = scope.to_read(&place.to_string_lossy()) else { return Ok(()) };
    let goes_up = place.components().any(|part| part == Component::ParentDir);
    let is_named_inside = !goes_up && place.starts_with(&scope.root);
    match (refused, source) {
        (OutOfScope::Hidden { .. }, _) => Err("it holds keys or permissions, which go to no model".into()),
        (_, Source::Typed) if !is_named_inside => Ok(()),
        (_, Source::Typed) => Err("it leads out of the workspace: name the place that it leads to".into()),
        (_, Source::Piped) => Err("it is outside of the workspace, and standard input names nothing there: \
                                   name it in a prompt of your own (-p)"
            .into()),
    }
}

/// What follows an `@`.
struct Word<'a> {
    /// All of it.
    whole: &'a str,
    /// Without the punctuation at its end, which may belong to the sentence.
    trimmed: &'a str,
    is_quoted: bool,
}

impl<'a> Word<'a> {
    fn at(text: &'a str) -> Self {
        if let Some(quoted) = text.strip_prefix('"') {
            let whole = quoted.split('"').next().unwrap_or_default();
            return Word { whole, trimmed: whole, is_quoted: true };
        }
        let whole = text.split(char::is_whitespace).next().unwrap_or_default();
        let trimmed = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
        Word { whole, trimmed, is_quoted: false }
    }

    /// What may be a file's name, longest first. Points alone are the sentence's.
    fn names(&self) -> Vec<&'a str> {
        let is_name = |name: &&str| !name.trim_matches('.').is_empty();
        [self.whole, self.trimmed].into_iter().filter(is_name).collect()
    }

    /// Whether it can mean nothing but a file. It does in quotes; where it begins as a path does (`/`, `~/`, `./`, `../`,
    /// `.name`); in a folder with an ending of at most five letters; and with a well-known ending. A scope
    /// (`@types/node`), a decorator (`@app.route`), an address and anything with other characters than names have do not.
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
        let is_known = ENDINGS.split_whitespace().any(|known| known.eq_ignore_ascii_case(ending));
        begins_as_path || is_hidden || (!folder.is_empty() && has_ending) || is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentioned(text: &str, folder: &Path) -> (Vec<String>, Vec<String>) {
        let found = Mentioned::by(text, &Scope::new(folder, folder), Source::Typed);
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
        assert_eq!(element("a\n  b  '\n"), "<stdin>\na\n  b  '\n</stdin>");
        assert_eq!(element("\ta \r\n "), "<stdin>\n\ta \r\n \n</stdin>");
        assert_eq!(element("x </stdin> y < / STDIN>"), "<stdin>\nx <\\/stdin> y <\\ / STDIN>\n</stdin>");
    }
}
