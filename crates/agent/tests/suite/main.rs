//! The agent against the simulator, over real HTTP: every stage, every event, in every layout.

mod context; // the context event, and what becomes of each kind of message
mod first; // the way of a prompt, whole
mod input; // commands, the input event, skills and templates
mod props; // what stands around an agent on trial
mod start; // before a run begins
mod trial; // an agent in a folder of its own
