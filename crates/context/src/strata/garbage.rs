//! What of a prompt is garbage, and what a fold would do about it.
//!
//! Garbage is what is sent though something later says the same or says otherwise; every request
//! pays rent to read it from the cache. A fold that begins at some place drops the garbage after it
//! and writes the rest again.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{Item, MessageId, Prompt, PromptTokens};

use super::shown_copies::{CopyPlace, ItemCopies, ShownCopies, ShownCopy, subject_name};
use super::state::{StrataState, Stub};
use super::tool_changes;
use crate::layout::LayoutInput;

/// The garbage of a prompt.
pub struct Garbage {
    copies: ShownCopies,
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
    /// Items whose current body takes the place of several copies, with the last of these.
    pub bodies: Vec<(Arc<str>, CopyPlace)>,
    /// Items that are not shown any more because they have not been used for long, with their last
    /// copy.
    pub paged_out: Vec<(Arc<str>, CopyPlace)>,
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
        let copies = ShownCopies::find(input, strata, live, prompt, measured);
        let mut credits: Vec<(usize, usize)> = Vec::new();
        for item in &copies.items {
            match item.copies.first().filter(|_| item.is_idle) {
                // It goes as a whole or not at all.
                Some(first) => {
                    credits.push((first.block, item.copies.iter().map(|copy| copy.paged_saving).sum()));
                }
                None => drop(ItemSweep::run(item, 0, |block, saved| credits.push((block, saved)))),
            }
        }
        credits.extend(copies.superseded.iter().map(|(copy, _)| (copy.block, copy.saving)));
        credits.extend(copies.idle.iter().map(|(copy, _)| (copy.block, copy.paged_saving)));
        credits.extend(tool_changes::superfluous_declarations(input, prompt, measured));
        credits.sort_unstable_by_key(|(block, _)| std::cmp::Reverse(*block));
        let mut sum = 0;
        let mut from_block: Vec<(usize, usize)> = Vec::with_capacity(credits.len());
        for (block, saved) in credits {
            sum += saved;
            from_block.push((block, sum));
        }
        Garbage { copies, from_block }
    }

    /// How many tokens a fold of everything would drop.
    pub fn total(&self) -> usize {
        self.after(0)
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
        for item in &self.copies.items {
            plan.add_item(item, position, lays_base);
        }
        let superseded = self.copies.superseded.iter().filter(|(copy, _)| copy.block >= position);
        for (copy, tool) in superseded {
            plan.drop_copy(copy, tool);
        }
        let idle = self.copies.idle.iter().filter(|(copy, _)| copy.block >= position);
        for (copy, tool) in idle {
            plan.page_out(copy, tool);
        }
        plan
    }
}

impl FoldPlan {
    fn add_item(&mut self, item: &ItemCopies, position: usize, lays_base: bool) {
        let name = subject_name(&item.key);
        let is_after = |copy: &ShownCopy| copy.block >= position;
        if item.is_idle && item.copies.iter().all(is_after) {
            item.copies.iter().for_each(|copy| self.page_out(copy, &name));
            self.paged_out.extend(item.copies.last().map(|last| (item.key.clone(), last.place.clone())));
            return;
        }
        let in_base = item.copies.iter().any(|copy| copy.place == CopyPlace::Base);
        let sweep = ItemSweep::run(item, position, |_, _| {});
        // BASE shows the current body: everything later is superfluous.
        let takes_body = in_base && lays_base && item.body_tokens.is_some();
        for copy in &sweep.free {
            self.drop_copy(copy, &name);
        }
        if takes_body {
            sweep.parts.iter().for_each(|copy| self.drop_copy(copy, &name));
        } else if sweep.pays_body()
            && let Some((host, rest)) = sweep.parts.split_first()
        {
            rest.iter().for_each(|copy| self.drop_copy(copy, &name));
            self.bodies.push((item.key.clone(), host.place.clone()));
        }
    }

    fn drop_copy(&mut self, copy: &ShownCopy, name: &Arc<str>) {
        match &copy.place {
            CopyPlace::Message(message) => {
                let (message, what, tokens) = (message.clone(), name.clone(), copy.tokens);
                self.stubs.push(Stub { message, what, tokens, is_paged_out: false, told_in: None });
            }
            CopyPlace::Update(index) => drop(self.dropped_updates.insert(*index)),
            CopyPlace::Base => {}
        }
    }

    fn page_out(&mut self, copy: &ShownCopy, name: &Arc<str>) {
        self.drop_copy(copy, name);
        self.stubs.last_mut().into_iter().for_each(|stub| stub.is_paged_out = true);
    }

    /// The messages whose results become a line.
    pub fn stubbed(&self) -> BTreeSet<&MessageId> {
        self.stubs.iter().map(|stub| &stub.message).collect()
    }
}

/// The copies of one item from a place on: which of them can go.
struct ItemSweep<'a> {
    /// Those that later ones make superfluous, the last one first.
    free: Vec<&'a ShownCopy>,
    /// Those that together make the item known, the last one first. Its body could replace them.
    parts: Vec<&'a ShownCopy>,
    parts_tokens: usize,
    body_tokens: Option<usize>,
}

impl<'a> ItemSweep<'a> {
    /// Goes through the copies from the last one to the first at or after `position`, and tells for
    /// each how much more a fold that reaches back to it would drop.
    fn run(item: &'a ItemCopies, position: usize, mut credit: impl FnMut(usize, usize)) -> Self {
        // A body must not stand before a change that stays.
        let has_fixed_change = item.copies.iter().any(|copy| copy.is_fixed && !copy.is_whole);
        let body_tokens = item.body_tokens.filter(|_| !has_fixed_change);
        let mut sweep = ItemSweep { free: Vec::new(), parts: Vec::new(), parts_tokens: 0, body_tokens };
        let (mut is_shown_later, mut free_tokens, mut saved) = (false, 0, 0);
        for copy in item.copies.iter().rev().filter(|copy| copy.block >= position) {
            if copy.is_fixed {
                is_shown_later |= copy.is_whole;
                continue;
            }
            let is_gone = item.is_closed && !matches!(copy.place, CopyPlace::Message(_));
            if is_shown_later || copy.is_shown_again || is_gone {
                free_tokens += copy.saving;
                sweep.free.push(copy);
            } else {
                sweep.parts_tokens += copy.saving;
                sweep.parts.push(copy);
                is_shown_later |= copy.is_whole;
            }
            let now = free_tokens + sweep.body_saving();
            credit(copy.block, now - saved);
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
