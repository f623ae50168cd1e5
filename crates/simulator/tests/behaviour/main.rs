//! The simulator as its callers see it: over HTTP on loopback, and within the process.

mod answers; // streamed and whole answers, scripts, the assistant
mod caching; // reads, writes, lifetimes, parallel requests
mod faults; // every fault, both protocols, both ways
mod places; // the two ways to reach a simulator
mod strictness; // what the servers refuse, and in which form
