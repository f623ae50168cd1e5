//! The body of a request as handlers see it, and what they may put in its place.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hardpan_context::RenderCache;
use hardpan_models::Protocol;
use hardpan_prompt::validate::{ValidationRules, Violation, validate};
use hardpan_prompt::{Block, Prompt};
use hardpan_providers::Client;
use hardpan_providers::decode::{DecodeError, decode_request};
use serde_json::Value;
use thiserror::Error;

use crate::agent::Agent;
use crate::events::{Event, HandlerFault, ProviderPayload};
use crate::extension_changes::{Change, ExtensionChange};
use crate::model_selection::ModelSelection;
use crate::request::PlannedRequest;

/// A body that handlers put in place of the one that was planned.
pub(crate) struct ReplacedPayload {
    pub body: Bytes,
    /// What it says.
    pub prompt: Prompt,
    /// Who changed it.
    pub changes: Vec<ExtensionChange>,
}

/// Why a payload is not sent.
#[derive(Debug, Error)]
enum PayloadError {
    #[error("the provider would not understand it: {0}")]
    Unreadable(#[from] DecodeError),
    #[error("the provider would refuse it: {0}")]
    Invalid(#[from] Violation),
    #[error("it is for another model: select the model instead")]
    OtherModel,
    #[error("its answer would not be streamed")]
    NotStreamed,
}

impl Agent {
    /// Lets handlers see and replace the body of a request. One that the provider would refuse is
    /// reported with its owner, and what was there before is sent.
    pub(crate) async fn ask_about_payload(
        &self,
        client: &Client,
        selection: &ModelSelection,
        planned: &PlannedRequest,
        render_cache: &RenderCache,
    ) -> Option<ReplacedPayload> {
        if !self.events().has_handlers::<ProviderPayload>() {
            return None;
        }
        let forms = self.text_fallbacks(selection, &planned.snapshot, render_cache);
        let request = planned.client_request(selection, &forms, self.now());
        let prepared = client.prepare(&request).ok()?;
        let original = prepared.fallback.as_ref().unwrap_or(&planned.assembled.prompt);
        let payload: Value = serde_json::from_slice(&prepared.http.body).ok()?;
        let target = &selection.target;
        let protocol = target.profile.protocol;
        let is_streamed = |body: &[u8]| decode_request(protocol, body).is_ok_and(|decoded| decoded.stream);
        let planned_body = PlannedBody {
            prompt: original,
            protocol,
            is_streamed: is_streamed(&prepared.http.body),
            rules: hardpan_providers::validation_rules(&target.profile, &target.model),
        };
        let (mut replaced, mut changes, mut refused) = (None, Vec::new(), Vec::new());
        let event = ProviderPayload {
            provider: target.provider.clone(),
            model: target.model.id.clone(),
            tokens: planned.assembled.measured.total(),
            payload: Arc::new(payload),
        };
        let asking = self.events().ask_owners(self, event, |event, reply, owner| {
            let Some(payload) = reply.filter(|payload| *payload != *event.payload) else {
                return ControlFlow::Continue(());
            };
            match planned_body.check(&payload) {
                Ok(found) => {
                    replaced = Some(found);
                    changes.push(ExtensionChange { extension: owner.clone(), change: Change::Payload });
                    event.payload = Arc::new(payload);
                }
                Err(error) => refused.push(HandlerFault {
                    is_repeated: false,
                    owner: owner.clone(),
                    event: ProviderPayload::NAME,
                    message: format!("its payload is not sent: {error}"),
                }),
            }
            ControlFlow::Continue(())
        });
        let (_, mut faults) = asking.await;
        faults.extend(refused);
        self.events().report_faults(&faults);
        let (body, prompt) = replaced?;
        Some(ReplacedPayload { body, prompt, changes })
    }
}

/// The body that was planned, which another one must match in what handlers cannot change.
struct PlannedBody<'a> {
    prompt: &'a Prompt,
    protocol: Protocol,
    is_streamed: bool,
    rules: ValidationRules,
}

impl PlannedBody<'_> {
    /// A payload as it is sent, and what it says; an error if the provider would not take it.
    fn check(&self, payload: &Value) -> Result<(Bytes, Prompt), PayloadError> {
        let body = Bytes::from(payload.to_string());
        let decoded = decode_request(self.protocol, &body)?;
        let mut prompt = decoded.prompt;
        if prompt.model.is_empty() {
            prompt.model = self.prompt.model.clone(); // it is in the address
        }
        if prompt.model != self.prompt.model {
            return Err(PayloadError::OtherModel);
        }
        if self.is_streamed && !decoded.stream {
            return Err(PayloadError::NotStreamed);
        }
        validate(&prompt, &self.rules)?;
        keep_origins(&mut prompt, self.prompt);
        Ok((body, prompt))
    }
}

/// Blocks that say what they said are the blocks that they were, with their origins.
fn keep_origins(prompt: &mut Prompt, original: &Prompt) {
    for (block, was) in prompt.system.iter_mut().zip(&original.system) {
        keep_origin(block, was);
    }
    for (message, was) in prompt.messages.iter_mut().zip(&original.messages) {
        for (block, was) in message.blocks.iter_mut().zip(&was.blocks) {
            keep_origin(block, was);
        }
    }
}

fn keep_origin(block: &mut Block, was: &Block) {
    if block.hash() == was.hash() {
        *block = Block { breakpoint: block.breakpoint, ..was.clone() };
    }
}
