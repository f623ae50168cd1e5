//! Imports that only name types: TypeScript leaves them out, and so must the engine, for which a name
//! that a module does not export is an error.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::{Stripper, child_of_kind, children};

impl Stripper<'_> {
    /// Leaves out imports of names that are not used as values. Called when everything else is done.
    pub(super) fn drop_type_imports(&mut self, root: Node) {
        let mut used = BTreeSet::new();
        self.collect_used_names(root, &mut used);
        let imports: Vec<Node> =
            children(root).filter(|statement| statement.kind() == "import_statement").collect();
        for import in imports {
            self.strip_import(import, &used);
        }
    }

    /// Names that stand where values do, in what is left of the source.
    fn collect_used_names(&self, root: Node, used: &mut BTreeSet<String>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let is_left_out = node.kind() == "import_statement" || self.edits.covers(&node.byte_range());
            if !is_left_out {
                if matches!(node.kind(), "identifier" | "shorthand_property_identifier") {
                    used.insert(self.text(node).to_owned());
                }
                if cursor.goto_first_child() {
                    continue;
                }
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    fn strip_import(&mut self, import: Node, used: &BTreeSet<String>) {
        let clause = child_of_kind(import, "import_clause");
        let is_type_only = child_of_kind(import, "type").is_some();
        // Without a clause, the module is imported for what it does.
        let Some(clause) = clause else {
            if is_type_only {
                self.edits.blank_statement(import.byte_range());
            }
            return;
        };
        let parts: Vec<Node> = children(clause).filter(Node::is_named).collect();
        let kept = parts.iter().any(|part| match part.kind() {
            "named_imports" => {
                let specifiers: Vec<Node> =
                    children(*part).filter(|child| child.kind() == "import_specifier").collect();
                // `import {} from "x"` is an import without names.
                specifiers.is_empty() || specifiers.iter().any(|specifier| self.is_used(*specifier, used))
            }
            "namespace_import" => children(*part)
                .filter(|child| child.kind() == "identifier")
                .any(|name| used.contains(self.text(name))),
            _ => used.contains(self.text(*part)),
        });
        if is_type_only || !kept {
            self.edits.blank_statement(import.byte_range());
            return;
        }
        for part in parts {
            if part.kind() == "named_imports" {
                let unused: Vec<Node> = children(part)
                    .filter(|child| child.kind() == "import_specifier" && !self.is_used(*child, used))
                    .collect();
                unused.into_iter().for_each(|specifier| self.blank_list_item(specifier));
            }
        }
    }

    /// Whether a name of an import is used as a value.
    fn is_used(&self, specifier: Node, used: &BTreeSet<String>) -> bool {
        if child_of_kind(specifier, "type").is_some() {
            return false;
        }
        let name = specifier.child_by_field_name("alias").or_else(|| specifier.child_by_field_name("name"));
        name.is_some_and(|name| used.contains(self.text(name)))
    }
}
