//! [`ServerParts`]: what a server brings besides tools, and keeping it up to date.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use hardpan_mcp::{Connection, ServerError, ServerPrompt, ServerResources};

use super::{LIST_PAUSE, MAX_REMEMBERED, McpServer, prompts};
use crate::foreign_requests::RequestTimes;

/// What a server brings besides tools.
#[derive(Default)]
pub(crate) struct ServerParts {
    /// What it listed last, or is remembered to have.
    prompts: Mutex<Option<Vec<ServerPrompt>>>,
    resources: Mutex<ServerResources>,
    /// Whether a change of its lists is being looked at.
    is_listing: AtomicBool,
    /// Resources that it is asked to tell of.
    subscribed: Mutex<BTreeSet<String>>,
    /// Its resources in the context. Some servers tell of changes without being asked to.
    shown: Mutex<BTreeSet<String>>,
    /// Resources that it told to be others now.
    outdated: Mutex<BTreeSet<String>>,
    sampling_times: Mutex<RequestTimes>,
}

/// The most changes of resources that are kept until the next request.
const MAX_OUTDATED: usize = 1000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerParts {
    pub fn prompts(&self) -> Option<Vec<ServerPrompt>> {
        lock(&self.prompts).clone()
    }

    pub fn resources(&self) -> ServerResources {
        lock(&self.resources).clone()
    }

    pub fn sampling_times(&self) -> MutexGuard<'_, RequestTimes> {
        lock(&self.sampling_times)
    }

    /// Notes that a resource has another content.
    pub fn note_update(&self, uri: &str) {
        let mut outdated = lock(&self.outdated);
        let is_wanted = || lock(&self.subscribed).contains(uri) || lock(&self.shown).contains(uri);
        if outdated.len() < MAX_OUTDATED && is_wanted() {
            outdated.insert(uri.to_owned());
        }
    }

    /// The resources that have another content by now.
    pub fn outdated(&self) -> BTreeSet<String> {
        lock(&self.outdated).clone()
    }

    /// Notes that a resource is being read. Unless that is finished, it has to be read again.
    pub fn begin_read(&self, uri: &str) -> ResourceReading<'_> {
        lock(&self.outdated).remove(uri);
        ResourceReading { parts: self, uri: uri.to_owned(), is_finished: false }
    }

    /// Notes that a resource comes into the context.
    pub fn note_shown(&self, uri: &str) {
        lock(&self.shown).insert(uri.to_owned());
    }

    /// Notes which resources are in the context.
    pub fn set_shown(&self, uris: &[String]) {
        *lock(&self.shown) = uris.iter().cloned().collect();
    }

    /// Notes that the server tells of a resource. Returns whether it did not before.
    pub fn note_subscribed(&self, uri: &str) -> bool {
        lock(&self.subscribed).insert(uri.to_owned())
    }

    /// Notes that the server does not tell of a resource.
    pub fn note_unsubscribed(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// The resources that the server tells of.
    pub fn subscribed(&self) -> BTreeSet<String> {
        lock(&self.subscribed).clone()
    }

    /// Notes that the server was started anew, and knows of no subscription.
    pub fn note_start(&self) {
        lock(&self.subscribed).clear();
    }

    /// Takes over the prompts that the server is remembered to have.
    pub fn read_remembered(&self, file: &Path) {
        let text = read_small_text(file, MAX_REMEMBERED).ok();
        *lock(&self.prompts) = text.and_then(|text| serde_json::from_str(&text).ok());
    }
}

/// A resource that is being read.
pub(crate) struct ResourceReading<'a> {
    parts: &'a ServerParts,
    uri: String,
    is_finished: bool,
}

impl ResourceReading<'_> {
    /// It was read, or cannot be.
    pub fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for ResourceReading<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.parts.note_update(&self.uri);
        }
    }
}

impl McpServer {
    /// Asks the server for its prompts and resources, and makes commands of the prompts.
    pub(super) async fn list_parts(self: &Arc<Self>, connection: &Connection) -> Result<(), ServerError> {
        let timeout = self.config.start_time;
        let listing = async {
            let prompts = connection.list_prompts().await?;
            let is_new = lock(&self.parts.prompts).replace(prompts.clone()).as_ref() != Some(&prompts);
            if is_new {
                self.remember_prompts(&prompts);
                prompts::register_commands(self, &prompts);
            }
            *lock(&self.parts.resources) = connection.list_resources().await?;
            Ok(())
        };
        let listed = tokio::time::timeout(timeout, listing).await;
        listed.unwrap_or(Err(ServerError::CallTimeout(timeout)))
    }

    fn remember_prompts(&self, prompts: &[ServerPrompt]) {
        let (Some(file), Ok(json)) = (self.prompts_file(), serde_json::to_vec(prompts)) else { return };
        // A list that is not remembered is asked for again.
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let _ = write_private_file(&file, &json);
    }

    /// Where its prompts are remembered.
    pub(super) fn prompts_file(&self) -> Option<std::path::PathBuf> {
        Some(self.remembered.as_ref()?.with_extension("prompts.json"))
    }

    /// Asks for the lists again, once for many words that they changed.
    pub(super) fn note_parts_change(server: &Weak<Self>, runtime: &tokio::runtime::Handle) {
        let Some(server) = server.upgrade() else { return };
        if server.parts.is_listing.swap(true, Ordering::Relaxed) {
            return;
        }
        runtime.spawn(async move {
            tokio::time::sleep(LIST_PAUSE).await;
            server.parts.is_listing.store(false, Ordering::Relaxed);
            let connection = server.connection.lock().await.clone();
            let Some(connection) = connection else { return };
            server.learn_parts(&connection).await;
        });
    }

    /// The same; what goes wrong is logged, because nobody asked.
    pub(super) async fn learn_parts(self: &Arc<Self>, connection: &Connection) {
        if let Err(error) = self.list_parts(connection).await {
            tracing::info!(server = %self.name, error = %error.to_string().escape_debug(), "lists");
        }
    }
}
