//! [`RequestPreview`]: the next request as it would be sent.
//!
//! A preview takes the way of a run: the input event and expansion, the observation of the
//! workspace, the handlers, the snapshot, the client. It stores nothing, and commits nothing.

use std::sync::Arc;

use hardpan_context::{AssembledPrompt, Breakdown, FoldReason, RenderCache, Snapshot, Target};
use hardpan_providers::{Client, HttpRequest, KnownRefusals, PreparedRequest};

use crate::agent::{Agent, lock};
use crate::error::{AgentError, PlanError, PreviewError};
use crate::events::Input;
use crate::last_request::TextFallbacks;
use crate::queue::PreparedInput;
use crate::request::{HandledContext, PlannedRequest, RequestContent};
use crate::run::RunState;
use crate::setup::ObserveReason;

/// The next request as it would be sent, and everything that it was made from.
pub struct RequestPreview {
    /// The prompt in the form that is sent, and the layout's next state.
    pub assembled: AssembledPrompt,
    /// What the prompt was assembled from.
    pub snapshot: Snapshot,
    /// The model that the request is for.
    pub target: Target,
    /// Rendered texts and token counts.
    pub render_cache: Arc<RenderCache>,
    /// The client that would send it.
    pub client: Arc<Client>,
    /// The provider's id of the answer before, where the provider gave one.
    pub previous_answer: Option<Arc<str>>,
    /// Address, headers and the exact body, with keys masked.
    pub http: HttpRequest,
    /// What the request leaves out because the server has refused it before.
    pub refusals: KnownRefusals,
}

impl RequestPreview {
    /// Where each block stands in the body, such as `messages[0].content[1]`.
    pub fn addresses(&self) -> Vec<String> {
        hardpan_providers::block_addresses(&self.assembled.prompt, &self.target.profile)
    }

    /// What fills the context window, and what it costs.
    pub fn breakdown(&self) -> Breakdown {
        let mut breakdown = Breakdown::new(&self.assembled, &self.snapshot, &self.target, &self.render_cache);
        let addresses = self.addresses();
        for (marked, breakpoint) in breakdown.breakpoints.iter_mut().zip(self.assembled.prompt.breakpoints())
        {
            marked.block.clone_from(&addresses[breakpoint.block]);
        }
        breakdown
    }
}

impl Agent {
    /// The request that `input` would lead to now; without one, the request that would go on with
    /// the conversation as it is. `fold` asks for a fold.
    pub async fn preview_request(
        &self,
        input: Option<Input>,
        fold: Option<FoldReason>,
    ) -> Result<RequestPreview, PreviewError> {
        if self.is_busy() {
            return Err(AgentError::Busy.into());
        }
        let prepared = match input {
            Some(input) => Some(self.prepare_input(input).await?.map_err(|_| PreviewError::Handled)?),
            None => None,
        };
        let (selection, client) = self.selection_with_client()?;
        let mut run_state = RunState::new(selection.target.vocabulary());
        let content = self.preview_content(&mut run_state, prepared, fold).await?;
        let planned = self.plan_request(&mut run_state, &selection, content).await?;
        let now = self.now();
        let forms = TextFallbacks::new(&self.inner.setup.texts);
        let request = planned.client_request(&selection, &forms, now);
        let PreparedRequest { http, .. } = client.prepare(&request)?;
        let target = selection.target;
        let refusals =
            client.known_refusals(&target.provider, &target.profile, &target.model.id, now.as_millisecond());
        let PlannedRequest { snapshot, mut assembled, previous_answer } = planned;
        if let Some(sent) = forms.take_sent(&run_state.render_cache, &target) {
            (assembled.prompt, assembled.measured) = sent;
        }
        let render_cache = run_state.render_cache;
        Ok(RequestPreview {
            assembled,
            snapshot,
            target,
            render_cache,
            client,
            previous_answer,
            http,
            refusals,
        })
    }

    /// The conversation with what a run would add to it before its first request.
    async fn preview_content(
        &self,
        run_state: &mut RunState,
        prepared: Option<PreparedInput>,
        fold: Option<FoldReason>,
    ) -> Result<RequestContent, PlanError> {
        let prompt = prepared.as_ref().map_or("", |prepared| &prepared.text);
        run_state.set_observed(self.observe_workspace(ObserveReason::Preview, prompt).await?);
        let mut bodies = Vec::new();
        if let Some(prepared) = prepared {
            bodies.push(prepared.message().0);
            let attached = lock(&self.inner.next_prompt_messages).clone();
            let added = attached.into_iter().chain(self.ask_before_run(run_state, &prepared).await?);
            bodies.extend(added.map(|message| message.into_parts().0));
        }
        let (messages, fresh) = lock(&self.inner.conversation).messages_with(bodies, self.now());
        let HandledContext { messages, appended, .. } = self.context_messages(messages).await;
        Ok(RequestContent { messages, appended, fresh, fold })
    }
}
