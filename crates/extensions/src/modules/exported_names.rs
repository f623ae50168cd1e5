//! The names that a module exports, and imports of names that one of the extension's own files lacks.
//!
//! TypeScript lets a file import and export types by the same words as values. Extensions are written for a loader
//! in which a name that is not there is `undefined`; the engine refuses the whole module.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use tree_sitter::{Node, Tree};

use crate::typescript::{Edits, child_of_kind, children};

/// What a module exports.
#[derive(Debug, Default)]
pub(crate) struct ExportedNames {
    pub names: BTreeSet<String>,
    /// The modules of which it exports everything.
    pub all_of: Vec<String>,
}

fn text<'a>(source: &'a str, node: Node) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

/// A string, or a name that is written as one, without its quotes.
fn unquoted<'a>(source: &'a str, node: Node) -> &'a str {
    text(source, node).trim_matches(['"', '\'', '`'])
}

/// The names that a module of JavaScript exports.
pub(crate) fn exported_names(source: &str, tree: &Tree) -> ExportedNames {
    let mut found = ExportedNames::default();
    for statement in children(tree.root_node()).filter(|child| child.kind() == "export_statement") {
        let from = statement.child_by_field_name("source");
        if let Some(clause) = child_of_kind(statement, "export_clause") {
            for specifier in children(clause).filter(|child| child.kind() == "export_specifier") {
                let name = specifier.child_by_field_name("alias").or(specifier.child_by_field_name("name"));
                found.names.extend(name.map(|name| unquoted(source, name).to_owned()));
            }
        } else if let Some(namespace) = child_of_kind(statement, "namespace_export") {
            found.names.extend(children(namespace).last().map(|name| unquoted(source, name).to_owned()));
        } else if let Some(from) = from {
            found.all_of.push(unquoted(source, from).to_owned());
        } else if child_of_kind(statement, "default").is_some() {
            found.names.insert("default".to_owned());
        } else if let Some(declaration) = statement.child_by_field_name("declaration") {
            match declaration.child_by_field_name("name") {
                Some(name) => {
                    found.names.insert(text(source, name).to_owned());
                }
                None => {
                    for declarator in children(declaration).filter_map(|one| one.child_by_field_name("name"))
                    {
                        collect_bound_names(source, declarator, &mut found.names);
                    }
                }
            }
        }
    }
    found
}

/// The names that a pattern binds. More than these may be found, which costs nothing.
fn collect_bound_names(source: &str, pattern: Node, names: &mut BTreeSet<String>) {
    // A list instead of recursion: how deep a pattern goes is up to whoever wrote it.
    let mut waiting = vec![pattern];
    while let Some(node) = waiting.pop() {
        if is_bound_name(node) {
            names.insert(text(source, node).to_owned());
        }
        waiting.extend(children(node));
    }
}

fn is_bound_name(node: Node) -> bool {
    matches!(node.kind(), "identifier" | "shorthand_property_identifier_pattern")
}

/// The names that a module declares or imports, wherever it does.
fn declared_names(source: &str, tree: &Tree) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // Each node, and whether it is part of a pattern that binds names.
    let mut waiting = vec![(tree.root_node(), false)];
    while let Some((node, binds)) = waiting.pop() {
        if binds && is_bound_name(node) {
            names.insert(text(source, node).to_owned());
        }
        let mut pattern = None;
        match node.kind() {
            "variable_declarator" => pattern = node.child_by_field_name("name"),
            "function_declaration" | "generator_function_declaration" | "class_declaration" => {
                names.extend(node.child_by_field_name("name").map(|name| text(source, name).to_owned()));
            }
            _ => {}
        }
        let binds = binds || node.kind() == "import_clause";
        waiting.extend(children(node).map(|child| (child, binds || Some(child) == pattern)));
    }
    names
}

/// Replaces imports and exports of names that a module lacks by `undefined`. `exports_of` tells what a module
/// exports; none if that is not known, or if names are read as properties anyway.
pub(crate) fn link_missing_names(
    source: &str,
    tree: &Tree,
    exports_of: &dyn Fn(&str) -> Option<Rc<BTreeSet<String>>>,
) -> Option<String> {
    let mut edits = Edits::default();
    let mut count = 0;
    // Looked for once: a file may have many lists of exports.
    let declared = OnceCell::new();
    for statement in children(tree.root_node()) {
        let from = statement.child_by_field_name("source");
        let clause = child_of_kind(statement, "import_clause").or(child_of_kind(statement, "export_clause"));
        let Some(clause) = clause.filter(|_| child_of_kind(statement, "import_attribute").is_none()) else {
            continue;
        };
        // Without a source, it exports what the file declares itself.
        let known = match from {
            Some(from) => exports_of(unquoted(source, from)),
            None => Some(declared.get_or_init(|| Rc::new(declared_names(source, tree))).clone()),
        };
        let Some(exported) = known else { continue };
        let (parts, missing) = match clause.kind() {
            "import_clause" => imported_parts(source, clause, &exported),
            _ => split_specifiers(source, clause, &exported),
        };
        if missing.is_empty() {
            continue;
        }
        let word = if clause.kind() == "import_clause" { "import" } else { "export" };
        let mut linked = match (from.map(|from| text(source, from)), parts.is_empty()) {
            (Some(module), true) => format!("import {module};"),
            (Some(module), false) => format!("{word} {} from {module};", parts.join(", ")),
            (None, true) => String::new(),
            (None, false) => format!("{word} {};", parts.join(", ")),
        };
        for name in missing {
            count += 1;
            linked.push_str(&match word {
                "import" => format!(" const {name} = undefined;"),
                _ => format!(" const hardpan_missing_{count} = undefined; export {{ hardpan_missing_{count} as {name} }};"),
            });
        }
        edits.replace(statement.byte_range(), &linked);
    }
    (count > 0).then(|| edits.apply(source))
}

/// What stays of an import, and the local names of what is missing.
fn imported_parts(source: &str, clause: Node, exported: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let (mut parts, mut missing) = (Vec::new(), Vec::new());
    for part in children(clause).filter(Node::is_named) {
        match part.kind() {
            "identifier" if !exported.contains("default") => missing.push(text(source, part).to_owned()),
            "named_imports" => {
                let (kept, lacking) = split_specifiers(source, part, exported);
                parts.extend(kept);
                missing.extend(lacking);
            }
            _ => parts.push(text(source, part).to_owned()),
        }
    }
    (parts, missing)
}

/// The specifiers in braces that name something, and the names that the others would give.
fn split_specifiers(source: &str, list: Node, exported: &BTreeSet<String>) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut missing) = (Vec::new(), Vec::new());
    for specifier in
        children(list).filter(|child| matches!(child.kind(), "import_specifier" | "export_specifier"))
    {
        let Some(name) = specifier.child_by_field_name("name") else { continue };
        if exported.contains(unquoted(source, name)) {
            kept.push(text(source, specifier));
        } else {
            let local = specifier.child_by_field_name("alias").unwrap_or(name);
            missing.push(text(source, local).to_owned());
        }
    }
    let kept = (!kept.is_empty()).then(|| format!("{{ {} }}", kept.join(", ")));
    (kept.into_iter().collect(), missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Tree {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&hardpan_grammars::language("javascript").unwrap()).unwrap();
        parser.parse(source, None).unwrap()
    }

    #[test]
    fn all_forms_of_exports_are_found() {
        let source = "export const a = 1, { b, c: [d] } = x; export function e() {} export class F {}\n\
            export { g, h as i, j as 'k' }; export { l as m } from './m'; export * as n from './n'; export * from './o'; export default 1;";
        let found = exported_names(source, &parse(source));
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(names, ["F", "a", "b", "d", "default", "e", "g", "i", "k", "m", "n"]);
        assert_eq!(found.all_of, ["./o"]);
    }

    #[test]
    fn names_that_a_module_lacks_are_undefined() {
        let link = |source: &str| {
            let exports_of =
                |name: &str| (name == "./a").then(|| Rc::new(BTreeSet::from(["here".to_owned()])));
            link_missing_names(source, &parse(source), &exports_of)
        };
        assert_eq!(link("import { here } from './a'; import { any } from './b';"), None);
        assert_eq!(
            link("import D, { here as h,\n Gone as G } from './a';\nrun();").unwrap(),
            "import { here as h } from './a'; const D = undefined; const G = undefined;\n\nrun();"
        );
        assert_eq!(link("const own = 1; import { any } from './b'; export { own, any as other };"), None);
        assert_eq!(
            link("const own = 1; export { own, Gone };").unwrap(),
            "const own = 1; export { own }; const hardpan_missing_1 = undefined; export { hardpan_missing_1 as Gone };"
        );
        assert_eq!(
            link("export { Gone } from './a';").unwrap(),
            "import './a'; const hardpan_missing_1 = undefined; export { hardpan_missing_1 as Gone };"
        );
    }

    #[test]
    fn patterns_may_be_nested_as_deep_as_a_file_is_long() {
        let (open, close) = ("[".repeat(50_000), "]".repeat(50_000));
        let source = format!("export const {open}a{close} = 1;");
        assert_eq!(exported_names(&source, &parse(&source)).names, BTreeSet::from(["a".to_owned()]));
        for source in [
            format!("const {open}a{close} = 1; export {{ a }};"),
            format!("const {{ a = {open}{close} }} = {{}}; export {{ a }};"),
        ] {
            assert_eq!(link_missing_names(&source, &parse(&source), &|_| None), None);
        }
    }

    #[test]
    fn a_file_with_many_lists_of_exports_is_linked() {
        let lists: String = (0..4_000).map(|number| format!("export {{ a as c{number} }};\n")).collect();
        let source = format!("const a = 1;\n{lists}{}", "var q = [1, 2, 3];\n".repeat(5_000));
        // Looking through the file for each list would take minutes.
        assert_eq!(link_missing_names(&source, &parse(&source), &|_| None), None);
    }
}
