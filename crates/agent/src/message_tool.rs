//! The tool `messages`: the model lists, summarises and deletes messages of the conversation. It costs
//! tokens in every request, so a setting switches it on.

use std::sync::{Arc, LazyLock, Weak};

use futures_util::future::BoxFuture;
use hardpan_prompt::{AgentMessage, Json, MessageState, Tool as Declaration};
use hardpan_session::Entry;
use hardpan_tools::{Effect, Tool, ToolInvocation, ToolOutcome, ToolSource, parse_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::{Agent, Inner, lock};
use crate::message_states::MessageRange;

/// The most messages that a call lists.
const MAX_LISTED: usize = 200;

/// The most characters of a message that a line shows.
const MAX_LINE: usize = 80;

static DECLARATION: LazyLock<Declaration> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    Declaration {
        name: "messages".into(),
        description:
            "Make room: list the messages of this conversation with their ids, replace some by a summary, \
                      or delete them. Note what matters first; the user can restore them."
                .into(),
        parameters: Json::new(&json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["list", "summarise", "delete"]},
                "id": text,
                "last_id": {"type": "string", "description": "for several: the last of them"},
                "summary": text,
            },
            "required": ["action"],
        })),
        snippet: None,
        guidelines: Vec::new(),
    }
});

/// Works on the conversation of the agent that owns it.
struct MessageTool(Weak<Inner>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    id: Option<String>,
    last_id: Option<String>,
    summary: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Summarise,
    Delete,
}

impl Agent {
    /// Registers the tool if the settings want it.
    pub(crate) fn register_message_tool(&self) {
        if !self.inner.setup.settings.message_tool {
            return;
        }
        let tool = Arc::new(MessageTool(Arc::downgrade(&self.inner)));
        if let Err(error) = self.tools().register(&ToolSource::built_in(), tool) {
            tracing::warn!(%error, "the model cannot change the state of messages");
        }
    }
}

impl Tool for MessageTool {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    // It changes what requests show, and nothing that cannot be restored.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let Some(inner) = self.0.upgrade() else {
                return ToolOutcome::failed("The conversation is closed.");
            };
            match parse_arguments(&call) {
                Ok(arguments) => run(&Agent { inner }, arguments).await,
                Err(outcome) => outcome,
            }
        })
    }
}

async fn run(agent: &Agent, Arguments { action, id, last_id, summary }: Arguments) -> ToolOutcome {
    let messages = lock(&agent.inner.conversation).messages.clone();
    if action == Action::List {
        return ToolOutcome::text(list(&messages));
    }
    let Some(id) = id else {
        return ToolOutcome::failed("Give the id of a message: the action list shows them.");
    };
    // The exchange in progress is needed whole: its calls wait for their results.
    let current = messages.iter().rposition(AgentMessage::is_user).unwrap_or(0);
    let last = last_id.as_deref().unwrap_or(&id);
    let is_current =
        messages.iter().skip(current).any(|message| *message.id.0 == *last || *message.id.0 == *id);
    if is_current {
        return ToolOutcome::failed("These messages belong to what you are doing now. Choose earlier ones.");
    }
    let range = MessageRange { first: &id, last: last_id.as_deref() };
    let (done, how) = match action {
        Action::Summarise => {
            (agent.summarise_messages(range, &summary.unwrap_or_default()).await, "replaced by the summary")
        }
        Action::List | Action::Delete => (agent.delete_messages(range).await, "deleted"),
    };
    match done {
        Ok(count) => ToolOutcome::text(format!("{count} of {} messages were {how}.", messages.len())),
        Err(error) => ToolOutcome::failed(format!("Nothing was changed: {error}.")),
    }
}

/// A line per message that requests show.
fn list(messages: &[AgentMessage]) -> String {
    let shown = messages.iter().filter(|message| message.state != MessageState::Deleted);
    let lines: Vec<String> = shown
        .map(|message| {
            let mark = if message.state == MessageState::TlDr { " (summarised)" } else { "" };
            let preview = Entry::message(None, message.clone()).preview(MAX_LINE);
            let (role, text) = preview.map_or(("", String::new()), |preview| (preview.role, preview.text));
            format!("{} {role}{mark}: {text}", message.id)
        })
        .collect();
    let skipped = lines.len().saturating_sub(MAX_LISTED);
    let more = if skipped > 0 { format!("[{skipped} older ones are not listed]\n") } else { String::new() };
    format!("{more}{}", lines[skipped..].join("\n"))
}
