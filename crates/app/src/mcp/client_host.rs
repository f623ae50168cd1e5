//! [`ServerHost`]: what a server of a conversation tells, and what it asks.

use std::sync::Weak;

use hardpan_mcp::{
    ClientHost, FormAnswer, HostFuture, Login, SamplingAnswer, SamplingRefusal, SamplingRequest, ServerForm,
    ServerVisit,
};
use tokio::runtime::Handle;

use super::{McpServer, questions, sampling};
use crate::notice::Notice;
use crate::secrets::login_secret;

/// The host of a server's connection. It does not keep the server alive.
pub(super) struct ServerHost {
    pub server: Weak<McpServer>,
    pub runtime: Handle,
}

impl ClientHost for ServerHost {
    fn tokens_changed(&self, login: &Login) {
        if let Some(server) = self.server.upgrade() {
            let secrets = login.secrets().into_iter().map(|value| login_secret(&server.name, value));
            server.link.secrets.add(secrets);
        }
    }

    fn tools_changed(&self) {
        McpServer::note_change(&self.server, &self.runtime);
    }

    fn tools_left_out(&self, names: &[String]) {
        if let Some(server) = self.server.upgrade() {
            let error = format!(
                "these of its tools have no form that can be read, and are left out: {}",
                names.join(", ")
            );
            server.notices.notice(Notice::McpServerFailed { server: server.name.to_string(), error });
        }
    }

    fn prompts_changed(&self) {
        McpServer::note_parts_change(&self.server, &self.runtime);
    }

    fn resources_changed(&self) {
        McpServer::note_parts_change(&self.server, &self.runtime);
    }

    fn resource_updated(&self, uri: &str) {
        if let Some(server) = self.server.upgrade() {
            server.parts.note_update(uri);
        }
    }

    fn fill_form<'a>(&'a self, form: &'a ServerForm) -> HostFuture<'a, FormAnswer> {
        Box::pin(async move {
            match self.server.upgrade() {
                Some(server) => questions::fill_form(&server, form).await,
                None => FormAnswer::Cancelled,
            }
        })
    }

    fn visit<'a>(&'a self, visit: &'a ServerVisit) -> HostFuture<'a, FormAnswer> {
        Box::pin(async move {
            match self.server.upgrade() {
                Some(server) => questions::visit(&server, visit).await,
                None => FormAnswer::Cancelled,
            }
        })
    }

    fn sample<'a>(
        &'a self,
        request: &'a SamplingRequest,
    ) -> HostFuture<'a, Result<SamplingAnswer, SamplingRefusal>> {
        Box::pin(async move {
            match self.server.upgrade() {
                Some(server) => sampling::sample(&server, request).await,
                None => Err(SamplingRefusal::Rejected("the conversation has ended".into())),
            }
        })
    }
}
