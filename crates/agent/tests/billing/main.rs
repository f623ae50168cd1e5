//! Billing and cache verdicts through the agent, against the in-process simulator, where minutes
//! pass in no time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod agents; // the conversations that most tests begin with
mod bound_reasoning; // reasoning that may go back only after an unchanged past
mod cache_lifetimes; // five minutes or an hour, by the pauses
mod cache_warmth; // how long the cache lives, and keeping it warm
mod extension_changes;
mod foresight; // the price of an act, and what it turns out to be
mod ledger_totals; // the ledger adds up to what the provider billed
mod loss_causes; // every cause of a cache loss
mod provider_reasons; // the provider says why, too
mod resume; // verdicts after a resume
mod tiers;
mod tool_changes; // the tracker of the `tiers` layout
