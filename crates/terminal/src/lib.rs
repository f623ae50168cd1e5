//! The terminal face of Hardpan.
//!
//! Finished text is printed once, below the shell's own lines, and never touched again; only a
//! small live area at the end of it is redrawn. What is drawn is a function of a model, and the
//! model changes by events alone, so that everything but the edge can be tested without a terminal.

pub mod blocks;
pub mod editor;
pub mod full;
pub mod input;
pub mod keymap;
pub mod model;
pub mod plain;
pub mod runner;
pub mod screen;
#[cfg(test)]
mod test_face;
pub mod text;
pub mod theme;
pub mod transcript;
pub mod update;
pub mod view;
pub mod views;
