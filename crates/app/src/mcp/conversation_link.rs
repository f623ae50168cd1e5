//! [`ConversationLink`]: the conversation and the person that servers act for.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_agent::{Agent, WeakAgent};
use hardpan_context::KnownSecrets;
use hardpan_mcp::ServerName;

use crate::approval::{Approver, UserPrompter};
use crate::settings::Settings;

/// The conversation and the person that servers act for. The agent is known once it is there.
pub(crate) struct ConversationLink {
    pub settings: Arc<Settings>,
    /// What no request may contain.
    pub secrets: KnownSecrets,
    prompter: Option<Arc<dyn UserPrompter>>,
    agent: OnceLock<WeakAgent>,
    approver: OnceLock<Arc<Approver>>,
    /// One question at a time.
    dialog: tokio::sync::Mutex<()>,
    /// Resources that the next input mentions: the server, and the address.
    mentions: Mutex<Vec<(ServerName, String)>>,
}

impl ConversationLink {
    pub fn new(
        settings: Arc<Settings>,
        prompter: Option<Arc<dyn UserPrompter>>,
        secrets: KnownSecrets,
    ) -> Self {
        let (agent, approver, dialog, mentions) = Default::default();
        ConversationLink { settings, secrets, prompter, agent, approver, dialog, mentions }
    }

    /// Learns of the agent, and of who decides about requests of servers.
    pub fn connect(&self, agent: &Agent, approver: &Arc<Approver>) {
        // An agent is followed once.
        let _ = self.agent.set(agent.downgrade());
        let _ = self.approver.set(approver.clone());
    }

    pub fn agent(&self) -> Option<Agent> {
        self.agent.get()?.upgrade()
    }

    pub fn approver(&self) -> Option<&Arc<Approver>> {
        self.approver.get()
    }

    /// Whether somebody can be asked.
    pub fn has_person(&self) -> bool {
        self.prompter.is_some()
    }

    pub fn mentions(&self) -> std::sync::MutexGuard<'_, Vec<(ServerName, String)>> {
        self.mentions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the person for a server. None without an answer. Dropping the future takes the question back.
    pub async fn ask(&self, server: &ServerName, dialog: &Dialog) -> Option<DialogAnswer> {
        let prompter = self.prompter.as_ref()?;
        let _alone = self.dialog.lock().await;
        let owner: Arc<str> = format!("MCP server {server}").into();
        let mut open = OpenDialog { link: self, owner: owner.clone(), is_answered: false };
        if let Some(agent) = self.agent() {
            agent.publish_dialog_start(&owner, dialog);
        }
        let answer = prompter.ask_dialog(&owner, dialog).await;
        open.is_answered = answer.is_some();
        answer
    }
}

/// A question that faces know of. They learn of its end however it ends.
struct OpenDialog<'a> {
    link: &'a ConversationLink,
    owner: Arc<str>,
    is_answered: bool,
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        if let Some(agent) = self.link.agent() {
            agent.publish_dialog_end(&self.owner, self.is_answered);
        }
    }
}
