//! The blocks of the server's own web search: calls, results, texts with citations.

use hardpan_prompt::{Json, ProviderBlock, ProviderBlockKind, WebSource};
use serde_json::{Value, json};

use crate::AnswerEvent;

/// A call of one of the server's own tools that has not ended.
#[derive(Debug)]
pub struct ServerCall {
    block: Value,
    /// The input as far as it has come; empty if it came with the block.
    input: String,
}

impl ServerCall {
    pub fn new(block: Value) -> Self {
        ServerCall { block, input: String::new() }
    }

    pub fn push(&mut self, json: &str) {
        self.input.push_str(json);
    }

    /// The complete call. Only searches can go back: their results are known.
    pub fn finish(self, events: &mut Vec<AnswerEvent>) {
        let ServerCall { mut block, input } = self;
        if let Ok(input) = serde_json::from_str::<Value>(&input) {
            block["input"] = input;
        }
        if block["name"] != "web_search" {
            events.push(AnswerEvent::SkippedPart { part_type: "server_tool_use".to_owned() });
            return;
        }
        let query = text(&block["input"]["query"]);
        events.push(AnswerEvent::WebSearch { query });
        events.push(provider_block(ProviderBlockKind::Call, "id", &block));
    }
}

/// What a search found. It comes whole.
pub fn push_result(block: &Value, events: &mut Vec<AnswerEvent>) {
    events.push(provider_block(ProviderBlockKind::Result, "tool_use_id", block));
}

fn provider_block(kind: ProviderBlockKind, id: &str, block: &Value) -> AnswerEvent {
    let id = block[id].as_str().unwrap_or_default().into();
    AnswerEvent::ProviderBlock(ProviderBlock { kind, id, json: Json::new(block) })
}

/// A text that has not ended, with the citations that came so far.
#[derive(Debug, Default)]
pub struct CitedText {
    text: String,
    citations: Vec<Value>,
}

impl CitedText {
    pub fn new(text: &str, citations: Option<Vec<Value>>) -> Self {
        CitedText { text: text.to_owned(), citations: citations.unwrap_or_default() }
    }

    pub fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn push_citation(&mut self, citation: Option<Value>) {
        self.citations.extend(citation);
    }

    /// A text that cites no pages is told already.
    pub fn finish(self, events: &mut Vec<AnswerEvent>) {
        let CitedText { text: cited, citations } = self;
        let source = |citation: &Value| {
            let url = text(&citation["url"]);
            (!url.is_empty()).then(|| WebSource { title: text(&citation["title"]), url })
        };
        let sources: Vec<WebSource> = citations.iter().filter_map(source).collect();
        if sources.is_empty() || cited.is_empty() {
            return;
        }
        let kind = ProviderBlockKind::CitedText { bytes: cited.len(), after: 0 };
        let block = json!({"type": "text", "text": cited, "citations": citations});
        events.push(provider_block(kind, "", &block));
        events.push(AnswerEvent::Sources(sources));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
