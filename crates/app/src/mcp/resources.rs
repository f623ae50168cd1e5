//! Resources of servers as pages of the context: `@server:address` in a prompt, or `/resource`.
//!
//! A resource is read once, and requests show it as they show a page. If its server tells of changes, the
//! next request shows the change behind everything that is cached.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hardpan_agent::events::{HandlerClock, Input, InputReply, Note, NoteKind, TurnStart};
use hardpan_agent::{Agent, AgentError, PageAddition};
use hardpan_mcp::{Connection, ResourceContent, ServerError, ServerName, ServerResource};
use hardpan_prompt::Image;
use hardpan_tools::WebPage;

use super::{McpServer, McpServers};

/// How long a request waits for resources that changed. What takes longer is shown by a later one.
const REFRESH_WAIT: Duration = Duration::from_secs(2);

/// The most resources of one prompt.
const MAX_MENTIONS: usize = 10;

/// A resource that joins the context.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachedResource {
    /// `server:address`, by which it is known.
    pub name: String,
    /// What its text costs, in a sentence; none if it has no text.
    pub sentence: Option<String>,
    /// Its images, which go with the next prompt.
    pub images: Vec<Image>,
    /// Length of its text.
    pub bytes: usize,
}

/// Why a resource does not join the context.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The name does not say which server has it.
    #[error("expected SERVER:ADDRESS, as /resource lists them")]
    NoServer,
    /// No server has this name.
    #[error("there is no MCP server {0} in this conversation: `hardpan mcp` lists them")]
    UnknownServer(String),
    /// The server does not give it.
    #[error("the MCP server {server}: {error}")]
    Server {
        /// The server's name.
        server: String,
        /// What happened.
        error: ServerError,
    },
    /// It costs too much.
    #[error("{0}")]
    Refused(String),
    /// The session cannot be written.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl McpServers {
    /// The resources that servers have listed, with the server of each.
    pub fn resources(&self) -> Vec<(ServerName, ServerResource)> {
        let of_server = |server: &Arc<McpServer>| {
            let name = server.name.clone();
            server.parts.resources().listed.into_iter().map(move |resource| (name.clone(), resource))
        };
        self.enabled().flat_map(of_server).collect()
    }

    /// The same, after all servers were started.
    pub async fn list_resources(&self) -> Vec<(ServerName, ServerResource)> {
        let listing = self.enabled().map(|server| async move {
            // What is wrong with a server was told when it was started.
            if let Ok(connection) = server.connect().await {
                server.learn_parts(&connection).await;
            }
        });
        join_all(listing).await;
        self.resources()
    }

    /// Adds a resource to the context: `server:address`, or `server address`.
    pub async fn attach_resource(&self, name: &str) -> Result<AttachedResource, ResourceError> {
        let name = name.trim().trim_start_matches('@');
        let (server, uri) = name.split_once([':', ' ']).ok_or(ResourceError::NoServer)?;
        let found = self.enabled().find(|known| known.name.as_str() == server);
        let found = found.ok_or_else(|| ResourceError::UnknownServer(server.to_owned()))?;
        found.attach_resource(uri.trim()).await
    }

    /// Notes which resources a prompt mentions as `@server:address`: they join the context with it.
    pub fn note_mentions(&self, prompt: &str) {
        let names: Vec<&ServerName> = self.enabled().map(|server| &server.name).collect();
        *self.link.mentions() = find_mentions(prompt, &names);
    }

    /// Adds what prompts mention, and what changed, to the context.
    pub(super) fn follow_resources(self: &Arc<Self>, agent: &Agent) {
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<Input, _>("hardpan", move |input, agent| {
            let servers = servers.upgrade();
            async move {
                let Some(servers) = servers else { return Ok(InputReply::Continue) };
                let mentions = std::mem::take(&mut *servers.link.mentions());
                let images = servers.attach_mentions(&agent, mentions).await;
                if images.is_empty() {
                    return Ok(InputReply::Continue);
                }
                let images = input.images.into_iter().chain(images).collect();
                Ok(InputReply::Transform { text: input.text, images: Some(images) })
            }
        });
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<TurnStart, _>("hardpan", move |_, agent| {
            let servers = servers.upgrade();
            async move {
                let Some(servers) = servers else { return Ok(()) };
                let refreshing = servers.enabled().map(|server| server.refresh_resources(&agent));
                // What is late is read before the next request.
                let _ = tokio::time::timeout(REFRESH_WAIT, join_all(refreshing)).await;
                Ok(())
            }
        });
    }

    /// Adds what a prompt mentions; returns the images, which go with it.
    async fn attach_mentions(&self, agent: &Agent, mentions: Vec<(ServerName, String)>) -> Vec<Image> {
        // A server has its own limit, and a person may be asked about the price.
        let _pause = HandlerClock::current().map(|clock| clock.pause());
        let mut images = Vec::new();
        for (server, uri) in mentions {
            let name = format!("{server}:{uri}");
            match self.attach_resource(&name).await {
                Ok(attached) => {
                    let text = attached.sentence.unwrap_or_else(|| format!("{name} goes with the prompt"));
                    let kind = NoteKind::PageFetched { url: name, bytes: attached.bytes };
                    agent.publish_note(&Note { text, kind });
                    images.extend(attached.images);
                }
                Err(error) => {
                    let text = format!("{name} was not attached: {error}");
                    agent.publish_note(&Note { text, kind: NoteKind::PageNotFetched { url: name } });
                }
            }
        }
        images
    }
}

impl McpServer {
    async fn attach_resource(self: &Arc<Self>, uri: &str) -> Result<AttachedResource, ResourceError> {
        let failed = |error| ResourceError::Server { server: self.name.to_string(), error };
        let connection = self.connect().await.map_err(failed)?;
        // Before it is read, so that no change is missed.
        self.parts.note_shown(uri);
        self.subscribe(&connection, uri).await;
        let reading = self.parts.begin_read(uri);
        let content = connection.read_resource(uri).await.map_err(failed)?;
        reading.finish();
        let name = format!("{}:{uri}", self.name);
        let (images, bytes) = (content.images.clone(), content.text.len());
        let Some(agent) = self.link.agent().filter(|_| !content.text.is_empty()) else {
            return Ok(AttachedResource { name, sentence: None, images, bytes });
        };
        let page = self.page(uri, content, &agent);
        match agent.add_page(page).await? {
            PageAddition::Added(priced) => {
                Ok(AttachedResource { name, sentence: Some(priced.sentence()), images, bytes })
            }
            PageAddition::Refused(reason) => Err(ResourceError::Refused(reason)),
        }
    }

    fn page(&self, uri: &str, content: ResourceContent, agent: &Agent) -> WebPage {
        let listed = self.parts.resources().listed;
        let title = listed.into_iter().find(|resource| resource.uri == uri);
        WebPage {
            url: format!("{}:{uri}", self.name),
            title: title.map(|resource| resource.description).filter(|title| !title.is_empty()),
            text: content.text,
            fetched_ms: agent.now().as_millisecond(),
        }
    }

    /// Asks the server to tell of changes, if it can. Returns whether it did not do so before.
    async fn subscribe(&self, connection: &Connection, uri: &str) -> bool {
        if !connection.offers_subscriptions() || !self.parts.note_subscribed(uri) {
            return false;
        }
        // A resource that cannot be followed stays as it is.
        let done = tokio::time::timeout(REFRESH_WAIT, connection.subscribe(uri)).await;
        let is_done = matches!(done, Ok(Ok(())));
        if !is_done {
            tracing::info!(server = %self.name, "not subscribed");
        }
        is_done
    }

    /// Reads the resources of the context that changed.
    async fn refresh_resources(self: &Arc<Self>, agent: &Agent) {
        // Nothing is started for it, and nothing is waited for.
        let connection = self.connection.try_lock().ok().and_then(|connection| connection.clone());
        let Some(connection) = connection.filter(|connection| !connection.is_closed()) else { return };
        let prefix = format!("{}:", self.name);
        let shown: Vec<String> = agent
            .pages()
            .into_iter()
            .filter_map(|page| page.strip_prefix(&prefix).map(str::to_owned))
            .collect();
        self.parts.set_shown(&shown);
        if connection.session_was_renewed() {
            // The server has forgotten what it was asked to tell, and may be another version of itself.
            self.parts.note_start();
            McpServer::note_change(&Arc::downgrade(self), &tokio::runtime::Handle::current());
        }
        for uri in self.parts.subscribed().iter().filter(|uri| !shown.contains(uri)) {
            self.parts.note_unsubscribed(uri);
            // A server that goes on to tell is not listened to.
            let _ = connection.unsubscribe(uri).await;
        }
        let outdated = self.parts.outdated();
        for uri in shown {
            // One of a conversation that goes on may have changed in the meantime.
            let is_new = self.subscribe(&connection, &uri).await;
            if !is_new && !outdated.contains(&uri) {
                continue;
            }
            // A read that takes too long is given up here, and begun again before the next request.
            let reading = self.parts.begin_read(&uri);
            let read = connection.read_resource(&uri).await;
            reading.finish();
            let Ok(content) = read else { continue };
            let bytes = content.text.len();
            let page = self.page(&uri, content, agent);
            let name = page.url.clone();
            // A session that cannot be written reports it with the next message.
            if agent.update_page(page).await.unwrap_or(false) {
                let text = format!("{name} has changed; this request shows it");
                agent.publish_note(&Note { text, kind: NoteKind::PageFetched { url: name, bytes } });
            }
        }
    }
}

/// The resources that a text mentions as `@server:address` or `@"server:address"`.
fn find_mentions(text: &str, servers: &[&ServerName]) -> Vec<(ServerName, String)> {
    let mut found: Vec<(ServerName, String)> = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | ',')) {
            let rest = &text[at + 1..];
            let word = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => {
                    let word = rest.split(char::is_whitespace).next().unwrap_or_default();
                    word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\''])
                }
            };
            let named = word.split_once(':').filter(|(_, uri)| !uri.is_empty());
            let named = named.and_then(|(server, uri)| {
                let server = servers.iter().find(|known| known.as_str() == server)?;
                Some(((*server).clone(), uri.to_owned()))
            });
            found.extend(named.filter(|named| !found.contains(named)));
        }
        before = c;
    }
    found.truncate(MAX_MENTIONS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_known_servers_are_mentioned() {
        let name = ServerName::try_from("docs".to_owned()).unwrap();
        let found = |text: &str| -> Vec<String> {
            let found = find_mentions(text, &[&name]);
            found.into_iter().map(|(server, uri)| format!("{server}|{uri}")).collect()
        };
        assert_eq!(found("see @docs:demo://a/1, and (@docs:demo://a/1)"), ["docs|demo://a/1"]);
        assert_eq!(found("@\"docs:a b.md\" @docs:x."), ["docs|a b.md", "docs|x"]);
        assert!(found("me@docs:x @other:y @docs @docs: docs:x").is_empty());
    }
}
