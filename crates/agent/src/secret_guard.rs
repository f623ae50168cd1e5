//! Secrets in requests: found before they are sent, and replaced unless the user says otherwise.
//!
//! A secret that nobody has decided about is replaced. So a preview shows it replaced, and a request
//! of a run is sent once the user, if there is one, has been asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_context::{FoundSecret, KnownSecrets, Redactions, SecretScanner};
use hardpan_prompt::Prompt;
use hardpan_session::Record;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::AgentError;
use crate::events::{Note, NoteKind, RunEnd};
use crate::run::unless_aborted;

/// The `custom_type` of the session entry.
const SECRETS_ENTRY: &str = "hardpan.secrets";

/// What happens to secrets in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretMode {
    /// Ask the user before the first request that contains one; replace it if nobody is there.
    #[default]
    Ask,
    /// Replace them.
    Redact,
    /// Send them: nothing is looked for.
    Send,
}

/// What to look for in requests, and what to do about it.
#[derive(Clone, Debug, Default)]
pub struct SecretSettings {
    /// What happens to secrets.
    pub mode: SecretMode,
    /// Values that are secret whatever they look like: the keys of this machine.
    pub known: KnownSecrets,
}

/// What was decided about a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SecretDecision {
    Redact,
    Send,
}

/// The data of the session entry: decisions by the ids of the secrets, never the secrets.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StoredDecisions {
    decisions: BTreeMap<String, SecretDecision>,
}

/// The secrets that requests of an agent contain.
pub(crate) struct SecretGuard {
    mode: SecretMode,
    scanner: SecretScanner,
    redactions: Arc<Redactions>,
    decisions: BTreeMap<String, SecretDecision>,
    /// Replaced until somebody decides.
    undecided: Vec<FoundSecret>,
}

impl SecretGuard {
    pub fn new(settings: &SecretSettings, conversation: &Conversation) -> Self {
        SecretGuard {
            mode: settings.mode,
            scanner: SecretScanner::new(settings.known.clone()),
            redactions: Arc::default(),
            decisions: stored_decisions(conversation),
            undecided: Vec::new(),
        }
    }

    /// What is replaced in requests.
    pub fn redactions(&self) -> Arc<Redactions> {
        self.redactions.clone()
    }

    /// Looks at what is new in a prompt. Returns whether something must be replaced that was not.
    pub fn inspect(&mut self, prompt: &Prompt) -> bool {
        if self.mode == SecretMode::Send {
            return false;
        }
        let mut changed = false;
        for secret in self.scanner.scan_prompt(prompt) {
            let decision = self.decisions.get(&secret.id()).copied();
            if decision == Some(SecretDecision::Send) {
                continue;
            }
            Arc::make_mut(&mut self.redactions).insert(&secret);
            changed = true;
            if decision.is_none() && !self.undecided.contains(&secret) {
                self.undecided.push(secret);
            }
        }
        changed
    }

    fn decide(&mut self, secrets: &[FoundSecret], decision: SecretDecision) {
        for secret in secrets {
            self.decisions.insert(secret.id(), decision);
            if decision == SecretDecision::Send {
                Arc::make_mut(&mut self.redactions).remove(secret);
            }
        }
    }
}

fn stored_decisions(conversation: &Conversation) -> BTreeMap<String, SecretDecision> {
    let stored = conversation.custom.get(SECRETS_ENTRY).cloned();
    let stored = stored.and_then(|stored| serde_json::from_value::<StoredDecisions>(stored).ok());
    stored.unwrap_or_default().decisions
}

impl Agent {
    /// Asks about secrets that the planned request contains and nobody has decided about. Returns
    /// whether the request must be planned again, because the user wants to send them.
    pub(crate) async fn decide_about_secrets(
        &self,
        token: &CancellationToken,
    ) -> Result<Result<bool, RunEnd>, AgentError> {
        let (secrets, mode) = {
            let mut guard = lock(&self.inner.secrets);
            (std::mem::take(&mut guard.undecided), guard.mode)
        };
        if secrets.is_empty() {
            return Ok(Ok(false));
        }
        let listed: Vec<String> = secrets.iter().map(FoundSecret::describe).collect();
        let listed = listed.join("; ");
        let answer = match mode {
            SecretMode::Ask => {
                let question = format!(
                    "This request would send what looks like a secret: {listed}. Answer \"send\" to send it as it is; anything else replaces it with a placeholder."
                );
                match unless_aborted(token, self.inner.setup.approval_handler.ask_user(&question)).await {
                    Ok(answer) => answer,
                    Err(stop) => {
                        lock(&self.inner.secrets).undecided = secrets;
                        return Ok(Err(stop));
                    }
                }
            }
            SecretMode::Redact | SecretMode::Send => None,
        };
        let sends = answer.is_some_and(|answer| answer.trim().eq_ignore_ascii_case("send"));
        let decision = if sends { SecretDecision::Send } else { SecretDecision::Redact };
        let decisions = {
            let mut guard = lock(&self.inner.secrets);
            guard.decide(&secrets, decision);
            guard.decisions.clone()
        };
        let saved = lock(&self.inner.conversation).set_secret_decisions(decisions, self.now());
        if let Some(saved) = saved {
            saved.await?;
        }
        if !sends {
            let text = format!(
                "replaced in the request, because it looks like a secret: {listed}; `secrets` in config.toml decides about that"
            );
            self.events().emit(self, Note { text, kind: NoteKind::Redacted }).await;
        }
        Ok(Ok(sends))
    }
}

impl Conversation {
    /// Stores the decisions, so that a resumed conversation sends the same bytes and does not ask
    /// again.
    fn set_secret_decisions(
        &mut self,
        decisions: BTreeMap<String, SecretDecision>,
        now: Timestamp,
    ) -> Option<hardpan_session::PendingSave> {
        if stored_decisions(self) == decisions {
            return None;
        }
        let data = serde_json::to_value(StoredDecisions { decisions }).unwrap_or_default();
        self.custom.insert(SECRETS_ENTRY.into(), data.clone());
        Some(self.append_record(Record::Custom { custom_type: SECRETS_ENTRY.into(), data }, now))
    }
}
