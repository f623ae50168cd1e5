//! The full screen: the whole conversation in the alternate screen, to scroll, fold and search, with
//! the context beside it and the live area of the page below it.
//!
//! The principal type is [`FullScreen`], a [`View`](crate::views::View) over the model's
//! [`Transcript`](crate::transcript::Transcript). Rows are made for the blocks that are looked at and
//! those around them, so that the cost of a frame does not grow with the conversation. Places are a
//! block and a row of it ([`RowPlace`]), so that neither a resize nor new text moves them.

mod find; // text within blocks
mod frame; // what the screen looks like
mod full_screen; // FullScreen: scrolling, folding, searching
mod height_tree; // HeightTree: heights of all blocks, and their sums
#[cfg(test)]
mod tests;
mod transcript_rows; // TranscriptRows: blocks as rows, made when they are needed

pub use full_screen::FullScreen;
pub use height_tree::HeightTree;
pub use transcript_rows::{RowPlace, TranscriptRows};
