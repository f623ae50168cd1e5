//! What the code contains.
