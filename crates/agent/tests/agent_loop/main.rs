//! The agent loop against the simulator over real HTTP: every stage and every event, in every
//! layout.

mod abort; // aborting at every moment
mod context; // the context event, and what becomes of each kind of message
mod errors; // providers that fail, before and in the middle of an answer
mod gemini; // thoughts, signatures and parallel calls over Gemini's protocol
mod handlers; // event handlers: order, time limits, faults
mod input; // commands, the input event, skills and templates
mod not_run; // why a call was not run
mod order; // the order of everything, and its events
mod preview; // requests that are shown before they are sent
mod prompt_flow; // a prompt from start to end
mod queues; // steering and follow-ups
mod responses; // reasoning and parallel calls over the Responses API
mod run_start; // what happens before a run begins
mod sessions; // the session file: storing, resuming, forking
mod status; // what the agent is doing
mod streams; // how faces read events: slow, late, not at all
mod tools; // blocked calls, approvals, results and their revision
mod usage; // token usage
mod web_search; // the provider's own search
