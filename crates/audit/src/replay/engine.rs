//! [`EngineRun`]: the requests of a thread as the live agent would have sent them.
//!
//! Every request is a [`Snapshot`] that goes through [`assemble`], the code that live requests go
//! through, and then through the model of the provider's cache. What a recording lacks (system
//! prompt, tools, whatever else stood before the conversation) is one block of fixed size. Texts that
//! only a live request has, such as the clock, are blank.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_context::knowledge::FileKnowledge;
use hardpan_context::{
    AssembledPrompt, Coupling, FoldReason, KeepLevel, LayoutInput, LayoutName, LayoutState, LifetimeSetting,
    PromptTexts, RenderCache, Snapshot, Target, assemble, prefix_hash,
};
use hardpan_economy::PauseCounts;
use hardpan_economy::cache::{CacheRequest, Moment};
use hardpan_prompt::{
    AgentMessage, GivenSizes, Hash, Item, ItemKind, Json, MessageId, OmissionKey, PromptTokens, Text,
    TokenCounter, TokenFactor, Tool, Vocabulary, Volatility,
};
use jiff::Timestamp;

use super::billed_cache::{BilledCache, FIRST_TOKEN_MS};
use super::threads::{ReplayThread, RequestStep, Sizing};
use super::{ReplayCost, ReplayError, ReplayPolicy};

/// What stands for system prompt and tools.
const FIXED_TEXT: &str = "[system prompt and tools of the recording]";

/// A thread on its way through a layout.
pub(super) struct EngineRun<'a> {
    thread: &'a ReplayThread,
    layout: LayoutName,
    keep: KeepLevel,
    lifetime: LifetimeSetting,
    texts: PromptTexts,
    tools: Vec<Tool>,
    render_cache: RenderCache,
    sizes: GivenSizes,
    /// The next step.
    next: usize,
    /// The current size of every unit.
    unit_sizes: Vec<Option<usize>>,
    path: Vec<usize>,
    messages: Vec<AgentMessage>,
    knowledge: FileKnowledge,
    /// The content of files, as far as the recording tells it.
    disk: BTreeMap<Arc<str>, Text>,
    layout_state: LayoutState,
    /// The state after each request, by the message of its answer: a branch continues from there.
    states: BTreeMap<usize, LayoutState>,
    answer_prefixes: Arc<BTreeMap<MessageId, Hash>>,
    stale_reasoning: Arc<BTreeSet<MessageId>>,
    /// Files that were paged out and recalled.
    recalled: BTreeSet<Arc<str>>,
    /// The pauses between the requests so far, in seconds.
    pauses: Vec<u32>,
    /// When the last request's answer began, and its model.
    last_request: Option<(Moment, Arc<str>)>,
}

/// A request of a run.
pub(super) struct SentRequest {
    pub snapshot: Snapshot,
    pub target: Target,
    pub assembled: AssembledPrompt,
}

impl<'a> EngineRun<'a> {
    pub fn new(
        thread: &'a ReplayThread,
        ReplayPolicy { layout, keep, lifetime }: ReplayPolicy,
    ) -> Result<Self, ReplayError> {
        let scale = match thread.sizing {
            Sizing::Fitted { scale } => scale,
            Sizing::Counted { .. } => 1.0,
        };
        let texts = replay_texts(thread.sizing)?;
        let tool = Tool {
            // Without any tool, calls would be sent as text.
            name: "recorded".into(),
            description: "".into(),
            parameters: Json::new(&serde_json::json!({"type": "object", "properties": {}})),
            snippet: None,
            guidelines: Vec::new(),
        };
        let mut run = EngineRun {
            thread,
            layout,
            keep,
            lifetime,
            texts,
            tools: vec![tool],
            render_cache: RenderCache::new(Vocabulary::O200k),
            sizes: GivenSizes::new(scale),
            next: 0,
            unit_sizes: vec![None; thread.units.len()],
            path: Vec::new(),
            messages: Vec::new(),
            knowledge: FileKnowledge::default(),
            disk: BTreeMap::new(),
            layout_state: LayoutState::default(),
            states: BTreeMap::new(),
            answer_prefixes: Arc::default(),
            stale_reasoning: Arc::default(),
            recalled: BTreeSet::new(),
            pauses: Vec::new(),
            last_request: None,
        };
        run.give_sizes(0);
        run.size_fixed_block()?;
        Ok(run)
    }

    /// The next request, as it is sent; `None` after the last one.
    pub fn send_next(&mut self) -> Result<Option<SentRequest>, ReplayError> {
        let Some(step) = self.thread.steps.get(self.next) else { return Ok(None) };
        if step.sized.iter().any(|(unit, size)| self.unit_sizes[*unit] != Some(*size)) {
            self.give_sizes(self.next);
        }
        self.advance(step);
        let (snapshot, target) = (self.snapshot(step), self.target(step));
        let assembled = assemble(&snapshot, self.layout, &target, &self.texts, &self.render_cache)?;
        self.commit(step, &snapshot, &target, &assembled);
        self.next += 1;
        Ok(Some(SentRequest { snapshot, target, assembled }))
    }

    /// What the same request would be if it folded everything that `keep` lets go.
    pub fn fold_now(&self, sent: &SentRequest, keep: KeepLevel) -> Result<AssembledPrompt, ReplayError> {
        let snapshot = Snapshot { keep, fold: Some(FoldReason::Requested), ..sent.snapshot.clone() };
        Ok(assemble(&snapshot, self.layout, &sent.target, &self.texts, &self.render_cache)?)
    }

    /// The sizes of a request's blocks as the provider bills them. The live agent decides by its own
    /// estimate of them.
    pub fn billed_sizes(&self, target: &Target, assembled: &AssembledPrompt) -> PromptTokens {
        match self.thread.sizing {
            Sizing::Fitted { .. } => assembled.measured.clone(),
            Sizing::Counted { billed } => {
                assembled.measured.clone().scaled(&TokenFactor::new(billed / target.factor.value()))
            }
        }
    }

    /// A request as the cache sees it.
    pub fn cache_request(
        &self,
        step: &RequestStep,
        target: &Target,
        assembled: &AssembledPrompt,
    ) -> CacheRequest {
        CacheRequest::from_prompt(&assembled.prompt, &self.billed_sizes(target, assembled), step.at)
    }

    /// Gives the counter the sizes that hold from a step on, until a unit gets another size.
    fn give_sizes(&mut self, from: usize) {
        let mut sizes = self.sizes.clone();
        let mut first: BTreeMap<usize, usize> = BTreeMap::new();
        for &(unit, size) in
            self.thread.steps[..=from.min(self.thread.steps.len() - 1)].iter().flat_map(|step| &step.sized)
        {
            first.insert(unit, size);
        }
        for &(unit, size) in self.thread.steps[from..].iter().flat_map(|step| &step.sized) {
            first.entry(unit).or_insert(size);
        }
        for (&unit, &size) in &first {
            self.thread.units[unit].give(&mut sizes, size);
            self.unit_sizes[unit] = Some(size);
        }
        self.sizes = sizes;
        self.renew_counter();
    }

    fn renew_counter(&mut self) {
        let vocabulary =
            self.thread.steps.first().map_or(Vocabulary::O200k, |step| step.pricing.target.vocabulary());
        self.render_cache = RenderCache::new(vocabulary);
        self.render_cache.counter = TokenCounter::with_sizes(vocabulary, self.sizes.clone());
    }

    /// The fixed block has what the first request was billed beyond everything else in it, with the
    /// default layout.
    fn size_fixed_block(&mut self) -> Result<(), ReplayError> {
        let Some(step) = self.thread.steps.first() else { return Ok(()) };
        let fixed = Text::new(FIXED_TEXT);
        self.sizes.set_text(&fixed, 0);
        self.renew_counter();
        self.advance(step);
        let (snapshot, target) = (self.snapshot(step), self.target(step));
        let rest = assemble(&snapshot, LayoutName::Strata, &target, &self.texts, &self.render_cache)?;
        let tokens = step.total.saturating_sub(self.billed_sizes(&target, &rest).total());
        let per_token = match self.thread.sizing {
            Sizing::Fitted { .. } => 1.0,
            Sizing::Counted { billed } => billed,
        };
        self.sizes.set_text(&fixed, (tokens as f64 / per_token).round() as usize);
        self.renew_counter();
        (self.path, self.messages, self.disk) = Default::default();
        self.knowledge = FileKnowledge::default();
        Ok(())
    }

    /// Brings the conversation to a step's.
    fn advance(&mut self, step: &RequestStep) {
        let is_cut = step.common < self.path.len();
        self.path.truncate(step.common);
        self.messages.truncate(step.common);
        for &number in &step.added {
            self.path.push(number);
            self.messages.push(self.thread.messages[number].message.clone());
        }
        if is_cut {
            self.knowledge.retain_messages(&self.messages.iter().map(|message| &message.id).collect());
            self.layout_state = match step.is_compacted {
                true => self.layout_state.after_compaction(),
                false => {
                    let mut answers = self.path.iter().rev().filter_map(|number| self.states.get(number));
                    answers.next().cloned().unwrap_or_default()
                }
            };
        }
        for &number in &step.added {
            let message = &self.thread.messages[number];
            for observation in &message.observations {
                if let Some(text) = &observation.text {
                    self.disk.insert(observation.path.clone(), text.clone());
                }
                self.knowledge.record(&message.message.id, observation.clone());
            }
        }
    }

    fn target(&self, step: &RequestStep) -> Target {
        let mut target = step.pricing.target.clone();
        target.factor = match self.thread.sizing {
            Sizing::Fitted { .. } => TokenFactor::default(),
            Sizing::Counted { .. } => step.factor.map_or(target.factor, TokenFactor::new),
        };
        target
    }

    fn snapshot(&self, step: &RequestStep) -> Snapshot {
        let now = timestamp(step.at);
        let mut snapshot = Snapshot::empty(now);
        snapshot.system.agent = Some(Text::new(FIXED_TEXT));
        snapshot.tools.clone_from(&self.tools);
        if matches!(self.thread.sizing, Sizing::Counted { .. }) {
            snapshot.working_directory.clone_from(&self.thread.cwd);
        }
        if self.layout.layout().tracks_known_files() {
            snapshot.items = self.known_files();
        }
        // A file that the model knows by its tools is an item in layouts that track such files only.
        let is_known =
            |item: &&Item| item.kind == ItemKind::File && self.knowledge.last_seen(item.name()).is_some();
        snapshot.items.extend(step.items.iter().filter(|item| !is_known(item)).cloned());
        snapshot.messages.clone_from(&self.messages);
        let mut added = step.added.iter().map(|number| &self.thread.messages[*number].message);
        snapshot.first_unsent = added.find(|message| message.is_user()).map(|message| message.id.clone());
        snapshot.knowledge = self.knowledge.clone();
        snapshot.keep = self.keep;
        snapshot.layout_state = self.layout_state.clone();
        snapshot.answer_prefixes = self.answer_prefixes.clone();
        snapshot.stale_reasoning = self.stale_reasoning.clone();
        snapshot.fold = self.lost_cache(step);
        let target = self.target(step);
        snapshot.cache_lifetime = self.lifetime;
        let pauses = self.pauses.iter().copied().chain(self.pause_until(step));
        snapshot.pauses = PauseCounts::new(pauses, &target.profile.cache);
        if self.layout.layout().needs_coupling(&snapshot) {
            let input = LayoutInput {
                snapshot: &snapshot,
                target: &target,
                texts: &self.texts,
                render_cache: &self.render_cache,
            };
            snapshot.layout_state = self.layout.layout().initial_state(&input, &Coupling::default());
        }
        snapshot
    }

    /// The files that the model knows, as the live agent would read them from the disk.
    fn known_files(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for (path, known) in self.knowledge.known_files() {
            let Some(body) = self.disk.get(path) else { continue };
            items.push(Item {
                key: format!("file:{path}").into(),
                id: path.clone(),
                kind: ItemKind::File,
                title: path.clone(),
                body: body.clone(),
                changed_at_ms: 0,
                volatility: if known.changed { Volatility::Active } else { Volatility::Slow },
                tier: None,
                unchanged_responses: None,
                shown_by: known.message.clone().filter(|_| known.hash == body.hash()),
            });
        }
        items
    }

    /// Seconds from the last request to a step; `None` before the first one.
    fn pause_until(&self, step: &RequestStep) -> Option<u32> {
        let (at, _) = self.last_request.as_ref()?;
        u32::try_from(step.at.since(*at) / 1000).ok()
    }

    /// What is lost of the cache anyway.
    fn lost_cache(&self, step: &RequestStep) -> Option<FoldReason> {
        let (at, model) = self.last_request.as_ref()?;
        let target = &step.pricing.target;
        let model = if *model == step.pricing.model { target.model.id.as_str() } else { model };
        target.lost_cache(&target.provider, model, step.at.since(*at) / 1000)
    }

    /// The files that were paged out and have not been recalled, with the tokens of what showed them.
    fn paged_files(&self) -> BTreeMap<Arc<str>, usize> {
        let paged = self.layout.layout().paged_out(&self.layout_state);
        let paged: BTreeMap<&MessageId, usize> = paged.into_iter().collect();
        let mut files: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        if paged.is_empty() {
            return files;
        }
        for path in self.knowledge.paths().filter(|path| !self.recalled.contains(*path)) {
            let told = self.knowledge.observations(path).iter();
            let tokens: usize = told.filter_map(|observed| paged.get(&observed.message)).sum();
            if tokens > 0 {
                files.insert(path.clone(), tokens);
            }
        }
        files
    }

    /// Charges a recall for each file that was paged out and that the work touches again: one more
    /// request, and its content written once more.
    fn charge_recalls(
        &mut self,
        step: &RequestStep,
        paged: BTreeMap<Arc<str>, usize>,
        context: usize,
        cost: &mut ReplayCost,
    ) {
        let added = step.added.iter().map(|number| &self.thread.messages[*number]);
        let touched: BTreeSet<Arc<str>> =
            added.flat_map(|message| &message.observations).map(|told| told.path.clone()).collect();
        for (path, tokens) in paged.into_iter().filter(|(path, _)| touched.contains(path)) {
            let (read, write) = (step.pricing.folds.read, step.pricing.folds.write);
            cost.cost += read * context as f64 + write * tokens as f64;
            cost.read += context as u64;
            cost.write += tokens as u64;
            cost.recalls += 1;
            self.recalled.insert(path);
        }
    }

    /// What the agent does once the answer has come.
    fn commit(
        &mut self,
        step: &RequestStep,
        snapshot: &Snapshot,
        target: &Target,
        assembled: &AssembledPrompt,
    ) {
        self.layout_state = assembled.layout_state.clone();
        self.stale_reasoning = assembled.stale_reasoning.clone();
        for (path, hash) in self.layout.layout().cached_files(&self.layout_state) {
            self.knowledge.record_kept_item(path, hash);
        }
        for item in snapshot.items_of(ItemKind::File) {
            let is_item =
                |key: &OmissionKey| matches!(key, OmissionKey::Item(left_out) if *left_out == item.key);
            if !assembled.prompt.left_out.iter().any(|omission| is_item(&omission.key)) {
                self.knowledge.record_item(item.name(), &item.body);
            }
        }
        if step.is_complete {
            self.layout.layout().record_response(&mut self.layout_state, snapshot, assembled, target);
        }
        if let Some(answer) = step.answer {
            self.states.insert(answer, self.layout_state.clone());
            if target.model.binding.is_bound() {
                let id = self.thread.messages[answer].message.id.clone();
                Arc::make_mut(&mut self.answer_prefixes).insert(id, prefix_hash(&assembled.prompt));
            }
        }
        self.pauses.extend(self.pause_until(step));
        self.last_request = Some((step.ended.min(step.at.plus(FIRST_TOKEN_MS)), step.pricing.model.clone()));
    }
}

/// Replays a thread: what its requests cost with a layout.
pub(super) fn run(thread: &ReplayThread, policy: ReplayPolicy) -> Result<ReplayCost, ReplayError> {
    let mut run = EngineRun::new(thread, policy)?;
    let mut billed_cache = BilledCache::default();
    for step in &thread.steps {
        let paged = run.paged_files();
        let Some(sent) = run.send_next()? else { break };
        run.charge_recalls(step, paged, sent.assembled.measured.total(), &mut billed_cache.cost);
        billed_cache.send(step, run.cache_request(step, &sent.target, &sent.assembled));
        billed_cache.cost.folds += usize::from(sent.assembled.fold.is_some());
    }
    Ok(billed_cache.cost)
}

/// The texts of live requests. For recordings of other agents, what belongs to the system prompt and
/// the clock is blank: the fixed block has it.
fn replay_texts(sizing: Sizing) -> Result<PromptTexts, ReplayError> {
    let mut texts = PromptTexts::builtin()?;
    let blank = || Text::new("");
    (texts.extra, texts.agent) = (None, blank());
    let system = &mut texts.phrases.system;
    (system.tools_hint, system.docs) = (blank(), blank());
    if !matches!(sizing, Sizing::Counted { .. }) {
        let strata = &mut texts.phrases.strata;
        (strata.tail, strata.tail_now) = (blank(), blank());
    }
    Ok(texts)
}

fn timestamp(at: Moment) -> Timestamp {
    Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::UNIX_EPOCH)
}
