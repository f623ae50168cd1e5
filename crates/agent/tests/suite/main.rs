//! The agent against the simulator, over real HTTP: every stage, every event, in every layout.

mod first; // the way of a prompt, whole
mod input; // commands, the input event, skills and templates
mod props; // what stands around an agent on trial
mod trial; // an agent in a folder of its own
