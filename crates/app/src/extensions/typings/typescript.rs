//! [`TypePrinter`]: JSON schemas as types of TypeScript.

use serde_json::{Map, Value};

/// Longest line of a type that is written without line breaks.
const MAX_LINE: usize = 120;

/// The types of schemas, and the named types that they mention, in the order in which they came up.
#[derive(Default)]
pub struct TypePrinter {
    /// By name, the text of the declaration.
    declared: Vec<(String, String)>,
}

/// A list of schemas under a keyword.
fn list<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Vec<Value>> {
    schema.get(keyword).and_then(Value::as_array)
}

impl TypePrinter {
    /// Declares the named types of some definitions. One that is declared already stays as it is.
    pub fn declare(&mut self, definitions: &Map<String, Value>) {
        for (name, schema) in definitions {
            self.declare_type(name, schema);
        }
    }

    /// All declarations.
    pub fn into_text(self, indent: &str) -> String {
        let lines = self.declared.iter().flat_map(|(_, text)| text.lines());
        lines.map(|line| format!("{indent}{line}\n")).collect()
    }

    fn declare_type(&mut self, name: &str, schema: &Value) {
        if self.declared.iter().any(|(known, _)| known == name) {
            return;
        }
        let at = self.declared.len();
        self.declared.push((name.to_owned(), String::new()));
        let is_object = schema.get("properties").is_some()
            && ["oneOf", "anyOf", "additionalProperties"].iter().all(|word| schema.get(*word).is_none());
        let body = if is_object {
            format!("export interface {name} {}\n", self.block(schema))
        } else if schema["type"] == "object" && schema.as_object().is_some_and(is_plain_object) {
            format!("export interface {name} {{}}\n")
        } else {
            format!("export type {name} = {};\n", self.type_of(schema))
        };
        self.declared[at].1 = comment(schema, "") + &body;
    }

    /// The fields of an object, each on its line.
    fn block(&mut self, schema: &Value) -> String {
        let mut text = "{\n".to_owned();
        for (name, optional, field) in fields(schema) {
            text.push_str(&comment(field, "  "));
            text.push_str(&format!("  {name}{optional}: {};\n", self.field_type(field, optional)));
        }
        text + "}"
    }

    /// The type of a field. One that can be left out is left out, and not null.
    fn field_type(&mut self, field: &Value, optional: &str) -> String {
        let printed = self.type_of(field);
        match optional {
            "?" => printed.trim_end_matches(" | null").to_owned(),
            _ => printed,
        }
    }

    /// The type that a schema describes.
    pub fn type_of(&mut self, schema: &Value) -> String {
        if let Some(text) = schema["x-typescript"].as_str() {
            return text.to_owned();
        }
        if let Some(target) = schema["$ref"].as_str() {
            return target.rsplit('/').next().unwrap_or_default().to_owned();
        }
        if let Some(word) = schema.get("const") {
            return word.to_string();
        }
        if let Some(words) = list(schema, "enum") {
            return union(words.iter().map(Value::to_string));
        }
        if let Some(variants) = list(schema, "oneOf").or_else(|| list(schema, "anyOf")) {
            let variants = union(variants.iter().map(|variant| self.variant(variant)).collect::<Vec<_>>());
            return match schema.get("properties") {
                Some(_) => format!("{} & ({variants})", self.object(schema)),
                None => variants,
            };
        }
        match &schema["type"] {
            Value::Array(kinds) => {
                let single = |kind: &Value| {
                    let mut schema = schema.clone();
                    schema["type"] = kind.clone();
                    schema
                };
                union(kinds.iter().map(|kind| self.type_of(&single(kind))).collect::<Vec<_>>())
            }
            Value::String(kind) => match kind.as_str() {
                "null" => "null".to_owned(),
                "boolean" => "boolean".to_owned(),
                "integer" | "number" => "number".to_owned(),
                "string" => "string".to_owned(),
                "array" => {
                    let item = self.type_of(&schema["items"]);
                    if item.contains(['|', '&']) { format!("({item})[]") } else { format!("{item}[]") }
                }
                _ => self.object(schema),
            },
            _ => "any".to_owned(),
        }
    }

    /// A variant of an enum; one that has a title becomes a type of this name.
    fn variant(&mut self, schema: &Value) -> String {
        let Some(title) = schema["title"].as_str() else { return self.type_of(schema) };
        self.declare_type(title, schema);
        title.to_owned()
    }

    fn object(&mut self, schema: &Value) -> String {
        let rest = schema.get("additionalProperties").filter(|rest| **rest != Value::Bool(false));
        if schema.get("properties").is_none() {
            let value = rest.map_or_else(|| "any".to_owned(), |rest| self.type_of(rest));
            return format!("Record<string, {value}>");
        }
        let mut members: Vec<String> = Vec::new();
        for (name, optional, field) in fields(schema) {
            members.push(format!("{name}{optional}: {}", self.field_type(field, optional)));
        }
        members.extend(rest.map(|_| "[other: string]: any".to_owned()));
        let line = format!("{{ {} }}", members.join("; "));
        if line.len() <= MAX_LINE { line } else { format!("{{\n    {};\n  }}", members.join(";\n    ")) }
    }
}

/// Whether an object has no fields of its own, and takes no others.
fn is_plain_object(schema: &Map<String, Value>) -> bool {
    schema.keys().all(|word| ["type", "description"].contains(&&**word))
}

/// The fields of an object: name, `?` if it can be left out, schema.
fn fields(schema: &Value) -> impl Iterator<Item = (&String, &'static str, &Value)> {
    let required = list(schema, "required");
    let is_required =
        move |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(move |(name, field)| (name, if is_required(name) { "" } else { "?" }, field))
}

/// The description as a comment.
fn comment(schema: &Value, indent: &str) -> String {
    let Some(text) = schema["description"].as_str() else { return String::new() };
    format!("{indent}/** {} */\n", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Types of which one holds; null comes last.
fn union(types: impl IntoIterator<Item = String>) -> String {
    let mut types: Vec<String> = types.into_iter().collect();
    types.sort_by_key(|name| name == "null");
    types.dedup();
    types.join(" | ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(schema: &Value) -> String {
        TypePrinter::default().type_of(schema)
    }

    #[test]
    fn schemas_become_types() {
        for (schema, expected) in [
            (json!(true), "any"),
            (json!({"type": "integer", "minimum": 0}), "number"),
            (json!({"type": ["null", "string"]}), "string | null"),
            (json!({"type": "string", "enum": ["a", "b"]}), "\"a\" | \"b\""),
            (json!({"type": "array", "items": {"$ref": "#/$defs/Part"}}), "Part[]"),
            (json!({"type": "array", "items": {"type": ["string", "null"]}}), "(string | null)[]"),
            (json!({"anyOf": [{"$ref": "#/$defs/Part"}, {"type": "null"}]}), "Part | null"),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), "Record<string, string>"),
            (
                json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": ["string", "null"]}}, "required": ["a"]}),
                "{ a: boolean; b?: string }",
            ),
        ] {
            assert_eq!(printed(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_variant_with_a_title_has_a_name() {
        let schema = json!({
            "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"],
            "oneOf": [{"title": "One", "type": "object", "description": "The first.",
                "properties": {"type": {"const": "one"}}, "required": ["type"]}],
        });
        let mut printer = TypePrinter::default();
        assert_eq!(printer.type_of(&schema), "{ id: string } & (One)");
        assert_eq!(printer.into_text(""), "/** The first. */\nexport interface One {\n  type: \"one\";\n}\n");
    }
}
