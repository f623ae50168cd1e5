//! Enums as objects, on the line where they begin.

use tree_sitter::Node;

use super::{StripError, Stripper, child_of_kind, children, line_of};

impl Stripper<'_> {
    /// `enum A { X, Y = "y" }` is an object with both directions of its numbers.
    pub(super) fn replace_enum(&mut self, node: Node) -> Result<(), StripError> {
        let unsupported = |node: Node| StripError::Unsupported { line: line_of(node), what: "this enum" };
        let name = node.child_by_field_name("name").ok_or_else(|| unsupported(node))?;
        let body = child_of_kind(node, "enum_body").ok_or_else(|| unsupported(node))?;
        let name = self.text(name).to_owned();
        let mut members = String::new();
        let mut last: Option<String> = None;
        for member in children(body).filter(Node::is_named) {
            let (key, value) = match member.kind() {
                "enum_assignment" => {
                    let key = member.child_by_field_name("name").ok_or_else(|| unsupported(member))?;
                    let value = member.child_by_field_name("value").ok_or_else(|| unsupported(member))?;
                    // A value may name members before it, but not span lines: those stay as they are.
                    let value = self.text(value).split_whitespace().collect::<Vec<_>>().join(" ");
                    (key, value)
                }
                "property_identifier" | "string" => {
                    let value =
                        last.as_ref().map_or_else(|| "0".to_owned(), |last| format!("{name}[{last}] + 1"));
                    (member, value)
                }
                "comment" => continue,
                _ => return Err(unsupported(member)),
            };
            let key = self.text(key);
            let key = if key.starts_with(['"', '\'']) { key.to_owned() } else { format!("\"{key}\"") };
            let is_text = value.starts_with(['"', '\'', '`']);
            members.push_str(&if is_text {
                format!("{name}[{key}] = {value};")
            } else {
                format!("{name}[{name}[{key}] = {value}] = {key};")
            });
            last = Some(key);
        }
        let text = format!("var {name} = (({name}) => {{ {members} return {name}; }})({{}});");
        self.edits.replace(node.byte_range(), &text);
        Ok(())
    }
}
