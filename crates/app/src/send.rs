//! [`send_request`]: sends one request by itself.

use hardpan_agent::{ClientFactory, RequestPreview};
use hardpan_context::{PromptTexts, Target, without_images, without_newer_fields, without_tools};
use hardpan_prompt::Prompt;
use hardpan_providers::{
    Answer, AnswerStream, ClientEvent, ClientRequest, FailureKind, PromptFallbacks, ProviderError,
};

use crate::clock::now;
use crate::request::AssembledRequest;
use crate::settings::Settings;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The provider did not answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The provider does not have the model, but similar ones. Hardpan never switches to another
    /// model by itself.
    #[error("{error}. Similar models of {provider}: {}", similar.join(", "))]
    ModelUnavailable {
        /// What the provider said.
        error: ProviderError,
        /// The provider's id.
        provider: String,
        /// Ids of models with a similar name.
        similar: Vec<String>,
    },
}

/// Sends a request, calls `on_event` while the answer streams, and returns the whole answer. What
/// the answer teaches is stored for the next request.
pub async fn send_request(
    request: &AssembledRequest,
    settings: &Settings,
    on_event: &mut (dyn FnMut(ClientEvent) + Send),
) -> Result<Answer, SendError> {
    let RequestPreview { assembled, target, render_cache, client, previous_answer, .. } = &request.preview;
    let client_request = ClientRequest {
        prompt: &assembled.prompt,
        profile: &target.profile,
        provider: &target.provider,
        fallbacks: &TextFallbacks { texts: &settings.texts },
        previous_answer: previous_answer.as_deref(),
        now_ms: now().as_millisecond(),
    };
    let answer = read_answer(client.send(client_request), on_event).await;
    if let Ok(Answer { usage: Some(usage), .. }) = &answer {
        request.connection.record_usage(target, assembled, render_cache, &usage.tokens);
    }
    request.connection.save_learned(None);
    answer.map_err(|error| with_similar_models(error, target, settings))
}

async fn read_answer(
    mut stream: AnswerStream<'_>,
    on_event: &mut (dyn FnMut(ClientEvent) + Send),
) -> Result<Answer, ProviderError> {
    while let Some(event) = stream.next_event().await {
        on_event(event?);
    }
    Ok(stream.into_answer())
}

/// Adds the provider's similar models to the error for a model that is not available.
fn with_similar_models(error: ProviderError, target: &Target, settings: &Settings) -> SendError {
    let model = &target.model;
    let others = settings.catalogue.models().filter(|other| {
        other.provider == model.provider && other.deprecated.is_none() && other.id != model.id
    });
    let similar: Vec<String> =
        hardpan_models::nearest(&model.id, others.map(|other| other.id.as_str())).into_iter().collect();
    if error.failure != FailureKind::ModelUnavailable || similar.is_empty() {
        return error.into();
    }
    SendError::ModelUnavailable { error, provider: model.provider.clone(), similar }
}

/// Rewrites a prompt for models without tools or images, with the texts in use.
pub struct TextFallbacks<'a> {
    /// The user's texts for such models.
    pub texts: &'a PromptTexts,
}

impl PromptFallbacks for TextFallbacks<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        without_tools(prompt, self.texts)
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        without_images(prompt, self.texts)
    }
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        without_newer_fields(prompt)
    }
}
