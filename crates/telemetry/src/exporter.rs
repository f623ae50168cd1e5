//! [`Exporter`]: a queue with a limit, and the task that sends it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hardpan_providers::{HttpMethod, HttpRequest, Transport, TransportError, mask_url};

use crate::metrics::MetricStore;
use crate::otlp::TelemetryBatch;
use crate::settings::{SignalEndpoint, TelemetrySettings};
use crate::span::{Span, UnixNanos};

/// The most spans in one request.
const MAX_BATCH: usize = 512;

/// Why telemetry could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// No connection, or it broke.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The collector refused it.
    #[error("{url} answered with status {status}")]
    Status {
        /// The address, without passwords.
        url: String,
        /// The HTTP status code.
        status: u16,
    },
    /// The collector did not answer in time.
    #[error("{url} did not answer within {} s", limit.as_secs_f64())]
    Timeout {
        /// The address, without passwords.
        url: String,
        /// How long it had.
        limit: Duration,
    },
}

impl ExportError {
    /// Whether the same request may succeed later.
    fn is_passing(&self) -> bool {
        match self {
            ExportError::Transport(_) | ExportError::Timeout { .. } => true,
            ExportError::Status { status, .. } => [429, 502, 503, 504].contains(status),
        }
    }
}

/// What waits to be sent.
#[derive(Default)]
struct Queue {
    spans: VecDeque<Span>,
    metrics: MetricStore,
    /// How many spans were lost because the queue was full.
    lost: u64,
}

/// Is told of a failure.
type FailureListener = Box<dyn FnOnce(ExportError) + Send>;

/// Collects spans and measurements, and sends them.
pub(crate) struct Exporter {
    pub settings: TelemetrySettings,
    transport: Arc<dyn Transport>,
    queue: Mutex<Queue>,
    /// When measuring began.
    start: UnixNanos,
    clock: fn() -> UnixNanos,
    /// One request at a time.
    sending: tokio::sync::Mutex<()>,
    /// The first failure, until somebody has been told.
    on_failure: Mutex<Option<FailureListener>>,
}

impl Exporter {
    pub fn new(
        settings: TelemetrySettings,
        transport: Arc<dyn Transport>,
        clock: fn() -> UnixNanos,
        on_failure: impl FnOnce(ExportError) + Send + 'static,
    ) -> Self {
        Exporter {
            settings,
            transport,
            queue: Mutex::default(),
            start: clock(),
            clock,
            sending: tokio::sync::Mutex::default(),
            on_failure: Mutex::new(Some(Box::new(on_failure))),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what an event led to. Never waits.
    pub fn add(&self, output: crate::TracerOutput) {
        let mut queue = self.queue();
        for span in output.spans {
            if self.settings.traces.is_none() {
                break;
            }
            if queue.spans.len() < self.settings.queue_spans {
                queue.spans.push_back(span);
            } else {
                queue.lost += 1;
            }
        }
        if self.settings.metrics.is_some() {
            for (kind, attributes, value) in output.measurements {
                queue.metrics.record(kind, attributes, value);
            }
        }
    }

    /// Sends from time to time, until nobody has the exporter any more.
    pub async fn run(exporter: Weak<Self>) {
        let Some((spans, metrics)) = exporter
            .upgrade()
            .map(|exporter| (exporter.settings.span_interval, exporter.settings.metric_interval))
        else {
            return;
        };
        let mut spans = tokio::time::interval(spans);
        let mut metrics = tokio::time::interval(metrics);
        for interval in [&mut spans, &mut metrics] {
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            interval.reset();
        }
        loop {
            let is_spans = tokio::select! {
                _ = spans.tick() => true,
                _ = metrics.tick() => false,
            };
            let Some(exporter) = exporter.upgrade() else { return };
            if is_spans {
                exporter.send_spans().await;
            } else {
                exporter.send_metrics().await;
            }
        }
    }

    /// Sends everything that is left.
    pub async fn flush(&self) {
        self.send_spans().await;
        self.send_metrics().await;
        let lost = std::mem::take(&mut self.queue().lost);
        if lost > 0 {
            tracing::warn!(lost, "spans were lost: the queue was full");
        }
    }

    async fn send_spans(&self) {
        let Some(endpoint) = &self.settings.traces else { return };
        let _one = self.sending.lock().await;
        loop {
            let batch: Vec<Span> = {
                let mut queue = self.queue();
                let count = queue.spans.len().min(MAX_BATCH);
                queue.spans.drain(..count).collect()
            };
            if batch.is_empty() {
                return;
            }
            let body = TelemetryBatch::Spans(&batch).encode(&self.settings.resource, endpoint.encoding);
            let Err(error) = self.post(endpoint, body).await else { continue };
            if error.is_passing() {
                self.put_back(batch);
            }
            return self.report(error);
        }
    }

    /// Keeps what could not be sent for the next time, as far as there is room.
    fn put_back(&self, batch: Vec<Span>) {
        let mut queue = self.queue();
        let room = self.settings.queue_spans.saturating_sub(queue.spans.len());
        queue.lost += batch.len().saturating_sub(room) as u64;
        let skipped = batch.len().saturating_sub(room);
        batch.into_iter().skip(skipped).rev().for_each(|span| queue.spans.push_front(span));
    }

    async fn send_metrics(&self) {
        let Some(endpoint) = &self.settings.metrics else { return };
        let _one = self.sending.lock().await;
        let metrics = self.queue().metrics.clone();
        if metrics.is_empty() {
            return;
        }
        let batch =
            TelemetryBatch::Metrics { points: metrics.points(), start: self.start, now: (self.clock)() };
        let body = batch.encode(&self.settings.resource, endpoint.encoding);
        if let Err(error) = self.post(endpoint, body).await {
            self.report(error);
        }
    }

    /// Reports that there was no more time to send what was left.
    pub fn report_timeout(&self, limit: Duration) {
        let endpoint = self.settings.traces.as_ref().or(self.settings.metrics.as_ref());
        let url = endpoint.map(|endpoint| mask_url(&endpoint.url)).unwrap_or_default();
        self.report(ExportError::Timeout { url, limit });
    }

    fn report(&self, error: ExportError) {
        tracing::warn!(%error, "telemetry could not be sent");
        let told = self.on_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tell) = told {
            tell(error);
        }
    }

    async fn post(&self, endpoint: &SignalEndpoint, body: Vec<u8>) -> Result<(), ExportError> {
        let mut headers = endpoint.headers.clone();
        headers.push(("content-type".into(), endpoint.encoding.content_type().into()));
        let (method, url) = (HttpMethod::Post, endpoint.url.clone());
        let request = HttpRequest { method, url, headers, body: Bytes::from(body) };
        let sending = async {
            let mut response = self.transport.send(request).await?;
            // Read, so that the connection can be used again.
            let mut length = 0;
            while let Some(Ok(bytes)) = response.body.next().await {
                length += bytes.len();
                if length > 64 * 1024 {
                    break;
                }
            }
            match response.status {
                200..300 => Ok(()),
                status => Err(ExportError::Status { url: mask_url(&endpoint.url), status }),
            }
        };
        let limit = endpoint.timeout;
        let timeout = || ExportError::Timeout { url: mask_url(&endpoint.url), limit };
        tokio::time::timeout(limit, sending).await.unwrap_or_else(|_| Err(timeout()))
    }
}
