//! [`Client::list_models`]: the ids of the models that the provider itself lists.

use bytes::Bytes;
use hardpan_models::ProviderProfile;
use thiserror::Error;

use super::Client;
use super::response_reader::read_whole;
use crate::codec::codec;
use crate::{HttpMethod, HttpRequest, ProviderError, mask_url};

/// At most this many pages are read: a server that always names a next one must not keep us.
const MAX_PAGES: usize = 50;

/// The most models that a list may have, and the longest id in bytes. Aggregators list hundreds.
const MAX_MODELS: usize = 20_000;
const MAX_ID_BYTES: usize = 256;

/// Statuses of servers that do not know the list's address.
const WITHOUT_LIST: [u16; 3] = [404, 405, 501];

/// Why there is no list of the provider's models.
#[derive(Debug, Error)]
pub enum ModelListError {
    /// The server has none.
    #[error("there is no list of models at {url} (status {status})")]
    NoList {
        /// Where it should be.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server answered with something else.
    #[error("the answer of {url} is no list of models")]
    Malformed {
        /// Where it should be.
        url: String,
    },
    /// The request failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Client {
    /// The ids of the models that the provider lists at the client's address, sorted. A failure is
    /// not retried.
    pub async fn list_models(&self, profile: &ProviderProfile) -> Result<Vec<String>, ModelListError> {
        let codec = codec(profile.protocol);
        let (mut ids, mut page) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let url = self.url(&codec.model_list_path(page.as_deref()));
            // The page that was asked for is of no interest to a person.
            let shown = mask_url(url.split('?').next().unwrap_or(&url));
            let headers = self.headers(profile, Vec::new());
            let request =
                HttpRequest { method: HttpMethod::Get, url: url.clone(), headers, body: Bytes::new() };
            let body = read_whole(self, profile.protocol, request).await.map_err(|error| {
                let error = error.redact_key(self.endpoint.key.as_ref().map(|key| key.0.as_str()));
                match error.status.filter(|status| WITHOUT_LIST.contains(status)) {
                    Some(status) => ModelListError::NoList { url: shown.clone(), status },
                    None => ModelListError::Provider(error),
                }
            })?;
            let listed = serde_json::from_slice(&body).ok().and_then(|body| codec.parse_model_list(&body));
            let listed = listed.ok_or(ModelListError::Malformed { url: shown })?;
            ids.extend(listed.ids.into_iter().filter(|id| id.len() <= MAX_ID_BYTES));
            page = listed.next_page.filter(|page| page.len() <= MAX_ID_BYTES);
            if page.is_none() || ids.len() > MAX_MODELS {
                break;
            }
        }
        ids.truncate(MAX_MODELS);
        ids.sort();
        ids.dedup();
        Ok(ids)
    }
}
