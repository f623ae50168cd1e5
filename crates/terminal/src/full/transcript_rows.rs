//! [`TranscriptRows`]: the blocks of a transcript as rows of a width, made when they are needed.

use std::collections::BTreeMap;

use ratatui::text::Line;

use super::height_tree::HeightTree;
use crate::blocks::MarkdownRenderer;
use crate::text::{hard_wrap, line_width};
use crate::theme::Theme;
use crate::transcript::{BlockSource, Transcript, TranscriptBlock};

/// What the rows that were made may take; the oldest are made again when they are needed.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// A row of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPlace {
    /// Index of the block.
    pub block: usize,
    /// Row of the block, from 0. A blank row before the block belongs to it.
    pub row: usize,
}

/// The rows of a conversation.
#[derive(Clone, Debug)]
pub struct TranscriptRows {
    columns: usize,
    theme: Theme,
    generation: usize,
    /// Estimates for the blocks that were never looked at.
    heights: HeightTree,
    made: BTreeMap<usize, MadeRows>,
    bytes: usize,
    uses: u64,
    /// What the person has folded or unfolded.
    folds: BTreeMap<usize, bool>,
    growing: Option<GrowingAnswer>,
}

#[derive(Clone, Debug)]
struct MadeRows {
    rows: Vec<Line<'static>>,
    bytes: usize,
    last_use: u64,
}

/// The answer that arrives: what is closed of it is rendered once.
#[derive(Clone, Debug)]
struct GrowingAnswer {
    block: usize,
    renderer: MarkdownRenderer,
    rows: Vec<Line<'static>>,
    /// The rows that will not change any more.
    closed: usize,
    /// Bytes of the text that the renderer has.
    taken: usize,
}

impl TranscriptRows {
    /// Nothing is made yet.
    pub fn new(columns: usize, theme: Theme) -> Self {
        TranscriptRows {
            columns: columns.max(1),
            theme,
            generation: 0,
            heights: HeightTree::default(),
            made: BTreeMap::new(),
            bytes: 0,
            uses: 0,
            folds: BTreeMap::new(),
            growing: None,
        }
    }

    /// Learns what was said since the last time, and the width.
    pub fn update(&mut self, transcript: &Transcript, columns: usize, theme: &Theme) {
        let columns = columns.max(1);
        if self.generation != transcript.generation() {
            *self = TranscriptRows::new(columns, *theme);
            self.generation = transcript.generation();
        }
        if (self.columns, self.theme) != (columns, *theme) {
            (self.columns, self.theme) = (columns, *theme);
            self.heights.clear();
            self.made.clear();
            (self.bytes, self.growing) = (0, None);
        }
        for index in self.heights.len()..transcript.blocks().len() {
            self.heights.push(self.estimate(transcript, index));
        }
        self.update_answer(transcript);
    }

    fn update_answer(&mut self, transcript: &Transcript) {
        let open = transcript.open_answer();
        if self.growing.as_ref().is_some_and(|growing| Some(growing.block) != open) {
            self.growing = None;
        }
        let Some(block) = open else { return };
        let BlockSource::Answer(text) = &transcript.blocks()[block].source else { return };
        let (columns, theme) = (self.columns, self.theme);
        let blank = usize::from(transcript.has_blank_before(block));
        let growing = self.growing.get_or_insert_with(|| GrowingAnswer {
            block,
            renderer: MarkdownRenderer::new(columns, theme),
            rows: vec![Line::default(); blank],
            closed: blank,
            taken: 0,
        });
        if growing.taken < text.len() {
            growing.rows.truncate(growing.closed);
            let closed = growing.renderer.push(&text[growing.taken..]);
            growing.taken = text.len();
            push_rows(&mut growing.rows, closed, columns);
            growing.closed = growing.rows.len();
            push_rows(&mut growing.rows, growing.renderer.open_tail(), columns);
            self.heights.set(block, growing.rows.len());
        }
    }

    /// The rows of a block.
    pub fn rows(&mut self, transcript: &Transcript, block: usize) -> &[Line<'static>] {
        self.uses += 1;
        if self.growing.as_ref().is_some_and(|growing| growing.block == block) {
            return self.growing.as_ref().map_or(&[], |growing| &growing.rows);
        }
        if !self.made.contains_key(&block) {
            let rows = self.make_rows(transcript, block);
            self.heights.set(block, rows.len());
            let bytes = rows.iter().map(row_bytes).sum();
            self.bytes += bytes;
            self.made.insert(block, MadeRows { rows, bytes, last_use: self.uses });
            self.forget_oldest();
        }
        match self.made.get_mut(&block) {
            Some(made) => {
                made.last_use = self.uses;
                &made.rows
            }
            None => &[],
        }
    }

    fn make_rows(&self, transcript: &Transcript, index: usize) -> Vec<Line<'static>> {
        let block = &transcript.blocks()[index];
        let lines = block.source.full_lines(self.columns, &self.theme, self.is_unfolded(block, index));
        let has_blank = transcript.has_blank_before(index) && !lines.is_empty();
        let mut rows = vec![Line::default(); usize::from(has_blank)];
        push_rows(&mut rows, lines, self.columns);
        rows
    }

    /// Forgets the half that was used the longest ago, if there is too much.
    fn forget_oldest(&mut self) {
        if self.bytes <= CACHE_BYTES {
            return;
        }
        let mut uses: Vec<u64> = self.made.values().map(|made| made.last_use).collect();
        uses.sort_unstable();
        // What is used now stays, however much it is.
        let limit = uses[uses.len() / 2].min(self.uses - 1);
        self.made.retain(|_, made| made.last_use > limit);
        self.bytes = self.made.values().map(|made| made.bytes).sum();
    }

    /// How many rows a block takes, about.
    fn estimate(&self, transcript: &Transcript, index: usize) -> usize {
        let block = &transcript.blocks()[index];
        let (bytes, lines) = block.source.size(self.is_unfolded(block, index));
        lines.max(bytes.div_ceil(self.columns)).max(1) + usize::from(transcript.has_blank_before(index))
    }

    fn is_unfolded(&self, block: &TranscriptBlock, index: usize) -> bool {
        self.folds.get(&index).copied().unwrap_or(!block.source.is_folded_at_first())
    }

    /// Shows all of a block, or folds it. False if that changes nothing.
    pub fn set_unfolded(&mut self, transcript: &Transcript, index: usize, is_unfolded: bool) -> bool {
        let Some(block) = transcript.blocks().get(index) else { return false };
        if !block.source.can_fold() || self.is_unfolded(block, index) == is_unfolded {
            return false;
        }
        self.folds.insert(index, is_unfolded);
        if let Some(made) = self.made.remove(&index) {
            self.bytes -= made.bytes;
        }
        true
    }

    /// Folds a block, or shows all of it.
    pub fn toggle_fold(&mut self, transcript: &Transcript, index: usize) {
        if !self.set_unfolded(transcript, index, true) {
            self.set_unfolded(transcript, index, false);
        }
    }

    fn height(&mut self, transcript: &Transcript, block: usize) -> usize {
        self.rows(transcript, block).len()
    }

    /// The last row of all; none if nothing was said.
    pub fn last_place(&mut self, transcript: &Transcript) -> Option<RowPlace> {
        (0..transcript.blocks().len()).rev().find_map(|block| {
            let row = self.height(transcript, block).checked_sub(1)?;
            Some(RowPlace { block, row })
        })
    }

    /// The place so many rows further up, or the first.
    pub fn up(&mut self, transcript: &Transcript, place: RowPlace, rows: usize) -> RowPlace {
        let RowPlace { mut block, row } = place;
        let (mut row, mut left) = (row, rows);
        loop {
            if left <= row {
                return RowPlace { block, row: row - left };
            }
            left -= row;
            let above = (0..block).rev().find_map(|above| Some((above, self.last_row(transcript, above)?)));
            let Some((above, last)) = above else { return RowPlace { block, row: 0 } };
            (block, row) = (above, last);
            left -= 1;
        }
    }

    fn last_row(&mut self, transcript: &Transcript, block: usize) -> Option<usize> {
        self.height(transcript, block).checked_sub(1)
    }

    /// The place so many rows further down; none if there are not as many.
    pub fn down(&mut self, transcript: &Transcript, place: RowPlace, rows: usize) -> Option<RowPlace> {
        let RowPlace { mut block, row } = place;
        let mut row = row + rows;
        while block < transcript.blocks().len() {
            let height = self.height(transcript, block);
            if row < height {
                return Some(RowPlace { block, row });
            }
            row -= height;
            block += 1;
        }
        None
    }

    /// At most so many rows from a place on.
    pub fn rows_from(&mut self, transcript: &Transcript, place: RowPlace, most: usize) -> Vec<Line<'static>> {
        let mut out: Vec<Line<'static>> = Vec::new();
        let mut skipped = place.row;
        for block in place.block..transcript.blocks().len() {
            let room = most - out.len();
            if room == 0 {
                break;
            }
            let rows = self.rows(transcript, block);
            out.extend(rows.iter().skip(skipped).take(room).cloned());
            skipped = 0;
        }
        out
    }

    /// The same text after its block was made anew for another width: as far into the block.
    pub fn moved_place(
        &mut self,
        transcript: &Transcript,
        place: RowPlace,
        height_before: usize,
    ) -> RowPlace {
        let block = place.block.min(transcript.blocks().len().saturating_sub(1));
        if transcript.blocks().is_empty() {
            return RowPlace::default();
        }
        let height = self.height(transcript, block);
        let row = match height_before {
            0 => place.row,
            before => place.row * height / before,
        };
        RowPlace { block, row: row.min(height.saturating_sub(1)) }
    }

    /// The height of a block as far as it is known.
    pub fn known_height(&self, block: usize) -> usize {
        if block < self.heights.len() { self.heights.height(block) } else { 0 }
    }

    /// The number of a row, and of all rows, as far as they are known.
    pub fn position(&self, place: RowPlace) -> (usize, usize) {
        (self.heights.rows_before(place.block) + place.row + 1, self.heights.total())
    }
}

/// Adds lines as rows: a line that is too long takes several.
fn push_rows(rows: &mut Vec<Line<'static>>, lines: Vec<Line<'static>>, columns: usize) {
    for line in lines {
        if line_width(&line) <= columns {
            rows.push(line);
        } else {
            rows.extend(hard_wrap(&line, columns));
        }
    }
}

/// What a row takes in memory, about.
fn row_bytes(row: &Line<'static>) -> usize {
    let span = size_of::<ratatui::text::Span<'static>>();
    size_of::<Line<'static>>() + row.spans.iter().map(|part| span + part.content.len()).sum::<usize>()
}
