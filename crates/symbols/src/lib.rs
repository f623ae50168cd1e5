//! What the code contains.
#![allow(missing_docs)]
mod capture;
mod cluster;
mod extract;
mod index;
mod language;
mod manifest;
mod map;
mod names;
mod outline;
mod pattern;
mod rank;
mod resolve;
mod wire;
pub use capture::Kind;
pub use index::*;
pub use language::*;
pub use outline::*;
pub use wire::*;
pub use rank::*;
pub use map::*;
