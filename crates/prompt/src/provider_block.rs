//! [`ProviderBlock`]: what a provider's own web search leaves in an answer; [`WebSource`]: a page that
//! the answer cites.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Json, Origin, Text};

/// A block of an answer that the provider's own web search wrote. It goes back to the model that
/// answered, as it came; other models never see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderBlock {
    /// What the block is to the other parts of its answer.
    pub kind: ProviderBlockKind,
    /// The provider's id of the search, by which a search and its result belong together.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub id: Arc<str>,
    /// The block as the provider sent it: an object.
    pub json: Json,
}

/// What a [`ProviderBlock`] is to the other parts of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProviderBlockKind {
    /// A search whose result is a block of its own. Without the result it cannot go back.
    Call,
    /// What a search found. Without the search it cannot go back.
    Result,
    /// A search with its result.
    Search,
    /// A piece of the text part before it, with its citations: it goes back in the place of that
    /// piece. All cited pieces of a text follow it, in order.
    CitedText {
        /// How many bytes of the text it contains.
        bytes: usize,
        /// How many bytes of the text come after it.
        #[serde(default)]
        after: usize,
    },
}

/// A page that an answer cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebSource {
    /// The title of the page; empty if the provider gave none.
    #[serde(default)]
    pub title: String,
    /// Its address.
    pub url: String,
}

impl fmt::Display for WebSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.title.trim() {
            "" => f.write_str(&self.url),
            title => write!(f, "{title}: {}", self.url),
        }
    }
}

/// The pages that an answer cites, as a person reads them, in one line.
pub fn list_sources(sources: &[WebSource]) -> String {
    let pages: Vec<String> = sources.iter().map(WebSource::to_string).collect();
    format!("Sources: {}", pages.join("; "))
}

/// A [`ProviderBlock`] as a request sends it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderContent {
    /// The block as the provider sent it.
    pub json: Json,
    /// The cited text, for requests that cannot send the block; nothing stands for a search.
    pub text: Option<Text>,
    /// The assistant message that the block belongs to.
    pub origin: Origin,
}
