//! [`DraftInput`]: one prompt from one state. A request that folds is draft twice: first to see what a fold
//! would drop, then folded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_prompt::{
    Block, Item, ItemKind, Omission, OmissionReason, Prompt, PromptTokens, Region, Source, Text, Volatility,
};

use super::garbage::Garbage;
use super::lifetimes::PartEnds;
use super::sites::FoldSites;
use super::state::StrataState;
use super::{
    CopyIndex, base, breakpoints, effort, lifetimes, push_base, push_log, stubs, tail, tool_changes, updates,
};
use crate::FoldReason;
use crate::declared_tools::costs_reasoning;
use crate::history::{self, ConvertedMessage, ExchangeMerging, ToolCallHandling};
use crate::layout::LayoutInput;
use crate::message_builder::MessageBuilder;
use crate::snapshot::is_conversation_placeholder;

/// Whether a request lays BASE anew.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BaseChange {
    /// BASE stays as it is, if there is one.
    Kept,
    /// BASE is laid from the current bodies.
    Laid,
}

/// A prompt about to be draft from a state.
pub struct DraftInput<'a> {
    pub input: &'a LayoutInput<'a>,
    pub strata: StrataState,
    pub base_change: BaseChange,
    /// The number of blocks before the place where this request folds.
    pub fold_site: Option<usize>,
}

/// A prompt, and what is known of it.
pub struct Draft<'a> {
    pub prompt: Prompt,
    pub strata: StrataState,
    pub measured: PromptTokens,
    live: Vec<&'a Item>,
    pub garbage: Garbage,
    /// The number of blocks up to the last request's frontier, if this prompt begins like that one.
    pub met: Option<usize>,
    /// How many blocks of the prompt the cache holds; 0 if it is lost.
    pub cached: usize,
}

impl<'a> DraftInput<'a> {
    pub fn new(input: &'a LayoutInput<'a>, strata: StrataState, base_change: BaseChange) -> Self {
        DraftInput { input, strata, base_change, fold_site: None }
    }

    pub fn run(self) -> Draft<'a> {
        let DraftInput { input, mut strata, base_change, fold_site } = self;
        let snapshot = input.snapshot;
        let mut prompt = input.empty_prompt();
        let lays_base = base_change == BaseChange::Laid || !strata.has_base;
        let known = (!lays_base).then(|| updates::known_bodies(&strata));
        let shown = shown_items(input, known.as_ref(), &mut prompt.left_out);
        // A TAIL in a system message may hold only what we say ourselves: volatile items hold names
        // and texts of others, so there they are told as updates, which stay.
        let scoped = tail::is_turn_scoped(input);
        let (tail, live): (Vec<&Item>, Vec<&Item>) =
            shown.into_iter().partition(|item| item.volatility == Volatility::Tail && !scoped);
        let mut history = convert_messages(input);
        prompt.left_out.append(&mut history.left_out);
        updates::drop_lost_updates(
            &mut strata,
            &history.messages,
            snapshot.prompt.as_ref().map(|prompt| &prompt.id),
        );
        tail::drop_lost_tails(&mut strata, &history.messages);
        if lays_base {
            base::lay_base(&mut strata, &live, &history.messages);
        }
        effort::settle_effort(input, &mut strata, &history.messages, &mut prompt);
        updates::record_updates(input, &mut strata, &live, &history.messages);
        if !strata.stubs.is_empty() {
            let paged = live.iter().filter(|item| updates::is_paged_out(&strata, &item.key));
            prompt
                .left_out
                .extend(paged.map(|item| Omission::of_item(item.key.clone(), OmissionReason::PagedOut)));
        }
        stubs::replace_results(input, &strata, &mut history.messages);

        let unstored = tool_changes::declare_tools(input, &mut strata, &history.messages, &mut prompt);
        let copies = CopyIndex::new(&strata, &live);
        let mut builder = MessageBuilder::default();
        push_base(input, &strata.base, &copies, &mut builder);
        let changes = push_log(input, &strata, &copies, &history.messages, &mut builder);
        // A message that is added only to end with the user is not sent again, so it is not cached.
        prompt = builder.finish(input, Region::Tail, prompt);
        changes.push_rest(unstored.as_ref(), &mut prompt);
        tail::push_tail(input, &mut strata, &tail, &history.messages, &mut prompt);
        let breakpoints::BreakpointPlacement { measured, met } =
            breakpoints::place_breakpoints(input, &mut strata, fold_site, &mut prompt);
        let garbage = Garbage::find(input, &strata, &live, &prompt, &measured);
        // Where the cache is lost, no place of an earlier request can be read; where only what was kept
        // for the short lifetime is, the rest can.
        let met = match snapshot.fold {
            Some(FoldReason::CacheLost) => None,
            Some(FoldReason::ShortCacheLost) => {
                let ends = PartEnds::new(&prompt);
                let lives = |frontier| ends.long_lived_blocks(strata.long_lived, frontier);
                met.map(lives).filter(|blocks| *blocks > 0)
            }
            _ => met,
        };
        let met = met.or(fold_site);
        let cached = met.unwrap_or(0);
        lifetimes::choose_lifetimes(input, &mut strata, &measured, &garbage, cached, &mut prompt);
        Draft { prompt, strata, measured, live, garbage, met, cached }
    }
}

impl Draft<'_> {
    pub fn fold_sites(&self, input: &LayoutInput<'_>) -> FoldSites {
        FoldSites::find(input, &self.strata, &self.prompt, &self.measured, &self.garbage, self.cached)
    }

    /// Whether other tools than those of this prompt can be declared for nothing: its cache is lost.
    pub fn may_declare_other_tools(&self, input: &LayoutInput<'_>) -> bool {
        let is_lost = input.snapshot.fold.is_some_and(FoldReason::is_loss) && self.cached == 0;
        is_lost && tool_changes::has_other_tools(input, &self.strata) && !costs_reasoning(input)
    }

    /// Whether a fold declares other tools than this prompt: a fold that lays BASE writes all but the
    /// head of the prompt anew, and is the occasion to write that, too.
    pub fn declares_tools_anew(&self, input: &LayoutInput<'_>, lays_base: bool) -> bool {
        lays_base && tool_changes::has_other_tools(input, &self.strata)
    }

    /// The index of the first message of the conversation that lies wholly after the place.
    fn first_message_after(&self, position: usize, history: &[Arc<ConvertedMessage>]) -> usize {
        let before = position.saturating_sub(self.prompt.tools.len());
        let before = self.prompt.blocks().take(before).collect::<Vec<_>>();
        let index = |block: &&Block| {
            let Source::Message(id) = &block.origin()?.source else { return None };
            history.iter().rposition(|converted| converted.ids.contains(id))
        };
        before.iter().rev().find_map(index).map_or(0, |last| last + 1)
    }

    /// The state to build the folded prompt from. `before` is the state before this request.
    pub fn fold(
        &self,
        input: &LayoutInput<'_>,
        before: &StrataState,
        position: usize,
        lays_base: bool,
    ) -> StrataState {
        let mut folded = self.strata.clone();
        base::apply_fold(input, &mut folded, self.garbage.plan_fold(position, lays_base), &self.live);
        let history = convert_messages(input).messages;
        stubs::join_stubs(&mut folded, &history, self.first_message_after(position, &history));
        folded.folds += u32::from(before.has_base);
        folded.bases += u32::from(before.has_base && lays_base);
        // This request has yet to be draft: what it tells only once is not told yet.
        folded.tail_hash = before.tail_hash;
        folded.frontier = before.frontier;
        folded.long_lived = before.long_lived;
        folded.tails = if lays_base { Vec::new() } else { before.tails.clone() };
        if lays_base {
            (folded.first_effort, folded.effort_changes) = (None, Vec::new());
            folded.tool_changes.clear();
        }
        if self.declares_tools_anew(input, lays_base) {
            folded.declared_tools = None;
        }
        folded.account.sites.retain(|site| *site < position);
        folded.account.rents.record_fold(position);
        folded
    }
}

/// The conversation, before anything is taken out of it.
pub fn convert_messages(input: &LayoutInput<'_>) -> history::ConvertedHistory {
    history::convert_history(input, &input.snapshot.messages, ToolCallHandling::Keep, ExchangeMerging::Join)
}

/// The items that this layout shows; the others are listed as left out. `known` is what the model knows
/// of each item, unless BASE is laid anew.
fn shown_items<'a>(
    input: &LayoutInput<'a>,
    known: Option<&BTreeMap<&str, Option<&Text>>>,
    left_out: &mut Vec<Omission>,
) -> Vec<&'a Item> {
    let snapshot = input.snapshot;
    let open: BTreeSet<&str> = snapshot.items_of(ItemKind::File).map(Item::name).collect();
    // An open file's symbol entry that BASE shows unchanged stays there until the next fold:
    // removing it would rewrite the cache.
    let stands_in_base =
        |item: &Item| known.is_some_and(|known| known.get(&*item.key).copied().flatten() == Some(&item.body));
    let mut shown = Vec::with_capacity(snapshot.items.len());
    for item in &snapshot.items {
        let mut leave = |reason| left_out.push(Omission::of_item(item.key.clone(), reason));
        if is_conversation_placeholder(item) {
            leave(OmissionReason::ConversationItem);
        } else if item.kind != ItemKind::File && item.body.trim().is_empty() {
            leave(OmissionReason::Empty);
        } else if item.kind == ItemKind::Symbols && open.contains(item.name()) && !stands_in_base(item) {
            leave(OmissionReason::FileOpen);
        } else {
            shown.push(item);
        }
    }
    shown
}
