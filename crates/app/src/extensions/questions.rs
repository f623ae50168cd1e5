//! Questions of extensions to the user, one at a time.

use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::events::{Dialog, DialogAnswer};
use serde_json::{Value, json};

use super::host::ExtensionHost;

/// Asks, and gives the answer as the extension expects it; without a user to ask, or if none answers
/// in the time that the extension allows, the default.
pub async fn ask(host: &Arc<ExtensionHost>, kind: &str, arguments: &Value) -> Value {
    let dialog = dialog_of(kind, arguments);
    let otherwise = if matches!(dialog, Dialog::Confirm { .. }) { json!(false) } else { Value::Null };
    let Some(prompter) = &host.setting.prompter else { return otherwise };
    // Whoever asks again and again gets no answer from a person, and its time goes on.
    if !host.may_ask() {
        return otherwise;
    }
    // A person's time is not the handler's.
    let _pauses = host.pause_clocks();
    let _alone = host.setting.dialog.lock().await;
    let mut open = OpenDialog { host, answered: false };
    open.announce(&dialog);
    let asking = prompter.ask_dialog(host.owner(), &dialog);
    let answer = match arguments["timeout"].as_f64().filter(|limit| *limit > 0.0) {
        Some(limit) => {
            let limit = Duration::from_secs_f64((limit / 1000.0).min(MAX_SECONDS));
            tokio::time::timeout(limit, asking).await.ok().flatten()
        }
        None => asking.await,
    };
    open.answered = answer.is_some();
    if open.answered
        && let Ok(agent) = host.agent()
    {
        agent.note_person();
    }
    match answer {
        Some(DialogAnswer::Confirmed(is_yes)) => json!(is_yes),
        Some(DialogAnswer::Text(text)) => json!(text),
        None => otherwise,
    }
}

/// Longer waits are as good as none.
const MAX_SECONDS: f64 = 1e8;

/// A question that faces know of. They learn of its end however it ends.
struct OpenDialog<'a> {
    host: &'a Arc<ExtensionHost>,
    answered: bool,
}

impl OpenDialog<'_> {
    fn announce(&self, dialog: &Dialog) {
        if let Ok(agent) = self.host.agent() {
            agent.publish_dialog_start(self.host.owner(), dialog);
        }
    }
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        if let Ok(agent) = self.host.agent() {
            agent.publish_dialog_end(self.host.owner(), self.answered);
        }
    }
}

fn dialog_of(kind: &str, arguments: &Value) -> Dialog {
    let text = |name: &str| arguments[name].as_str().map(str::to_owned);
    let title = text("title").unwrap_or_default();
    match kind {
        "ui.confirm" => Dialog::Confirm { title, message: text("message").filter(|text| !text.is_empty()) },
        "ui.select" => {
            let choices = arguments["choices"].as_array().into_iter().flatten();
            Dialog::Select {
                title,
                choices: choices.filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            }
        }
        "ui.editor" => Dialog::Editor { title, text: text("prefill").unwrap_or_default() },
        _ => Dialog::Input { title, placeholder: text("placeholder").filter(|text| !text.is_empty()) },
    }
}
