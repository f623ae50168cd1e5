//! [`LearnedState`]: what answers taught us and the next run should know, stored in
//! `learned.json`: which features models refuse, and how their token counts compare with ours.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hardpan_files::{read_small_text, write_private_file};
use hardpan_prompt::TokenFactor;
use hardpan_providers::CapabilityCache;
use serde::{Deserialize, Serialize};

use crate::settings::UserFolders;

/// The largest file that is read, in bytes; it has some hundred for each model.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Facts learned from providers' answers. Deleting the file is safe: they are learned again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LearnedState {
    /// Features that models refused, in the form of the provider crate's cache.
    refusals: serde_json::Value,
    /// The model's tokens per token that we count, by `provider/model`.
    factors: BTreeMap<String, TokenFactor>,
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
