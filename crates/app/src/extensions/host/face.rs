//! What an extension shows in the face: no more and no faster than a face can take.

use std::sync::Mutex;
use std::time::Duration;

use hardpan_agent::events::{FaceChange, HandlerFault, Note, NoteKind, NoteLevel, WidgetPlace};
use hardpan_extensions::{HostError, ScriptFault};
use serde_json::Value;
use tokio::time::Instant;

use super::limits::{FACE_INTERVAL, FaceDecision, MAX_NOTE, RateDecision, RateLimit, cut_text};
use super::{ExtensionHost, lock, text};

impl ExtensionHost {
    pub(super) fn change_face(&self, change: FaceChange) -> Result<(), HostError> {
        let agent = self.agent()?;
        let mut queue = lock(&self.face_queue);
        match queue.take(change, Instant::now())? {
            FaceDecision::Shown(change) => agent.change_face(&self.name, change),
            FaceDecision::Waits { is_first: false } => {}
            FaceDecision::Waits { is_first: true } => {
                let me = self.me.clone();
                self.setting.runtime.spawn(async move {
                    tokio::time::sleep(FACE_INTERVAL).await;
                    if let Some(host) = me.upgrade() {
                        host.show_waiting();
                    }
                });
            }
        }
        Ok(())
    }

    fn show_waiting(&self) {
        let Ok(agent) = self.agent() else { return };
        // Under the lock, so that a later change does not come first.
        let mut queue = lock(&self.face_queue);
        for change in queue.take_waiting(Instant::now()) {
            agent.change_face(&self.name, change);
        }
    }

    pub(super) fn change_widget(&self, arguments: &Value) -> Result<(), HostError> {
        let lines = arguments["lines"]
            .as_array()
            .map(|lines| lines.iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect());
        let place = match arguments["placement"].as_str() {
            Some("belowEditor") => WidgetPlace::BelowEditor,
            _ => WidgetPlace::AboveEditor,
        };
        self.change_face(FaceChange::Widget { key: text(arguments, "key")?.to_owned(), lines, place })
    }

    pub(super) fn notify(&self, arguments: &Value) -> Result<(), HostError> {
        let (agent, text) = (self.agent()?, text(arguments, "text")?);
        let decision = lock(&self.note_rate).count(Instant::now());
        match decision {
            RateDecision::Passes => {
                let level = serde_json::from_value(arguments["level"].clone()).unwrap_or(NoteLevel::Info);
                let kind = NoteKind::Extension { extension: self.name.clone(), level };
                agent.publish_note(&Note { text: cut_text(text, MAX_NOTE), kind });
            }
            RateDecision::FirstLeftOut(wait) => {
                self.tell_left_out(wait, |host| &host.note_rate, "notes were left out");
            }
            RateDecision::LeftOut => {}
        }
        Ok(())
    }

    /// Whether a person is asked. One that asks without end gets no answer for a while.
    pub fn may_ask(&self) -> bool {
        match lock(&self.dialog_rate).count(Instant::now()) {
            RateDecision::Passes => return true,
            RateDecision::FirstLeftOut(wait) => {
                self.tell_left_out(wait, |host| &host.dialog_rate, "questions got no answer");
            }
            RateDecision::LeftOut => {}
        }
        false
    }

    /// Says how many were too many, once the time is over.
    fn tell_left_out(
        &self,
        wait: Duration,
        rate: fn(&ExtensionHost) -> &Mutex<RateLimit>,
        what: &'static str,
    ) {
        let me = self.me.clone();
        self.setting.runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            let Some(host) = me.upgrade() else { return };
            let count = lock(rate(&host)).take_left_out();
            let Ok(agent) = host.agent() else { return };
            let kind = NoteKind::Extension { extension: host.name.clone(), level: NoteLevel::Warning };
            agent.publish_note(&Note { text: format!("{count} more {what}"), kind });
        });
    }

    /// Tells the person of a fault of the script, unless there were too many.
    pub(super) fn tell_fault(&self, fault: &ScriptFault) {
        let decision = lock(&self.fault_rate).count(Instant::now());
        match decision {
            RateDecision::Passes => self.report(cut_text(&fault.to_string(), MAX_NOTE)),
            RateDecision::FirstLeftOut(wait) => {
                let me = self.me.clone();
                self.setting.runtime.spawn(async move {
                    tokio::time::sleep(wait).await;
                    if let Some(host) = me.upgrade() {
                        let count = lock(&host.fault_rate).take_left_out();
                        host.report(format!("{count} more faults were left out"));
                    }
                });
            }
            RateDecision::LeftOut => {}
        }
    }

    fn report(&self, message: String) {
        tracing::warn!(extension = &*self.name, "{message}");
        if let Ok(agent) = self.agent() {
            agent.report_fault(HandlerFault {
                owner: self.name.clone(),
                event: "background",
                message,
                is_repeated: false,
            });
        }
    }
}
