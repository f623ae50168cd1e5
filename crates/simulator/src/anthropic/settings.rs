//! [`AnthropicSettings`]: what differs between accounts, or what the documentation leaves open.

/// How the simulated server of Anthropic Messages behaves where real ones differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnthropicSettings {
    /// Whether the account was made before thinking was bound to its conversation.
    pub account: Account,
    /// Which fields the server knows.
    pub fields: KnownFields,
    /// Which names the header `anthropic-beta` may have.
    pub betas: BetaPolicy,
    /// How far a change of thinking or effort reaches.
    pub thinking_cache: ThinkingCacheScope,
    /// Whether adaptive thinking comes before every answer.
    pub adaptive_thinking: AdaptiveThinking,
}

/// When a model thinks that decides by itself whether to. Models that always think, and requests
/// with a budget, have thinking before every answer in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdaptiveThinking {
    /// Where the script has reasoning for the answer.
    #[default]
    AsScripted,
    /// Before every answer.
    Always,
}

/// Which fields a server knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownFields {
    /// All of today's.
    #[default]
    Current,
    /// Those of 2025, as compatible servers have them: neither diagnostics, effort, the display and
    /// binding of thinking, nor system messages within the conversation.
    Older,
}

/// The age of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Account {
    /// Some models let thinking through that belongs to another conversation.
    Old,
    /// Thinking that belongs to another conversation is refused.
    #[default]
    New,
}

/// Which names the header `anthropic-beta` may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BetaPolicy {
    /// Those of the official SDK, and older ones that clients still send.
    #[default]
    Known,
    /// Any.
    Any,
}

/// What of the cache is lost when thinking or effort change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingCacheScope {
    /// The messages.
    #[default]
    Messages,
    /// Everything: some models put the setting before the tools.
    Everything,
}
