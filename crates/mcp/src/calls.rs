//! Requests to a server: how long they may take, what they report, and that they can be cancelled.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, JsonObject,
    PingRequest, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

use crate::client_side::{ClientSide, CountGuard};
use crate::connection::Connection;
use crate::error::ServerError;
use crate::failures::other_answer;
use crate::odd_answers::read_call_answer;
use crate::results::{CallAnswer, make_answer};

/// How many times the limit of a call it may take in all, however much progress it reports.
const MAX_EXTENSIONS: u32 = 30;

/// How long a server may take to answer that it is still there, after a request took too long.
const PING_TIME: Duration = Duration::from_secs(3);

/// How often it is looked whether a request takes too long.
const CLOCK_STEP: Duration = Duration::from_millis(100);

impl Connection {
    /// Calls a tool by the server's name for it. Dropping the future tells the server that the call is
    /// cancelled.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<CallAnswer, ServerError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.request(request, progress).await? {
            ServerResult::CallToolResult(result) => Ok(make_answer(result)),
            ServerResult::CustomResult(answer) => read_call_answer(&answer.0).ok_or_else(other_answer),
            _ => Err(other_answer()),
        }
    }

    /// Sends a request, and waits for its answer as long as the limit of a call says. A report of progress
    /// begins the limit anew, and time in which the server waits for a person does not count. The
    /// connection to a server that takes too long and does not answer a ping, either, is ended.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ServerResult, ServerError> {
        let answer = self.bounded_request(request, progress).await;
        match answer {
            // Further requests would wait as long for nothing.
            Err(ServerError::CallTimeout(limit)) if !self.answers_ping().await => {
                self.end();
                Err(ServerError::Hangs(limit))
            }
            answer => answer,
        }
    }

    /// Whether the server answers that it is there, with whatever answer.
    async fn answers_ping(&self) -> bool {
        let ping = self.service.peer().send_request(ClientRequest::PingRequest(PingRequest::default()));
        match tokio::time::timeout(PING_TIME, ping).await {
            Ok(Err(ServiceError::McpError(_))) => true,
            Ok(answer) => answer.is_ok(),
            Err(_) => false,
        }
    }

    async fn bounded_request(
        &self,
        request: ClientRequest,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<ServerResult, ServerError> {
        let (peer, side) = (self.service.peer(), self.service.service());
        let running = side.begin_request();
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = handle.map_err(|error| self.call_error(error))?;
        let (sender, mut reports) = tokio::sync::mpsc::channel(16);
        let token = handle.progress_token.clone();
        side.reports().insert(token.clone(), sender);
        let (peer, id) = (peer.clone(), Some(handle.id.clone()));
        let reason = "the user stopped it";
        let mut cancellation =
            Cancellation { peer, id, reason, side: side.clone(), token, _running: running };
        let answer = handle.await_response();
        tokio::pin!(answer);
        let mut clock = tokio::time::interval(CLOCK_STEP);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut quiet, mut total) = (Duration::ZERO, Duration::ZERO);
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                Some(report) = reports.recv() => {
                    quiet = Duration::ZERO;
                    progress(&report);
                }
                _ = clock.tick(), if !side.is_asking() => {
                    (quiet, total) = (quiet + CLOCK_STEP, total + CLOCK_STEP);
                    if quiet > self.call_time || total > self.call_time * MAX_EXTENSIONS {
                        cancellation.reason = "it took too long";
                        return Err(ServerError::CallTimeout(self.call_time));
                    }
                }
                // Somebody is asked: the clock stands still until it is looked at again.
                () = tokio::time::sleep(CLOCK_STEP), if side.is_asking() => quiet = Duration::ZERO,
            }
        };
        cancellation.id = None;
        answer.map_err(|error| self.call_error(error))
    }
}

/// Tells the server that a request is no longer wanted, unless it was answered.
struct Cancellation {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
    reason: &'static str,
    side: ClientSide,
    token: ProgressToken,
    _running: CountGuard,
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        self.side.reports().remove(&self.token);
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let (peer, reason) = (self.peer.clone(), self.reason);
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some(reason.into()));
            // A server that is gone need not be told.
            let _ = peer.notify_cancelled(params).await;
        });
    }
}
