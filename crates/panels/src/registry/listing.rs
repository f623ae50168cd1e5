//! [`PanelListing`]: a panel, as faces list it.

use std::sync::Arc;

use serde::Serialize;

/// A panel, as faces list it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PanelListing {
    /// Its id: `P1`.
    pub id: Arc<str>,
    /// Its key: `todo`.
    pub key: String,
    /// Its title.
    pub title: String,
    /// Whether it is kept out of requests.
    pub hidden: bool,
    /// The page that is shown, from 1.
    pub page: usize,
    /// How many pages there are; 0 for a panel without content.
    pub pages: usize,
    /// How long the shown content is, in bytes.
    pub bytes: usize,
}
