//! What was paid, and why it was paid again: through the agent, against the simulator within the process, where minutes
//! pass in no time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod bill; // the ledger adds up to what the provider billed
mod causes; // every cause, produced and named
mod foresight; // the price of an act, and what it turns out to be
mod resumed; // another process goes on
mod tiers; // the tracker counts on
mod trial; // an agent, its clock and its provider
mod warmth; // how long the cache lives, and keeping it warm
