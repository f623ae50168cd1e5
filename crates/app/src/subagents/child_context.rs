//! What a sub-agent sees of the folder: little, or what the agent sees that started it.

use std::sync::Arc;

use hardpan_agent::{ContextSource, Coupling, ObserveError, ObserveReason, ObserveRequest};
use hardpan_context::Snapshot;
use hardpan_prompt::Text;
use jiff::Timestamp;

use crate::workspace_context::WorkspaceContext;

/// The instructions of the project and the files that the sub-agent reads itself.
pub(super) struct OwnPrefixContext {
    context: Arc<WorkspaceContext>,
    agent_text: Option<Text>,
}

impl OwnPrefixContext {
    pub fn new(context: Arc<WorkspaceContext>, agent_text: Option<&str>) -> Self {
        OwnPrefixContext { context, agent_text: agent_text.map(Text::new) }
    }
}

impl ContextSource for OwnPrefixContext {
    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError> {
        self.context.observe_for_task(request, self.agent_text.clone())
    }

    fn coupling(&self) -> Coupling {
        self.context.coupling()
    }

    fn day(&self, now: Timestamp) -> String {
        self.context.day(now)
    }
}

/// What the agent sees that started the sub-agent, so that both send the same bytes.
pub(super) struct SharedPrefixContext {
    context: Arc<WorkspaceContext>,
    /// Files that the beginning of the prompt shows.
    files: Vec<String>,
}

impl SharedPrefixContext {
    pub fn new(context: Arc<WorkspaceContext>, files: Vec<String>) -> Self {
        SharedPrefixContext { context, files }
    }
}

impl ContextSource for SharedPrefixContext {
    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError> {
        // As for the next request of the run in which the sub-agent works.
        let mut request = ObserveRequest { reason: ObserveReason::NextRequest, ..request.clone() };
        for file in &self.files {
            if !request.known_files.iter().any(|(known, _)| known == file) {
                request.known_files.push((file.clone(), false));
            }
        }
        self.context.observe(&request)
    }

    fn add_panels(&self, snapshot: &mut Snapshot) {
        self.context.add_panels(snapshot);
    }

    fn coupling(&self) -> Coupling {
        self.context.coupling()
    }

    fn day(&self, now: Timestamp) -> String {
        self.context.day(now)
    }
}
