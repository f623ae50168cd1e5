//! Audit and replay of whole recorded sessions.

mod audit; // the bill of a generated session, explained
mod by_hand; // the same for a real session of 439 requests, where it is at hand
mod generated; // a session that the agent records while the simulator bills it
mod replay; // the generated session under other policies
