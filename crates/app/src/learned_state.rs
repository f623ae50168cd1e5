//! [`LearnedState`]: what answers taught us and the next run should know, stored in
//! `learned.json`: which features models refuse, and how their token counts compare with ours.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hardpan_economy::tool_loading::USUAL_REQUESTS;
use hardpan_files::{read_small_text, write_private_file};
use hardpan_prompt::TokenFactor;
use hardpan_providers::CapabilityCache;
use serde::{Deserialize, Serialize};

use crate::settings::UserFolders;

/// The largest file that is read, in bytes; it has some hundred for each model.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Before this many conversations nothing is concluded from their length.
const LEAST_CONVERSATIONS: usize = 5;

/// Of how many conversations the length is remembered.
const MOST_CONVERSATIONS: usize = 30;

/// Facts learned from providers' answers. Deleting the file is safe: they are learned again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LearnedState {
    /// Features that models refused, in the form of the provider crate's cache.
    refusals: serde_json::Value,
    /// The model's tokens per token that we count, by `provider/model`.
    factors: BTreeMap<String, TokenFactor>,
    /// How many requests the latest conversations had, the oldest first, by session.
    conversations: Vec<(String, u32)>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl LearnedState {
    /// Reads the state. A missing or damaged file gives an empty state.
    pub fn load(folders: &UserFolders) -> Self {
        let path = folders.state.as_ref().map(|folder| folder.join("learned.json"));
        let text = path.as_ref().and_then(|path| read_small_text(path, MAX_BYTES).ok());
        let state: LearnedState = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        LearnedState { path, ..state }
    }

    /// The token factor learned for a model (`provider/model`); none before its first bill.
    pub fn factor(&self, model: &str) -> Option<TokenFactor> {
        self.factors.get(model).copied()
    }

    /// The features that models refused, for a new client.
    pub fn refusals(&self) -> CapabilityCache {
        CapabilityCache::from_json(&self.refusals.to_string())
    }

    /// How many requests a conversation is expected to have: the median of the latest ones, or a usual
    /// number before there are enough of them.
    pub fn usual_requests(&self) -> u32 {
        if self.conversations.len() < LEAST_CONVERSATIONS {
            return USUAL_REQUESTS;
        }
        let mut counts: Vec<u32> = self.conversations.iter().map(|(_, requests)| *requests).collect();
        counts.sort_unstable();
        counts[counts.len() / 2].max(1)
    }

    /// Notes how many requests a conversation has had so far.
    pub fn note_requests(&mut self, session: &str, requests: u32) {
        self.conversations.retain(|(other, _)| other != session);
        self.conversations.push((session.to_owned(), requests));
        let surplus = self.conversations.len().saturating_sub(MOST_CONVERSATIONS);
        self.conversations.drain(..surplus);
    }

    /// Forgets what servers have refused, so that the next request tries it again.
    pub fn forget_refusals(&mut self) {
        self.save(&CapabilityCache::default(), None);
    }

    /// Stores the refusals and, if given, a model's name with its token factor. Ignores write
    /// errors: the next run learns the same again.
    pub fn save(&mut self, refusals: &CapabilityCache, factor: Option<(String, TokenFactor)>) {
        self.refusals = serde_json::from_str(&refusals.to_json()).unwrap_or_default();
        self.factors.extend(factor);
        let (Some(path), Ok(json)) = (&self.path, serde_json::to_vec_pretty(&self)) else { return };
        let _ = write_private_file(path, &json);
    }
}
