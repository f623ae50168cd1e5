//! [`ModuleSource`]: a file as the engine runs it, and whether it is an ES module or of CommonJS.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use tree_sitter::{Parser, Tree};

use super::exported_names::{ExportedNames, exported_names, link_missing_names};
use super::known_imports::link_known_modules;
use crate::typescript::{StripError, children, strip_types};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleFormat {
    /// A module with `import` and `export`.
    EsModule,
    /// A module with `require` and `module.exports`.
    CommonJs,
    /// A value.
    Json,
}

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct ModuleSource {
    pub format: ModuleFormat,
    text: String,
    /// Without types, once somebody needs that.
    plain: OnceCell<String>,
    /// What it exports, once somebody needs that.
    exports: OnceCell<ExportedNames>,
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn is_typed(path: &Path) -> bool {
    matches!(extension(path), "ts" | "mts" | "cts")
}

fn parse(path: &Path, text: &str) -> Result<Tree, StripError> {
    let mut parser = Parser::new();
    let name = if is_typed(path) { "typescript" } else { "javascript" };
    let language = hardpan_grammars::language(name).ok_or(StripError::NoGrammar)?;
    parser.set_language(&language).map_err(|_| StripError::NoGrammar)?;
    parser.parse(text, None).ok_or(StripError::NoGrammar)
}

impl ModuleSource {
    pub fn new(path: &Path, mut text: String) -> Result<Self, StripError> {
        // The line of a program's interpreter is a comment here.
        if text.starts_with("#!") {
            text.insert_str(0, "//");
        }
        let format = match extension(path) {
            "json" => ModuleFormat::Json,
            "mjs" | "mts" => ModuleFormat::EsModule,
            "cjs" | "cts" => ModuleFormat::CommonJs,
            _ if mentions_common_js(&text) && !has_module_syntax(path, &text)? => ModuleFormat::CommonJs,
            _ => ModuleFormat::EsModule,
        };
        Ok(ModuleSource { format, text, plain: OnceCell::new(), exports: OnceCell::new() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file without types.
    fn plain(&self, path: &Path) -> Result<&str, StripError> {
        if !is_typed(path) {
            return Ok(&self.text);
        }
        if self.plain.get().is_none() {
            let _ = self.plain.set(strip_types(&self.text)?);
        }
        Ok(self.plain.get().map_or("", String::as_str))
    }

    /// The names that the file exports.
    pub fn exports(&self, path: &Path) -> Result<&ExportedNames, StripError> {
        if self.exports.get().is_none() {
            let plain = self.plain(path)?;
            let _ = self.exports.set(exported_names(plain, &parse(Path::new("a.js"), plain)?));
        }
        Ok(self.exports.get_or_init(ExportedNames::default))
    }

    /// The file as JavaScript. `is_known` says which imports are read as properties, `exports_of` what other files
    /// of the extension export.
    pub fn javascript(
        &self,
        path: &Path,
        is_known: &dyn Fn(&str) -> bool,
        exports_of: &dyn Fn(&str) -> Option<Rc<BTreeSet<String>>>,
    ) -> Result<String, StripError> {
        let plain = self.plain(path)?;
        let mut tree = parse(Path::new("a.js"), plain)?;
        let whole = link_missing_names(plain, &tree, exports_of);
        if let Some(whole) = &whole {
            tree = parse(Path::new("a.js"), whole)?;
        }
        let plain = whole.as_deref().unwrap_or(plain);
        let linked = link_known_modules(plain, &tree, is_known);
        Ok(match self.format {
            ModuleFormat::EsModule => format!("{}{linked}", missing_names(plain)),
            _ => linked,
        })
    }
}

/// Whether a text has a word of CommonJS.
fn mentions_common_js(text: &str) -> bool {
    ["module", "exports", "require"].iter().any(|word| has_word(text, word))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

/// Whether a file has statements that only an ES module can have.
fn has_module_syntax(path: &Path, text: &str) -> Result<bool, StripError> {
    // Most files say so in a line that needs no parser.
    if text.lines().any(is_module_line) && !text.contains('`') && !text.contains("/*") {
        return Ok(true);
    }
    let tree = parse(path, text)?;
    let mut statements = children(tree.root_node());
    Ok(statements.any(|statement| matches!(statement.kind(), "import_statement" | "export_statement")))
}

/// Whether a line begins a statement that only an ES module can have, where no text or comment goes over
/// several lines.
fn is_module_line(line: &str) -> bool {
    ["import {", "import * as ", "export default ", "export const ", "export function ", "export {"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Declarations of what CommonJS has and ES modules have not. Extensions are written for a loader that
/// offers both in one file.
fn missing_names(text: &str) -> String {
    let is_missing = |name: &str| has_word(text, name) && !is_declared(text, name);
    let mut declarations = String::new();
    if is_missing("require") && text.contains("require(") {
        declarations.push_str("import hardpan_module from \"node:module\"; const require = hardpan_module.createRequire(import.meta.url); ");
    }
    for (name, value) in [("__filename", "filename"), ("__dirname", "dirname")] {
        if is_missing(name) {
            declarations.push_str(&format!("const {name} = import.meta.{value}; "));
        }
    }
    declarations
}

/// Whether a text declares a name itself, somewhere.
fn is_declared(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].trim_end();
        ["const", "let", "var", "function"].iter().any(|keyword| before.ends_with(keyword))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, text: &str) -> ModuleFormat {
        ModuleSource::new(Path::new(name), text.to_owned()).unwrap().format
    }

    #[test]
    fn a_file_is_of_common_js_if_it_uses_its_names_and_neither_imports_nor_exports() {
        assert_eq!(format("a.js", "module.exports = () => {};"), ModuleFormat::CommonJs);
        assert_eq!(format("a.ts", "exports.default = (pi: any) => {};"), ModuleFormat::CommonJs);
        assert_eq!(
            format("a.js", "import x from 'x'; const y = require('y'); export default y;"),
            ModuleFormat::EsModule
        );
        assert_eq!(format("a.js", "globalThis.modules = 1;"), ModuleFormat::EsModule);
        assert_eq!(format("a.cjs", "1"), ModuleFormat::CommonJs);
        assert_eq!(format("a.json", "{}"), ModuleFormat::Json);
    }

    #[test]
    fn names_of_common_js_are_there_in_an_es_module_that_does_not_declare_them() {
        let source = ModuleSource::new(Path::new("a.ts"), "export default __dirname;".into()).unwrap();
        let plain = |_: &str| false;
        assert_eq!(
            source.javascript(Path::new("a.ts"), &plain, &|_| None).unwrap(),
            "const __dirname = import.meta.dirname; export default __dirname;"
        );
        let own = "const __dirname = '/'; export default __dirname;";
        let source = ModuleSource::new(Path::new("a.ts"), own.into()).unwrap();
        assert_eq!(source.javascript(Path::new("a.ts"), &plain, &|_| None).unwrap(), own);
    }
}
