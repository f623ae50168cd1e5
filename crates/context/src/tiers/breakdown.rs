//! [`TierInfo`]: what each tier of a prompt holds.

use hardpan_prompt::{ItemKind, MessageId, Region, Source};
use schemars::JsonSchema;
use serde::Serialize;

use crate::breakdown::PromptPiece;

/// What each tier of a prompt holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TierInfo {
    /// L0, the system message.
    #[serde(rename = "L0")]
    pub l0: TierTokens,
    /// L1, unchanged for 9 responses or more.
    #[serde(rename = "L1")]
    pub l1: TierTokens,
    /// L2, unchanged for 6 responses or more.
    #[serde(rename = "L2")]
    pub l2: TierTokens,
    /// L3, unchanged for 3 responses or more.
    #[serde(rename = "L3")]
    pub l3: TierTokens,
    /// The active tier: what changed recently, the tree, pages and the prompt. It is not cached.
    pub active: TierTokens,
    /// How many of L1 to L3 were skipped.
    pub empty_tiers: u32,
}

/// What one tier holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TierTokens {
    /// The tokens of everything in it.
    pub tokens: usize,
    /// How many symbol entries it shows.
    pub symbols: usize,
    /// How many files it shows.
    pub files: usize,
    /// How many messages of the conversation it holds.
    pub history: usize,
    /// Whether the tree is in it.
    pub has_tree: bool,
    /// L0: whether the system prompt is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_system: Option<bool>,
    /// L0: whether the legend is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_legend: Option<bool>,
    /// Active: whether pages are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_urls: Option<bool>,
    /// Active: whether conversation is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_history: Option<bool>,
}

/// Sums up the pieces of a prompt by tier. `user_prompt` is the message that is not history yet.
pub fn summarise_tiers(pieces: &[PromptPiece], user_prompt: Option<&MessageId>) -> TierInfo {
    let mut info = TierInfo::default();
    info.l0.has_system = Some(false);
    info.l0.has_legend = Some(false);
    info.active.has_urls = Some(false);
    info.active.has_history = Some(false);
    let mut messages: Vec<(Region, &Source)> = Vec::new();
    for piece in pieces {
        let tier = match piece.region {
            Region::L0 => &mut info.l0,
            Region::L1 => &mut info.l1,
            Region::L2 => &mut info.l2,
            Region::L3 => &mut info.l3,
            _ => &mut info.active,
        };
        tier.tokens += piece.tokens;
        let is_item = matches!(piece.origin.source, Source::Item { .. });
        match piece.origin.kind {
            ItemKind::Symbols if is_item => tier.symbols += 1,
            ItemKind::File if is_item => tier.files += 1,
            ItemKind::History if matches!(&piece.origin.source, Source::Message(id) if Some(id) != user_prompt) =>
            {
                if !messages.contains(&(piece.region, &piece.origin.source)) {
                    messages.push((piece.region, &piece.origin.source));
                    tier.history += 1;
                }
                tier.has_history = tier.has_history.map(|_| true);
            }
            ItemKind::Tree => tier.has_tree = true,
            ItemKind::System => tier.has_system = tier.has_system.map(|_| true),
            ItemKind::Legend => tier.has_legend = tier.has_legend.map(|_| true),
            ItemKind::Page => tier.has_urls = tier.has_urls.map(|_| true),
            _ => {}
        }
    }
    info.empty_tiers = [&info.l1, &info.l2, &info.l3].iter().map(|tier| u32::from(tier.tokens == 0)).sum();
    info
}
