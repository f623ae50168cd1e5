//! What is stable: where the tiers begin, and how they count on after each answer.

use hardpan_context::{
    Change, LayoutName, Mapped, Memory, Snapshot, Tracker, after_response, cache_target_tokens,
};
use hardpan_prompt::Kind;

use crate::agent::{Agent, Choice, lock};
use crate::run::Bench;
use crate::turn::Asked;

impl Agent {
    /// Before the first request of `tiers`: places the symbol map by which files belong together.
    pub(crate) async fn begin_tiers(&self, bench: &Bench, choice: &Choice, snapshot: &mut Snapshot) {
        let is_first = choice.layout == LayoutName::Tiers && snapshot.memory.tiers.is_empty();
        if !is_first || snapshot.items_of(Kind::Symbols).next().is_none() {
            return;
        }
        let surroundings = self.inner.setup.surroundings.clone();
        // Without it the map begins in one tier, and moves from there.
        let Ok(coupling) = tokio::task::spawn_blocking(move || surroundings.coupling()).await else { return };
        let mapped = |item: &hardpan_prompt::Item| Mapped {
            path: item.name().into(),
            tokens: choice.target.factor.scale(bench.memo.counter.count(&item.body)),
            references: coupling.references.get(item.name()).copied().unwrap_or(0.0),
        };
        let files: Vec<Mapped> = snapshot.items_of(Kind::Symbols).map(mapped).collect();
        let target = cache_target_tokens(&choice.target);
        snapshot.memory.tiers = Tracker::first(&files, &coupling.clusters, target);
    }

    /// After a complete answer: everything it was shown has been unchanged for one more response, or not.
    pub(crate) fn count_response(&self, asked: &Asked) {
        let mut conversation = lock(&self.inner.conversation);
        let (memory, moved) =
            after_response(&conversation.memory, &asked.snapshot, &asked.assembled, &asked.target);
        (conversation.memory, conversation.moved) = (memory, moved);
    }

    /// What the layouts remember: what the next request will be made with.
    pub fn memory(&self) -> Memory {
        lock(&self.inner.conversation).memory.clone()
    }

    /// What moved between the tiers after the last answer, and why. Other layouts than `tiers` have none.
    pub fn moved(&self) -> Vec<Change> {
        lock(&self.inner.conversation).moved.clone()
    }
}
