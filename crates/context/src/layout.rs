//! [`Layout`]: the trait behind the ways of ordering a prompt, with its input and output.
//!
//! Everything that belongs to one layout alone stands behind this trait: how it arranges a prompt,
//! what it carries over, how that is stored, and what the breakdown and the HUD show of it. Code
//! outside of a layout asks its properties and never its name.

mod registry; // LayoutName: the names, and the layout behind each

use std::borrow::Cow;
use std::collections::BTreeMap;

use hardpan_models::ToolSchemaStyle;
use hardpan_prompt::{
    Hash, MessageId, Omission, OmissionKey, OmissionReason, Prompt, PromptTokens, Region, Source, Tier,
    TokenCounter, Tool, ToolBlock, WebSearch,
};

use crate::breakdown::{ContentDetails, LayoutDetails, PromptPiece, SessionFigure};
use crate::layout_state::StateStorage;
use crate::{
    AssembledPrompt, Breakdown, Fold, FoldOutlook, LayoutState, PromptTexts, RenderCache, Snapshot, Target,
    TierChange,
};

pub use registry::{LayoutName, UnknownLayout};

/// What a layout works from: the snapshot, and everything outside it that decides the bytes.
#[derive(Clone, Copy)]
pub struct LayoutInput<'a> {
    /// The context and the conversation.
    pub snapshot: &'a Snapshot,
    /// The model the prompt is for.
    pub target: &'a Target,
    /// The texts that a model reads.
    pub texts: &'a PromptTexts,
    /// Texts rendered for earlier requests. It saves work and never changes the result.
    pub render_cache: &'a RenderCache,
}

impl LayoutInput<'_> {
    /// Counts the tokens of a prompt, scaled to the target's tokenizer.
    pub(crate) fn measure_prompt(&self, prompt: &Prompt) -> PromptTokens {
        self.render_cache.counter.measure(prompt).scaled(&self.target.factor)
    }

    /// The search that the provider's own tool performs, if there is one and it is asked for.
    pub(crate) fn web_search(&self) -> Option<WebSearch> {
        let is_possible = self.target.has_search_tool() && !self.snapshot.stands_alone;
        self.snapshot.web_search.filter(|_| is_possible)
    }

    /// A prompt with its settings but without tools, system prompt and messages.
    pub(crate) fn empty_prompt(&self) -> Prompt {
        let web_search = self.snapshot.web_search.filter(|_| !self.snapshot.stands_alone);
        let web_search = web_search.filter(|_| self.target.has_web_search());
        let mut left_out = self.snapshot.unavailable.clone();
        if self.snapshot.web_search.is_some() && !self.target.has_web_search() {
            let key = OmissionKey::Feature("web_search");
            left_out.push(Omission { key, reason: OmissionReason::NoSearchPlugin });
        }
        let asked = self.target.thinking_request(self.snapshot.thinking);
        Prompt {
            model: self.target.model.id.as_str().into(),
            max_tokens: self.target.max_tokens,
            thinking: asked.thinking,
            effort: asked.effort,
            drop_stale_reasoning: self.target.model.binding.is_bound() && asked.thinking.is_on(),
            web_search,
            left_out,
            ..Prompt::default()
        }
    }

    /// The tools as blocks, with schemas in the form the provider wants, so that a layout measures
    /// what is sent. `own` is the tool that the layout itself pretends to call, if it has one.
    pub(crate) fn blocks_of_tools(
        &self,
        tools: &[Tool],
        region: Region,
        own: Option<Tool>,
    ) -> Vec<ToolBlock> {
        // A layout's own tool comes first, so that it never moves when tools are added.
        let own_name = own.as_ref().map(|tool| tool.name.clone());
        let others = tools.iter().filter(|tool| Some(&tool.name) != own_name.as_ref()).cloned();
        own.into_iter()
            .chain(others)
            .map(|tool| ToolBlock { region, tool: self.form_tool(tool), breakpoint: None })
            .collect()
    }

    /// The tool with its schema in the form that the provider wants.
    pub(crate) fn form_tool(&self, tool: Tool) -> Tool {
        match self.target.profile.schemas {
            ToolSchemaStyle::AsDeclared => tool,
            ToolSchemaStyle::AllRequired => crate::require_all_properties(&tool),
        }
    }
}

/// What a layout returns: a finished prompt, and the state for the next request.
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The prompt, before it is adapted to what the model lacks.
    pub prompt: Prompt,
    /// The state to commit once the provider has begun to answer.
    pub layout_state: LayoutState,
    /// The prompt's token counts, where the layout had to measure it anyway.
    pub measured: Option<PromptTokens>,
    /// What the prompt dropped by laying its cached part anew, if it did.
    pub fold: Option<Fold>,
}

/// What a layout shows of the repository before anyone asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepositoryView {
    /// An overview of about a thousand tokens; tools tell the rest.
    #[default]
    Overview,
    /// The list of all files, and the map of what they define.
    Map,
}

/// How the files of the workspace refer to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coupling {
    /// Groups of paths that refer to each other and should be cached together.
    pub clusters: Vec<Vec<String>>,
    /// How strongly other files refer to a path. Only the order of the values matters.
    pub references: BTreeMap<String, f64>,
}

/// A way of ordering a prompt.
///
/// To add one, implement this trait and [`StateStorage`] in a file of its own and add a line to the
/// registry (`layout/registry.rs`). A layout that carries something over adds a field to
/// [`LayoutState`]. Every method but [`arrange`](Layout::arrange) has a default that fits a layout
/// without state.
pub trait Layout: StateStorage + Send + Sync {
    /// Orders the snapshot into a prompt. Pure: the same input gives the same bytes.
    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement;

    /// Orders a snapshot once more, without the reasoning that the first time made stale, and with the
    /// fold that was due then. What the cache holds before the place of the fold has not changed.
    fn arrange_without_reasoning(&self, input: &LayoutInput<'_>, _fold: Option<Fold>) -> Arrangement {
        self.arrange(input)
    }

    /// Whether the layout is made for panels, so that a conversation has all of them unless the settings
    /// say otherwise.
    fn is_about_panels(&self) -> bool {
        false
    }

    /// Whether images that the user opened are sent with every request, as context, and documents are
    /// named in it. In other layouts an image goes with the prompt that names it, where it stays cached.
    fn shows_context_images(&self) -> bool {
        false
    }

    /// The name of the tool that the layout declares and fills in by itself, if it has one. No other
    /// tool can have it.
    fn own_tool(&self) -> Option<&'static str> {
        None
    }

    /// What the ids of the layout's own calls begin with. No call of the conversation keeps an id
    /// that begins so.
    fn own_call_prefix(&self) -> Option<&'static str> {
        None
    }

    /// Whether it suits a request that stands alone: it declares no tool of its own that the model
    /// could call, and keeps no state.
    fn suits_single_requests(&self) -> bool {
        false
    }

    /// Whether the system prompt starts from the snapshot's prompt type. If not, it starts from the
    /// active agent's text.
    fn has_prompt_types(&self) -> bool {
        false
    }

    /// Whether breakpoints below the provider's minimum are removed from the finished prompt. If
    /// not, they are sent, and the provider ignores them.
    fn drops_small_breakpoints(&self) -> bool {
        false
    }

    /// Whether a change of effort is told by a message where the model takes that, so that nothing is
    /// lost from the cache.
    fn appends_effort(&self) -> bool {
        false
    }

    /// Whether tools that come and go are told by a message where the model takes that, so that
    /// nothing is lost from the cache.
    fn appends_tool_changes(&self) -> bool {
        false
    }

    /// The tools that its requests declare, without the layout's own; none before the first request.
    fn declared_tools<'a>(&self, state: &'a LayoutState) -> Option<&'a [Tool]> {
        state.declared_tools.as_ref().map(|declared| &**declared.tools)
    }

    /// Whether the layout keeps files up to date that the model has read or written. If so, they are
    /// to be items of the snapshot; if not, the result of the tool is all the model sees.
    fn tracks_known_files(&self) -> bool {
        false
    }

    /// Whether the layout folds: whether it takes superseded messages out of the conversation and
    /// leaves stubs in their place, which the model can recall.
    fn folds(&self) -> bool {
        false
    }

    /// Whether the layout wants to know the coupling of the files before this request.
    fn needs_coupling(&self, _snapshot: &Snapshot) -> bool {
        false
    }

    /// The state to build the first request with, where the layout
    /// [needs the coupling](Layout::needs_coupling) for it.
    fn initial_state(&self, input: &LayoutInput<'_>, _coupling: &Coupling) -> LayoutState {
        input.snapshot.layout_state.clone()
    }

    /// The snapshot with what the layout's state, as a request returns it, knows of its items and
    /// messages.
    fn annotate<'a>(&self, snapshot: &'a Snapshot, _state: &LayoutState) -> Cow<'a, Snapshot> {
        Cow::Borrowed(snapshot)
    }

    /// Updates the state after a complete answer to `assembled`, which was built from `snapshot`,
    /// and returns what moved. Call it once for every complete answer, including those that end in
    /// tool calls.
    fn record_response(
        &self,
        _state: &mut LayoutState,
        _snapshot: &Snapshot,
        _assembled: &AssembledPrompt,
        _target: &Target,
    ) -> Vec<TierChange> {
        Vec::new()
    }

    /// What the layout shows of the repository before anyone asks.
    fn repository_view(&self) -> RepositoryView {
        RepositoryView::Overview
    }

    /// How often the layout has laid the items at the beginning of its prompts anew; none if it never
    /// keeps former ones there.
    fn base_count(&self, _state: &LayoutState) -> Option<u32> {
        None
    }

    /// How many tokens the last request sent that a fold would drop.
    fn garbage_tokens(&self, _state: &LayoutState) -> usize {
        0
    }

    /// Where the next fold would begin, and what it would bring; `None` if nothing can be dropped.
    fn fold_outlook(&self, _state: &LayoutState) -> Option<FoldOutlook> {
        None
    }

    /// The messages whose results were taken out although nothing later says the same, with how many
    /// tokens each had.
    fn paged_out<'a>(&self, _state: &'a LayoutState) -> Vec<(&'a MessageId, usize)> {
        Vec::new()
    }

    /// The files that the cached part of the prompt shows whole: path and hash of the body.
    fn cached_files<'a>(&self, _state: &'a LayoutState) -> Vec<(&'a str, Hash)> {
        Vec::new()
    }

    /// What the layout adds to the breakdown of a prompt.
    fn breakdown_details(
        &self,
        _pieces: &[PromptPiece],
        _snapshot: &Snapshot,
        _state: &LayoutState,
        _counter: &TokenCounter,
    ) -> LayoutDetails {
        LayoutDetails::default()
    }

    /// What the layout adds to one content of the breakdown. `before` and `after` are the states
    /// around the request; `tier` is the tier of the item or message, if it has one.
    fn content_details(
        &self,
        _source: &Source,
        _tier: Option<Tier>,
        _before: &LayoutState,
        _after: &LayoutState,
    ) -> ContentDetails {
        ContentDetails::default()
    }

    /// Figures of its own that the HUD shows, by the breakdown of the last request and the state.
    fn session_figures(&self, _breakdown: &Breakdown, _state: &LayoutState) -> Vec<SessionFigure> {
        Vec::new()
    }
}
