//! The simulator as its callers see it: over HTTP on loopback, and within the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod answers; // streamed and whole answers, scripts, the assistant
mod caching; // reads, writes, lifetimes, parallel requests
mod faults; // every fault, both protocols, both ways
mod providers; // the two ways to reach a simulator
mod strictness; // what the servers refuse, and in which form
