//! [`ScriptServer`]: a transport whose server is the `streamSimple` of an extension. A request reaches it in
//! the form of Anthropic Messages, and so does its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use hardpan_context::Target;
use hardpan_extensions::{CallKind, ScriptError};
use hardpan_models::Protocol;
use hardpan_prompt::{Prompt, Thinking};
use hardpan_providers::decode::decode_request;
use hardpan_providers::{ByteStream, HttpRequest, HttpResponse, Transport, TransportError};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::api::to_script;
use super::super::models::target_to_script;
use super::answer::ScriptAnswer;
use super::request::{ContextFacts, context_of};
use super::{ExtensionProvider, ExtensionProviders};
use crate::clock::now;

pub struct ScriptServer {
    provider: Arc<ExtensionProvider>,
    target: Target,
    session: Option<String>,
}

impl ScriptServer {
    pub fn new(provider: Arc<ExtensionProvider>, target: Target, session: Option<String>) -> Self {
        ScriptServer { provider, target, session }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let invalid = |reason: String| TransportError::Invalid { reason };
        let refused = |reason: String| TransportError::Extension { reason };
        let decoded = decode_request(Protocol::Anthropic, &request.body);
        let prompt = decoded.map_err(|error| invalid(error.to_string()))?.prompt;
        let host = self.provider.host().map_err(refused)?;
        let key = self.provider.key(&host).await.map_err(refused)?;
        let (number, events) = host.follow_answer();
        let providers = host.setting.providers.clone();
        let payload = self.payload(&prompt, key, number, &providers);
        let id = self.provider.id().to_owned();
        let call = async move {
            let ended = host.call(CallKind::Provider, &id, payload.to_string()).await;
            host.forget_answer(number);
            ended.map(drop)
        };
        let answer = ScriptAnswer::new(&self.target.model.id, Box::new(move |id| providers.keep_call_id(id)));
        let mut running = RunningAnswer { call: call.boxed(), events, answer, call_ended: false };
        // The response begins with the answer: until then, the request waits.
        let first = running.next_bytes().await;
        let rest = stream::unfold(running, |mut running| async move {
            let bytes = running.next_bytes().await?;
            Some((Ok(bytes), running))
        });
        let body: ByteStream = match first {
            Some(first) => Box::pin(futures_util::StreamExt::chain(stream::iter([Ok(first)]), rest)),
            None => Box::pin(rest),
        };
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Ok(HttpResponse { status: 200, headers, body })
    }

    /// What `providers.js` needs for the answer.
    fn payload(
        &self,
        prompt: &Prompt,
        key: Option<String>,
        number: u64,
        providers: &ExtensionProviders,
    ) -> Value {
        let facts = ContextFacts {
            provider: self.provider.id(),
            api: self.provider.api().unwrap_or_default(),
            now: now().as_millisecond(),
            call_id: &|kept| providers.call_id(kept),
        };
        let mut options = json!({ "maxTokens": prompt.max_tokens, "sessionId": self.session });
        if let Some(key) = key {
            options["apiKey"] = json!(key);
        }
        let level = prompt.effort.map(|effort| effort.to_string());
        if let Some(level) = level.filter(|_| prompt.thinking != Thinking::Disabled) {
            options["reasoning"] = json!(level);
        }
        json!({
            "what": "answer",
            "request": number,
            "model": to_script(&target_to_script(&self.target)),
            "context": context_of(prompt, &facts),
            "options": options,
        })
    }
}

impl Transport for ScriptServer {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(self.answer(request))
    }
}

/// An answer while the script gives it. Dropping it tells the script that nobody waits any more.
struct RunningAnswer {
    call: BoxFuture<'static, Result<(), ScriptError>>,
    events: mpsc::UnboundedReceiver<Value>,
    answer: ScriptAnswer,
    call_ended: bool,
}

impl RunningAnswer {
    /// The next bytes of the answer; none after its end.
    async fn next_bytes(&mut self) -> Option<Bytes> {
        loop {
            if self.answer.is_over() {
                return None;
            }
            let bytes = if self.call_ended {
                match self.events.try_recv() {
                    Ok(event) => self.answer.read(event),
                    Err(_) => return None,
                }
            } else {
                tokio::select! {
                    biased;
                    Some(event) = self.events.recv() => self.answer.read(event),
                    ended = &mut self.call => {
                        self.call_ended = true;
                        match ended {
                            Ok(()) => continue,
                            Err(error) => self.fail(&error),
                        }
                    }
                }
            };
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
    }

    /// What came before the fault, and the fault.
    fn fail(&mut self, error: &ScriptError) -> Bytes {
        let mut bytes = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            bytes.extend(self.answer.read(event));
        }
        bytes.extend(self.answer.fail(&error.to_string()));
        bytes.into()
    }
}
