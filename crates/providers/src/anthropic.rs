//! [`AnthropicMessages`]: the codec of Anthropic Messages.

pub mod betas; // the names of beta headers
mod decode; // request bodies parsed into prompts
mod dialect; // the words in which the server rejects a body
mod encode; // request bodies
pub mod fields; // AnthropicFields: what a request says besides its prompt
pub(crate) mod known_fields; // the fields of each record in a request
mod report; // what the server says besides the answer: diagnostics, dropped reasoning
mod stream; // AnswerDecoder: answers parsed into events
mod usage; // what the server reports about tokens

use hardpan_models::{MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, ValidationRules};
use hardpan_prompt::{Block, Content, Prompt, PromptMessage};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::codec::{
    BodyMessages, Codec, ModelListPage, RequestContext, RequestExtras, model_ids, query_value,
};
use crate::decode::{DecodeError, DecodedRequest, RequestKind};
use crate::failure::{self, FailureReport};
use crate::serialize::{to_bytes, to_raw_json};
use crate::stream::AnswerParser;
use crate::{FailureKind, ThinkTags};

fn is_tool_change(block: &Block) -> bool {
    matches!(*block.content, Content::ToolChange(_))
}

/// The names of the beta features that a prompt uses.
fn beta_features(prompt: &Prompt) -> Vec<&'static str> {
    let any = |has: fn(&PromptMessage) -> bool| prompt.messages.iter().any(has);
    let features = [
        ("thinking-binding-controls-2026-08-01", prompt.drop_stale_reasoning && prompt.thinking.is_on()),
        ("mid-conversation-system-clear-at-2026-08-21", any(|message| message.turn_scoped)),
        ("mid-conversation-output-config-2026-07-01", any(|message| message.effort.is_some())),
        ("inline-tools-2026-09-15", any(|message| message.blocks.iter().any(is_tool_change))),
    ];
    features.into_iter().filter_map(|(name, used)| used.then_some(name)).collect()
}

/// The window from which on a model takes more images, in tokens.
const LARGE_WINDOW: u32 = 1_000_000;

/// Anthropic Messages.
#[derive(Debug)]
pub struct AnthropicMessages;

impl Codec for AnthropicMessages {
    fn request_path(&self, _model: &str) -> String {
        "/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", "2023-06-01".to_owned());
        [version].into_iter().chain(key.map(|key| ("x-api-key", key.to_owned()))).collect()
    }

    fn model_list_path(&self, page: Option<&str>) -> String {
        let next = page.map(|page| format!("&after_id={}", query_value(page))).unwrap_or_default();
        format!("/models?limit=1000{next}")
    }

    fn parse_model_list(&self, body: &Value) -> Option<ModelListPage> {
        let ids = model_ids(body.get("data")?.as_array()?, "id");
        let has_more = body.get("has_more").and_then(Value::as_bool).unwrap_or(false);
        let last = body.get("last_id").and_then(Value::as_str).filter(|_| has_more);
        Some(ModelListPage { ids, next_page: last.map(str::to_owned) })
    }

    fn request_extras(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        context: &RequestContext<'_>,
    ) -> RequestExtras {
        let mut extras = RequestExtras::default();
        if context.plain {
            return extras;
        }
        if profile.diagnostics {
            let previous = json!({"previous_message_id": context.previous_answer});
            extras.fields.push(("diagnostics", previous));
        }
        if let Some(version) = profile.api_version.as_ref().filter(|_| context.usual_address) {
            extras.headers.push(("anthropic-version", version.clone()));
        }
        let betas = beta_features(prompt);
        if !betas.is_empty() {
            extras.headers.push(("anthropic-beta", betas.join(",")));
        }
        extras
    }

    fn encode_message(
        &self,
        _prompt: &Prompt,
        message: &PromptMessage,
        _profile: &ProviderProfile,
    ) -> Vec<Box<RawValue>> {
        vec![to_raw_json(&encode::Message(message))]
    }

    fn encode_body(
        &self,
        prompt: &Prompt,
        _profile: &ProviderProfile,
        context: &RequestContext<'_>,
        messages: BodyMessages<'_>,
        capacity: usize,
    ) -> Vec<u8> {
        match messages {
            BodyMessages::Fresh => {
                to_bytes(&encode::Body { prompt, context, messages: encode::messages(prompt) }, capacity)
            }
            BodyMessages::Encoded(messages) => {
                to_bytes(&encode::Body { prompt, context, messages }, capacity)
            }
        }
    }

    fn block_addresses(&self, prompt: &Prompt, _profile: &ProviderProfile) -> Vec<String> {
        (0..prompt.block_count()).map(|block| prompt.address(block)).collect()
    }

    fn validation_rules(&self, profile: &ProviderProfile, model: &Model) -> ValidationRules {
        ValidationRules {
            prefill: Acceptance::from_flag(model.prefill),
            system_messages: Acceptance::from_flag(model.system_messages),
            max_images: if model.context >= LARGE_WINDOW { 600 } else { 100 },
            breakpoints: Acceptance::from_flag(profile.markers != MarkerFormat::None),
            ..ValidationRules::anthropic()
        }
    }

    fn known_fields(&self) -> &'static [(&'static str, &'static [&'static str])] {
        known_fields::ALL
    }

    fn decode_request(
        &self,
        kind: RequestKind,
        _path: &str,
        body: &[u8],
    ) -> Result<DecodedRequest, DecodeError> {
        decode::decode_request(kind, body)
    }

    fn answer_parser(&self, _tags: ThinkTags) -> Box<dyn AnswerParser> {
        Box::new(stream::AnswerDecoder::default())
    }

    fn classify_failure(&self, status: Option<u16>, report: &FailureReport) -> FailureKind {
        let is_not_found = matches!(status, None | Some(404)) && report.has_word(&["not_found_error"]);
        if is_not_found && report.mentions(&["model"]) {
            return FailureKind::ModelUnavailable;
        }
        failure::classify(status, report)
    }
}
