//! The simulator as its callers see it: over HTTP on loopback, and within the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod answers; // streamed and whole answers, scripts, the assistant
mod anthropic_caching; // what a change loses, and how far a read looks back
mod anthropic_requests; // requests to Anthropic Messages with a version, beta headers and a model
mod anthropic_rules; // every rule of the table, beside its nearest accepted neighbour
mod caching; // reads, writes, lifetimes, parallel requests
mod diagnostics; // why a request missed the cache
mod echo; // every answer is accepted when it comes back
mod faults; // every fault, all protocols, both ways
mod forecasts; // what the client expects to be billed is billed
mod gemini; // Gemini's own protocol
mod matrix; // every model of the catalogue takes what Hardpan sends to it
mod older_server; // fields that are left out once a server has refused them
mod providers; // the two ways to reach a simulator
mod request_log; // what the server writes down
mod responses; // what only the Responses API has
mod strictness; // what the servers refuse, and in which form
mod thinking; // who thinks, what is shown, and what it is bound to
mod threads; // conversations that the server keeps
mod web_search; // the servers' own search
