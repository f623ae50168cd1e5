//! [`ConversationTelemetry`]: OpenTelemetry for a conversation, in builds with the feature `otel`. In others
//! it does nothing, and says so if the settings ask for it.

use std::sync::Arc;

use hardpan_agent::Agent;
use hardpan_context::KnownSecrets;

use crate::notice::{Notice, NoticeSink};
use crate::settings::TelemetryConfig;
use crate::workspace_context::WorkspaceContext;

/// Follows the agent of a conversation and its sub-agents.
#[derive(Clone, Default)]
pub(crate) struct ConversationTelemetry {
    #[cfg(feature = "otel")]
    telemetry: Option<Arc<hardpan_telemetry::Telemetry>>,
}

#[cfg(not(feature = "otel"))]
impl ConversationTelemetry {
    /// Tells the person that this build has no telemetry, if the settings ask for some.
    pub fn open(config: &TelemetryConfig, _: &KnownSecrets, notices: &Arc<dyn NoticeSink>) -> Self {
        if config.is_wanted() {
            notices.notice(Notice::TelemetryNotBuilt);
        }
        ConversationTelemetry::default()
    }

    /// Does nothing.
    pub fn follow(&self, _: &Agent, _: &Arc<WorkspaceContext>) {}

    /// Does nothing.
    pub fn follow_subagent(&self, _: &Agent, _: &Agent, _: &str, _: &str) {}

    /// Does nothing.
    pub async fn finish(&self) {}
}

#[cfg(feature = "otel")]
impl ConversationTelemetry {
    /// Telemetry as the settings and the variables of OpenTelemetry say. `secrets` are never sent.
    pub fn open(config: &TelemetryConfig, secrets: &KnownSecrets, notices: &Arc<dyn NoticeSink>) -> Self {
        let telemetry = open_telemetry(config, secrets, notices).unwrap_or_else(|error| {
            notices.notice(Notice::TelemetryNotSent { error });
            None
        });
        ConversationTelemetry { telemetry: telemetry.map(Arc::new) }
    }

    /// Follows the agent of the conversation.
    pub fn follow(&self, agent: &Agent, context: &Arc<WorkspaceContext>) {
        if let Some(telemetry) = &self.telemetry {
            let context = Arc::downgrade(context);
            telemetry.follow(agent, move || {
                let name = context.upgrade().and_then(|context| context.pinned_context().agent);
                name.unwrap_or_else(|| hardpan_agent::expand::DEFAULT_AGENT.to_owned())
            });
        }
    }

    /// Follows a sub-agent that a call of `parent` started.
    pub fn follow_subagent(&self, agent: &Agent, parent: &Agent, name: &str, call_id: &str) {
        if let Some(telemetry) = &self.telemetry {
            let session = parent.session().0;
            let place = hardpan_telemetry::SubagentPlace { name, session: &session, call_id };
            telemetry.follow_subagent(agent, &place);
        }
    }

    /// Sends what is left.
    pub async fn finish(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.finish().await;
        }
    }
}

#[cfg(feature = "otel")]
fn open_telemetry(
    config: &TelemetryConfig,
    secrets: &KnownSecrets,
    notices: &Arc<dyn NoticeSink>,
) -> Result<Option<hardpan_telemetry::Telemetry>, crate::notice::TelemetryError> {
    use hardpan_context::{Redactions, SecretScanner};
    use hardpan_telemetry::{Telemetry, TelemetryHost, TelemetryOptions, TelemetrySettings};

    let TelemetryConfig { enabled, endpoint, capture_content } = config.clone();
    let options = TelemetryOptions { enabled, endpoint, capture_content };
    let Some(settings) = TelemetrySettings::resolve(&options, &|name| std::env::var(name).ok())? else {
        return Ok(None);
    };
    let transport = Arc::new(hardpan_providers::HttpTransport::new(None)?);
    let scanner = SecretScanner::new(secrets.clone());
    let notices = notices.clone();
    Ok(Some(Telemetry::new(
        settings,
        TelemetryHost {
            transport,
            clock: || u64::try_from(crate::clock::now().as_nanosecond()).unwrap_or_default(),
            filter: Arc::new(move |text| {
                let redactions: Redactions = scanner.find(text).iter().collect();
                redactions.redact(text).unwrap_or_else(|| text.to_owned())
            }),
            on_failure: Box::new(move |error| {
                notices.notice(Notice::TelemetryNotSent { error: error.into() });
            }),
        },
    )))
}
