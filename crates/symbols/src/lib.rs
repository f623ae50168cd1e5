//! The symbol index of a repository: its definitions, references and clusters, and a compact map of
//! them for a model.
//!
//! - [`Outline`] is what one file contains (definitions, imports, words), derived from its path and
//!   bytes alone.
//! - [`SymbolIndex`] is the whole repository: outlines, references between files, and incremental
//!   updates. A cache stores it as bytes ([`SymbolIndex::save`], [`SymbolIndex::load`],
//!   [`format_id`]).
//! - [`Overview`] is what a model sees first: folders, and the files and definitions that matter most.
//! - [`CodeMap`] is the long form of it: a legend and one block of lines per file, complete or within
//!   a [`TokenBudget`].
//!
//! ```
//! use hardpan_symbols::{FileSource, Focus, MapRequest, SymbolIndex};
//!
//! let files = [("clock.py", "def now(zone=None): ..."), ("main.py", "from clock import now\n\nasync def main(): now()\n")];
//! let read = |path: &str, _buffer| match files.iter().find(|(known, _)| *known == path) {
//!     Some((_, text)) => FileSource::Content(text.as_bytes().to_vec()),
//!     None => FileSource::Unreadable,
//! };
//! let mut index = SymbolIndex::default();
//! index.add_files(&["main.py", "clock.py"], read, |_done| ());
//! let map = index.map(&MapRequest::default());
//! assert_eq!(&*map.blocks[0].text, "clock.py: ←1\nf now(zone?) ←1\n");
//! assert_eq!(&*map.blocks[1].text, "main.py:\ni→ clock.py\naf main() →now\n");
//!
//! index.update("clock.py", b"def now(): ...");
//! assert!(index.ranks(&Focus::default())[0] > 0.5);
//! ```
//!
//! The crate does no input or output: callers read the files and keep the cache. The same tree
//! gives the same bytes, whatever the number of threads, the order of the files or the state of the
//! cache; so nothing that is shown may depend on the numbers of names and files, and references are
//! counted in whole numbers.
//!
//! Languages are data: `languages.toml` and `queries/`, whose README tells how to add one.

mod capture; // SymbolKind, and what the captures of a query mean
mod cluster; // SymbolIndex::clusters: files that belong together
mod encoding; // ByteReader: numbers, texts and lists as bytes, for the cache
mod extract; // from a syntax tree to an outline
mod index; // SymbolIndex: files, names, references, and what an edit changes
mod language; // Languages: the table of languages and their compiled queries
mod manifest; // Manifest: what package files say about imports
mod map; // CodeMap: folder aliases, selection within a budget, rendering
mod name_table; // NameTable: names interned as numbers
mod outline; // Outline: what one file contains
mod overview; // Overview: the folders and files that matter most
mod path_pattern; // PathPattern: file names with stars, or folders
mod query_matcher; // QueryMatcher: finds where the patterns of a query match
mod rank; // SymbolIndex::ranks: how much each file matters
mod resolve; // PathLookup: from an import to the files it means
mod utf16; // utf16_units: tells UTF-16 files from others

pub use capture::SymbolKind;
pub use encoding::{IndexDecodeError, format_id};
pub use index::{
    ContentHash, DefinitionReport, FileReport, FileSource, IndexReport, IndexUpdate, SkippedReport,
    SymbolIndex, SymbolMatch, SymbolReport, content_hash,
};
pub use language::{ImportRule, Language, LanguageError, LanguageId, Languages};
pub use manifest::Manifest;
pub use map::{CodeMap, FileSelection, MapBlock, MapMemory, MapOmissions, MapRequest, TokenBudget};
pub use outline::{Asyncness, Definition, Import, ImportForm, Outline, SIZE_LIMIT, SkipReason, Visibility};
pub use overview::{KeptOverview, Overview, OverviewMemory, OverviewRequest};
pub use rank::Focus;
pub use utf16::utf16_units;
