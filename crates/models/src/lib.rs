//! What models can do and cost, and how to talk to their providers: all of it data.
//!
//! - [`Catalogue`]: all known models and providers, with the user's own entries merged over the
//!   built-in ones.
//! - [`Model`]: the windows, prices and abilities of one model.
//! - [`Provider`] and its [`ProviderProfile`]: everything a codec needs to encode a request for one
//!   model.
//!
//! ```
//! use hardpan_models::{Catalogue, DEFAULT_MODEL, DEFAULT_PROVIDER, MarkerFormat};
//!
//! let catalogue = Catalogue::builtin();
//! let model = catalogue.model(Some(DEFAULT_PROVIDER), DEFAULT_MODEL)?;
//! let profile = catalogue.provider(&model.provider)?.profile_for_model(&model);
//! assert_eq!(profile.markers, MarkerFormat::CacheControl);
//! assert_eq!(model.prices_at(10_000).cache_read, Some(0.1)); // dollars per million tokens
//!
//! let mine = r#"{"providers": [{"id": "mine", "base_url": "http://127.0.0.1:9000/v1", "open_models": true}]}"#;
//! let catalogue = catalogue.with_user_file("models.json", mine)?;
//! assert_eq!(catalogue.model(None, "mine/any-name")?.context, 128_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where the figures come from
//!
//! `data/models.json` has one model per line, derived from the public LiteLLM price list (MIT) as
//! of the date it names. Where that list lacks a cache price of an Anthropic model, Anthropic's
//! documented multipliers of the input price are used. `data/providers.json` follows the providers'
//! own documentation. Both are compiled in: this crate reads no files.

mod catalogue; // Catalogue: lookup and merging
mod glob; // patterns over model ids
mod model; // Model, Price: windows, prices, abilities
mod nearest; // UnknownName: the error that suggests what was probably meant
mod protocol; // Protocol: what is spoken, and what a layout must know about it
mod provider; // Provider, ProviderProfile, CachePolicy: how to talk to a provider
mod rows;
mod thinking; // ThinkingSetting, ThinkingSupport: what is asked, what a model offers, what is sent // the format of the data files, in which every field may be absent

pub use catalogue::{Catalogue, CatalogueError, user_file_schema};
pub use model::{LongRequestPrice, Model, Price, ReasoningBinding, Vocabulary};
pub use nearest::{UnknownName, did_you_mean, nearest};
pub use protocol::{Protocol, ProtocolTraits};
pub use provider::{
    CacheKind, CachePolicy, ChatSupport, ImplicitEnds, MarkerFormat, MaxTokensField, Provider,
    ProviderProfile, ReasoningField, ToolSchemaStyle,
};
pub use thinking::{
    ThinkingOff, ThinkingRequest, ThinkingSetting, ThinkingSubstitution, ThinkingSupport,
    UnknownThinkingLevel,
};

/// The provider used when none is named.
pub const DEFAULT_PROVIDER: &str = "anthropic";

/// The model used when none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
