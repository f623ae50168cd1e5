//! What the code contains.
#![allow(missing_docs)]
mod capture;
mod extract;
mod language;
mod manifest;
mod resolve;
mod names;
mod outline;
mod pattern;
pub use capture::Kind;
pub use language::*;
pub use outline::*;
