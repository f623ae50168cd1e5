//! Field names: the server takes `systemInstruction` and `system_instruction` for the same.

use serde_json::{Map, Value};

/// Fields whose values are the client's own, with names of its own.
const FOREIGN: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
    "partMetadata",
];

/// Renames snake_case fields, all the way down to values that are not the protocol's.
pub fn to_camel_case(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(to_camel_case),
        Value::Object(fields) => {
            let renamed = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                let name = camel_case(name);
                if !FOREIGN.contains(&name.as_str()) {
                    to_camel_case(&mut value);
                }
                (name, value)
            });
            *fields = renamed.collect::<Map<String, Value>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn camel_case(name: String) -> String {
    if !name.contains('_') {
        return name;
    }
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_protocols_own_names_are_changed() {
        let mut body = json!({"system_instruction": {"parts": [{"function_call": {"name": "a_b", "args": {"file_path": 1}}}]}});
        to_camel_case(&mut body);
        let expected = json!({"systemInstruction": {"parts": [{"functionCall": {"name": "a_b", "args": {"file_path": 1}}}]}});
        assert_eq!(body, expected);
    }
}
