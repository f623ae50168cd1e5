//! [`Languages`]: the table of languages, read from `languages.toml` and `queries/`: which language
//! a file is written in, and how to parse it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;
use thiserror::Error;

use crate::path_pattern::PathPattern;
use crate::query_matcher::{QueryCompileError, QueryMatcher};

/// The query files. A new language needs its line here.
const QUERIES: &[(&str, &str)] = &[
    ("bash", include_str!("../queries/bash.scm")),
    ("c", include_str!("../queries/c.scm")),
    ("c-family", include_str!("../queries/c-family.scm")),
    ("c-sharp", include_str!("../queries/c-sharp.scm")),
    ("cpp", include_str!("../queries/cpp.scm")),
    ("css", include_str!("../queries/css.scm")),
    ("ecmascript", include_str!("../queries/ecmascript.scm")),
    ("elixir", include_str!("../queries/elixir.scm")),
    ("go", include_str!("../queries/go.scm")),
    ("haskell", include_str!("../queries/haskell.scm")),
    ("java", include_str!("../queries/java.scm")),
    ("javascript", include_str!("../queries/javascript.scm")),
    ("json", include_str!("../queries/json.scm")),
    ("jsx", include_str!("../queries/jsx.scm")),
    ("kotlin", include_str!("../queries/kotlin.scm")),
    ("lua", include_str!("../queries/lua.scm")),
    ("markdown", include_str!("../queries/markdown.scm")),
    ("ocaml", include_str!("../queries/ocaml.scm")),
    ("ocaml-module", include_str!("../queries/ocaml-module.scm")),
    ("php", include_str!("../queries/php.scm")),
    ("python", include_str!("../queries/python.scm")),
    ("ruby", include_str!("../queries/ruby.scm")),
    ("rust", include_str!("../queries/rust.scm")),
    ("scala", include_str!("../queries/scala.scm")),
    ("swift", include_str!("../queries/swift.scm")),
    ("toml", include_str!("../queries/toml.scm")),
    ("typescript", include_str!("../queries/typescript.scm")),
    ("yaml", include_str!("../queries/yaml.scm")),
    ("zig", include_str!("../queries/zig.scm")),
];

const TABLE: &str = include_str!("../languages.toml");

/// All embedded data, for the format id of the cache.
pub(crate) fn embedded_data() -> impl Iterator<Item = &'static str> {
    std::iter::once(TABLE).chain(QUERIES.iter().map(|(_, query)| *query))
}

/// Why the data of a language cannot be used. The built-in data is tested, so only people who edit
/// it see this.
#[derive(Debug, Error)]
pub enum LanguageError {
    /// `languages.toml` cannot be parsed.
    #[error("languages.toml: {0}")]
    Table(#[from] toml::de::Error),
    /// The table names a query file that is not embedded.
    #[error(
        "languages.toml: {language} names queries/{query}.scm, which src/language.rs does not embed: add it to QUERIES"
    )]
    NoQuery {
        /// Name of the language.
        language: String,
        /// Name of the query file, without `.scm`.
        query: String,
    },
    /// The grammar rejects the query.
    #[error("the query of {language} does not fit its grammar: {error}")]
    Query {
        /// Name of the language.
        language: String,
        /// Row, column and reason from tree-sitter.
        #[source]
        error: tree_sitter::QueryError,
    },
    /// The query uses a capture that queries/README.md does not list.
    #[error(
        "the query of {language} captures @{capture}, which queries/README.md does not know: begin it with `_` if it is for a predicate"
    )]
    Capture {
        /// Name of the language.
        language: String,
        /// Name of the capture, without `@`.
        capture: String,
    },
    /// A pattern could start at any node, which would make it slow.
    #[error(
        "the query of {language} has a pattern that does not begin with the name of a node, so that it would be tried everywhere: {pattern}"
    )]
    Pattern {
        /// Name of the language.
        language: String,
        /// Text of the pattern.
        pattern: String,
    },
}

/// How imports of a language are resolved to files.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ImportRule {
    /// Imports are not resolved, only listed as written.
    #[default]
    None,
    /// `crate::`, `super::`, `self::`, `mod name;`, and the crates of the workspace.
    Rust,
    /// Dotted modules, relative to the file or to any folder that holds the package.
    Python,
    /// Relative paths with extensions and index files, and the packages of the workspace.
    Ecmascript,
    /// Import paths below the module's path are folders.
    Go,
    /// Dotted names whose last parts are the path of a file (Java, Kotlin, Scala, C#).
    Dotted,
    /// Paths relative to the file or to any folder (C, C++, Ruby, PHP, Bash, Lua, CSS).
    Path,
}

/// One language, as `languages.toml` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Language {
    /// Name in the table: `rust`, `python`, …
    pub name: String,
    #[serde(default)]
    family: Option<String>,
    #[serde(default)]
    extensions: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    interpreters: Vec<String>,
    grammar: String,
    queries: Vec<String>,
    #[serde(default)]
    word_endings: String,
    #[serde(default, deserialize_with = "deserialize_words")]
    keywords: BTreeSet<String>,
    #[serde(default, deserialize_with = "deserialize_words")]
    library: BTreeSet<String>,
    /// How its imports are resolved to files.
    #[serde(default)]
    pub imports: ImportRule,
    /// Whether files of one folder see each other's names without an import (Go, Java).
    #[serde(default)]
    pub packages: bool,
    #[serde(default)]
    public: Vec<PathPattern>,
    #[serde(default)]
    tests: Vec<PathPattern>,
    #[serde(skip)]
    compiled_grammar: OnceLock<Option<CompiledGrammar>>,
}

/// Deserializes a text as a set of words.
fn deserialize_words<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeSet<String>, D::Error> {
    Ok(String::deserialize(from)?.split_whitespace().map(str::to_owned).collect())
}

/// A grammar with its compiled queries.
#[derive(Debug)]
pub(crate) struct CompiledGrammar {
    pub(crate) grammar: hardpan_grammars::Language,
    pub(crate) matcher: QueryMatcher,
}

impl Language {
    /// Name of its grammar in `hardpan_grammars`.
    pub fn grammar(&self) -> &str {
        &self.grammar
    }

    /// The family within which names are linked: C and C++, JavaScript and TypeScript.
    pub fn family(&self) -> &str {
        self.family.as_deref().unwrap_or(&self.name)
    }

    /// File extensions without the dot, most common first.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Characters a word may end with besides letters and digits, such as `?` in Ruby.
    pub(crate) fn word_endings(&self) -> &[u8] {
        self.word_endings.as_bytes()
    }

    /// Whether a word is a keyword and so refers to nothing.
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.keywords.contains(word)
    }

    /// Whether a package is part of the standard library.
    pub(crate) fn is_library(&self, package: &str) -> bool {
        self.library.contains(package)
    }

    /// Whether that file re-exports its imports, such as `__init__.py`.
    pub(crate) fn passes_imports_on(&self, path: &str) -> bool {
        self.public.iter().any(|pattern| pattern.matches(path))
    }

    /// Grammar and queries, compiled at first use; `None` if the grammar is not compiled in.
    pub(crate) fn compiled_grammar(&self) -> Option<&CompiledGrammar> {
        // `check` reports the error; here the file is treated as one of an unknown language.
        self.compiled_grammar.get_or_init(|| self.compile().unwrap_or_default()).as_ref()
    }

    /// Joins the text of its query files.
    pub(crate) fn joined_queries(&self) -> Result<String, LanguageError> {
        let mut source = String::new();
        for name in &self.queries {
            let Some((_, text)) = QUERIES.iter().find(|(known, _)| known == name) else {
                return Err(LanguageError::NoQuery { language: self.name.clone(), query: name.clone() });
            };
            source.push_str(text);
            source.push('\n');
        }
        Ok(source)
    }

    fn compile(&self) -> Result<Option<CompiledGrammar>, LanguageError> {
        let Some(grammar) = hardpan_grammars::language(&self.grammar) else { return Ok(None) };
        let language = || self.name.clone();
        let source = self.joined_queries()?;
        match QueryMatcher::new(&grammar, &source) {
            Ok(matcher) => Ok(Some(CompiledGrammar { grammar, matcher })),
            Err(QueryCompileError::Query(error)) => Err(LanguageError::Query { language: language(), error }),
            Err(QueryCompileError::Capture(capture)) => {
                Err(LanguageError::Capture { language: language(), capture })
            }
            Err(QueryCompileError::Pattern(pattern)) => {
                Err(LanguageError::Pattern { language: language(), pattern })
            }
        }
    }
}

/// All languages, and the path patterns that apply to every one of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Languages {
    #[serde(rename = "language")]
    list: Vec<Language>,
    tests: TestPatterns,
    pub(crate) skip: SkipPatterns,
}

#[derive(Debug, Default, Deserialize)]
struct TestPatterns {
    patterns: Vec<PathPattern>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct SkipPatterns {
    pub(crate) vendored: Vec<PathPattern>,
    pub(crate) generated: Vec<PathPattern>,
    pub(crate) markers: Vec<String>,
}

/// Index of a language in the table. One byte, since every file stores one.
pub type LanguageId = u8;

impl Languages {
    /// The table that is compiled in.
    pub fn builtin() -> &'static Languages {
        static BUILTIN: OnceLock<Languages> = OnceLock::new();
        BUILTIN.get_or_init(|| Languages::parse(TABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<Self, LanguageError> {
        Ok(toml::from_str(text)?)
    }

    /// Finds a language by its name.
    pub fn find_by_name(&self, name: &str) -> Option<LanguageId> {
        LanguageId::try_from(self.list.iter().position(|language| language.name == name)?).ok()
    }

    /// The language with this id.
    pub fn get(&self, id: LanguageId) -> Option<&Language> {
        self.list.get(usize::from(id))
    }

    /// Id of the first language of the same family.
    pub(crate) fn family_id(&self, id: LanguageId) -> LanguageId {
        let family = self.get(id).map(Language::family);
        let first = self.list.iter().position(|language| Some(language.family()) == family);
        first.and_then(|first| LanguageId::try_from(first).ok()).unwrap_or(id)
    }

    /// All languages in table order.
    pub fn iter(&self) -> impl Iterator<Item = &Language> {
        self.list.iter()
    }

    /// Detects the language of a file by its name. A language whose grammar is not compiled in does
    /// not count.
    pub fn detect(&self, path: &str) -> Option<LanguageId> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lower = name.to_ascii_lowercase();
        let fits = |extension: &String| {
            lower.strip_suffix(extension.as_str()).is_some_and(|stem| stem.ends_with('.') && stem.len() > 1)
        };
        let mut best: Option<(usize, usize)> = None;
        for (id, language) in self.list.iter().enumerate() {
            let whole = language.files.iter().any(|file| file == name).then_some(usize::MAX);
            let length =
                whole.or_else(|| language.extensions.iter().filter(|e| fits(e)).map(String::len).max());
            if let Some(length) = length
                && best.is_none_or(|(longest, _)| length > longest)
            {
                best = Some((length, id));
            }
        }
        let (_, id) = best?;
        hardpan_grammars::language(&self.list[id].grammar)?;
        LanguageId::try_from(id).ok()
    }

    /// Detects the language of a script without an extension by its first line: `#!/usr/bin/env
    /// python3`.
    pub fn detect_script(&self, content: &[u8]) -> Option<LanguageId> {
        let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let words = std::str::from_utf8(line.get(..line.len().min(100))?).ok()?.split_whitespace();
        let mut programs =
            words.filter(|word| !word.starts_with('-')).map(|word| word.rsplit('/').next().unwrap_or(word));
        let program = programs
            .find(|program| *program != "env")?
            .trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
        let id = self
            .list
            .iter()
            .position(|language| language.interpreters.iter().any(|known| known == program))?;
        hardpan_grammars::language(&self.list[id].grammar)?;
        LanguageId::try_from(id).ok()
    }

    /// Whether a file contains tests, by its path.
    pub fn is_test(&self, path: &str, language: Option<LanguageId>) -> bool {
        let own = language.and_then(|id| self.get(id)).map(|language| language.tests.as_slice());
        self.tests.patterns.iter().chain(own.unwrap_or_default()).any(|pattern| pattern.matches(path))
    }

    /// Checks all the data against the grammars that are compiled in.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check() -> Result<(), LanguageError> {
        let languages = Self::parse(TABLE)?;
        languages.list.iter().try_for_each(|language| {
            // The joined queries first: then rows and columns are those of the file, and impossible
            // shapes are noticed.
            if let Some(grammar) = hardpan_grammars::language(&language.grammar) {
                let fits = tree_sitter::Query::new(&grammar, &language.joined_queries()?);
                fits.map_err(|error| LanguageError::Query { language: language.name.clone(), error })?;
            }
            language.compile().map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(path: &str) -> Option<&'static str> {
        let languages = Languages::builtin();
        languages.detect(path).and_then(|id| languages.get(id)).map(|language| language.name.as_str())
    }

    #[test]
    fn every_query_fits_its_grammar() {
        if let Err(error) = Languages::check() {
            panic!("{error}");
        }
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        assert_eq!(detect("src/lib.rs"), Some("rust"));
        assert_eq!(detect("App.TSX"), Some("tsx"));
        assert_eq!(detect("types.d.ts"), Some("typescript"));
        assert_eq!(detect("src/.rs"), None);
        assert_eq!(detect("rs"), None);
        assert_eq!(detect("notes.unknown"), None);
    }

    #[test]
    fn a_script_is_known_by_its_first_line() {
        let languages = Languages::builtin();
        let script = |content: &[u8]| {
            languages.detect_script(content).and_then(|id| languages.get(id)).map(|known| known.name.as_str())
        };
        assert_eq!(script(b"#!/bin/sh -e\n"), Some("bash"));
        assert_eq!(script(b"#!/usr/bin/env -S python3.12 -u\n"), Some("python"));
        assert_eq!(script(b"#! /usr/bin/ruby"), Some("ruby"));
        assert_eq!(script(b"#!/usr/bin/env\n"), None);
        assert_eq!(script(b"#!/usr/bin/perl\n"), None);
        assert_eq!(script(b"# no script"), None);
    }

    #[test]
    fn tests_are_known_by_their_path() {
        let languages = Languages::builtin();
        let is_test = |path| languages.is_test(path, languages.detect(path));
        assert!(is_test("a/tests/b.rs"));
        assert!(is_test("a_test.go"));
        assert!(is_test("web/a.test.tsx"));
        assert!(!is_test("a/contests/b.rs"));
        assert!(!is_test("tests.go"));
    }
}
