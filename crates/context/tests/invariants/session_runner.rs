//! [`run_session`]: runs a session through every layout and checks every request.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::{
    AssembleError, AssembledPrompt, LayoutName, LayoutState, PromptEntry, PromptTexts, RenderCache,
    SnapshotFile, Target, assemble,
};
use hardpan_prompt::validate::validate;
use hardpan_prompt::{Content, MessageId, OmissionReason, Prompt, ResultPart, Role, Vocabulary};
use hardpan_providers::Encoder;

use crate::checks::{self, SentRequest};
use crate::coverage::{self, Coverage};
use crate::random_session::{Request, Session, Step};
use crate::stored_state::StoredState;
use crate::violation::{CheckResult, Violation, require};
use crate::{body_rules, targets};

/// What all sessions share.
pub struct Environment {
    pub texts: PromptTexts,
    pub targets: Vec<Target>,
    /// Provider and model of each target.
    pub model_names: Vec<(String, String)>,
}

impl Environment {
    pub fn new() -> Self {
        let targets = targets::all();
        let model_names =
            targets.iter().map(|target| (target.provider.clone(), target.model.id.clone())).collect();
        Environment { texts: PromptTexts::builtin().expect("the built-in texts"), targets, model_names }
    }
}

/// Render caches and an encoder that are shared by all sessions of a thread, so that a key
/// collision between sessions would show.
#[derive(Default)]
pub struct WarmCaches {
    memos: BTreeMap<Vocabulary, RenderCache>,
    encoder: Encoder,
}

impl WarmCaches {
    fn render_cache(&mut self, vocabulary: Vocabulary) -> &RenderCache {
        self.memos.entry(vocabulary).or_insert_with(|| RenderCache::new(vocabulary))
    }
}

/// Runs every request of a session through every layout.
pub fn run_session(
    environment: &Environment,
    caches: &mut WarmCaches,
    session: &Session,
    coverage: &mut Coverage,
) -> CheckResult {
    for (number, request) in session.requests.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &session.requests[before]);
        coverage::observe(coverage, number, request, before, &environment.targets[request.target]);
    }
    LayoutName::ALL.into_iter().try_for_each(|layout| {
        let in_layout = |violation: Violation| Violation {
            detail: format!("{layout}: {}", violation.detail),
            ..violation
        };
        run_layout(environment, caches, session, layout, coverage).map_err(in_layout)
    })
}

fn run_layout(
    environment: &Environment,
    caches: &mut WarmCaches,
    session: &Session,
    layout: LayoutName,
    coverage: &mut Coverage,
) -> CheckResult {
    let mut layout_state = LayoutState::default();
    let mut before: Option<SentRequest> = None;
    for request in &session.requests {
        let target = &environment.targets[request.target];
        let file = SnapshotFile { layout_state, ..request.file.clone() };
        let again = LayoutName::ALL[session.seed as usize % LayoutName::ALL.len()] == layout;
        let case = RequestCase { file: &file, target, layout, before: before.as_ref(), again };
        let Some(sent) = run_request(environment, caches, &case, coverage)? else {
            coverage.record("outcome: too long");
            return require(target.max_input_tokens() < 10_000, "there is room", || target.model.name());
        };
        checks::tools_stay_declared(layout, request, target, before.as_ref(), &sent, coverage)?;
        if let Some(before) = before
            .as_ref()
            .filter(|before| layout == LayoutName::Strata && must_keep_prefix(request, before, &sent))
        {
            checks::the_prefix_is_kept(before, &sent, coverage)?;
        }
        layout_state = sent.layout_state.clone();
        before = Some(sent);
    }
    Ok(())
}

/// A request that is run through a layout.
struct RequestCase<'a> {
    file: &'a SnapshotFile,
    target: &'a Target,
    layout: LayoutName,
    before: Option<&'a SentRequest>,
    /// Whether it is made a second time. This costs as much as all else, so each session is spared
    /// it in three layouts.
    again: bool,
}

/// Runs and checks one request; none if it is too long even without everything that may be left
/// out.
fn run_request(
    environment: &Environment,
    caches: &mut WarmCaches,
    case: &RequestCase<'_>,
    coverage: &mut Coverage,
) -> Result<Option<SentRequest>, Violation> {
    let RequestCase { file, target, layout, before, again } = *case;
    let snapshot = file.clone().into_snapshot("case").expect("a snapshot");
    let render_cache = caches.render_cache(target.vocabulary());
    let assembled = match assemble(&snapshot, layout, target, &environment.texts, render_cache) {
        Ok(assembled) => assembled,
        Err(AssembleError::TooLong { .. }) => return Ok(None),
        Err(error) => return Err(Violation { rule: "it can be made", detail: error.to_string() }),
    };
    let AssembledPrompt { prompt, measured, layout_state, .. } = assembled;
    let bytes = hardpan_providers::encode(&prompt, &target.profile);
    require(
        caches.encoder.encode(&prompt, &target.profile) == bytes,
        "an encoder makes the same bytes",
        || format!("as the codec: {}", String::from_utf8_lossy(&bytes)),
    )?;
    if again {
        check_repeatable(environment, case, &bytes, &layout_state)?;
        check_clock_independence(environment, case, &prompt, coverage)?;
    }
    let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
    validate(&prompt, &rules).map_err(|violation| {
        let roles: Vec<(Role, usize)> =
            prompt.messages.iter().map(|message| (message.role, message.blocks.len())).collect();
        Violation { rule: "the validator accepts it", detail: format!("{violation}; {roles:?}") }
    })?;
    let body: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Violation { rule: "the body is JSON", detail: error.to_string() })?;
    body_rules::check(&body, target, prompt.breakpoints().len())?;
    let limit = target.max_input_tokens() as usize;
    require(measured.total() <= limit, "it fits the window", || format!("{} of {limit}", measured.total()))?;
    let stored = StoredState::new(&layout_state);
    checks::every_item_once(layout, &snapshot, &prompt, &stored, coverage)?;
    checks::breakpoints_are_right(
        layout,
        target,
        before,
        &prompt,
        |block| measured.tokens_through(block),
        coverage,
    )?;
    if layout == LayoutName::Strata {
        checks::only_tail_is_volatile(&snapshot, &prompt, coverage)?;
        checks::tools_are_those_of_the_snapshot(&snapshot, target, before, &prompt, coverage)?;
    }
    let shortened = prompt.left_out.iter().any(|left| left.reason == OmissionReason::NoRoom);
    let tools = snapshot.active_tools().to_vec();
    let agent_mode = snapshot.agent_mode;
    let sent = SentRequest { prompt, layout_state, stored, body, shortened, tools, agent_mode };
    checks::observe(coverage, layout, &snapshot, &sent);
    Ok(Some(sent))
}

/// Invariant 2: from the written form, memory included, with nothing rendered before, come the same
/// bytes.
fn check_repeatable(
    environment: &Environment,
    case: &RequestCase<'_>,
    bytes: &[u8],
    layout_state: &LayoutState,
) -> CheckResult {
    let RequestCase { file, target, layout, .. } = *case;
    let written = serde_json::to_string(file).expect("a snapshot can be written");
    let read = SnapshotFile::parse("case", &written).map_err(|error| Violation {
        rule: "a snapshot survives its written form",
        detail: error.to_string(),
    })?;
    let snapshot = read.into_snapshot("case").expect("a snapshot");
    let render_cache = RenderCache::new(target.vocabulary());
    let again = assemble(&snapshot, layout, target, &environment.texts, &render_cache).map_err(|error| {
        Violation { rule: "the same snapshot gives the same bytes", detail: error.to_string() }
    })?;
    let other = hardpan_providers::encode(&again.prompt, &target.profile);
    require(other == bytes, "the same snapshot gives the same bytes", || {
        let same = other.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        let from = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[same.saturating_sub(40)..bytes.len().min(same + 80)]).into_owned()
        };
        format!("byte {same}: {:?} and {:?}", from(bytes), from(&other))
    })?;
    require(again.layout_state == *layout_state, "the same snapshot gives the same memory", || {
        format!("{layout_state:?}")
    })
}

/// Invariant 2, the part on clocks and folders: another second and another folder change nothing before
/// the last breakpoint. In `panels` this holds within a run; a run's first request tells the time. Where a
/// second decides whether the cache has expired, the prompt is laid anew: then a second in the other
/// direction must change nothing.
fn check_clock_independence(
    environment: &Environment,
    case: &RequestCase<'_>,
    prompt: &Prompt,
    coverage: &mut Coverage,
) -> CheckResult {
    let RequestCase { file, target, layout, before, .. } = *case;
    let has_input = file.prompt.is_some() || file.first_unsent.is_some();
    let tells_time = layout == LayoutName::Panels && (has_input || before.is_none());
    if tells_time {
        return Ok(());
    }
    let is_shortened =
        |prompt: &Prompt| prompt.left_out.iter().any(|left| left.reason == OmissionReason::NoRoom);
    let one = checks::cached_part(prompt);
    let mut differences = Vec::new();
    for seconds in [-1, 1] {
        let elsewhere = SnapshotFile {
            now: file.now + jiff::SignedDuration::from_secs(seconds),
            working_directory: Some("/somewhere/else".into()),
            ..file.clone()
        };
        let snapshot = elsewhere.into_snapshot("case").expect("a snapshot");
        let render_cache = RenderCache::new(target.vocabulary());
        let Ok(other) = assemble(&snapshot, layout, target, &environment.texts, &render_cache) else {
            return Ok(()); // another path may be longer than the window
        };
        if is_shortened(prompt) || is_shortened(&other.prompt) {
            return Ok(()); // the length of a path decides what there is room for
        }
        let two = checks::cached_part(&other.prompt);
        if one == two {
            differences.clear();
            break;
        }
        let same = one.iter().zip(&two).take_while(|(one, two)| one == two).count();
        differences.push(format!("{seconds} s: block {same} of {} and {}", one.len(), two.len()));
    }
    require(differences.is_empty(), "neither the clock nor the folder is in the cached part", || {
        differences.join(", ")
    })?;
    coverage.record(&format!("outcome: another clock in {layout}"));
    Ok(())
}

/// Whether invariant 3 speaks of these two: what was said stayed said, each message by a name of
/// its own, and nothing had to give way.
fn must_keep_prefix(request: &Request, before: &SentRequest, after: &SentRequest) -> bool {
    let file = &request.file;
    let prompt = file.prompt.as_ref().map(|prompt| match prompt {
        PromptEntry::Text(_) => MessageId::from("prompt"),
        PromptEntry::WithId { id, .. } => id.clone(),
    });
    let mut ids = BTreeSet::new();
    let unique = file.messages.iter().map(|message| &message.id).chain(&prompt).all(|id| ids.insert(id));
    let whole = |sent: &SentRequest| !sent.shortened && images(&sent.prompt) < 100;
    // A window that is nearly full folds by itself.
    let folded = before.stored.strata.folds != after.stored.strata.folds;
    let declared = |sent: &SentRequest| checks::declared_tools(LayoutName::Strata, &sent.prompt);
    // A tool that is named like the layout's own is not declared, but the system prompt names it.
    let named_like_own = |sent: &SentRequest| {
        let own = LayoutName::Strata.layout().own_tool();
        sent.tools.iter().filter(|tool| Some(&*tool.name) == own).cloned().collect::<Vec<_>>()
    };
    let same_tools = declared(before) == declared(after)
        && named_like_own(before) == named_like_own(after)
        && before.agent_mode == after.agent_mode;
    request.step == Step::Appended && same_tools && !folded && unique && whole(before) && whole(after)
}

fn images(prompt: &Prompt) -> usize {
    let of = |content: &Content| match content {
        Content::Image(..) => 1,
        Content::Result(result) => {
            result.parts.iter().filter(|part| matches!(part, ResultPart::Image(_))).count()
        }
        Content::Text(_)
        | Content::Reasoning(_)
        | Content::Call(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => 0,
    };
    prompt.blocks().map(|block| of(&block.content)).sum()
}
