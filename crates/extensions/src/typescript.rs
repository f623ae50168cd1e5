//! [`strip_types`]: JavaScript from TypeScript, by blanking everything that is only a type.
//!
//! Lines and columns stay where they are, so an error's position is that of the source. Types are not
//! checked. The grammar is the one that the symbol index uses, which costs no dependency.

mod classes; // fields, parameter properties, abstract members
mod edits; // Edits: what is blanked, replaced and inserted
mod enums; // enums as objects
mod imports; // imports that only name types

use thiserror::Error;
use tree_sitter::{Node, Parser};

pub(crate) use edits::Edits;

/// Nesting that is followed; deeper code is refused, since every level takes stack.
const MAX_DEPTH: usize = 500;

/// Why a source cannot be made JavaScript.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StripError {
    /// The source does not follow the grammar.
    #[error("line {line}, column {column}: this is no valid TypeScript: {text}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What stands there.
        text: String,
    },
    /// Syntax that needs more than leaving types out.
    #[error("line {line}: {what} cannot be used in an extension")]
    Unsupported {
        /// The line, from 1.
        line: usize,
        /// What it is.
        what: &'static str,
    },
    /// Code in code in code.
    #[error("line {line}: the code is nested too deeply")]
    TooDeep {
        /// The line, from 1.
        line: usize,
    },
    /// The grammar is not part of this build.
    #[error("this build has no grammar for TypeScript")]
    NoGrammar,
}

/// The source as JavaScript, with every line and column where it was.
pub fn strip_types(source: &str) -> Result<String, StripError> {
    let mut parser = Parser::new();
    let language = hardpan_grammars::language("typescript").ok_or(StripError::NoGrammar)?;
    parser.set_language(&language).map_err(|_| StripError::NoGrammar)?;
    let tree = parser.parse(name_imported_types(source), None).ok_or(StripError::NoGrammar)?;
    if let Some(error) = first_error(tree.root_node()) {
        return Err(syntax_error(error, source));
    }
    let mut stripper = Stripper { source, edits: Edits::default() };
    stripper.visit(tree.root_node(), 0)?;
    stripper.drop_type_imports(tree.root_node());
    Ok(stripper.edits.apply(source))
}

/// The source with a name of the same length for every `import("x")` that stands for a type, which the
/// grammar does not know: one that is followed by the name of a type, or that `typeof` is about.
fn name_imported_types(source: &str) -> String {
    let mut text = source.to_owned();
    for (at, _) in source.match_indices("import(") {
        let rest = &source[at + "import(".len()..];
        let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some(end) = rest[1..].find(quote).map(|end| end + 2) else { continue };
        let Some(after) = rest[end..].strip_prefix(')') else { continue };
        let member = after.trim_start().strip_prefix('.').map(str::trim_start);
        let is_type_name = member.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()));
        let is_single_line = !rest[..end].contains('\n');
        if is_single_line && (is_type_name || source[..at].trim_end().ends_with("typeof")) {
            let length = "import(".len() + end + 1;
            text.replace_range(at..at + length, &"i".repeat(length));
        }
    }
    text
}

/// The first place where the grammar does not fit.
fn first_error(root: Node) -> Option<Node> {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(node);
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

fn syntax_error(node: Node, source: &str) -> StripError {
    let start = node.start_position();
    let line_text = source.lines().nth(start.row).unwrap_or_default();
    let column = line_text.get(..start.column).map_or(start.column, |before| before.chars().count());
    let text = line_text.trim().chars().take(120).collect();
    StripError::Syntax { line: start.row + 1, column: column + 1, text }
}

fn line_of(node: Node) -> usize {
    node.start_position().row + 1
}

/// The children of a node. Looked up one by one, each would be searched for from the first.
pub(crate) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    node.children(&mut node.walk()).collect::<Vec<_>>().into_iter()
}

pub(crate) fn child_of_kind<'tree>(node: Node<'tree>, kind: &str) -> Option<Node<'tree>> {
    children(node).find(|child| child.kind() == kind)
}

struct Stripper<'a> {
    source: &'a str,
    edits: Edits,
}

impl Stripper<'_> {
    fn text(&self, node: Node) -> &str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn visit(&mut self, node: Node, depth: usize) -> Result<(), StripError> {
        if depth > MAX_DEPTH {
            return Err(StripError::TooDeep { line: line_of(node) });
        }
        match node.kind() {
            "type_annotation"
            | "type_predicate_annotation"
            | "asserts_annotation"
            | "type_arguments"
            | "type_parameters"
            | "implements_clause"
            | "accessibility_modifier"
            | "override_modifier" => {
                self.edits.blank(node.byte_range());
                return Ok(());
            }
            "interface_declaration"
            | "type_alias_declaration"
            | "ambient_declaration"
            | "function_signature" => {
                self.edits.blank_statement(node.byte_range());
                return Ok(());
            }
            "abstract_method_signature" | "method_signature" | "index_signature" => {
                self.blank_member(node);
                return Ok(());
            }
            "export_statement" if self.is_type_export(node) => {
                self.edits.blank_statement(node.byte_range());
                return Ok(());
            }
            "import_statement" => {
                if child_of_kind(node, "import_require_clause").is_some() {
                    let what = "`import … = require(…)`";
                    return Err(StripError::Unsupported { line: line_of(node), what });
                }
                // Imports are looked at once it is known which names are used.
                return Ok(());
            }
            "export_specifier" if child_of_kind(node, "type").is_some() => {
                self.blank_list_item(node);
                return Ok(());
            }
            "as_expression" | "satisfies_expression" => self.strip_cast(node),
            "non_null_expression" => self.blank_token(node, "!"),
            "type_assertion" => {}
            "required_parameter" | "optional_parameter" if is_this_parameter(node) => {
                self.blank_list_item(node);
                return Ok(());
            }
            "required_parameter" | "optional_parameter" => {
                self.blank_token(node, "?");
                self.blank_token(node, "readonly");
            }
            "variable_declarator" => self.blank_token(node, "!"),
            "public_field_definition" if self.strip_field(node) => return Ok(()),
            "method_definition" => {
                self.blank_token(node, "?");
                self.blank_token(node, "readonly");
                self.assign_parameter_properties(node)?;
            }
            "abstract_class_declaration" => self.blank_token(node, "abstract"),
            "arrow_function" => self.close_parameters_late(node),
            "enum_declaration" => return self.replace_enum(node),
            "internal_module" | "module" => {
                return Err(StripError::Unsupported { line: line_of(node), what: "a namespace" });
            }
            "decorator" => {
                return Err(StripError::Unsupported { line: line_of(node), what: "a decorator" });
            }
            "import_alias" => {
                return Err(StripError::Unsupported { line: line_of(node), what: "`import … = …`" });
            }
            _ => {}
        }
        for child in children(node) {
            self.visit(child, depth + 1)?;
        }
        Ok(())
    }

    /// Whether an export names types alone: `export type { A }`, `export interface A {}`.
    fn is_type_export(&self, node: Node) -> bool {
        const TYPES: [&str; 4] =
            ["interface_declaration", "type_alias_declaration", "ambient_declaration", "function_signature"];
        children(node).any(|child| child.kind() == "type" || TYPES.contains(&child.kind()))
    }

    fn blank_token(&mut self, node: Node, token: &str) {
        if let Some(found) = child_of_kind(node, token) {
            self.edits.blank(found.byte_range());
        }
    }

    /// Blanks an item of a list together with the comma behind it.
    fn blank_list_item(&mut self, node: Node) {
        let comma = node.next_sibling().filter(|next| next.kind() == ",");
        let end = comma.map_or(node.end_byte(), |comma| comma.end_byte());
        self.edits.blank(node.start_byte()..end);
    }

    /// Blanks `as T` and `satisfies T`.
    fn strip_cast(&mut self, node: Node) {
        let Some(word) = children(node).find(|child| matches!(child.kind(), "as" | "satisfies")) else {
            return;
        };
        let range = word.start_byte()..node.end_byte();
        if self.joins_next_line(range.end) {
            self.edits.blank_statement(range);
        } else {
            self.edits.blank(range);
        }
    }

    /// Whether the next line would continue an expression that ends here: a statement without a
    /// semicolon, before one that begins with a bracket.
    fn joins_next_line(&self, end: usize) -> bool {
        let rest = self.source.get(end..).unwrap_or_default();
        let next = rest.trim_start();
        let has_line_break = rest[..rest.len() - next.len()].contains('\n');
        has_line_break && next.starts_with(['(', '[', '`', '+', '-', '/'])
    }

    /// A line break may not stand before `=>`. Where a type has one, the parameters end behind it.
    fn close_parameters_late(&mut self, node: Node) {
        let Some(annotation) = node.child_by_field_name("return_type") else { return };
        let Some(parameters) = node.child_by_field_name("parameters") else { return };
        if self.text(annotation).contains('\n') && parameters.end_byte() > 0 {
            self.edits.replace(parameters.end_byte() - 1..parameters.end_byte(), " ");
            self.edits.insert(annotation.end_byte(), ")");
        }
    }
}

fn is_this_parameter(node: Node) -> bool {
    node.child_by_field_name("pattern").is_some_and(|pattern| pattern.kind() == "this")
}

#[cfg(test)]
mod tests;
