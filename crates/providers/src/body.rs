//! Splits request bodies into [`BodyBlock`]s, to find the first difference between two requests:
//! the place from which a provider's cache no longer helps.

use std::collections::BTreeSet;

use hardpan_models::Protocol;
use serde_json::Value;

use crate::codec::codec;
use crate::decode::without_marker;

/// A block of a request body: its address, the role of its message, and its content without its
/// breakpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyBlock {
    /// Where it is in the body: `messages[3].content[1]`.
    pub address: String,
    /// The role of its message; `None` for tools.
    pub role: Option<String>,
    /// The block's JSON, without cache markers.
    pub content: Value,
}

/// The first block in which two bodies differ.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyDifference {
    /// How many blocks before it are equal.
    pub same: usize,
    /// The differing block of the first body; `None` if the first body is a prefix of the second.
    pub first: Option<BodyBlock>,
    /// The differing block of the second body; `None` if the second is a prefix of the first.
    pub second: Option<BodyBlock>,
}

/// Whether a JSON value is a request body of a known protocol.
pub fn is_request_body(value: &Value) -> bool {
    message_fields().any(|field| value[field].is_array()) && !value["version"].is_number()
}

/// The fields that list the messages, each once.
fn message_fields() -> impl Iterator<Item = &'static str> {
    let fields: BTreeSet<&str> = Protocol::ALL.iter().map(|it| codec(*it).messages_field()).collect();
    fields.into_iter()
}

/// Splits a body of any protocol into blocks, in the order in which providers cache them: tools,
/// system, messages.
pub fn blocks(body: &Value) -> Vec<BodyBlock> {
    let mut blocks = Vec::new();
    for (index, tool) in list(body, "tools").iter().enumerate() {
        let address = format!("tools[{index}]");
        // Gemini's tools are lists of functions.
        let functions = list(tool, "functionDeclarations").iter().enumerate();
        let functions =
            functions.map(|(number, it)| (format!("{address}.functionDeclarations[{number}]"), it));
        let mut tools: Vec<(String, &Value)> = functions.collect();
        if tools.is_empty() {
            tools.push((address, tool));
        }
        blocks.extend(tools.into_iter().map(|(address, tool)| BodyBlock {
            address,
            role: None,
            content: without_marker(tool),
        }));
    }
    push_content("system", "system", &body["system"], &mut blocks);
    let instruction = &body["systemInstruction"]["parts"];
    push_content("systemInstruction.parts", "system", instruction, &mut blocks);
    for (field, index, message) in message_fields()
        .flat_map(|field| list(body, field).iter().enumerate().map(move |(index, it)| (field, index, it)))
    {
        let address = format!("{field}[{index}]");
        if field == codec(Protocol::OpenaiResponses).messages_field() {
            push_item(&address, message, &mut blocks);
            continue;
        }
        let role = message["role"].as_str().unwrap_or_default();
        push_content(&format!("{address}.content"), role, &message["content"], &mut blocks);
        push_content(&format!("{address}.parts"), role, &message["parts"], &mut blocks);
        for (key, value) in message.as_object().into_iter().flatten() {
            match key.as_str() {
                "role" | "content" | "parts" => {}
                "tool_calls" => {
                    for (call, content) in value.as_array().into_iter().flatten().enumerate() {
                        let address = format!("{address}.tool_calls[{call}]");
                        blocks.push(BodyBlock {
                            address,
                            role: Some(role.to_owned()),
                            content: without_marker(content),
                        });
                    }
                }
                key => {
                    let address = format!("{address}.{key}");
                    blocks.push(BodyBlock {
                        address,
                        role: Some(role.to_owned()),
                        content: without_marker(value),
                    });
                }
            }
        }
    }
    blocks
}

fn list<'a>(body: &'a Value, key: &str) -> &'a [Value] {
    body[key].as_array().map_or(&[], |list| list)
}

/// An item of the Responses API: a message has its parts, any other item is one block.
fn push_item(address: &str, item: &Value, blocks: &mut Vec<BodyBlock>) {
    let role = item["role"].as_str().unwrap_or_else(|| item["type"].as_str().unwrap_or_default());
    match (&item["content"], item["output"].is_null()) {
        (Value::Null, is_none) => {
            let address = if is_none { address.to_owned() } else { format!("{address}.output") };
            let mut content = item.clone();
            if let Some(parts) = content["output"].as_array_mut() {
                parts.iter_mut().for_each(|part| *part = without_marker(part));
            }
            blocks.push(BodyBlock { address, role: Some(role.to_owned()), content });
        }
        (content, _) => push_content(&format!("{address}.content"), role, content, blocks),
    }
}

fn push_content(address: &str, role: &str, content: &Value, blocks: &mut Vec<BodyBlock>) {
    let role = Some(role.to_owned());
    match content {
        Value::Null => {}
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                let address = format!("{address}[{index}]");
                blocks.push(BodyBlock { address, role: role.clone(), content: without_marker(part) });
            }
        }
        text => blocks.push(BodyBlock { address: address.to_owned(), role, content: text.clone() }),
    }
}

/// Finds the first block in which two bodies differ; `None` if all blocks are equal.
pub fn first_difference(first: &Value, second: &Value) -> Option<BodyDifference> {
    let (first, second) = (blocks(first), blocks(second));
    let same =
        first.iter().zip(&second).take_while(|(a, b)| a.role == b.role && a.content == b.content).count();
    if same == first.len() && same == second.len() {
        return None;
    }
    Some(BodyDifference { same, first: first.into_iter().nth(same), second: second.into_iter().nth(same) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_moved_breakpoint_is_no_difference() {
        let a = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}]});
        let b = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]});
        assert_eq!(first_difference(&a, &b), None);
    }

    #[test]
    fn geminis_parts_and_functions_are_blocks() {
        let body = json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}],
            "contents": [{"role": "user", "parts": [{"text": "x"}, {"text": "y"}]}],
        });
        let addresses: Vec<String> = blocks(&body).into_iter().map(|block| block.address).collect();
        assert_eq!(
            addresses,
            [
                "tools[0].functionDeclarations[0]",
                "tools[0].functionDeclarations[1]",
                "systemInstruction.parts[0]",
                "contents[0].parts[0]",
                "contents[0].parts[1]",
            ]
        );
        assert!(is_request_body(&body));
    }

    #[test]
    fn items_are_compared_one_by_one() {
        let output = |marker: Value| json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": marker}]});
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
        let mut a = json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, call, output(json!({"mode": "explicit"}))]});
        let mut b = a.clone();
        b["input"][2]["output"][0].as_object_mut().unwrap().shift_remove("prompt_cache_breakpoint");
        assert_eq!(first_difference(&a, &b), None);
        a["input"][2]["output"][0]["text"] = json!("y");
        let difference = first_difference(&a, &b).unwrap();
        assert_eq!((difference.same, difference.first.unwrap().address.as_str()), (2, "input[2].output"));
    }

    #[test]
    fn the_first_difference_is_named() {
        let a =
            json!({"tools": [{"name": "t"}], "system": "s", "messages": [{"role": "user", "content": "a"}]});
        let mut b = a.clone();
        b["system"] = json!("x");
        let difference = first_difference(&a, &b).unwrap();
        assert_eq!((difference.same, difference.first.unwrap().address.as_str()), (1, "system"));
        let mut longer = a.clone();
        longer["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c"}]}));
        let difference = first_difference(&a, &longer).unwrap();
        assert_eq!(difference.first, None);
        assert_eq!(difference.second.unwrap().address, "messages[1].tool_calls[0]");
    }
}
