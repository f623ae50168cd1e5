//! [`OpenaiChat`]: the codec of OpenAI Chat Completions, for OpenAI and all compatible servers.

mod calls; // CallAssembler: which call a fragment belongs to
mod decode; // request bodies parsed into prompts
pub(crate) mod dialect; // the words in which the server rejects a body
mod encode; // request bodies
mod stream; // AnswerDecoder: answers parsed into events
mod think; // ThinkTagSplitter: reasoning in <think> tags
mod usage; // what the servers report about tokens

use hardpan_models::{MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, ValidationRules};
use hardpan_prompt::{Prompt, PromptMessage};
use serde_json::value::RawValue;

pub use self::think::ThinkTags;
use crate::codec::{BodyMessages, Codec, RequestContext};
use crate::decode::{DecodeError, DecodedRequest, RequestKind};
use crate::serialize::{to_bytes, to_raw_json};
use crate::stream::AnswerParser;

/// OpenAI Chat Completions.
#[derive(Debug)]
pub struct OpenaiChat;

impl Codec for OpenaiChat {
    fn request_path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
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
        let mut messages = Vec::new();
        encode::split_message(message, profile, &mut messages);
        messages.iter().map(to_raw_json).collect()
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
                let messages = encode::Messages::from_prompt(prompt, profile);
                to_bytes(&encode::Body { prompt, profile, messages }, capacity)
            }
            BodyMessages::Encoded(messages) => {
                let messages = encode::Messages::after_system(prompt, profile, messages.to_vec());
                to_bytes(&encode::Body { prompt, profile, messages }, capacity)
            }
        }
    }

    fn block_addresses(&self, prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
        encode::block_addresses(prompt, profile)
    }

    fn validation_rules(&self, profile: &ProviderProfile, _model: &Model) -> ValidationRules {
        ValidationRules {
            breakpoints: Acceptance::from_flag(profile.markers != MarkerFormat::None),
            ..ValidationRules::openai()
        }
    }

    fn decode_request(
        &self,
        _kind: RequestKind,
        _path: &str,
        body: &[u8],
    ) -> Result<DecodedRequest, DecodeError> {
        decode::decode_request(body)
    }

    fn answer_parser(&self, tags: ThinkTags) -> Box<dyn AnswerParser> {
        Box::new(stream::AnswerDecoder::new(tags))
    }
}
