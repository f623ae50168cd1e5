//! What the code contains: definitions, references and clusters of a repository, and the compact map of all that.
//!
//! - [`Outline`] is what one file contains, told by its path and bytes alone: definitions, imports, words.
//! - [`Index`] is the repository: outlines, who uses whose names, and what an edit changes in that. A cache keeps it as bytes
//!   ([`Index::save`], [`Index::load`], [`format_id`]).
//! - [`Map`] is what a model sees: a legend and one block of lines per file, whole or within a [`Budget`].
//!
//! ```
//! use hardpan_symbols::{Focus, Index, MapRequest, Source};
//!
//! let files = [("clock.py", "def now(zone=None): ..."), ("main.py", "from clock import now\n\nasync def main(): now()\n")];
//! let read = |path: &str, _buffer| match files.iter().find(|(known, _)| *known == path) {
//!     Some((_, text)) => Source::Content(text.as_bytes().to_vec()),
//!     None => Source::Unreadable,
//! };
//! let mut index = Index::default();
//! index.fill(&["main.py", "clock.py"], read, |_done| ());
//! let map = index.map(&MapRequest::default());
//! assert_eq!(&*map.blocks[0].text, "clock.py: ←1\nf now(zone?) ←1\n");
//! assert_eq!(&*map.blocks[1].text, "main.py:\ni→ clock.py\naf main() →now\n");
//!
//! index.update("clock.py", b"def now(): ...");
//! assert!(index.ranks(&Focus::default())[0] > 0.5);
//! ```
//!
//! The crate does no input or output: callers read files and keep the cache. The same tree gives the same bytes, whatever
//! the number of threads, the order of the files or the state of a cache; so nothing that is shown may depend on the
//! numbers of names and files, and references are counted in whole numbers.
//!
//! Languages are data: `languages.toml` and `queries/`, whose README tells how to add one.

mod capture; // Kind, and what the captures of a query mean
mod cluster; // Index::clusters: files that belong together
mod extract; // from a syntax tree to an outline
mod index; // Index: files, names, references, and what an edit changes
mod language; // Languages: the table and the compiled queries
mod manifest; // Manifest: what package files say about names
mod map; // Map: aliases, choice, lines
mod names; // names by number
mod outline; // Outline: what one file contains
mod pattern; // PathPattern: file names with stars, folders
mod rank; // Index::ranks: how much each file matters
mod resolve; // from an import to the files that it means
mod search; // Search: where the patterns of a query match
mod wire; // numbers, texts and lists as bytes

pub use capture::Kind;
pub use index::{
    Change, ContentHash, FileReport, Index, Place, Report, SkippedReport, Source, SymbolReport, content_hash,
};
pub use language::{ImportRule, Language, LanguageError, LanguageId, Languages};
pub use manifest::Manifest;
pub use map::{Block, Budget, LeftOut, Map, MapMemory, MapRequest, Part};
pub use outline::{Definition, Import, ImportForm, Outline, Reach, SIZE_LIMIT, Skip, Waits};
pub use rank::Focus;
pub use wire::{Damaged, format_id};
