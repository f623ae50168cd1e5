//! The agent against the simulator, over real HTTP: every stage, every event, in every layout.

mod abort; // stopped at every moment
mod context; // the context event, and what becomes of each kind of message
mod errors; // providers that fail, before and in the middle of an answer
mod first; // the way of a prompt, whole
mod handlers; // who is called, in which order, for how long
mod input; // commands, the input event, skills and templates
mod order; // what happens when, and what is told of it
mod props; // what stands around an agent on trial
mod queues; // steering and follow-ups
mod reading; // what messages and requests say, in lines
mod sessions; // what is on the disk, and what becomes of it
mod start; // before a run begins
mod tools; // blocks, approvals, results and what is made of them
mod trial; // an agent in a folder of its own
mod usage; // what was billed
