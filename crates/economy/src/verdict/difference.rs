//! The first difference between two prompts of a conversation, found by comparing the prompts
//! alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::Region;

use crate::cache::{CacheRules, Invalidation, Section};
use crate::tool_listing::SEARCH_TOOL;
use crate::verdict::trace::{PieceOrigin, Setting, Trace};
use crate::verdict::{Cause, ContentChange};

/// A change that invalidates the cache from some block on.
pub(super) struct Difference {
    /// The first invalidated block of the later prompt.
    pub from: usize,
    pub cause: Cause,
    /// The block that differs, with its origin. `None`: a setting changed, not a block.
    pub at: Option<(usize, Option<PieceOrigin>)>,
}

/// Finds the first change that invalidates anything up to and including block `end` of the earlier
/// prompt.
pub(super) fn find_first_difference(
    rules: &CacheRules,
    before: &Trace,
    now: &Trace,
    end: usize,
) -> Option<Difference> {
    if before.provider != now.provider {
        let (from, to) = (before.provider.clone(), now.provider.clone());
        return Some(Difference { from: 0, cause: Cause::ProviderChanged { from, to }, at: None });
    }
    if before.model != now.model {
        let (from, to) = (before.model.clone(), now.model.clone());
        return Some(Difference { from: 0, cause: Cause::ModelChanged { from, to }, at: None });
    }
    let text = text_difference(rules, before, now, end);
    let setting = setting_difference(rules, before, now);
    // Settings count from the beginning of a section: before its texts.
    let found = match (setting, text) {
        (Some(setting), Some(text)) if text.from < setting.from => Some(text),
        (Some(setting), _) => Some(setting),
        (None, text) => text,
    };
    found.filter(|difference| difference.from <= end)
}

fn setting_difference(rules: &CacheRules, before: &Trace, now: &Trace) -> Option<Difference> {
    if rules.invalidation == Invalidation::None {
        return None;
    }
    let value = |trace: &Trace, wanted: Setting| {
        trace.settings.iter().find(|(setting, _)| *setting == wanted).map(|(_, value)| value.clone())
    };
    // Those that lose more come first.
    let order = [
        (Setting::WebSearch, Section::System),
        (Setting::Citations, Section::System),
        (Setting::Thinking, Section::Messages),
        (Setting::Effort, Section::Messages),
        (Setting::ToolChoice, Section::Messages),
        (Setting::ParallelTools, Section::Messages),
        (Setting::Images, Section::Messages),
    ];
    let counts = |setting: Setting| match rules.invalidation {
        Invalidation::Everything => {
            matches!(setting, Setting::WebSearch | Setting::Effort | Setting::ParallelTools)
        }
        Invalidation::BySection | Invalidation::None => true,
    };
    let changed = |(setting, _): &&(Setting, Section)| {
        counts(*setting) && value(before, *setting) != value(now, *setting)
    };
    let (setting, section) = order.iter().find(changed)?;
    let section = match rules.invalidation {
        Invalidation::Everything => &Section::Tools,
        Invalidation::BySection | Invalidation::None => section,
    };
    let cause = match setting {
        Setting::WebSearch => Cause::SettingChanged("web search".into()),
        Setting::Citations => Cause::SettingChanged("citations".into()),
        Setting::ToolChoice => Cause::SettingChanged("tool choice".into()),
        Setting::ParallelTools => Cause::SettingChanged("parallel tools".into()),
        Setting::Thinking => Cause::ThinkingChanged,
        Setting::Effort => Cause::EffortChanged,
        Setting::Images if value(now, Setting::Images).is_some() => Cause::ImageAdded,
        Setting::Images => Cause::ImageRemoved,
    };
    Some(Difference { from: now.section_start(*section), cause, at: None })
}

/// Text that is only appended after `end` is not a difference: that is how every growing
/// conversation continues.
fn text_difference(rules: &CacheRules, before: &Trace, now: &Trace, end: usize) -> Option<Difference> {
    let block = before.first_difference(now)?;
    let section = before.section(block).min(now.section(block));
    if block > end && section != Section::Tools {
        return None;
    }
    let (was, is) = first_pieces(before, now, block);
    let origin = is.or(was).cloned();
    let (from, cause) = match section {
        // By Anthropic's table any change of the tools loses everything, also one that comes after
        // a marked tool; with OpenAI from 5.6 on no entry ends among the tools.
        Section::Tools if rules.invalidation != Invalidation::None => (0, tools_cause(before, now)),
        Section::Tools => (block, tools_cause(before, now)),
        Section::System => {
            let segment = origin.as_ref().map_or_else(|| "a block".into(), PieceOrigin::describe);
            (block, Cause::SystemChanged(segment))
        }
        Section::Messages => (block, messages_cause(before, now, block)),
    };
    Some(Difference { from, cause, at: Some((block, origin)) })
}

fn tools_cause(before: &Trace, now: &Trace) -> Cause {
    let has = |trace: &Trace, name: &str| trace.tools().any(|(other, _)| **other == *name);
    let missing = |from: &Trace, of: &Trace| -> Vec<_> {
        of.tools().filter(|(name, _)| !has(from, name)).map(|(name, _)| name.clone()).collect()
    };
    let is_other = |name: &str, hash: u64| before.tools().any(|(other, was)| **other == *name && was != hash);
    let changed = now.tools().filter(|(name, hash)| is_other(name, *hash)).map(|(name, _)| name.clone());
    let changed: Vec<Arc<str>> = changed.collect();
    let is_list = changed.iter().any(|name| &**name == SEARCH_TOOL);
    Cause::ToolsChanged {
        added: missing(before, now),
        removed: missing(now, before),
        listed: if is_list { changed_listings(before, now) } else { Vec::new() },
        changed,
    }
}

/// The servers whose part of the list of tools is another one, or is new, or gone.
fn changed_listings(before: &Trace, now: &Trace) -> Vec<Arc<str>> {
    let differing = |from: &Trace, of: &Trace| -> Vec<Arc<str>> {
        let is_other = |listed: &&(Arc<str>, u64)| !from.listed.contains(listed);
        of.listed.iter().filter(is_other).map(|(server, _)| server.clone()).collect()
    };
    let all: BTreeSet<Arc<str>> = differing(before, now).into_iter().chain(differing(now, before)).collect();
    all.into_iter().collect()
}

/// The origins of corresponding pieces in the earlier and the later prompt.
type OriginPair<'a> = (Option<&'a PieceOrigin>, Option<&'a PieceOrigin>);

/// Index of the first piece of a block that differs. If all pieces are the same, the block's frame
/// differs (its speaker, its call), and its first piece stands for it.
fn first_differing_piece(before: &Trace, now: &Trace, block: usize) -> usize {
    let (was, is) = (before.pieces(block), now.pieces(block));
    let same = was.iter().zip(is).take_while(|(was, is)| was.0 == is.0).count();
    if same == was.len() && same == is.len() { 0 } else { same }
}

/// The origins of the first pieces of a block that differ.
fn first_pieces<'a>(before: &'a Trace, now: &'a Trace, block: usize) -> OriginPair<'a> {
    let at = first_differing_piece(before, now, block);
    let of = |trace: &'a Trace| trace.pieces(block).get(at).and_then(|piece| trace.origin_of(*piece));
    (of(before), of(now))
}

fn messages_cause(before: &Trace, now: &Trace, block: usize) -> Cause {
    let (old, new) = (before.messages(), now.messages());
    let replaced = |ours: &[_], theirs: &[_]| ours.first().is_some_and(|first| !theirs.contains(first));
    // The conversation began with another message, and begins with one that is new, as a summary
    // is. Where that is the only one, a person has said it anew.
    if replaced(&old, &new) && replaced(&new, &old) && new.len() > 1 {
        return Cause::Compacted;
    }
    if before.base_hashes() != now.base_hashes() {
        return Cause::Folded;
    }
    let (was, is) = explaining_pieces(before, now, block);
    let all_there = || {
        let new: BTreeSet<_> = new.iter().collect();
        old.iter().all(|id| new.contains(id))
    };
    let is_update = matches!(was, Some(PieceOrigin::Item(_) | PieceOrigin::Stub(_)))
        && before.region(block) == Some(Region::Log);
    // What was told about an item since the last fold has moved to BASE; a body that moved there, or
    // that was taken out, leaves a stub.
    if has_new_stub(before, now, block) || (is_update && was != is && all_there()) {
        return Cause::Folded;
    }
    let named = |origin: &PieceOrigin, how| match origin {
        PieceOrigin::Item(key) | PieceOrigin::Stub(key) => Cause::ItemChanged { key: key.clone(), how },
        PieceOrigin::Message(id) => Cause::MessageChanged { id: id.clone(), how },
        PieceOrigin::Tool(name) | PieceOrigin::Rule(name) => Cause::LayoutChanged(name.to_string()),
    };
    match (was, is) {
        (Some(was), Some(is)) if was == is => named(is, ContentChange::Changed),
        (Some(was), _) if !was.is_rule() && !now.contains_origin(was) => named(was, ContentChange::Removed),
        (_, Some(is)) if !is.is_rule() && !before.contains_origin(is) => named(is, ContentChange::Added),
        (Some(was), None) => named(was, ContentChange::Removed),
        (_, Some(is)) => named(is, ContentChange::Moved),
        (None, None) => Cause::LayoutChanged("a block".into()),
    }
}

/// Whether a stub stands in the later prompt that the earlier one did not have. It need not be the first
/// difference: where a call was taken out with its result, that is the answer that held the call.
fn has_new_stub(before: &Trace, now: &Trace, block: usize) -> bool {
    let origins = now.pieces_from(block).iter().filter_map(|piece| now.origin_of(*piece));
    let mut stubs = origins.filter(|origin| matches!(origin, PieceOrigin::Stub(_)));
    stubs.any(|stub| !before.contains_origin(stub))
}

/// The first differing pieces that explain what happened. A layout's own text (the call that frames
/// a panel) says little, so the next pieces that are not the layout's count instead, if they
/// differ.
fn explaining_pieces<'a>(before: &'a Trace, now: &'a Trace, block: usize) -> OriginPair<'a> {
    let (was, is) = first_pieces(before, now, block);
    if ![was, is].into_iter().flatten().any(PieceOrigin::is_rule) {
        return (was, is);
    }
    let at = first_differing_piece(before, now, block);
    let next = |trace: &'a Trace| {
        let pieces = trace.pieces_from(block).iter().skip(at);
        let mut known = pieces.filter_map(|piece| Some((piece.0, trace.origin_of(*piece)?)));
        known.find(|(_, origin)| !origin.is_rule())
    };
    match (next(before), next(now)) {
        (Some((was_hash, _)), Some((is_hash, _))) if was_hash == is_hash => (was, is),
        (was, is) => (was.map(|(_, origin)| origin), is.map(|(_, origin)| origin)),
    }
}
