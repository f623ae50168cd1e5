//! What is left out when the window is full.

use hardpan_prompt::{ItemKind, Omission, OmissionReason, exchange_ranges};

use crate::{RenderCache, Snapshot};

/// Removes about `excess` tokens of the context that may be left out first. Returns false when
/// nothing is left to remove.
pub fn drop_some_context(
    snapshot: &mut Snapshot,
    excess: usize,
    render_cache: &RenderCache,
    left_out: &mut Vec<Omission>,
) -> bool {
    for kind in
        [ItemKind::Symbols, ItemKind::Legend, ItemKind::Tree, ItemKind::Page, ItemKind::Panel, ItemKind::File]
    {
        let mut taken = 0;
        while taken < excess {
            let Some(last) = snapshot.items.iter().rposition(|item| item.kind == kind) else { break };
            let item = snapshot.items.remove(last);
            taken += render_cache.counter.count(&item.body).max(1);
            left_out.push(Omission::of_item(item.key, OmissionReason::NoRoom));
        }
        if taken > 0 {
            return true;
        }
    }
    drop_oldest_exchange(snapshot, left_out)
}

/// Removes the oldest exchange. Without a new prompt, the last exchange is what the model is asked
/// about, so it stays. Returns false when nothing can be removed.
fn drop_oldest_exchange(snapshot: &mut Snapshot, left_out: &mut Vec<Omission>) -> bool {
    let mut exchanges = exchange_ranges(&snapshot.messages).into_iter();
    let (oldest, is_last) = (exchanges.next(), exchanges.next().is_none());
    let Some(oldest) = oldest.filter(|_| !is_last || snapshot.prompt.is_some()) else { return false };
    let dropped = snapshot.messages.drain(oldest);
    left_out.extend(dropped.map(|message| Omission::of_message(&message.id, OmissionReason::NoRoom)));
    true
}
