//! [`load_declaration`]: what models read about the tools. The texts are TOML files in `texts/`,
//! compiled into the program.

use std::sync::Arc;

use hardpan_prompt::{Json, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The format of a file in `texts/`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclarationFile {
    description: Arc<str>,
    snippet: Option<Arc<str>>,
    #[serde(default)]
    guidelines: Vec<Arc<str>>,
    #[serde(default)]
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
}

/// Makes the declaration of a tool from its file. A file that cannot be parsed gives an empty
/// description; tests check that none is.
pub(crate) fn load_declaration(name: &str, file: &str) -> Tool {
    let declaration: DeclarationFile = toml::from_str(file).unwrap_or_default();
    let property = |parameter: &Parameter| {
        let mut schema = json!({"type": parameter.kind});
        if !parameter.description.is_empty() {
            schema["description"] = json!(parameter.description);
        }
        (parameter.name.clone(), schema)
    };
    let properties: Map<String, Value> = declaration.parameters.iter().map(property).collect();
    let required: Vec<&str> = declaration
        .parameters
        .iter()
        .filter(|parameter| parameter.required)
        .map(|p| p.name.as_str())
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Tool {
        name: name.into(),
        description: declaration.description,
        parameters: Json::new(&schema),
        snippet: declaration.snippet,
        guidelines: declaration.guidelines,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::read_only_tools;

    #[test]
    fn every_tool_has_its_words() {
        let tools = read_only_tools();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.declaration().name).collect();
        assert_eq!(names, ["read", "grep", "find", "ls"]);
        for tool in tools {
            let declared = tool.declaration();
            assert!(!declared.description.is_empty(), "{declared:?}");
            let schema = declared.parameters.value();
            assert!(!schema["properties"].as_object().unwrap().is_empty(), "{declared:?}");
        }
    }

    #[test]
    fn a_declaration_keeps_the_order_of_its_parameters() {
        let declared = read_only_tools()[0].declaration().parameters.value();
        let names: Vec<&String> = declared["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["path", "offset", "limit"]);
        assert_eq!(declared["required"], json!(["path"]));
    }

    // Every request pays for these bytes: think twice before raising the limit.
    #[test]
    fn the_declarations_stay_short() {
        let cost = |tool: &hardpan_prompt::Tool| tool.description.len() + tool.parameters.as_str().len();
        let bytes: usize = read_only_tools().iter().map(|tool| cost(tool.declaration())).sum();
        assert!(bytes < 1700, "{bytes}");
    }
}
