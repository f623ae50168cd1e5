//! [`ClientSide`]: our side of a connection. It answers what the server asks, and passes on what it tells,
//! to a [`ClientHost`].
//!
//! A server may ask only while a request of ours runs: nothing else explains to a person why a question
//! appears. When the last request has ended or was cancelled, its questions are taken back.

#![expect(deprecated, reason = "servers of today ask for roots, samples and send messages for the log")]

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorCode, ErrorData, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ResourceUpdatedNotificationParam, Root,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

use crate::forms::{FormAnswer, ServerForm, ServerVisit};
use crate::login::Login;
use crate::plain_text::plain_text;
use crate::sampling::{SamplingAnswer, SamplingRefusal, SamplingRequest};

/// What a host's answer is awaited by.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Receives what a server reports while a call runs.
pub(crate) type ProgressSender = tokio::sync::mpsc::Sender<String>;

/// Who is told of the progress of each call. Nothing iterates over it, and the protocol's tokens have no order.
#[expect(clippy::disallowed_types, reason = "nothing iterates over it")]
pub(crate) type ProgressReports = std::collections::HashMap<ProgressToken, ProgressSender>;

/// What a server tells its client, and what it may ask of it. Dropping a future takes the question back.
pub trait ClientHost: Send + Sync {
    /// There are other tokens than before: nothing may contain these, either.
    fn tokens_changed(&self, login: &Login);

    /// The server's list of tools is another one.
    fn tools_changed(&self);

    /// Some of its tools cannot be made out; these are their names.
    fn tools_left_out(&self, names: &[String]);

    /// Its list of prompts is another one.
    fn prompts_changed(&self);

    /// Its list of resources is another one.
    fn resources_changed(&self);

    /// A resource that was subscribed to has another content.
    fn resource_updated(&self, uri: &str);

    /// The server wants a form to be filled in.
    fn fill_form<'a>(&'a self, form: &'a ServerForm) -> HostFuture<'a, FormAnswer>;

    /// The server wants an address to be visited. Nothing must open it but the person.
    fn visit<'a>(&'a self, visit: &'a ServerVisit) -> HostFuture<'a, FormAnswer>;

    /// The server wants a model to answer something.
    fn sample<'a>(
        &'a self,
        request: &'a SamplingRequest,
    ) -> HostFuture<'a, Result<SamplingAnswer, SamplingRefusal>>;
}

/// Our side of a connection.
#[derive(Clone)]
pub(crate) struct ClientSide {
    server: Arc<str>,
    root_address: Option<Arc<str>>,
    host: Arc<dyn ClientHost>,
    progress: Arc<Mutex<ProgressReports>>,
    /// How many of our requests run.
    requests: Arc<watch::Sender<usize>>,
    /// How many questions of the server wait for an answer.
    questions: Arc<watch::Sender<usize>>,
}

/// As long as it lives, something is counted.
pub(crate) struct CountGuard(Arc<watch::Sender<usize>>);

impl CountGuard {
    fn new(counter: &Arc<watch::Sender<usize>>) -> Self {
        counter.send_modify(|count| *count += 1);
        CountGuard(counter.clone())
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl ClientSide {
    pub fn new(server: &str, root_address: Option<Arc<str>>, host: Arc<dyn ClientHost>) -> Self {
        let (requests, questions) = (Arc::new(watch::Sender::new(0)), Arc::new(watch::Sender::new(0)));
        ClientSide {
            server: server.into(),
            root_address,
            host,
            progress: Arc::default(),
            requests,
            questions,
        }
    }

    pub fn reports(&self) -> std::sync::MutexGuard<'_, ProgressReports> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request of ours runs, until the value is dropped.
    pub fn begin_request(&self) -> CountGuard {
        CountGuard::new(&self.requests)
    }

    /// Whether the server waits for an answer: that time is not its own.
    pub fn is_asking(&self) -> bool {
        *self.questions.borrow() > 0
    }

    /// Who is told what the server does.
    pub fn host(&self) -> &Arc<dyn ClientHost> {
        &self.host
    }

    /// Waits for the host's answer. None if no request of ours runs any more.
    async fn ask<T>(&self, asking: HostFuture<'_, T>) -> Option<T> {
        let mut requests = self.requests.subscribe();
        if *requests.borrow() == 0 {
            return None;
        }
        let _question = CountGuard::new(&self.questions);
        tokio::select! {
            answer = asking => Some(answer),
            // The sender is held by this value.
            _ = requests.wait_for(|running| *running == 0) => None,
        }
    }
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::json!({
            "roots": {},
            "elicitation": {"form": {}, "url": {}},
            "sampling": {},
        });
        let capabilities = serde_json::from_value(capabilities).unwrap_or_default();
        let us = Implementation::new("hardpan", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.root_address.iter().map(|address| Root::new(address.to_string()));
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answering = async {
            match request {
                ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                    let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                    let form = ServerForm::new(&message, &schema);
                    let form = form.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                    Ok(self.ask(self.host.fill_form(&form)).await)
                }
                ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                    let visit = ServerVisit::new(&message, &url);
                    let visit = visit.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                    Ok(self.ask(self.host.visit(&visit)).await)
                }
                _ => Err(ErrorData::invalid_params("this kind of question is not known here", None)),
            }
        };
        let answer = tokio::select! {
            answer = answering => answer?,
            () = context.ct.cancelled() => None,
        };
        Ok(match answer.unwrap_or(FormAnswer::Cancelled) {
            FormAnswer::Accepted(content) if content.is_empty() => {
                ElicitResult::new(ElicitationAction::Accept)
            }
            FormAnswer::Accepted(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content.into())
            }
            FormAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
            FormAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let request = SamplingRequest::new(request)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let answer = tokio::select! {
            answer = self.ask(self.host.sample(&request)) => answer,
            () = context.ct.cancelled() => None,
        };
        match answer {
            Some(Ok(answer)) => Ok(answer.into_result()),
            // The number that the protocol's documents use for it.
            Some(Err(refusal)) => Err(ErrorData::new(ErrorCode(-1), refusal.to_string(), None)),
            None => Err(ErrorData::new(ErrorCode(-1), "no request that could explain it runs", None)),
        }
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let sender = self.reports().get(&report.progress_token).cloned();
        let of = report.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = report.message.map(|message| format!(": {}", plain_text(&message, 500)));
        let text = format!("{}{of}{}", report.progress, message.unwrap_or_default());
        if let Some(sender) = sender {
            // Reports that nobody has read yet are newer than none.
            let _ = sender.try_send(text);
        }
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let data = plain_text(&message.data.to_string(), 2000);
        tracing::info!(server = %self.server, level = ?message.level, data = %data.escape_debug(), "log");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.host.tools_changed();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.host.prompts_changed();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.host.resources_changed();
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.host.resource_updated(&update.uri);
    }
}
