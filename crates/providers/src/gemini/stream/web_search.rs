//! The server's own search: its parts, which go back as they came, and the pages that it found.

use hardpan_prompt::{Json, ProviderBlock, ProviderBlockKind, WebSource};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::AnswerEvent;

/// The field `toolCall` or `toolResponse` of a part.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTool {
    #[serde(default)]
    tool_type: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    args: Value,
}

impl ServerTool {
    pub fn is_search(&self) -> bool {
        self.tool_type.starts_with("GOOGLE_SEARCH")
    }
}

/// What is known about the searches of an answer.
#[derive(Debug, Default)]
pub struct Searches {
    /// Whether parts of the answer told what was searched for. The grounding repeats it.
    told: bool,
}

impl Searches {
    /// Tells a call or a response of the search; `whole` is its part, signature included.
    pub fn apply_part(
        &mut self,
        call: Option<ServerTool>,
        response: Option<ServerTool>,
        whole: &Value,
        events: &mut Vec<AnswerEvent>,
    ) {
        let (kind, tool) = match (call, response) {
            (Some(call), _) => {
                self.push_queries(&call.args["queries"], events);
                (ProviderBlockKind::Call, call)
            }
            (None, Some(response)) => (ProviderBlockKind::Result, response),
            (None, None) => return,
        };
        let (id, json) = (tool.id.into(), Json::new(whole));
        events.push(AnswerEvent::ProviderBlock(ProviderBlock { kind, id, json }));
    }

    /// Tells the pages of `groundingMetadata`. It says nothing of what is told already.
    pub fn apply_grounding(&mut self, grounding: &RawValue, events: &mut Vec<AnswerEvent>) {
        let Ok(grounding) = serde_json::from_str::<Value>(grounding.get()) else { return };
        if !self.told {
            self.push_queries(&grounding["webSearchQueries"], events);
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let chunks = grounding["groundingChunks"].as_array().into_iter().flatten();
        let sources = chunks
            .map(|chunk| WebSource { title: text(&chunk["web"]["title"]), url: text(&chunk["web"]["uri"]) });
        let sources: Vec<WebSource> = sources.filter(|source| !source.url.is_empty()).collect();
        if !sources.is_empty() {
            events.push(AnswerEvent::Sources(sources));
        }
    }

    /// Each query is a search of its own, and billed as one.
    fn push_queries(&mut self, queries: &Value, events: &mut Vec<AnswerEvent>) {
        for query in queries.as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.told = true;
            events.push(AnswerEvent::WebSearch { query: query.to_owned() });
        }
    }
}
