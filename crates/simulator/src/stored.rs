//! [`ResponseStore`]: answers that a server keeps, so that later requests can refer to them.

use std::collections::{BTreeMap, VecDeque};

use hardpan_prompt::Hash;
use serde_json::Value;

use crate::anthropic::threads::Threads;
use crate::openai_responses::diagnostics::ComparisonRecords;

/// The most answers kept; the oldest are forgotten.
const MAX_RESPONSES: usize = 1000;
/// The most items whose reasoning is remembered.
const MAX_ITEMS: usize = 100_000;

/// An answer that was stored.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// The answer's id.
    pub id: String,
    /// Who asked: nobody else may refer to it.
    pub owner: Hash,
    /// The answer as it was sent.
    pub response: Value,
    /// The items of its request, those of earlier answers included.
    pub input: Vec<Value>,
}

impl StoredResponse {
    /// The items of the answer itself.
    pub fn output(&self) -> impl Iterator<Item = &Value> {
        self.response["output"].as_array().into_iter().flatten()
    }
}

/// The stored answers of a simulator, and what it remembers of all the items that it sent.
#[derive(Debug, Default)]
pub struct ResponseStore {
    responses: BTreeMap<String, StoredResponse>,
    order: VecDeque<String>,
    /// By the id of an item, the id of the reasoning that came directly before it.
    reasoning: BTreeMap<String, String>,
    /// What requests are compared with that ask why they missed the cache.
    pub comparisons: ComparisonRecords,
    /// Conversations that Anthropic's server keeps.
    pub threads: Threads,
}

impl ResponseStore {
    /// A stored answer of this owner.
    pub fn get(&self, owner: Hash, id: &str) -> Option<&StoredResponse> {
        self.responses.get(id).filter(|stored| stored.owner == owner)
    }

    /// Keeps an answer.
    pub fn insert(&mut self, response: StoredResponse) {
        if self.order.len() >= MAX_RESPONSES
            && let Some(oldest) = self.order.pop_front()
        {
            self.responses.remove(&oldest);
        }
        self.order.push_back(response.id.clone());
        self.responses.insert(response.id.clone(), response);
    }

    /// Forgets an answer. Returns whether it was there.
    pub fn remove(&mut self, owner: Hash, id: &str) -> bool {
        let is_there = self.get(owner, id).is_some();
        if is_there {
            self.responses.remove(id);
            self.order.retain(|known| known != id);
        }
        is_there
    }

    /// An item of a stored answer of this owner, or of its request.
    pub fn item(&self, owner: Hash, id: &str) -> Option<&Value> {
        let responses = self.responses.values().filter(|stored| stored.owner == owner);
        responses.flat_map(|stored| stored.output().chain(&stored.input)).find(|item| item["id"] == id)
    }

    /// Remembers which reasoning the items of an answer came after.
    pub fn remember_items(&mut self, output: &[Value]) {
        if self.reasoning.len() > MAX_ITEMS {
            self.reasoning.clear();
        }
        for pair in output.windows(2).filter(|pair| pair[0]["type"] == "reasoning") {
            if let (Some(reasoning), Some(item)) = (pair[0]["id"].as_str(), pair[1]["id"].as_str()) {
                self.reasoning.insert(item.to_owned(), reasoning.to_owned());
            }
        }
    }

    /// The reasoning that an item came directly after. `None`: there was none, or it is not known.
    pub fn reasoning_before(&self, item: &str) -> Option<&str> {
        self.reasoning.get(item).map(String::as_str)
    }
}
