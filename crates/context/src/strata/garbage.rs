//! What of a prompt is garbage, and what a fold would do about it.
//!
//! Garbage is what is sent though something later says the same or says otherwise; every request
//! pays rent to read it from the cache. A fold that begins at some place drops the garbage after it
//! and writes the rest again.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{Item, MessageId, Prompt, PromptTokens};

use super::showings::{ItemShowings, Showing, ShowingPlace, Showings, subject_name};
use super::state::{StrataState, Stub};
use crate::layout::LayoutInput;

/// The garbage of a prompt.
pub struct Garbage {
    showings: Showings,
    /// Blocks with garbage, the last one first, each with the garbage from it to the end.
    from_block: Vec<(usize, usize)>,
}

/// What a fold does with the conversation after its place.
#[derive(Default)]
pub struct FoldPlan {
    /// Tool results that become a line.
    pub stubs: Vec<Stub>,
    /// The updates that are no longer sent, by index.
    pub dropped_updates: BTreeSet<usize>,
    /// Items whose current body takes the place of several showings, with the last of these.
    pub bodies: Vec<(Arc<str>, ShowingPlace)>,
    /// Items that are not shown any more because they have not been used for long, with their last
    /// showing.
    pub paged_out: Vec<(Arc<str>, ShowingPlace)>,
}

impl Garbage {
    /// Finds the garbage of a prompt.
    pub fn find(
        input: &LayoutInput<'_>,
        strata: &StrataState,
        live: &[&Item],
        prompt: &Prompt,
        measured: &PromptTokens,
    ) -> Self {
        let showings = Showings::find(input, strata, live, prompt, measured);
        let mut credits: Vec<(usize, usize)> = Vec::new();
        for item in &showings.items {
            match item.showings.first().filter(|_| item.is_idle) {
                // It goes as a whole or not at all.
                Some(first) => {
                    credits.push((first.block, item.showings.iter().map(|showing| showing.saving).sum()));
                }
                None => drop(ItemSweep::run(item, 0, |block, saved| credits.push((block, saved)))),
            }
        }
        let results = showings.superseded.iter().chain(&showings.idle);
        credits.extend(results.map(|(showing, _)| (showing.block, showing.saving)));
        credits.sort_unstable_by_key(|(block, _)| std::cmp::Reverse(*block));
        let mut sum = 0;
        let mut from_block: Vec<(usize, usize)> = Vec::with_capacity(credits.len());
        for (block, saved) in credits {
            sum += saved;
            from_block.push((block, sum));
        }
        Garbage { showings, from_block }
    }

    /// How many tokens a fold at `position`, before the block of this index, would drop.
    pub fn after(&self, position: usize) -> usize {
        let count = self.from_block.partition_point(|(block, _)| *block >= position);
        count.checked_sub(1).map_or(0, |last| self.from_block[last].1)
    }

    /// What a fold at `position` does. `lays_base`: it lays BASE anew as well, with the current bodies
    /// of its items.
    pub fn plan_fold(&self, position: usize, lays_base: bool) -> FoldPlan {
        let mut plan = FoldPlan::default();
        for item in &self.showings.items {
            plan.add_item(item, position, lays_base);
        }
        let superseded = self.showings.superseded.iter().filter(|(showing, _)| showing.block >= position);
        for (showing, tool) in superseded {
            plan.drop_showing(showing, tool);
        }
        let idle = self.showings.idle.iter().filter(|(showing, _)| showing.block >= position);
        for (showing, tool) in idle {
            plan.page_out(showing, tool);
        }
        plan
    }
}

impl FoldPlan {
    fn add_item(&mut self, item: &ItemShowings, position: usize, lays_base: bool) {
        let name = subject_name(&item.key);
        let is_after = |showing: &Showing| showing.block >= position;
        if item.is_idle && item.showings.iter().all(is_after) {
            item.showings.iter().for_each(|showing| self.page_out(showing, &name));
            self.paged_out.extend(item.showings.last().map(|last| (item.key.clone(), last.place.clone())));
            return;
        }
        let in_base = item.showings.iter().any(|showing| showing.place == ShowingPlace::Base);
        let sweep = ItemSweep::run(item, position, |_, _| {});
        // BASE shows the current body: everything later is superfluous.
        let takes_body = in_base && lays_base && item.body_tokens.is_some();
        for showing in &sweep.free {
            self.drop_showing(showing, &name);
        }
        if takes_body {
            sweep.parts.iter().for_each(|showing| self.drop_showing(showing, &name));
        } else if sweep.pays_body()
            && let Some((host, rest)) = sweep.parts.split_first()
        {
            rest.iter().for_each(|showing| self.drop_showing(showing, &name));
            self.bodies.push((item.key.clone(), host.place.clone()));
        }
    }

    fn drop_showing(&mut self, showing: &Showing, name: &Arc<str>) {
        match &showing.place {
            ShowingPlace::Message(message) => {
                let (message, what, tokens) = (message.clone(), name.clone(), showing.tokens);
                self.stubs.push(Stub { message, what, tokens, is_paged_out: false });
            }
            ShowingPlace::Update(index) => drop(self.dropped_updates.insert(*index)),
            ShowingPlace::Base => {}
        }
    }

    fn page_out(&mut self, showing: &Showing, name: &Arc<str>) {
        self.drop_showing(showing, name);
        self.stubs.last_mut().into_iter().for_each(|stub| stub.is_paged_out = true);
    }

    /// The messages whose results become a line.
    pub fn stubbed(&self) -> BTreeSet<&MessageId> {
        self.stubs.iter().map(|stub| &stub.message).collect()
    }
}

/// The showings of one item from a place on: which of them can go.
struct ItemSweep<'a> {
    /// Those that later ones make superfluous, the last one first.
    free: Vec<&'a Showing>,
    /// Those that together make the item known, the last one first. Its body could replace them.
    parts: Vec<&'a Showing>,
    parts_tokens: usize,
    body_tokens: Option<usize>,
}

impl<'a> ItemSweep<'a> {
    /// Goes through the showings from the last one to the first at or after `position`, and tells for
    /// each how much more a fold that reaches back to it would drop.
    fn run(item: &'a ItemShowings, position: usize, mut credit: impl FnMut(usize, usize)) -> Self {
        // A body must not stand before a change that stays.
        let has_fixed_change = item.showings.iter().any(|showing| showing.is_fixed && !showing.is_whole);
        let body_tokens = item.body_tokens.filter(|_| !has_fixed_change);
        let mut sweep = ItemSweep { free: Vec::new(), parts: Vec::new(), parts_tokens: 0, body_tokens };
        let (mut is_shown_later, mut free_tokens, mut saved) = (false, 0, 0);
        for showing in item.showings.iter().rev().filter(|showing| showing.block >= position) {
            if showing.is_fixed {
                is_shown_later |= showing.is_whole;
                continue;
            }
            let is_gone = item.is_closed && !matches!(showing.place, ShowingPlace::Message(_));
            if is_shown_later || showing.is_shown_again || is_gone {
                free_tokens += showing.saving;
                sweep.free.push(showing);
            } else {
                sweep.parts_tokens += showing.saving;
                sweep.parts.push(showing);
                is_shown_later |= showing.is_whole;
            }
            let now = free_tokens + sweep.body_saving();
            credit(showing.block, now - saved);
            saved = now;
        }
        sweep
    }

    fn body_saving(&self) -> usize {
        match self.body_tokens {
            Some(body) if self.parts.len() > 1 => self.parts_tokens.saturating_sub(body),
            _ => 0,
        }
    }

    /// Whether the body is shorter than the parts.
    fn pays_body(&self) -> bool {
        self.body_saving() > 0
    }
}

#[cfg(test)]
mod tests;
