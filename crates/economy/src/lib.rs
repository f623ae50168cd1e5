//! What a prompt costs.
//!
//! [`quote`] tells the price of a request before it is sent: cold, when nothing of it is cached, and warm, when the same
//! request was sent a moment ago. Only input counts; what the model answers is not known yet.
//!
//! This crate does no input or output.

mod quote; // the price of a request, cold and warm

pub use quote::{Amounts, Quote, Rates, quote};
