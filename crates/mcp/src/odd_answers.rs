//! Answers of servers that are not quite of the protocol's form: one odd item does not cost the others.

use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};

use crate::plain_text::plain_text;
use crate::results::{CallAnswer, make_answer};

/// A page of a server's tools.
pub(crate) struct ToolPage {
    pub tools: Vec<Tool>,
    /// Names of tools that cannot be made out, as far as they have one.
    pub left_out: Vec<String>,
    pub next: Option<String>,
}

/// A page of tools of which some are of odd form. None if it is no such page.
pub(crate) fn read_tool_page(page: &Value) -> Option<ToolPage> {
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    for item in page["tools"].as_array()? {
        match read_tool(item) {
            Some(tool) => tools.push(tool),
            None => left_out.push(plain_text(item["name"].as_str().unwrap_or("one without a name"), 100)),
        }
    }
    let next = page["nextCursor"].as_str().map(str::to_owned);
    Some(ToolPage { tools, left_out, next })
}

/// A tool; of one that is of odd form, what a call needs: name, description and arguments.
fn read_tool(item: &Value) -> Option<Tool> {
    if let Ok(tool) = serde_json::from_value(item.clone()) {
        return Some(tool);
    }
    let name = item["name"].as_str().filter(|name| !name.is_empty())?;
    let schema = match &item["inputSchema"] {
        Value::Null => json!({ "type": "object" }),
        schema if schema.is_object() => schema.clone(),
        _ => return None,
    };
    let mut plain = json!({ "name": name, "inputSchema": schema });
    if let Some(description) = item["description"].as_str() {
        plain["description"] = json!(description);
    }
    serde_json::from_value(plain).ok()
}

/// The answer to a call of which some parts are of odd form. None if it is no such answer.
pub(crate) fn read_call_answer(answer: &Value) -> Option<CallAnswer> {
    let text = answer["content"].as_str().map(|text| vec![json!({ "type": "text", "text": text })]);
    let parts = answer["content"].as_array().or(text.as_ref())?;
    let mut content: Vec<ContentBlock> = Vec::new();
    for part in parts {
        let kind = part["type"].as_str().unwrap_or("no kind");
        content.push(match (serde_json::from_value(part.clone()), part["text"].as_str()) {
            (Ok(block), _) => block,
            (Err(_), Some(text)) => ContentBlock::text(text),
            (Err(_), None) => {
                let note = format!("[a part was left out that cannot be read: {}]", plain_text(kind, 50));
                ContentBlock::text(note)
            }
        });
    }
    let is_error = answer["isError"].as_bool() == Some(true);
    Some(make_answer(if is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    }))
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::MessagePart;

    use super::*;

    #[test]
    fn odd_tools_are_used_as_far_as_they_can_be_and_cost_no_others() {
        let page = read_tool_page(&json!({
            "tools": [
                { "name": "good", "description": "Good.", "inputSchema": { "type": "object" } },
                { "name": "odd", "description": 7, "annotations": "yes", "inputSchema": { "type": "object", "properties": { "a": {} } } },
                { "name": "bare" },
                { "name": "wrong", "inputSchema": "text" },
                { "description": "nameless", "inputSchema": {} },
                "a word",
            ],
            "nextCursor": "more",
        }));
        let page = page.expect("a page");
        let names: Vec<&str> = page.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["good", "odd", "bare"]);
        assert!(page.tools[1].input_schema.contains_key("properties"));
        assert_eq!(page.left_out, ["wrong", "one without a name", "one without a name"]);
        assert_eq!(page.next.as_deref(), Some("more"));
        assert!(read_tool_page(&json!({ "tools": "none" })).is_none());
    }

    #[test]
    fn an_odd_part_of_an_answer_costs_no_other() {
        let answer = read_call_answer(&json!({
            "content": [{ "type": "text", "text": "Hello." }, { "type": "smell", "of": "roses" }, { "type": "card", "text": "A card." }],
            "isError": true,
        }));
        let answer = answer.expect("an answer");
        let text = "Hello.\n[a part was left out that cannot be read: smell]\nA card.";
        assert_eq!(answer.content, [MessagePart::text(text)]);
        assert!(answer.is_error);
        let text = read_call_answer(&json!({ "content": "Only words." })).expect("an answer");
        assert_eq!(text.content, [MessagePart::text("Only words.")]);
        assert!(read_call_answer(&json!({ "contents": [] })).is_none());
    }
}
