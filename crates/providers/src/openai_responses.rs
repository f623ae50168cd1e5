//! [`OpenaiResponses`]: the codec of OpenAI's Responses API.
//!
//! A conversation is a flat list of items: messages, reasoning, calls, outputs. Nothing is stored
//! at the provider (`store: false`): reasoning comes encrypted and goes back as it came. Items go
//! without their ids, so that leaving one out never breaks a reference to it.

mod decode; // request bodies parsed into prompts
mod encode; // request bodies
mod failure; // what the server's error codes mean
pub(crate) mod known_fields; // the fields of each record in a request
mod report; // the server's own reason of a cache loss
mod stream; // AnswerDecoder: answers parsed into events
mod usage; // what the server reports about tokens

use std::time::Duration;

use hardpan_models::{MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, ValidationRules};
use hardpan_prompt::{Prompt, PromptMessage};
use serde_json::value::RawValue;

use crate::codec::{BodyMessages, Codec, RequestContext};
use crate::decode::{DecodeError, DecodedRequest, RequestKind};
use crate::serialize::{to_bytes, to_raw_json};
use crate::stream::AnswerParser;
use crate::{FailureKind, FailureReport, ThinkTags};

/// OpenAI's Responses API.
#[derive(Debug)]
pub struct OpenaiResponses;

impl Codec for OpenaiResponses {
    fn request_path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    fn encode_message(
        &self,
        _prompt: &Prompt,
        message: &PromptMessage,
        profile: &ProviderProfile,
    ) -> Vec<Box<RawValue>> {
        encode::items(message, profile).iter().map(to_raw_json).collect()
    }

    fn encode_body(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        context: &RequestContext<'_>,
        messages: BodyMessages<'_>,
        capacity: usize,
    ) -> Vec<u8> {
        match messages {
            BodyMessages::Fresh => {
                let items = prompt.messages.iter().flat_map(|message| encode::items(message, profile));
                let input = encode::Input::new(prompt, profile, items.collect());
                to_bytes(&encode::Body { prompt, profile, context, input }, capacity)
            }
            BodyMessages::Encoded(items) => {
                let input = encode::Input::new(prompt, profile, items.to_vec());
                to_bytes(&encode::Body { prompt, profile, context, input }, capacity)
            }
        }
    }

    fn block_addresses(&self, prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
        encode::block_addresses(prompt, profile)
    }

    fn messages_field(&self) -> &'static str {
        "input"
    }

    fn validation_rules(&self, profile: &ProviderProfile, _model: &Model) -> ValidationRules {
        ValidationRules {
            breakpoints: Acceptance::from_flag(profile.markers != MarkerFormat::None),
            ..ValidationRules::openai_responses()
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
        failure::classify_failure(status, report)
    }

    fn retry_delay(&self, report: &FailureReport) -> Option<Duration> {
        failure::retry_delay(report)
    }
}
