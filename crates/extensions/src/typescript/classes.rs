//! Members of classes: fields without values, parameter properties, members without bodies.

use tree_sitter::Node;

use super::{StripError, Stripper, child_of_kind, children, line_of};

impl Stripper<'_> {
    /// Leaves out a member that has no body, with its semicolon.
    pub(super) fn blank_member(&mut self, node: Node) {
        let semicolon = node.next_sibling().filter(|next| next.kind() == ";");
        let end = semicolon.map_or(node.end_byte(), |semicolon| semicolon.end_byte());
        self.edits.blank_statement(node.start_byte()..end);
    }

    /// Strips what a field says about its type. True if nothing of the field is left.
    pub(super) fn strip_field(&mut self, node: Node) -> bool {
        let is_declared =
            child_of_kind(node, "declare").is_some() || child_of_kind(node, "abstract").is_some();
        if is_declared {
            self.blank_member(node);
            return true;
        }
        for token in ["readonly", "?", "!"] {
            self.blank_token(node, token);
        }
        // Without a modifier and a type, `[key] = 1` or `*run() {}` would continue the field before.
        let end = node.child_by_field_name("value").map_or(node.end_byte(), |value| value.end_byte());
        let has_semicolon = node.next_sibling().is_some_and(|next| next.kind() == ";");
        if !has_semicolon {
            self.edits.insert(end.max(node.end_byte()), ";");
        }
        false
    }

    /// `constructor(private name: T)` also sets `this.name`.
    pub(super) fn assign_parameter_properties(&mut self, method: Node) -> Result<(), StripError> {
        let Some(parameters) = method.child_by_field_name("parameters") else { return Ok(()) };
        let Some(body) = method.child_by_field_name("body") else { return Ok(()) };
        let mut assignments = String::new();
        for parameter in children(parameters) {
            let is_property = children(parameter).any(|child| {
                matches!(child.kind(), "accessibility_modifier" | "override_modifier" | "readonly")
            });
            if !is_property {
                continue;
            }
            let name =
                parameter.child_by_field_name("pattern").filter(|pattern| pattern.kind() == "identifier");
            let Some(name) = name else {
                let what = "a parameter property without a plain name";
                return Err(StripError::Unsupported { line: line_of(parameter), what });
            };
            let name = self.text(name);
            assignments.push_str(&format!("this.{name} = {name};"));
        }
        if !assignments.is_empty() {
            // `this` does not exist before `super(…)`.
            let super_call = children(body).find(|statement| {
                statement.kind() == "expression_statement" && self.text(*statement).starts_with("super")
            });
            match super_call {
                Some(call) => self.edits.insert(call.end_byte(), &format!(";{assignments}")),
                None => self.edits.insert(body.start_byte() + 1, &assignments),
            }
        }
        Ok(())
    }
}
