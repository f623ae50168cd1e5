//! What a prompt costs, what was paid, and what was paid twice.
//!
//! - [`quote`] prices a request before it is sent: cold, if nothing of it is cached, and warm, if
//!   the same request was sent a moment ago. Only input counts, since the answer is not known yet.
//! - [`CacheModel`] predicts what a provider reads, writes and bills, given the earlier requests.
//! - [`Ledger`] splits the bill of each [`CompletedRequest`] over the items of its prompt.
//! - [`CacheMonitor`] tells what was paid again, and why.
//! - [`forecast_cost`] tells what an action would lose before it is taken.
//! - [`folds`] is the arithmetic by which `strata` drops what is no longer true; replays and the
//!   live layout share it.
//!
//! Predicting what the cache will do:
//!
//! ```
//! use hardpan_economy::cache::{CacheBlock, CacheRequest, CacheRules, CacheSettings, Moment, Section};
//! use hardpan_economy::{CacheModel, Rates};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{CacheLifetime, Hash};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some("anthropic"), "claude-sonnet-5")?;
//! let profile = catalogue.provider("anthropic")?.profile_for_model(&model);
//! let rules = CacheRules::for_model(&model, &profile);
//!
//! let system = CacheBlock::new(Section::System, Hash::of(b"Be brief."), 2000)
//!     .with_marker(CacheLifetime::FiveMinutes);
//! let prompt = CacheBlock::new(Section::Messages, Hash::of(b"Hello!"), 100);
//! let first = CacheRequest {
//!     at: Moment(0),
//!     model: model.id.as_str().into(),
//!     blocks: vec![system, prompt],
//!     settings: CacheSettings::default(),
//!     explicit_only: false,
//! };
//! let again = CacheRequest { at: Moment(60_000), ..first.clone() };
//!
//! let mut cache = CacheModel::new();
//! assert_eq!(cache.plan(&rules, &first).amounts.cache_write_5m, 2000);
//! cache.commit(&rules, &first, Moment(900)); // the answer began after 0.9 seconds
//! let billing = cache.plan(&rules, &again);
//! assert_eq!((billing.amounts.cache_read, billing.amounts.input), (2000, 100));
//! let dollars = Rates::for_model(&model, &profile, billing.total()).input_dollars(&billing.amounts);
//! assert!((dollars - (2000.0 * 0.2 + 100.0 * 2.0) / 1e6).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Recording what was paid, and forecasting what an action would cost:
//!
//! ```
//! use hardpan_economy::cache::{CacheSettings, Moment};
//! use hardpan_economy::ledger::{Continuity, RequestPurpose};
//! use hardpan_economy::{CacheMonitor, CompletedRequest, Ledger, PlannedAction, forecast_cost};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::{
//!     Block, CacheLifetime, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text,
//!     TokenCounter, TokenUsage, Vocabulary,
//! };
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some("anthropic"), "claude-sonnet-5")?;
//! let profile = catalogue.provider("anthropic")?.profile_for_model(&model);
//! let text = Text::new("Hello! ".repeat(1000));
//! let mut hello = Block::text(Region::Log, text, Origin::message(&"m1".into()));
//! hello.breakpoint = Some(CacheLifetime::FiveMinutes);
//! let messages = vec![PromptMessage::new(Role::User, vec![hello])];
//! let prompt = Prompt { messages, ..Prompt::default() };
//! let prompt_tokens = TokenCounter::new(Vocabulary::O200k).measure(&prompt);
//!
//! let (mut ledger, mut monitor) = (Ledger::default(), CacheMonitor::new());
//! let mut request = CompletedRequest {
//!     prompt: &prompt,
//!     prompt_tokens: &prompt_tokens,
//!     model: &model,
//!     profile: &profile,
//!     settings: CacheSettings::default(),
//!     reported_usage: Some(TokenUsage { cache_write_5m: 2000, output: 5, ..TokenUsage::default() }),
//!     reports_cache: true,
//!     diagnosis: None,
//!     sent_at: Moment(0),
//!     answer_began_at: Moment(900),
//!     day: "2026-08-14",
//!     purpose: RequestPurpose::Turn,
//!     continuity: Continuity::Continued,
//! };
//! assert_eq!(monitor.examine_for_loss(&request), None);
//! assert_eq!(ledger.charge(&request).rows[0].account.kind, Some(ItemKind::History));
//! let forecast =
//!     forecast_cost(&monitor, PlannedAction::Thinking, &model, &profile, Moment(60_000));
//! assert_eq!(forecast.tokens_written_again, 2000);
//!
//! request.sent_at = Moment(12 * 60_000);
//! let verdict = monitor.examine_for_loss(&request).ok_or("2,000 tokens were written again")?;
//! assert_eq!(
//!     verdict.sentence(),
//!     "2,000 tokens ($0.0046) were paid again: the cache expired after 5 minutes (12 minutes unused; a lifetime of 60 minutes would have kept it). You could have avoided it."
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does no input or output and reads no clock.

pub mod cache; // CacheModel: what a provider will read, write and bill
mod cache_pings; // IdlePause: whether it pays to keep a cache warm
pub mod folds; // RentAccounts: when dropping garbage costs less than sending it along
pub mod forecast; // forecast_cost: what an action would cost now, and when it would be free
pub mod format; // numbers and names for people
pub mod ledger; // Ledger: what was paid, split over what was in the prompt
mod lifetimes; // LifetimePrices: five minutes or an hour
mod quote; // quote: the price of a request, cold and warm
#[cfg(test)]
mod test_session; // a conversation, and a provider that caches
pub mod tool_listing; // the list of tools that searches find, and its parts
pub mod tool_loading; // ToolLoading: declare the tools of servers, or search them
pub mod verdict; // CacheMonitor: why a request read less than it should have

pub use cache::{Billing, CacheModel};
pub use cache_pings::{IdlePause, MAX_PINGS};
pub use forecast::{CostForecast, PlannedAction, forecast_cost};
pub use ledger::{Charge, CompletedRequest, Ledger};
pub use lifetimes::{LifetimePrices, PauseCounts};
pub use quote::{Quote, Rates, quote};
pub use tool_loading::{ToolLoading, ToolLoadingForecast, ToolLoadingInput};
pub use verdict::{CacheMonitor, CacheMonitorChange, Cause, Verdict, VerdictSource};
