//! What is learned from run to run: what models refuse, and how their tokens compare to ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hardpan_prompt::Factor;
use hardpan_providers::Learned;
use serde::{Deserialize, Serialize};

use crate::settings::state_folder;

/// What has been learned. It is safe to delete: it is learned again.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// What models have refused.
    refusals: serde_json::Value,
    /// Tokens of a model per token counted, by provider and model.
    factors: BTreeMap<String, Factor>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

impl State {
    /// Reads the state; one that cannot be read is as good as none.
    pub fn load() -> Self {
        let path = state_folder().map(|folder| folder.join("learned.json"));
        let text = path.as_ref().and_then(|path| fs::read_to_string(path).ok());
        let state: State = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        State { path, ..state }
    }

    /// The factor learned for a model, if one was.
    pub fn factor(&self, model: &str) -> Option<Factor> {
        self.factors.get(model).copied()
    }

    /// What models have refused.
    pub fn refusals(&self) -> Learned {
        Learned::from_json(&self.refusals.to_string())
    }

    /// Takes in what an answer told, and keeps it: refusals, and a model's name with its factor. That it cannot be kept is
    /// no reason to fail.
    pub fn keep(&mut self, refusals: &Learned, factor: Option<(String, Factor)>) {
        self.refusals = serde_json::from_str(&refusals.to_json()).unwrap_or_default();
        self.factors.extend(factor);
        let (Some(path), Ok(json)) = (&self.path, serde_json::to_vec_pretty(&self)) else { return };
        let Some(folder) = path.parent() else { return };
        let beside = folder.join(format!("learned.{}", std::process::id()));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&beside, json));
        if written.and_then(|()| fs::rename(&beside, path)).is_err() {
            let _ = fs::remove_file(&beside);
        }
    }
}
