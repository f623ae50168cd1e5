//! The core sample: the whole prompt in a few cells, from stable to new, and the bars of the context
//! view, which use the same glyphs.

use ratatui::text::Span;

use crate::theme::{Role, Theme};

/// Cells of the strip in the status line.
pub const STRIP_CELLS: usize = 16;

/// What the cache did with a part of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Read from the cache.
    Read,
    /// Written to the cache.
    Written,
    /// Sent without the cache.
    Sent,
    /// Read from the cache, and not needed any more.
    Garbage,
}

impl CacheState {
    /// The glyph of a cell.
    pub fn glyph(self, theme: &Theme) -> &'static str {
        match self {
            CacheState::Read => theme.glyphs.read,
            CacheState::Written => theme.glyphs.written,
            CacheState::Sent => theme.glyphs.sent,
            CacheState::Garbage => theme.glyphs.garbage,
        }
    }

    /// The colour of a cell.
    pub fn role(self) -> Role {
        match self {
            CacheState::Read => Role::Accent,
            CacheState::Written => Role::Care,
            CacheState::Sent => Role::Text,
            CacheState::Garbage => Role::Garbage,
        }
    }
}

/// A part of the prompt: its tokens, and what the cache did with them.
pub type LayerPart = (usize, CacheState);

/// The prompt in `cells` cells. Each shows what most of its tokens are; if the prompt ends with
/// something new, the last cell shows it, however small it is.
pub fn core_sample(parts: &[LayerPart], cells: usize, theme: &Theme) -> Vec<Span<'static>> {
    let total: usize = parts.iter().map(|(tokens, _)| tokens).sum();
    if total == 0 || cells == 0 {
        return Vec::new();
    }
    let mut states: Vec<CacheState> =
        (0..cells).map(|cell| state_of_cell(parts, total, cell, cells)).collect();
    let is_new = |state: CacheState| matches!(state, CacheState::Written | CacheState::Sent);
    // The largest new part at the end stands for it.
    let end = parts.iter().rev().filter(|(tokens, _)| *tokens > 0).take_while(|(_, state)| is_new(*state));
    if let (Some((_, newest)), Some(last)) = (end.max_by_key(|(tokens, _)| *tokens), states.last_mut())
        && !is_new(*last)
    {
        *last = *newest;
    }
    runs(&states, theme)
}

/// The state that covers most of a cell.
fn state_of_cell(parts: &[LayerPart], total: usize, cell: usize, cells: usize) -> CacheState {
    // In units of a token's share of a cell, so that nothing is rounded.
    let (start, end) = (cell * total, (cell + 1) * total);
    let mut covered = [0_usize; 4];
    let states = [CacheState::Read, CacheState::Written, CacheState::Sent, CacheState::Garbage];
    let mut at = 0;
    for (tokens, state) in parts {
        let (from, to) = (at.max(start), (at + tokens * cells).min(end));
        let index = states.iter().position(|known| known == state).unwrap_or(0);
        covered[index] += to.saturating_sub(from);
        at += tokens * cells;
    }
    let most = covered.into_iter().max().unwrap_or(0);
    states
        .into_iter()
        .zip(covered)
        .find(|(_, covered)| *covered == most)
        .map_or(CacheState::Read, |(state, _)| state)
}

/// The bar of one layer: as many cells as its tokens need, at least one, the garbage last.
pub fn layer_bar(parts: &[LayerPart], tokens_per_cell: f64, theme: &Theme) -> Vec<Span<'static>> {
    let total: usize = parts.iter().map(|(tokens, _)| tokens).sum();
    if total == 0 {
        return Vec::new();
    }
    let cells = |tokens: usize| (tokens as f64 / tokens_per_cell.max(1.0)).round() as usize;
    let mut left = cells(total).max(1);
    let mut states = Vec::new();
    let mut of_kind = |kind: CacheState, least: usize| {
        let tokens: usize = parts.iter().filter(|(_, state)| *state == kind).map(|(tokens, _)| tokens).sum();
        let count = if tokens == 0 { 0 } else { cells(tokens).max(least).min(left) };
        left -= count;
        (kind, count)
    };
    // What costs more than reading is never rounded away where there is room.
    let garbage = of_kind(CacheState::Garbage, 0);
    let sent = of_kind(CacheState::Sent, 1);
    let written = of_kind(CacheState::Written, 1);
    let read = (CacheState::Read, left);
    let has_read = parts.iter().any(|(tokens, state)| *tokens > 0 && *state == CacheState::Read);
    for (state, count) in [read, written, sent, garbage] {
        let state = match state {
            CacheState::Read if !has_read => parts.first().map_or(CacheState::Read, |(_, state)| *state),
            state => state,
        };
        states.extend(std::iter::repeat_n(state, count));
    }
    runs(&states, theme)
}

/// Neighbouring cells of the same state as one span.
fn runs(states: &[CacheState], theme: &Theme) -> Vec<Span<'static>> {
    states
        .chunk_by(|a, b| a == b)
        .map(|run| Span::styled(run[0].glyph(theme).repeat(run.len()), theme.style(run[0].role())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spans: &[Span<'_>]) -> String {
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    const LAYERS: [LayerPart; 6] = [
        (29_700, CacheState::Read),
        (6_500, CacheState::Garbage),
        (3_100, CacheState::Read),
        (6_100, CacheState::Garbage),
        (1_850, CacheState::Written),
        (240, CacheState::Sent),
    ];

    #[test]
    fn the_prompt_in_sixteen_cells() {
        let theme = Theme::default();
        assert_eq!(text(&core_sample(&LAYERS, STRIP_CELLS, &theme)), "██████████░░█░░▓");
        assert_eq!(text(&core_sample(&LAYERS, 11, &theme)), "███████░█░▓");
        assert_eq!(
            text(&core_sample(&[(1_000_000, CacheState::Read), (1, CacheState::Sent)], 4, &theme)),
            "███▒"
        );
        assert_eq!(text(&core_sample(&[], 16, &theme)), "");
        let ascii = Theme { glyphs: &crate::theme::Glyphs::ASCII, ..theme };
        assert_eq!(text(&core_sample(&LAYERS, STRIP_CELLS, &ascii)), "##########..#..=");
    }

    #[test]
    fn the_bar_of_a_layer() {
        let bar = |parts: &[LayerPart]| text(&layer_bar(parts, 1_850.0, &Theme::default()));
        assert_eq!(bar(&[(15_700, CacheState::Read), (6_500, CacheState::Garbage)]), "████████░░░░");
        assert_eq!(bar(&[(3_100, CacheState::Read), (6_100, CacheState::Garbage)]), "██░░░");
        assert_eq!(bar(&[(240, CacheState::Sent)]), "▒");
        assert_eq!(bar(&[(15_000, CacheState::Read), (2_146, CacheState::Written)]), "████████▓");
        assert_eq!(bar(&[]), "");
    }
}
