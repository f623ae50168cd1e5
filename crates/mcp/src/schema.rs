//! [`normalise_schema`]: the schema of a tool's arguments, in a form that every provider takes.
//!
//! Servers write schemas of any draft, and some that are none. Providers refuse a request for one schema
//! that they do not like, whatever else it holds. So what no draft of today allows is left out here: the
//! server checks the arguments anyway.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::tool_list::cut_text;

/// The longest description of an argument, in bytes.
const MAX_ARGUMENT_DESCRIPTION: usize = 1024;

/// The largest schema, in bytes of JSON. A larger one is replaced by one that allows any object.
const MAX_SCHEMA: usize = 32 * 1024;

/// How deep schemas are.
const MAX_DEPTH: usize = 24;

/// The types that there are.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// A schema that every provider takes: an object at the root, references replaced by what they name, what
/// refers to itself by anything, no deeper and larger than a limit.
pub(crate) fn normalise_schema(schema: &Value) -> Value {
    let mut work = SchemaWork { root: schema, open: Vec::new(), budget: MAX_SCHEMA / 8 };
    let anything = || json!({"type": "object", "properties": {}, "additionalProperties": true});
    let Some(Value::Object(mut fields)) = work.normalise(schema, 0) else { return anything() };
    merge_alternatives(&mut fields);
    if !fields.remove("type").is_none_or(|kind| allows_object(&kind)) {
        return anything();
    }
    let mut ordered = Map::new();
    ordered.insert("type".into(), "object".into());
    ordered.insert("properties".into(), fields.remove("properties").unwrap_or_else(|| json!({})));
    // Some providers refuse these at the root.
    let is_kept = |name: &str| !matches!(name, "not" | "enum" | "const" | "if" | "then" | "else");
    ordered.extend(fields.into_iter().filter(|(name, _)| is_kept(name)));
    let normal = Value::Object(ordered);
    if normal.to_string().len() > MAX_SCHEMA { anything() } else { normal }
}

/// The longest name of an argument that all providers take.
const MAX_ARGUMENT_NAME: usize = 64;

/// Gives other names to the arguments of a schema whose names a provider would refuse, as it refuses
/// `filter[id]`. Returns the names that they had by the new ones. Names further down are not looked at.
pub fn rename_arguments(schema: &mut Value) -> BTreeMap<String, String> {
    let mut renamed = BTreeMap::new();
    let Some(Value::Object(properties)) = schema.get("properties") else { return renamed };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_taken =
        |name: &str| !name.is_empty() && name.len() <= MAX_ARGUMENT_NAME && name.chars().all(is_plain);
    let mut taken: BTreeSet<String> = properties.keys().filter(|name| is_taken(name)).cloned().collect();
    let mut named = Map::new();
    for (name, argument) in properties {
        let new = if is_taken(name) { name.clone() } else { plain_argument_name(name, is_plain, &taken) };
        if new != *name {
            taken.insert(new.clone());
            renamed.insert(new.clone(), name.clone());
        }
        named.insert(new, argument.clone());
    }
    if !renamed.is_empty() {
        schema["properties"] = Value::Object(named);
        let new_name = |old: &str| renamed.iter().find(|(_, name)| *name == old).map(|(new, _)| new.clone());
        for name in schema.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(new) = name.as_str().and_then(new_name) {
                *name = new.into();
            }
        }
        // These name arguments, too, and the server checks what they say.
        for rule in ["dependencies", "dependentRequired", "dependentSchemas", "propertyNames"] {
            schema.as_object_mut().map(|schema| schema.remove(rule));
        }
    }
    renamed
}

fn plain_argument_name(name: &str, is_plain: impl Fn(char) -> bool, taken: &BTreeSet<String>) -> String {
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = plain.trim_matches('_').get(..MAX_ARGUMENT_NAME - 4).unwrap_or(plain.trim_matches('_'));
    let first = if plain.is_empty() { "argument" } else { plain };
    let numbered = (2..).map(|number| format!("{first}_{number}"));
    std::iter::once(first.to_owned()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

fn allows_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// Puts the properties of a root's alternatives into the root, which alone is kept: providers refuse the
/// others, and a model has to know the arguments. Required is what every alternative requires.
fn merge_alternatives(root: &mut Map<String, Value>) {
    for (kind, is_choice) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
        let Some(Value::Array(alternatives)) = root.remove(kind) else { continue };
        let mut required: Option<Vec<Value>> = None;
        for alternative in alternatives {
            let Value::Object(mut alternative) = alternative else { continue };
            if !alternative.get("type").is_none_or(allows_object) {
                continue;
            }
            merge_alternatives(&mut alternative);
            if let Some(Value::Object(properties)) = alternative.remove("properties") {
                let known = root.entry("properties").or_insert_with(|| json!({}));
                properties.into_iter().for_each(|(name, schema)| add_property(known, name, schema));
            }
            let own = match alternative.remove("required") {
                Some(Value::Array(own)) => own,
                _ => Vec::new(),
            };
            required = Some(match required {
                None => own,
                Some(common) if is_choice => common.into_iter().filter(|name| own.contains(name)).collect(),
                Some(all) => all.into_iter().chain(own).collect(),
            });
        }
        let required = required.filter(|required| !required.is_empty());
        if let (Some(new), Value::Array(known)) =
            (required, root.entry("required").or_insert_with(|| json!([])))
        {
            for name in new {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
    }
    if root.get("required").is_some_and(|required| *required == json!([])) {
        root.remove("required");
    }
}

/// Adds a property; one with the same name and another schema becomes a choice.
fn add_property(properties: &mut Value, name: String, schema: Value) {
    let Value::Object(properties) = properties else { return };
    match properties.get_mut(&name) {
        None => {
            properties.insert(name, schema);
        }
        Some(known) if *known == schema => {}
        Some(Value::Object(known)) if known.len() == 1 && known.contains_key("anyOf") => {
            if let Some(Value::Array(choices)) = known.get_mut("anyOf")
                && !choices.contains(&schema)
            {
                choices.push(schema);
            }
        }
        Some(known) => *known = json!({"anyOf": [known.take(), schema]}),
    }
}

struct SchemaWork<'a> {
    root: &'a Value,
    /// The references that are being replaced: one among them refers to itself.
    open: Vec<String>,
    /// How many more schemas there may be: references can double at each level.
    budget: usize,
}

impl SchemaWork<'_> {
    /// What stands in the place of a schema. None if it is none.
    fn normalise(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || self.budget == 0 {
            return Some(json!({}));
        }
        self.budget -= 1;
        match schema {
            Value::Bool(_) => Some(schema.clone()),
            Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
                Some(reference) => Some(self.replace(reference, fields, depth)),
                None => Some(Value::Object(self.object(fields, depth))),
            },
            _ => None,
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut normal = Map::new();
        for (name, value) in fields {
            // Before 2020 a list of items had the name that one schema for all has now.
            let name = match (name.as_str(), value) {
                ("items", Value::Array(_)) => "prefixItems",
                (name, _) => name,
            };
            if let Some(value) = self.keyword(name, value, depth) {
                normal.insert(name.to_owned(), value);
            }
        }
        // OpenAI refuses lists that do not say of what.
        if normal.get("type").is_some_and(allows_array) && !normal.contains_key("items") {
            normal.insert("items".into(), json!({}));
        }
        normal
    }

    /// The value of a keyword, if it is one that the keyword can have.
    fn keyword(&mut self, name: &str, value: &Value, depth: usize) -> Option<Value> {
        let kept_if = |is_kept: bool| is_kept.then(|| value.clone());
        match name {
            "$schema" | "$id" | "id" | "$defs" | "definitions" | "$comment" | "$anchor" | "$ref" => None,
            "description" => value.as_str().map(|text| cut_text(text, MAX_ARGUMENT_DESCRIPTION).into()),
            "properties" | "patternProperties" | "dependentSchemas" => {
                let named = value.as_object()?.iter();
                let named = named
                    .filter_map(|(name, schema)| Some((name.clone(), self.normalise(schema, depth + 1)?)));
                Some(Value::Object(named.collect()))
            }
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "not"
            | "contains"
            | "propertyNames"
            | "if"
            | "then"
            | "else"
            | "unevaluatedProperties"
            | "unevaluatedItems" => self.normalise(value, depth + 1),
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                let listed: Vec<Value> =
                    value.as_array()?.iter().filter_map(|schema| self.normalise(schema, depth + 1)).collect();
                (!listed.is_empty()).then_some(Value::Array(listed))
            }
            "type" => known_types(value),
            "required" => {
                let mut names: Vec<Value> = Vec::new();
                for name in value.as_array()?.iter().filter(|name| name.is_string()) {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                Some(Value::Array(names))
            }
            "dependentRequired" => kept_if(value.as_object()?.values().all(is_list_of_names)),
            "enum" | "examples" => kept_if(value.as_array().is_some_and(|values| !values.is_empty())),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => kept_if(value.is_number()),
            "multipleOf" => kept_if(value.as_f64().is_some_and(|number| number > 0.0)),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains" => kept_if(value.is_u64()),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => kept_if(value.is_boolean()),
            "pattern" | "format" | "title" => kept_if(value.is_string()),
            _ => Some(value.clone()),
        }
    }

    fn replace(&mut self, reference: &str, fields: &Map<String, Value>, depth: usize) -> Value {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)).cloned();
        let is_open = self.open.iter().any(|open| open == reference);
        let mut normal = match target.filter(|_| !is_open) {
            Some(target) => {
                self.open.push(reference.to_owned());
                let normal = self.normalise(&target, depth + 1);
                self.open.pop();
                normal.unwrap_or_else(|| json!({}))
            }
            None => json!({}),
        };
        let description = fields.get("description").and_then(Value::as_str);
        if let (Value::Object(normal), Some(text)) = (&mut normal, description) {
            normal.insert("description".into(), cut_text(text, MAX_ARGUMENT_DESCRIPTION).into());
        }
        normal
    }
}

fn allows_array(kind: &Value) -> bool {
    kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// Types by names that exist; none if no name does.
fn known_types(value: &Value) -> Option<Value> {
    let is_known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match value {
        Value::Array(kinds) => {
            let kinds: Vec<Value> = kinds.iter().filter(|kind| is_known(kind)).cloned().collect();
            (!kinds.is_empty()).then_some(Value::Array(kinds))
        }
        kind => is_known(kind).then(|| kind.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_names_that_every_provider_takes() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "filter[id]": {"type": "string"}, "filter_id": {}, "filter[id": {}, "": {}, "ü": {}, "a.b-c": {},
                "x".repeat(100): {"properties": {"not the root": {}}},
            },
            "required": ["filter[id]", "a.b-c"],
            "dependentRequired": {"filter[id]": ["a.b-c"]},
        });
        let renamed = rename_arguments(&mut schema);
        let cut = "x".repeat(60);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "filter_id_2": {"type": "string"}, "filter_id": {}, "filter_id_3": {}, "argument": {},
                    "argument_2": {}, "a.b-c": {}, &cut: {"properties": {"not the root": {}}},
                },
                "required": ["filter_id_2", "a.b-c"],
            })
        );
        let names: Vec<(&str, &str)> = renamed.iter().map(|(new, old)| (&**new, &**old)).collect();
        let long = "x".repeat(100);
        assert_eq!(
            names,
            [
                ("argument", ""),
                ("argument_2", "ü"),
                ("filter_id_2", "filter[id]"),
                ("filter_id_3", "filter[id"),
                (&*cut, &*long)
            ]
        );
        let plain = json!({"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}});
        let mut same = plain.clone();
        assert!(rename_arguments(&mut same).is_empty());
        assert_eq!(same, plain);
        assert_eq!(
            normalise_schema(&json!({"dependentRequired": {"a": "b"}})),
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn what_providers_refuse_in_a_schema_is_left_out() {
        let odd = json!({
            "type": "object",
            "required": true,
            "additionalProperties": "no",
            "properties": {
                "a": {"type": "string", "required": true, "description": 5, "pattern": ["x"], "minLength": -1},
                "b": {"type": "int", "minimum": 1, "exclusiveMinimum": true, "enum": []},
                "c": {"type": ["string", "null", "file"], "format": null, "x-own": {"type": "any"}},
                "d": {"type": "array", "items": [{"type": "string"}, {"type": "nothing"}], "uniqueItems": "yes"},
                "required": {"type": "boolean", "default": {"$ref": "#/x"}},
                "e": "string",
                "f": {"anyOf": [], "oneOf": {"type": "string"}},
                "type": {"type": "string", "enum": ["$ref", null]},
            },
        });
        assert_eq!(
            normalise_schema(&odd),
            json!({"type": "object", "properties": {
                "a": {"type": "string"},
                "b": {"minimum": 1},
                "c": {"type": ["string", "null"], "x-own": {"type": "any"}},
                "d": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}},
                "required": {"type": "boolean", "default": {"$ref": "#/x"}},
                "f": {},
                "type": {"type": "string", "enum": ["$ref", null]},
            }})
        );
        let long = "It reads a file. ".repeat(400);
        let schema = normalise_schema(&json!({"properties": {"a": {"description": long}}}));
        let described = schema["properties"]["a"]["description"].as_str().expect("a text");
        assert!(described.len() <= MAX_ARGUMENT_DESCRIPTION + 6 && described.ends_with(". […]"));
    }

    #[test]
    fn every_list_says_of_what_it_is() {
        let list = json!({"type": "array"});
        let odd = json!({
            "properties": {
                "a": list,
                "b": {"type": ["array", "null"], "items": "string"},
                "c": {"type": "object", "properties": {"d": {"anyOf": [{"type": "array", "items": null}, {"type": "null"}]}}},
                "e": {"type": "array", "items": list},
                "f": {"$ref": "#/$defs/list"},
                "g": {"type": "array", "items": true},
            },
            "additionalProperties": list,
            "$defs": {"list": list},
        });
        let list = json!({"type": "array", "items": {}});
        assert_eq!(
            normalise_schema(&odd),
            json!({
                "type": "object",
                "properties": {
                    "a": list,
                    "b": {"type": ["array", "null"], "items": {}},
                    "c": {"type": "object", "properties": {"d": {"anyOf": [list, {"type": "null"}]}}},
                    "e": {"type": "array", "items": list},
                    "f": list,
                    "g": {"type": "array", "items": true},
                },
                "additionalProperties": list,
            })
        );
    }

    #[test]
    fn schemas_become_objects_without_references() {
        let recursive = json!({
            "$schema": "x",
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/node", "description": "all"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "id": {"type": "string"}}}}
        });
        assert_eq!(
            normalise_schema(&recursive),
            json!({"type": "object", "properties": {"tree": {
                "type": "object",
                "properties": {"next": {}, "id": {"type": "string"}},
                "description": "all"
            }}})
        );
        let any = json!({"type": "object", "properties": {}, "additionalProperties": true});
        let own_root = json!({"$ref": "#"});
        for schema in [json!(true), json!([]), json!({"type": "string"}), json!({"type": ["string", "null"]})]
        {
            assert_eq!(normalise_schema(&schema), any, "{schema}");
        }
        assert_eq!(normalise_schema(&own_root), json!({"type": "object", "properties": {}}));
        assert_eq!(normalise_schema(&json!({})), json!({"type": "object", "properties": {}}));
        assert_eq!(
            normalise_schema(&json!({"properties": 5, "required": ["a"]})),
            json!({"type": "object", "properties": {}, "required": ["a"]})
        );
    }

    #[test]
    fn a_model_learns_the_arguments_of_every_alternative() {
        let by_kind = |kind: &str, other: &str| {
            json!({"type": "object", "required": ["kind", other], "additionalProperties": false,
                "properties": {"kind": {"const": kind}, other: {"type": "string"}}})
        };
        let choice = json!({"$defs": {"b": by_kind("b", "second")},
            "oneOf": [by_kind("a", "first"), {"$ref": "#/$defs/b"}, {"type": "null"}, by_kind("c", "first")]});
        assert_eq!(
            normalise_schema(&choice),
            json!({"type": "object", "required": ["kind"], "properties": {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}, {"const": "c"}]},
                "first": {"type": "string"},
                "second": {"type": "string"},
            }})
        );
        let all = json!({"type": ["object", "null"], "properties": {"a": {}}, "required": ["a"],
            "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b", "a"]}, true]});
        assert_eq!(
            normalise_schema(&all),
            json!({"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "required": ["a", "b"]})
        );
    }

    #[test]
    fn a_schema_that_doubles_at_each_level_ends() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            defs.insert(format!("l{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
        }
        let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": defs});
        assert!(normalise_schema(&schema).to_string().len() <= MAX_SCHEMA);
    }
}
