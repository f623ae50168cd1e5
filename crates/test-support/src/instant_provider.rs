//! [`InstantProvider`]: a provider that answers at once, so that benchmarks measure everything else.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hardpan_providers::{HttpRequest, HttpResponse, Transport, TransportError};
use serde_json::{Value, json};

/// A transport that answers at once, in Anthropic's form. Of every `turns` answers, all but the
/// last call the tool `look`. The common part of the answers is built beforehand: a provider's work
/// is not the agent's.
pub struct InstantProvider {
    turns: usize,
    asked: AtomicUsize,
    /// The text of an answer, in pieces.
    text: Vec<Bytes>,
}

fn frame(event: &Value) -> Bytes {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into()
}

impl InstantProvider {
    /// A provider that ends a run after so many turns.
    pub fn new(turns: usize) -> Arc<Self> {
        let start =
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
        let piece = |n: usize| {
            let delta = json!({"type": "text_delta", "text": format!("piece {n} ")});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        };
        let stop = json!({"type": "content_block_stop", "index": 0});
        let text = [start].into_iter().chain((0..40).map(piece)).chain([stop]);
        let text = text.map(|event| frame(&event)).collect();
        Arc::new(InstantProvider { turns, asked: AtomicUsize::new(0), text })
    }

    /// Reports the whole prompt as cached: half a token per byte is more than there are.
    fn answer(&self, bytes: usize) -> Vec<Bytes> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": bytes / 2, "cache_creation_input_tokens": 500});
        let message = json!({"id": "m", "model": "claude-sonnet-5", "usage": usage});
        let mut frames = vec![frame(&json!({"type": "message_start", "message": message}))];
        frames.extend(self.text.iter().cloned());
        let is_last = (number + 1).is_multiple_of(self.turns);
        if !is_last {
            let call =
                json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "look", "input": {}});
            frames.push(frame(&json!({"type": "content_block_start", "index": 1, "content_block": call})));
            let arguments = format!("{{\"at\": \"src/part_{number}.rs\"}}");
            let delta = json!({"type": "input_json_delta", "partial_json": arguments});
            frames.push(frame(&json!({"type": "content_block_delta", "index": 1, "delta": delta})));
            frames.push(frame(&json!({"type": "content_block_stop", "index": 1})));
        }
        let reason = if is_last { "end_turn" } else { "tool_use" };
        frames.push(frame(&json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 120}})));
        frames.push(frame(&json!({"type": "message_stop"})));
        frames
    }
}

impl Transport for InstantProvider {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        let body = Box::pin(futures_util::stream::iter(self.answer(request.body.len()).into_iter().map(Ok)));
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Box::pin(std::future::ready(Ok(HttpResponse { status: 200, headers, body })))
    }
}
