//! What a prompt costs.
//!
//! [`quote`] tells the price of a request before it is sent: cold, when nothing of it is cached, and warm, when the same
//! request was sent a moment ago. Only input counts; what the model answers is not known yet.
//!
//! [`cache`] tells what a provider will really read, write and bill, given the requests that went before:
//!
//! ```
//! use hardpan_economy::{CacheModel, Rates};
//! use hardpan_economy::cache::{CacheBlock, Moment, Request, Rules, Salts, Section};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Hash, Lifetime};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some("anthropic"), "claude-sonnet-5")?;
//! let wire = catalogue.provider("anthropic")?.for_model(&model);
//! let rules = Rules::of(&model, &wire);
//!
//! let system = CacheBlock::new(Section::System, Hash::of(b"Be brief."), 2000).marked(Lifetime::FiveMinutes);
//! let prompt = CacheBlock::new(Section::Messages, Hash::of(b"Hello!"), 100);
//! let first = Request {
//!     at: Moment(0),
//!     model: model.id.as_str().into(),
//!     blocks: vec![system, prompt],
//!     salts: Salts::default(),
//! };
//! let again = Request { at: Moment(60_000), ..first.clone() };
//!
//! let mut cache = CacheModel::new();
//! assert_eq!(cache.plan(&rules, &first).amounts.write, 2000);
//! cache.commit(&rules, &first, Moment(900)); // the answer began after 0.9 seconds
//! let billing = cache.plan(&rules, &again);
//! assert_eq!((billing.amounts.read, billing.amounts.input), (2000, 100));
//! let dollars = Rates::of(&model, &wire, billing.total()).dollars(billing.amounts);
//! assert!((dollars - (2000.0 * 0.2 + 100.0 * 2.0) / 1e6).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does no input or output, and looks at no clock.

pub mod cache; // what a provider will read, write and bill
mod quote; // the price of a request, cold and warm

pub use cache::{Billing, CacheModel};
pub use quote::{Amounts, Quote, Rates, quote};
