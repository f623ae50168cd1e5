//! Imports of known modules (built-in ones, and those of CommonJS) as reads of properties, with every line
//! where it was.
//!
//! The engine refuses a whole module for one name that another does not export. Extensions are written
//! for a loader where such a name is `undefined`, and most never use the ones that are missing here.

use tree_sitter::{Node, Tree};

use crate::typescript::{Edits, child_of_kind, children};

/// JavaScript whose imports of known modules read what they name.
pub(crate) fn link_known_modules(source: &str, tree: &Tree, is_known: &dyn Fn(&str) -> bool) -> String {
    let mut edits = Edits::default();
    let mut count = 0;
    let linker = Linker { source, is_known };
    for statement in children(tree.root_node()) {
        if !linker.names_known_module(statement.child_by_field_name("source")) {
            continue;
        }
        count += 1;
        match statement.kind() {
            "import_statement" => linker.link_import(statement, count, &mut edits),
            "export_statement" => linker.link_export(statement, count, &mut edits),
            _ => {}
        }
    }
    linker.link_dynamic_imports(tree.root_node(), &mut edits);
    edits.apply(source)
}

/// The default export of a module whose content is `local`: CommonJS that was an ES module once has one.
fn default_of(local: &str) -> String {
    format!("({local}?.__esModule ? {local}.default : {local})")
}

struct Linker<'a> {
    source: &'a str,
    /// Whether a module is known: its names are those of its default export.
    is_known: &'a dyn Fn(&str) -> bool,
}

impl<'a> Linker<'a> {
    fn text(&self, node: Node) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    /// Whether a string names a known module.
    fn names_known_module(&self, name: Option<Node>) -> bool {
        let name = name.filter(|name| name.kind() == "string").map(|name| self.text(name));
        let name = name.and_then(|quoted| quoted.get(1..quoted.len().saturating_sub(1)));
        name.is_some_and(self.is_known)
    }

    /// `import a, { b, c as d } from "x"` becomes `import a from "x"; const { b, c: d } = a`.
    fn link_import(&self, statement: Node, number: usize, edits: &mut Edits) {
        let Some(clause) = child_of_kind(statement, "import_clause") else { return };
        let name = statement.child_by_field_name("source").map_or("", |name| self.text(name));
        let local = format!("hardpan_import_{number}");
        let mut bindings = String::new();
        for part in children(clause).filter(Node::is_named) {
            match part.kind() {
                "identifier" => {
                    bindings.push_str(&format!(" const {} = {};", self.text(part), default_of(&local)));
                }
                "namespace_import" => {
                    let alias = children(part).find(|child| child.kind() == "identifier");
                    let alias = alias.map_or("", |alias| self.text(alias));
                    bindings.push_str(&format!(" const {alias} = {local};"));
                }
                "named_imports" => {
                    for specifier in children(part).filter(|child| child.kind() == "import_specifier") {
                        let imported =
                            specifier.child_by_field_name("name").map_or("", |name| self.text(name));
                        let alias =
                            specifier.child_by_field_name("alias").map_or(imported, |alias| self.text(alias));
                        let value = if imported == "default" {
                            default_of(&local)
                        } else {
                            format!("{local}.{imported}")
                        };
                        bindings.push_str(&format!(" const {alias} = {value};"));
                    }
                }
                _ => {}
            }
        }
        edits.replace(statement.byte_range(), &format!("import {local} from {name};{bindings}"));
    }

    /// `export { a as b } from "x"` becomes `import x from "x"; const hardpan_b = x.a; export { hardpan_b as b }`.
    fn link_export(&self, statement: Node, number: usize, edits: &mut Edits) {
        let Some(clause) = child_of_kind(statement, "export_clause") else { return };
        let name = statement.child_by_field_name("source").map_or("", |name| self.text(name));
        let local = format!("hardpan_export_{number}");
        let mut linked = format!("import {local} from {name};");
        for (at, specifier) in children(clause).filter(|child| child.kind() == "export_specifier").enumerate()
        {
            let exported = specifier.child_by_field_name("name").map_or("", |name| self.text(name));
            let alias = specifier.child_by_field_name("alias").map_or(exported, |alias| self.text(alias));
            let value =
                if exported == "default" { default_of(&local) } else { format!("{local}.{exported}") };
            linked.push_str(&format!(" const {local}_{at} = {value}; export {{ {local}_{at} as {alias} }};"));
        }
        edits.replace(statement.byte_range(), &linked);
    }

    /// `import("x")` gives the module's content itself, as its names are not exported one by one.
    fn link_dynamic_imports(&self, root: Node, edits: &mut Edits) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let is_import = node.kind() == "call_expression"
                && node.child_by_field_name("function").is_some_and(|called| called.kind() == "import");
            if is_import {
                let argument = node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
                if argument.is_some_and(|argument| argument.kind() != "string") {
                    // What it names is known when it runs.
                    edits.insert(node.end_byte(), ".then((module) => module.hardpanNamespace ?? module)");
                } else if self.names_known_module(argument) {
                    edits.insert(node.end_byte(), ".then((module) => module.hardpanNamespace)");
                }
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::built_in_module;

    fn link_known_modules(source: &str) -> String {
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&hardpan_grammars::language("javascript").unwrap()).unwrap();
        let tree = parser.parse(source, None).unwrap();
        super::link_known_modules(source, &tree, &|name| built_in_module(name).is_some())
    }

    #[test]
    fn a_named_import_is_a_read_on_the_same_line() {
        let linked = link_known_modules("import os, { homedir as home,\n tmpdir } from 'node:os';\nrun();");
        assert_eq!(
            linked,
            "import hardpan_import_1 from 'node:os'; const os = (hardpan_import_1?.__esModule ? hardpan_import_1.default : hardpan_import_1); const home = hardpan_import_1.homedir; const tmpdir = hardpan_import_1.tmpdir;\n\nrun();"
        );
        let linked = link_known_modules("import * as path from \"path\"\nimport { a } from \"./a\"");
        assert_eq!(
            linked,
            "import hardpan_import_1 from \"path\"; const path = hardpan_import_1;\nimport { a } from \"./a\""
        );
    }

    #[test]
    fn a_dynamic_import_gives_the_module_itself() {
        let linked =
            link_known_modules("const { join } = await import(\"node:path\");\nawait import(\"./a.js\");");
        assert_eq!(
            linked,
            "const { join } = await import(\"node:path\").then((module) => module.hardpanNamespace);\nawait import(\"./a.js\");"
        );
    }

    #[test]
    fn a_dynamic_import_of_a_name_that_is_computed_gives_the_module_itself_too() {
        assert_eq!(
            link_known_modules("const load = (name) => import(name);"),
            "const load = (name) => import(name).then((module) => module.hardpanNamespace ?? module);"
        );
    }

    #[test]
    fn names_of_a_known_module_are_exported_again() {
        let linked = link_known_modules("export { join as j, default } from \"node:path\";");
        assert_eq!(
            linked,
            "import hardpan_export_1 from \"node:path\"; const hardpan_export_1_0 = hardpan_export_1.join; export { hardpan_export_1_0 as j }; const hardpan_export_1_1 = (hardpan_export_1?.__esModule ? hardpan_export_1.default : hardpan_export_1); export { hardpan_export_1_1 as default };"
        );
    }
}
