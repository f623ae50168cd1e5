//! Neighbouring layers in one row, for screens with few rows.

use super::{ContextRow, LastUse, Layer, LayerAge};
use crate::blocks::core_sample::CacheState;
use crate::blocks::format::count;
use crate::theme::Theme;

/// The rows with all layers between two breakpoints as one. Entries of older requests do not
/// separate; the row says where they are. Items within a layer are not shown.
pub(super) fn merge_neighbours(rows: &[ContextRow], theme: &Theme) -> Vec<ContextRow> {
    merge_between(rows, false, theme)
}

/// Like [`merge_neighbours`], but entries of older requests separate, too.
pub(super) fn merge_between_marks(rows: &[ContextRow], theme: &Theme) -> Vec<ContextRow> {
    merge_between(rows, true, theme)
}

fn merge_between(rows: &[ContextRow], older_separates: bool, theme: &Theme) -> Vec<ContextRow> {
    let mut out: Vec<ContextRow> = Vec::new();
    let mut open: Option<(Layer, Vec<String>)> = None;
    for row in rows {
        match row {
            ContextRow::Layer(layer) if layer.depth > 0 => {}
            ContextRow::Layer(layer) if layer.tokens() == 0 => {
                out.extend(close(open.take()));
                out.push(row.clone());
            }
            ContextRow::Layer(layer) => {
                open = Some(match open.take() {
                    None => (layer.clone(), Vec::new()),
                    Some((before, notes)) => (merge(before, layer, theme), notes),
                });
            }
            ContextRow::Mark(mark) if mark.is_older && !older_separates => {
                let note = format!("{} {}", theme.glyphs.older_entry, count(mark.tokens));
                if let Some((_, notes)) = &mut open {
                    notes.push(note);
                }
            }
            ContextRow::Mark(_) => {
                out.extend(close(open.take()));
                out.push(row.clone());
            }
        }
    }
    out.extend(close(open));
    out
}

/// The index of the merged row that holds the chosen layer.
pub(super) fn merged_index(rows: &[ContextRow], chosen: usize) -> Option<usize> {
    let (mut merged, mut seen, mut is_open) = (0_usize, 0, false);
    for row in rows {
        match row {
            ContextRow::Layer(layer) => {
                let starts_row = layer.depth == 0 && (!is_open || layer.tokens() == 0);
                if starts_row {
                    merged += 1;
                    is_open = layer.tokens() > 0;
                }
                if seen == chosen {
                    return merged.checked_sub(1);
                }
                seen += 1;
            }
            ContextRow::Mark(mark) if !mark.is_older => is_open = false,
            ContextRow::Mark(_) => {}
        }
    }
    None
}

fn close(open: Option<(Layer, Vec<String>)>) -> Option<ContextRow> {
    let (mut layer, notes) = open?;
    if !notes.is_empty() {
        layer.holds = notes.join(", ");
    }
    Some(ContextRow::Layer(layer))
}

fn merge(before: Layer, next: &Layer, theme: &Theme) -> Layer {
    let is_same_region = before.name == next.name;
    let turns = match (before.turns, next.turns) {
        (Some((first, _)), Some((_, last))) if is_same_region => Some((first, last)),
        _ => None,
    };
    let name = match is_same_region {
        true => before.name.clone(),
        false => format!("{}, {}", before.full_name(theme), next.full_name(theme)),
    };
    let age = match (&before.age, &next.age) {
        (LayerAge::Requests(a), LayerAge::Requests(b)) => LayerAge::Requests(*a.min(b)),
        (LayerAge::New, _) | (_, LayerAge::New) => LayerAge::New,
        (_, other) => other.clone(),
    };
    let has_breakpoint = next.has_breakpoint;
    let mut parts = before.parts.clone();
    parts.extend_from_slice(&next.parts);
    let last = if before.last == next.last { before.last } else { LastUse::Read(read_share(&parts)) };
    let holds = if before.holds.is_empty() { next.holds.clone() } else { String::new() };
    let (next_price, amount) = (before.next + next.next, before.amount + next.amount);
    Layer {
        name,
        part: None,
        turns,
        depth: 0,
        parts,
        age,
        last,
        next: next_price,
        amount,
        holds,
        has_breakpoint,
    }
}

/// How much of the tokens came from the cache, in percent.
fn read_share(parts: &[(usize, CacheState)]) -> u8 {
    let is_read = |state: CacheState| matches!(state, CacheState::Read | CacheState::Garbage);
    let all: usize = parts.iter().map(|(tokens, _)| tokens).sum();
    let read: usize = parts.iter().filter(|(_, state)| is_read(*state)).map(|(tokens, _)| tokens).sum();
    u8::try_from(read * 100 / all.max(1)).unwrap_or(100)
}
