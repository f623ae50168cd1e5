//! The invariants of the design, as checks on finished requests.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::{AgentMode, LayoutName, LayoutState, LifetimeSetting, LostCache, Snapshot, Target};
use hardpan_models::MarkerFormat;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{
    AvailableTools, Block, CacheLifetime, Content, Hash, Item, ItemCopy, ItemKind, Omission, OmissionReason,
    Prompt, PromptMessage, Region, ResultPart, Role, Segment, Source, Tool, ToolChangeAction,
};

use crate::coverage::Coverage;
use crate::random_session::{Request, WORKING_DIRECTORY};
use crate::stored_state::{StoredForm, StoredState, StoredStrata};
use crate::unified_diff;
use crate::violation::{CheckResult, require};

/// A segment and its position: the index of its block, and its index within the block.
struct LocatedSegment<'a> {
    at: (usize, usize),
    region: Region,
    segment: &'a Segment,
}

fn segments(prompt: &Prompt) -> Vec<LocatedSegment<'_>> {
    let mut found = Vec::new();
    for (index, block) in prompt.blocks().enumerate() {
        let texts: Vec<&Segment> = match &*block.content {
            Content::Text(segments) => segments.iter().collect(),
            Content::Result(result) => result
                .parts
                .iter()
                .flat_map(|part| match part {
                    ResultPart::Text(segments) => &segments[..],
                    ResultPart::Image(_) => &[],
                })
                .collect(),
            Content::Image(..)
            | Content::Reasoning(_)
            | Content::Call(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => Vec::new(),
        };
        let region = block.region;
        found.extend(texts.into_iter().enumerate().map(|(nth, segment)| LocatedSegment {
            at: (index, nth),
            region,
            segment,
        }));
    }
    found
}

/// Invariant 1: every item once, or listed as left out; and what is no longer true says so.
pub fn every_item_once(
    layout: LayoutName,
    snapshot: &Snapshot,
    prompt: &Prompt,
    stored: &StoredState,
    coverage: &mut Coverage,
) -> CheckResult {
    let mut by_key: BTreeMap<&str, Vec<(&LocatedSegment<'_>, ItemCopy)>> = BTreeMap::new();
    let all = segments(prompt);
    for found in &all {
        if let Source::Item { key, copy } = &found.segment.origin.source {
            by_key.entry(key).or_default().push((found, *copy));
        }
    }
    let left_out: BTreeSet<String> = prompt.left_out.iter().map(|left| left.key.to_string()).collect();
    for item in &snapshot.items {
        let copies = by_key.get(&*item.key).map_or(&[][..], Vec::as_slice);
        let current: Vec<_> =
            copies.iter().filter(|(_, copy)| matches!(copy, ItemCopy::Current | ItemCopy::Update)).collect();
        let shown_by = position_of_shown_by(layout, prompt, &stored.strata, item);
        let count = current.len() + usize::from(shown_by.is_some());
        let left = left_out.contains(&*item.key);
        let how = || {
            format!("{}: {} current, said: {}, left out: {left}", item.key, current.len(), shown_by.is_some())
        };
        require(count <= 1, "an item is there once", how)?;
        require((count == 1) != left, "an item is there, or is listed as left out", how)?;
        coverage.record_if(left, "outcome: left out");
        let at = current.first().map(|(found, _)| found.at).or(shown_by.map(|block| (block, usize::MAX)));
        for (found, copy) in copies {
            let outdated = *copy == ItemCopy::Former
                || (*copy == ItemCopy::Stub && found.segment.origin.kind != ItemKind::History);
            let before = at.is_none_or(|at| found.at < at);
            require(!outdated || before, "what is no longer true comes before what is", || {
                item.key.to_string()
            })?;
        }
        for (found, copy) in current {
            check_current_copy(layout, item, found, *copy, stored)?;
            coverage.record(if *copy == ItemCopy::Update { "outcome: diff" } else { "outcome: current" });
        }
        coverage.record_if(shown_by.is_some(), "outcome: said");
    }
    for left in &snapshot.unavailable {
        let key = left.key.to_string();
        require(left_out.contains(&key), "what could not be read is listed", || key.clone())?;
        let shown = by_key.get(&*key).into_iter().flatten().any(|(_, copy)| *copy == ItemCopy::Current);
        require(!shown, "what could not be read is not shown", || key.clone())?;
    }
    let copies = || by_key.values().flatten().map(|(_, copy)| copy);
    coverage.record_if(copies().any(|copy| *copy == ItemCopy::Former), "outcome: former copy");
    coverage.record_if(copies().any(|copy| *copy == ItemCopy::Stub), "outcome: stub");
    Ok(())
}

/// The last block of the message that tells the item's body, if one does and it is sent.
fn position_of_shown_by(
    layout: LayoutName,
    prompt: &Prompt,
    strata: &StoredStrata,
    item: &Item,
) -> Option<usize> {
    let last = strata.updates_of(&item.key).pop().filter(|_| layout == LayoutName::Strata)?;
    let told = last.form == StoredForm::Said && last.body.as_deref() == Some(item.body.as_str());
    let source = Source::Message(last.anchor.clone());
    let blocks: Vec<&Block> = prompt.blocks().collect();
    blocks.iter().rposition(|block| told && block.origin().is_some_and(|origin| origin.source == source))
}

/// Whether a copy that calls itself current is.
fn check_current_copy(
    layout: LayoutName,
    item: &Item,
    found: &LocatedSegment<'_>,
    copy: ItemCopy,
    stored: &StoredState,
) -> CheckResult {
    let text = &found.segment.text;
    if copy == ItemCopy::Update {
        return check_diff(layout, item, text, stored);
    }
    let holds = match layout {
        // `inline` shows the tree as a directory map, which is a summary.
        LayoutName::Inline if item.kind == ItemKind::Tree => !text.is_empty(),
        LayoutName::Strata if found.region == Region::Tail => text.contains(item.body.trim_end()),
        _ => text.contains(item.body.as_str()),
    };
    require(holds, "a current copy holds the body", || {
        format!("{}: {text:?} without {:?}", item.key, item.body)
    })
}

/// Whether a diff, applied to what was told before it, gives the body.
fn check_diff(layout: LayoutName, item: &Item, text: &str, stored: &StoredState) -> CheckResult {
    let before = match &stored.strata.updates_of(&item.key)[..] {
        _ if layout != LayoutName::Strata => stored.run_body(layout, &item.key),
        [.., before, _] => before.body.as_deref(),
        _ => stored.strata.base_body(&item.key),
    };
    let diff = text.split_once("```diff\n").and_then(|(_, rest)| rest.rsplit_once("```"));
    let after = before.zip(diff).and_then(|(before, (diff, _))| unified_diff::apply(before, diff));
    require(after.as_deref() == Some(item.body.as_str()), "a diff gives the body", || {
        format!("{}: {before:?} and {text:?} give {after:?}, not {:?}", item.key, item.body)
    })
}

/// Invariant 2, the part on machines and clocks: they are in TAIL, and TAIL is last.
pub fn only_tail_is_volatile(snapshot: &Snapshot, prompt: &Prompt, coverage: &mut Coverage) -> CheckResult {
    let second = jiff::Timestamp::from_second(snapshot.now.as_second()).expect("a time").to_string();
    for found in segments(prompt).iter().filter(|found| found.region != Region::Tail) {
        let fleeting = found.segment.text.contains(WORKING_DIRECTORY) || found.segment.text.contains(&second);
        require(!fleeting, "no clock and no folder in the cached part", || found.segment.text.to_string())?;
    }
    // A TAIL that was sent for one turn stays where it was.
    let last = prompt.messages.len().saturating_sub(1);
    let lasting =
        prompt.messages.iter().enumerate().filter(|(at, message)| !message.turn_scoped || *at == last);
    let blocks = prompt.system.iter().chain(lasting.flat_map(|(_, message)| &message.blocks));
    let regions: Vec<Region> = blocks.map(|block| block.region).collect();
    let tail = regions.iter().position(|region| *region == Region::Tail).unwrap_or(regions.len());
    require(regions[tail..].iter().all(|region| *region == Region::Tail), "TAIL is last", || {
        format!("{regions:?}")
    })?;
    let marked = prompt.blocks().any(|block| block.region == Region::Tail && block.breakpoint.is_some());
    require(!marked, "TAIL is not cached", || format!("{:?}", prompt.breakpoints()))?;
    coverage.record(if tail < regions.len() { "outcome: tail" } else { "outcome: tail unchanged" });
    Ok(())
}

/// The blocks of the first `count` messages that were sent for one turn.
fn former_tails(prompt: &Prompt, count: usize) -> impl Iterator<Item = &Block> {
    let scoped = prompt.messages.iter().filter(|message| message.turn_scoped);
    scoped.take(count).flat_map(|message| &message.blocks)
}

/// The text of a block; empty if it holds something else.
fn block_text(block: &Block) -> String {
    match &*block.content {
        Content::Text(segments) => segments.iter().map(|segment| segment.text.as_str()).collect(),
        _ => String::new(),
    }
}

/// A finished request, as far as the next one is compared with it.
pub struct SentRequest {
    pub prompt: Prompt,
    pub layout_state: LayoutState,
    /// The same, as it is stored.
    pub stored: StoredState,
    pub body: serde_json::Value,
    /// Whether the window was too small for all of it.
    pub shortened: bool,
    /// The tools that the model was to have.
    pub tools: Vec<Tool>,
    pub agent_mode: AgentMode,
}

/// What a cache sees of each block: who says it, and the hash of what is said.
fn block_fingerprints(prompt: &Prompt, wanted: impl Fn(&Block) -> bool) -> Vec<(Option<Role>, Hash)> {
    let text = |text: &str| Hash::of(text.as_bytes());
    let tools = prompt.tools.iter().map(|block| {
        let tool = &block.tool;
        (None, Hash::chain([text(&tool.name), text(&tool.description), tool.parameters.hash()]))
    });
    let system = prompt.system.iter().filter(|block| wanted(block)).map(|block| (None, block.hash()));
    let messages = prompt
        .messages
        .iter()
        .flat_map(|message| message.blocks.iter().map(move |block| (message.role, block)));
    let messages =
        messages.filter(|(_, block)| wanted(block)).map(|(role, block)| (Some(role), block.hash()));
    tools.chain(system).chain(messages).collect()
}

/// What a cache sees of a prompt up to its last breakpoint.
pub fn cached_part(prompt: &Prompt) -> Vec<(Option<Role>, Hash)> {
    let end = prompt.breakpoints().last().map_or(0, |last| last.block + 1);
    let mut blocks = block_fingerprints(prompt, |_| true);
    blocks.truncate(end);
    blocks
}

/// Invariant 5: few breakpoints, none of them too early, and the last frontier again.
pub fn breakpoints_are_right(
    layout: LayoutName,
    target: &Target,
    before: Option<&SentRequest>,
    prompt: &Prompt,
    through: impl Fn(usize) -> usize,
    coverage: &mut Coverage,
) -> CheckResult {
    let marked: Vec<usize> = prompt.breakpoints().iter().map(|breakpoint| breakpoint.block).collect();
    require(marked.len() <= 4, "at most 4 breakpoints", || format!("{marked:?}"))?;
    let words =
        ["no breakpoint", "one breakpoint", "two breakpoints", "three breakpoints", "four breakpoints"];
    coverage.record(&format!("outcome: {}", words[marked.len()]));
    // The validator checks their order.
    let asked: BTreeSet<&str> =
        prompt.breakpoints().iter().map(|breakpoint| breakpoint.lifetime.name()).collect();
    let has_long = asked.contains(CacheLifetime::OneHour.name());
    let is_offered = target.profile.long_lifetime().is_some();
    require(!has_long || is_offered, "no lifetime that is not offered", || format!("{asked:?}"))?;
    coverage.record_if(has_long && asked.len() == 1, "outcome: an hour");
    coverage.record_if(!has_long && !asked.is_empty(), "outcome: five minutes");
    coverage.record_if(asked.len() == 2, "outcome: both lifetimes");
    if layout != LayoutName::Strata {
        return Ok(());
    }
    let minimum = target.profile.cache.min_tokens as usize;
    let early = marked.iter().find(|block| through(**block) < minimum);
    require(early.is_none(), "no breakpoint under the minimum", || format!("{early:?} of {marked:?}"))?;
    // Forms without tools or images have other blocks than the memory counts.
    let same_form = target.has_markers() && target.model.tools && target.model.vision;
    let frontier = before.and_then(|before| before.stored.strata.frontier).filter(|_| same_form);
    let (Some(before), Some(frontier)) = (before, frontier) else { return Ok(()) };
    let (old, new) = (block_fingerprints(&before.prompt, |_| true), block_fingerprints(prompt, |_| true));
    let unchanged = new.get(..frontier.blocks).is_some_and(|new| old.get(..frontier.blocks) == Some(new));
    let last = if target.profile.markers == MarkerFormat::PromptCacheBreakpoint {
        // These markers are for what is put in: one on the model's words stands on the block before
        // them.
        new[..frontier.blocks.min(new.len())]
            .iter()
            .rposition(|(role, _)| *role != Some(Role::Assistant))
            .unwrap_or(0)
    } else {
        frontier.blocks - 1
    };
    if unchanged && last >= prompt.tools.len() && through(last) >= minimum {
        let again = marked.iter().any(|block| (last..frontier.blocks).contains(block));
        require(again, "the last frontier is marked again", || format!("{last} is not in {marked:?}"))?;
        coverage.record("outcome: frontier met again");
    }
    Ok(())
}

/// Whether changes of tools that end a prompt stay where they are: they follow a stored message, and
/// the model answers.
fn tool_changes_stay(before: &Prompt, after: &Prompt) -> bool {
    let spoken = |prompt: &Prompt| -> Vec<(Role, bool)> {
        let messages = prompt.messages.iter().filter(|message| message.role != Role::System);
        let is_stored = |message: &PromptMessage| message.blocks.iter().any(|it| it.region != Region::Tail);
        messages.map(|message| (message.role, is_stored(message))).collect()
    };
    let (before, after) = (spoken(before), spoken(after));
    before.last().is_some_and(|(_, is_stored)| *is_stored)
        && after.get(before.len()).is_some_and(|(role, _)| *role == Role::Assistant)
}

/// Whether a block is of a message that changes tools.
fn is_of_tool_change(prompt: &Prompt, block: &Block) -> bool {
    let changes_tools = |message: &&PromptMessage| {
        message.blocks.iter().any(|block| matches!(*block.content, Content::ToolChange(_)))
    };
    let mut blocks = prompt.messages.iter().filter(changes_tools).flat_map(|message| &message.blocks);
    blocks.any(|other| std::ptr::eq(other, block))
}

/// Invariant 3: what was said before TAIL stays said, block by block and on the wire.
pub fn the_prefix_is_kept(before: &SentRequest, after: &SentRequest, coverage: &mut Coverage) -> CheckResult {
    // A TAIL that is stored with its message stays if the model speaks after it; others are not sent
    // again.
    let tail = before.prompt.messages.last().filter(|last| last.turn_scoped);
    let scoped = before.prompt.messages.iter().filter(|message| message.turn_scoped).count();
    let at = before.prompt.messages.len().saturating_sub(1);
    let stays = |tail: &PromptMessage| {
        let stored = before.stored.strata.tails.last();
        let is_stored =
            stored.is_some_and(|stored| tail.blocks.iter().all(|block| block_text(block) == stored.text));
        let follows = after.prompt.messages.iter().filter(|message| !message.turn_scoped);
        let next = follows.clone().nth(at + 1 - scoped);
        is_stored && next.is_some_and(|next| next.role == Role::Assistant)
    };
    let kept_tails = scoped - usize::from(tail.is_some_and(|tail| !stays(tail)));
    let is_former =
        |block: &Block| former_tails(&before.prompt, kept_tails).any(|tail| std::ptr::eq(tail, block));
    let keeps_changes = tool_changes_stay(&before.prompt, &after.prompt);
    let is_kept = |block: &Block| keeps_changes && is_of_tool_change(&before.prompt, block);
    let old = block_fingerprints(&before.prompt, |block| {
        block.region != Region::Tail || is_former(block) || is_kept(block)
    });
    let new = block_fingerprints(&after.prompt, |_| true);
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    require(same == old.len(), "a request begins as the one before", || {
        let name = |prompt: &Prompt| {
            let block = same.checked_sub(prompt.tools.len()).and_then(|at| prompt.blocks().nth(at));
            block.map(|block| format!("{:?}", block.content))
        };
        let roles =
            |prompt: &Prompt| -> Vec<Role> { prompt.messages.iter().map(|message| message.role).collect() };
        let roles = (roles(&before.prompt), roles(&after.prompt));
        format!("block {same}: {:?} became {:?}; {roles:?}", name(&before.prompt), name(&after.prompt))
    })?;
    let (old, new) = (crate::body_rules::blocks(&before.body), crate::body_rules::blocks(&after.body));
    let cached = old.iter().rposition(|block| block.marked).map_or(0, |last| last + 1);
    let same =
        new.len() >= cached && old[..cached].iter().zip(&new).all(|(old, new)| old.content == new.content);
    require(same, "the bytes of a request begin as those of the one before", || format!("{cached} blocks"))?;
    coverage.record("outcome: prefix kept");
    Ok(())
}

/// The tools that a prompt declares, without the layout's own.
pub fn declared_tools(layout: LayoutName, prompt: &Prompt) -> Vec<(String, String)> {
    let own = layout.layout().own_tool();
    let others = prompt.tools.iter().filter(|block| Some(&*block.tool.name) != own);
    others.map(|block| (block.tool.name.to_string(), block.tool.description.to_string())).collect()
}

/// The declared tools change only where the beginning of the prompt is written anew, and then to those
/// of the snapshot.
pub fn tools_stay_declared(
    layout: LayoutName,
    request: &Request,
    target: &Target,
    before: Option<&SentRequest>,
    sent: &SentRequest,
    coverage: &mut Coverage,
) -> CheckResult {
    if !target.model.tools {
        return Ok(());
    }
    let own = layout.layout().own_tool();
    let others = sent.tools.iter().filter(|tool| Some(&*tool.name) != own);
    let wanted: Vec<(String, String)> =
        others.map(|tool| (tool.name.to_string(), tool.description.to_string())).collect();
    let declared = declared_tools(layout, &sent.prompt);
    let is_same = |before: &&SentRequest| declared_tools(layout, &before.prompt) == declared;
    if let Some(before) = before.filter(is_same) {
        coverage.record_if(wanted != declared && before.tools != sent.tools, "outcome: tools wait");
        return Ok(());
    }
    require(declared == wanted, "tools are declared as they are", || {
        format!("{declared:?}, not {wanted:?}")
    })?;
    let Some(before) = before else { return Ok(()) };
    let text = |prompt: &Prompt| prompt.system.iter().map(Block::hash).collect::<Vec<Hash>>();
    let is_anew = before.prompt.model != sent.prompt.model
        || text(&before.prompt) != text(&sent.prompt)
        || before.stored.strata.bases != sent.stored.strata.bases
        || request.file.lost_cache == Some(LostCache::All)
        || (request.file.lost_cache == Some(LostCache::Short)
            && (layout.layout().folds() || request.file.cache_lifetime == LifetimeSetting::FiveMinutes))
        || (request.file.fold && !layout.layout().folds())
        || before.agent_mode != sent.agent_mode
        || target.max_input_tokens() < 10_000;
    coverage.record("outcome: tools declared anew");
    require(is_anew, "declared tools stay while they are cached", || format!("{declared:?}"))
}

/// In `strata`, the model may call the tools of the snapshot and no others where it takes changes of
/// tools, no change of a tool is told that is none, and a tool that is defined is not defined again.
pub fn tools_are_those_of_the_snapshot(
    snapshot: &Snapshot,
    target: &Target,
    before: Option<&SentRequest>,
    prompt: &Prompt,
    coverage: &mut Coverage,
) -> CheckResult {
    let mut known = AvailableTools::new(prompt.tools.iter().map(|block| &block.tool));
    for block in prompt.blocks() {
        let Content::ToolChange(change) = &*block.content else { continue };
        let (name, action) = (change.action.tool_name(), &change.action);
        let is_news = match action {
            ToolChangeAction::Define(_) => known.definition(name).is_none(),
            ToolChangeAction::Restore(_) => !known.contains(name),
            ToolChangeAction::Remove(_) => known.contains(name),
        };
        require(is_news && known.apply(action), "a change of a tool is one", || format!("{action:?}"))?;
        coverage.record(match action {
            ToolChangeAction::Define(_) | ToolChangeAction::Restore(_) => "outcome: tool added",
            ToolChangeAction::Remove(_) => "outcome: tool removed",
        });
        require(target.takes_tool_changes(), "only some models take changes of tools", || name.to_string())?;
    }
    if !target.takes_tool_changes() {
        return Ok(());
    }
    let former = before.map(|before| before.prompt.available_tools()).unwrap_or_default();
    let mut offered = BTreeSet::new();
    for tool in known.iter().filter(|tool| &*tool.name != "context") {
        offered.insert(&*tool.name);
        let is_wanted = snapshot
            .active_tools()
            .iter()
            .any(|wanted| (&wanted.name, &wanted.description) == (&tool.name, &tool.description));
        let waits =
            former.definition(&tool.name).is_some_and(|former| former.description == tool.description);
        require(is_wanted || waits, "only a definition that was sent waits", || format!("{tool:?}"))?;
        coverage.record_if(!is_wanted, "outcome: definition waits");
    }
    let wanted = snapshot.active_tools().iter().map(|tool| &*tool.name).filter(|name| *name != "context");
    let wanted: BTreeSet<&str> = wanted.collect();
    require(wanted == offered, "the model has the tools of the snapshot", || {
        format!("{offered:?}, not {wanted:?}")
    })
}

/// Notes what came out.
pub fn observe(coverage: &mut Coverage, layout: LayoutName, snapshot: &Snapshot, sent: &SentRequest) {
    coverage.record(&format!("layout: {layout}"));
    let has_reasoning = sent.prompt.blocks().any(|block| matches!(*block.content, Content::Reasoning(_)));
    coverage.record_if(has_reasoning, "outcome: reasoning sent");
    let is_thinking = |left: &Omission| left.reason == OmissionReason::RoundBeganWithoutThinking;
    let dropped =
        snapshot.thinking != ThinkingSetting::Default && sent.prompt.left_out.iter().any(is_thinking);
    coverage.record_if(dropped, "outcome: thinking dropped");
    coverage.record_if(sent.shortened, "outcome: window full");
    coverage.record_if(!sent.stored.panels.histories.is_empty(), "outcome: history detached");
    let forms = || sent.stored.strata.updates.iter().map(|update| update.form);
    coverage.record_if(forms().any(|form| form == StoredForm::Body), "outcome: body told");
    coverage.record_if(forms().any(|form| form == StoredForm::Closed), "outcome: closed");
}
