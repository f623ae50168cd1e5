//! [`GeminiGenerateContent`]: the codec of Gemini's own protocol, `generateContent`.

mod decode; // request bodies parsed into prompts
mod dialect; // the words in which the server rejects a body
mod encode; // request bodies
mod failure; // errors, quotas and waiting times
mod stream; // AnswerDecoder: answers parsed into events
mod usage; // what the server reports about tokens

use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, ValidationRules};
use hardpan_prompt::{Prompt, PromptMessage};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::{BodyMessages, Codec, ModelListPage, RequestContext, model_ids, query_value};
use crate::decode::{DecodeError, DecodedRequest, RequestKind};
use crate::failure::FailureReport;
use crate::serialize::{to_bytes, to_raw_json};
use crate::stream::AnswerParser;
use crate::{FailureKind, ThinkTags};

/// The signatures that switch the check of a call's signature off, for calls that another model
/// made, or nobody. The first is the one that we send.
pub const SKIP_SIGNATURES: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Gemini's `generateContent`.
#[derive(Debug)]
pub struct GeminiGenerateContent;

impl Codec for GeminiGenerateContent {
    fn request_path(&self, model: &str) -> String {
        format!("/models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn model_list_path(&self, page: Option<&str>) -> String {
        let next = page.map(|page| format!("&pageToken={}", query_value(page))).unwrap_or_default();
        format!("/models?pageSize=1000{next}")
    }

    fn parse_model_list(&self, body: &Value) -> Option<ModelListPage> {
        let ids = model_ids(body.get("models")?.as_array()?, "name");
        let next_page = body.get("nextPageToken").and_then(Value::as_str).map(str::to_owned);
        Some(ModelListPage { ids, next_page })
    }

    fn encode_message(
        &self,
        prompt: &Prompt,
        message: &PromptMessage,
        profile: &ProviderProfile,
    ) -> Vec<Box<RawValue>> {
        let is_it = |other: &PromptMessage| std::ptr::eq(other, message);
        let index = prompt.messages.iter().position(is_it).unwrap_or(prompt.messages.len());
        let names = encode::CallNames { earlier: &prompt.messages[..index] };
        encode::split_message(message, names, profile).contents.iter().map(to_raw_json).collect()
    }

    fn encode_body(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        _context: &RequestContext<'_>,
        messages: BodyMessages<'_>,
        capacity: usize,
    ) -> Vec<u8> {
        match messages {
            BodyMessages::Fresh => {
                let contents = encode::contents(prompt, profile);
                to_bytes(&encode::Body { prompt, profile, contents }, capacity)
            }
            BodyMessages::Encoded(contents) => {
                to_bytes(&encode::Body { prompt, profile, contents }, capacity)
            }
        }
    }

    fn block_addresses(&self, prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
        encode::block_addresses(prompt, profile)
    }

    fn messages_field(&self) -> &'static str {
        "contents"
    }

    fn validation_rules(&self, _profile: &ProviderProfile, model: &Model) -> ValidationRules {
        ValidationRules { prefill: Acceptance::from_flag(model.prefill), ..ValidationRules::gemini() }
    }

    fn decode_request(
        &self,
        kind: RequestKind,
        path: &str,
        body: &[u8],
    ) -> Result<DecodedRequest, DecodeError> {
        decode::decode_request(kind, path, body)
    }

    fn answer_parser(&self, _tags: ThinkTags) -> Box<dyn AnswerParser> {
        Box::new(stream::AnswerDecoder::default())
    }

    fn parse_error_body(&self, body: &Value) -> FailureReport {
        failure::parse_error_body(body)
    }

    fn classify_failure(&self, status: Option<u16>, report: &FailureReport) -> FailureKind {
        failure::classify(status, report)
    }
}
