//! Text in columns: how wide it is, where it may be broken or cut, and what of it must not reach a
//! terminal.
//!
//! Everything that models, files, servers and tools wrote passes [`escape`] (or [`strip_lines`], for
//! the output of programs) before it becomes part of a line. Lines then hold no control character
//! and none that changes the direction of writing; the screen adds [`isolate_rtl`] when it prints.

mod direction; // right-to-left text keeps to itself
mod escape; // text of others, made harmless
mod links; // addresses that can be opened
mod truncate; // text and paths that are too long
mod width; // columns, counted by grapheme clusters
mod wrap; // lines of a given width

pub use self::direction::isolate_rtl;
pub use self::escape::{TAB_STOP, escape, escape_json, is_unsafe, safe, safe_lines, strip_lines, visible};
pub use self::links::link_address;
pub use self::truncate::{truncate, truncate_line, truncate_middle, truncate_path};
pub use self::width::{clusters, line_width, pad_left, pad_right, width};
pub use self::wrap::{PROSE_WIDTH, hard_wrap, wrap, wrap_hanging, wrap_indented};
