//! The terminal itself: [`PageScreen`] prints finished lines once and redraws the live area below
//! them, [`TerminalGuard`] switches the terminal's modes and always puts them back.

mod encode; // EncodedRow: a styled line as bytes
mod guard; // TerminalGuard: modes of the terminal, and their restoration
mod page; // PageScreen: print once, redraw the rest
mod picture; // PictureProtocol: images as bytes
mod restore; // RestoreHandle: what puts the modes back, from any thread
#[cfg(test)]
mod tests;

pub use encode::EncodedRow;
pub use guard::{GuardError, GuardOptions, RawMode, SystemRawMode, TerminalGuard};
pub use page::{CursorPlace, Frame, PageScreen, Rewrap, ScreenSize};
pub use picture::{PictureProtocol, PrintedPicture};
pub use restore::{RestoreHandle, restore_on_signals};
