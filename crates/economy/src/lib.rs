//! What a prompt costs, what was paid, and what was paid twice.
//!
//! [`quote`] tells the price of a request before it is sent: cold, when nothing of it is cached, and warm, when the same
//! request was sent a moment ago. Only input counts; what the model answers is not known yet.
//!
//! [`cache`] tells what a provider will really read, write and bill, given the requests that went before:
//!
//! ```
//! use hardpan_economy::{CacheModel, Rates};
//! use hardpan_economy::cache::{CacheBlock, Moment, CacheRequest, CacheRules, Salts, Section};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Hash, CacheLifetime};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some("anthropic"), "claude-sonnet-5")?;
//! let profile = catalogue.provider("anthropic")?.profile_for_model(&model);
//! let rules = CacheRules::for_model(&model, &profile);
//!
//! let system = CacheBlock::new(Section::System, Hash::of(b"Be brief."), 2000).with_marker(CacheLifetime::FiveMinutes);
//! let prompt = CacheBlock::new(Section::Messages, Hash::of(b"Hello!"), 100);
//! let first = CacheRequest {
//!     at: Moment(0),
//!     model: model.id.as_str().into(),
//!     blocks: vec![system, prompt],
//!     settings: CacheSettings::default(),
//! };
//! let again = CacheRequest { at: Moment(60_000), ..first.clone() };
//!
//! let mut cache = CacheModel::new();
//! assert_eq!(cache.plan(&rules, &first).amounts.write, 2000);
//! cache.commit(&rules, &first, Moment(900)); // the answer began after 0.9 seconds
//! let billing = cache.plan(&rules, &again);
//! assert_eq!((billing.amounts.read, billing.amounts.input), (2000, 100));
//! let dollars = Rates::for_model(&model, &profile, billing.total()).dollars(billing.amounts);
//! assert!((dollars - (2000.0 * 0.2 + 100.0 * 2.0) / 1e6).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Once a request is answered, an [`CompletedRequest`] tells what was sent and what the provider reported. From it [`ledger`] splits
//! the bill over the items of the prompt, and [`verdict`] says what was paid again and why; [`forecast`] says what an act
//! would lose before it is done:
//!
//! ```
//! use hardpan_economy::cache::{Moment, Salts};
//! use hardpan_economy::ledger::{RequestPurpose, Continuity, TokenUsage};
//! use hardpan_economy::{PlannedAction, Answered, Ledger, Watch, forecast_cost};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{Block, TokenCounter, Kind, CacheLifetime, Origin, Region, Prompt, Role, Text, Turn, Vocabulary};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some("anthropic"), "claude-sonnet-5")?;
//! let profile = catalogue.provider("anthropic")?.profile_for_model(&model);
//! let mut hello = Block::text(Region::Log, Text::new("Hello! ".repeat(1000)), Origin::message(&"m1".into()));
//! hello.breakpoint = Some(CacheLifetime::FiveMinutes);
//! let prompt = Prompt { messages: vec![Turn::new(Role::User, vec![hello])], ..Prompt::default() };
//! let measured = TokenCounter::new(Vocabulary::O200k).measure(&prompt);
//!
//! let (mut ledger, mut monitor) = (Ledger::default(), Watch::new());
//! let mut answered = Answered {
//!     prompt: &prompt,
//!     measured: &measured,
//!     model: &model,
//!     profile: &profile,
//!     settings: Salts::default(),
//!     used: Some(TokenUsage { write: 2000, output: 5, ..TokenUsage::default() }),
//!     sent: Moment(0),
//!     began: Moment(900),
//!     day: "2026-08-14",
//!     purpose: RequestPurpose::Turn,
//!     start: Continuity::Continued,
//! };
//! assert_eq!(monitor.examine_for_loss(&answered), None);
//! assert_eq!(ledger.charge(&answered).rows[0].account.kind, Some(Kind::History));
//! let act = forecast_cost(&monitor, PlannedAction::Thinking, &model, &profile, Moment(60_000));
//! assert_eq!(act.tokens_written_again, 2000);
//!
//! answered.sent_at = Moment(12 * 60_000);
//! let verdict = monitor.examine_for_loss(&answered).ok_or("2,000 tokens were written again")?;
//! assert_eq!(
//!     verdict.sentence(),
//!     "2,000 tokens ($0.0046) were paid again: the cache expired after 5 minutes (12 minutes unused). Yours."
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`folds`] is the arithmetic by which `strata` drops what is no longer true; replay and the live layout share it.
//!
//! This crate does no input or output, and looks at no clock.

pub mod cache; // what a provider will read, write and bill
pub mod folds; // when dropping what is no longer true costs less than sending it along
pub mod forecast; // what an act would cost now, and when it would be free
pub mod ledger; // what was paid, split over what was in the prompt
mod cache_pings; // whether it pays to keep a cache warm
mod quote; // the price of a request, cold and warm
#[cfg(test)]
mod test_session; // for tests: a conversation, and a provider that caches
pub mod verdict;
pub mod format; // numbers and names for a person to read // why a request read less than it should have

pub use cache::{Billing, CacheModel};
pub use forecast::{PlannedAction, CostForecast, forecast_cost};
pub use ledger::{CompletedRequest, Charge, Ledger};
pub use cache_pings::{MAX_PINGS, IdlePause};
pub use quote::{InputTokens, Quote, Rates, quote};
pub use verdict::{Cause, Verdict, CacheMonitor, CacheMonitorChange};
