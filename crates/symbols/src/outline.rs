//! What one file contains, told by its name and its bytes alone.

mod rows;

use serde::Serialize;

use crate::capture::Kind;
use crate::extract;
use crate::language::{LanguageId, Languages};
use crate::manifest::Manifest;

pub(crate) use rows::Row;

/// Files over this many bytes are listed by name only.
pub const SIZE_LIMIT: usize = 1 << 20;
/// A file whose lines are longer than this on average is meant for machines.
const LINE_LIMIT: usize = 400;
/// Below this size nobody minifies, and long lines are prose.
const MINIFIED_FROM: usize = 4 << 10;
/// How far into a file a mark of a generator is looked for.
const MARKER_WINDOW: usize = 1 << 10;

/// What one file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The language, where it is known.
    pub language: Option<LanguageId>,
    /// Why there is no more than the name, if so.
    pub skipped: Option<Skip>,
    /// What is defined, in the order of the file.
    pub definitions: Vec<Definition>,
    /// What is imported, in the order of the file.
    pub imports: Vec<Import>,
    /// Every word that may refer to something: sorted, each once.
    pub words: Vec<Box<str>>,
    /// Where it is a package file: what that says about names.
    pub manifest: Option<Manifest>,
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What sort of thing it is.
    pub kind: Kind,
    /// Its name.
    pub name: Box<str>,
    /// The definition that holds it, as its place in the outline.
    pub parent: Option<u32>,
    /// The line of its name, from 1.
    pub line: u32,
    /// Parameters and return type as the map shows them: `(client, policy?)->Result<Response>`.
    pub signature: Box<str>,
    /// Base classes, implemented interfaces and traits.
    pub bases: Box<[Box<str>]>,
    /// Whether calling it gives something to wait for.
    pub waits: Waits,
    /// Who can see it.
    pub reach: Reach,
    /// What it calls, as places in the outline's words: each once, in the order of the file.
    pub calls: Box<[u32]>,
}

/// Whether a function is asynchronous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// An ordinary function, or no function at all.
    #[default]
    No,
    /// An asynchronous one.
    Async,
}

/// Who can see a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Other files can.
    #[default]
    Shared,
    /// It lies inside a function.
    Local,
    /// It is there for tests only.
    Test,
    /// It does what a base of its type asks for: the base says all there is to say.
    Implied,
}

/// One import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The path as it is written, without quotes.
    pub path: Box<str>,
    /// The names taken from it, where the language tells.
    pub names: Box<[Box<str>]>,
    /// What is done with it.
    pub form: ImportForm,
}

/// What is done with an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportForm {
    /// Used here.
    #[default]
    Use,
    /// Also passed on to those who import this file.
    Public,
    /// The path names a module whose file lies below this one.
    Submodule,
    /// The same, passed on.
    PublicSubmodule,
}

impl ImportForm {
    pub(crate) fn is_public(self) -> bool {
        matches!(self, ImportForm::Public | ImportForm::PublicSubmodule)
    }
}

/// Why a file is listed by name only.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Skip {
    /// Over [`SIZE_LIMIT`].
    Large,
    /// Lines that nobody wrote.
    Minified,
    /// Made by a program, by its name or its first lines.
    Generated,
    /// Somebody else's code.
    Vendored,
    /// No text.
    Binary,
    /// The caller could not read it.
    Unreadable,
}

impl Skip {
    pub(crate) const ALL: [Skip; 6] =
        [Skip::Large, Skip::Minified, Skip::Generated, Skip::Vendored, Skip::Binary, Skip::Unreadable];

    /// The reason in one word, as the map says it.
    pub fn word(self) -> &'static str {
        match self {
            Skip::Large => "large",
            Skip::Minified => "minified",
            Skip::Generated => "generated",
            Skip::Vendored => "vendored",
            Skip::Binary => "binary",
            Skip::Unreadable => "unreadable",
        }
    }
}

impl Outline {
    /// Reads a file. Whatever the bytes are, there is an answer: a broken line costs itself, bytes that are no UTF-8 are
    /// replaced, and what is too large or was not written by a person is a name with a reason.
    ///
    /// `path` is relative to the repository, with forward slashes.
    ///
    /// ```
    /// let outline = hardpan_symbols::Outline::of("a.py", b"def area(width, height=1): ...");
    /// assert_eq!(&*outline.definitions[0].name, "area");
    /// assert_eq!(&*outline.definitions[0].signature, "(width, height?)");
    /// ```
    pub fn of(path: &str, content: &[u8]) -> Outline {
        let languages = Languages::builtin();
        if let Some(skip) = skip_by_path(languages, path) {
            return Outline::skipped(skip);
        }
        let manifest = Manifest::of(path, content);
        let Some((id, language)) = languages
            .detect(path)
            .or_else(|| languages.detect_script(content))
            .and_then(|id| Some((id, languages.get(id)?)))
        else {
            return Outline { manifest, ..Outline::default() };
        };
        if let Some(skip) = skip_by_content(languages, content) {
            return Outline { language: Some(id), manifest, ..Outline::skipped(skip) };
        }
        let outline = language.reader().map(|reader| extract::outline(language, reader, &text_of(content)));
        Outline { language: Some(id), manifest, ..outline.unwrap_or_default() }
    }

    /// A file of which only the name is known.
    pub fn skipped(skip: Skip) -> Outline {
        Outline { skipped: Some(skip), ..Outline::default() }
    }

    /// The definition that holds another.
    pub fn parent(&self, definition: &Definition) -> Option<&Definition> {
        self.definitions.get(usize::try_from(definition.parent?).ok()?)
    }
}

fn skip_by_path(languages: &Languages, path: &str) -> Option<Skip> {
    if languages.skip.vendored.iter().any(|pattern| pattern.matches(path)) {
        return Some(Skip::Vendored);
    }
    languages.skip.generated.iter().any(|pattern| pattern.matches(path)).then_some(Skip::Generated)
}

fn skip_by_content(languages: &Languages, content: &[u8]) -> Option<Skip> {
    if content.len() > SIZE_LIMIT {
        return Some(Skip::Large);
    }
    let window = &content[..content.len().min(MARKER_WINDOW)];
    if window.contains(&0) && utf16(content).is_none() {
        return Some(Skip::Binary);
    }
    let lines = content.iter().filter(|byte| **byte == b'\n').count() + 1;
    if content.len() > MINIFIED_FROM && content.len() / lines > LINE_LIMIT {
        return Some(Skip::Minified);
    }
    let head = String::from_utf8_lossy(window);
    languages.skip.markers.iter().any(|marker| head.contains(marker.as_str())).then_some(Skip::Generated)
}

/// The text of a file: UTF-8 with or without a mark, UTF-16 with one, anything else with its bad bytes replaced.
fn text_of(content: &[u8]) -> std::borrow::Cow<'_, str> {
    if let Some(text) = utf16(content) {
        return text.into();
    }
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    // Quicker than the other, and nearly always enough.
    std::str::from_utf8(content).map_or_else(|_| String::from_utf8_lossy(content), Into::into)
}

fn utf16(content: &[u8]) -> Option<String> {
    let (read, rest): (fn([u8; 2]) -> u16, _) = match content {
        [0xFF, 0xFE, rest @ ..] => (u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return None,
    };
    let units = rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
    Some(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests;
