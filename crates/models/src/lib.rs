//! What a model can do and costs, and how its provider is spoken to: all of it data.
//!
//! - [`Catalogue`]: every model and provider known, the user's own entries merged over the built-in ones.
//! - [`Model`]: one model's windows, prices and abilities.
//! - [`Provider`] and its [`Wire`]: what a codec must know to speak to a provider about one model.
//!
//! ```
//! use hardpan_models::{Catalogue, DEFAULT_MODEL, DEFAULT_PROVIDER, Markers};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some(DEFAULT_PROVIDER), DEFAULT_MODEL)?;
//! let wire = catalogue.provider(&model.provider)?.for_model(&model);
//! assert_eq!(wire.markers, Markers::CacheControl);
//! assert_eq!(model.prices_at(10_000).cache_read, Some(0.2)); // dollars per million tokens
//!
//! let mine = r#"{"providers": [{"id": "mine", "base_url": "http://127.0.0.1:9000/v1", "open_models": true}]}"#;
//! let catalogue = catalogue.with_user("models.json", mine)?;
//! assert_eq!(catalogue.model(None, "mine/any-name")?.context, 128_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where the figures come from
//!
//! `data/models.json` holds one model per line, derived from the public LiteLLM price list (MIT) as of the date
//! it names; where that list lacks a cache price of an Anthropic model, Anthropic's documented multipliers on
//! the input price stand in. `data/providers.json` is from the providers' own documentation. Both are
//! compiled in: this crate reads no file.

mod catalogue; // Catalogue: lookup and merging
mod glob; // patterns over model ids
mod model; // Model, Price: windows, prices, abilities
mod nearest; // Unknown: the error that names what was probably meant
mod provider; // Provider, Wire, Cache: how a provider is spoken to
mod rows; // the form of the data files, where every field may be absent

pub use catalogue::{Catalogue, CatalogueError, user_schema};
pub use model::{Model, Price, PriceAbove, Vocabulary};
pub use nearest::{Unknown, did_you_mean, nearest};
pub use provider::{
    Cache, CacheKind, Markers, MaxTokensField, Protocol, Provider, ReasoningField, Schemas, Wire,
};

/// The provider used when none is named.
pub const DEFAULT_PROVIDER: &str = "anthropic";

/// The model used when none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5";
