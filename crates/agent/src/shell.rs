//! Shell commands that the user runs: `!cmd` shows its output to the model, `!!cmd` only to the
//! user.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::knowledge::FileKnowledge;
use hardpan_prompt::{AgentMessage, Json, MessageBody, MessagePart, Text};
use hardpan_tools::ToolInvocation;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::events::{MessageStart, ToolExecutionUpdate, UserBash, UserBashReply};
use crate::run_status::Activity;
use crate::stored_knowledge::ResultData;

/// Who sees the output of a shell command that the user ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellVisibility {
    /// The model, with the next request, and the user (`!cmd`).
    Model,
    /// Only the user (`!!cmd`). It is stored, but never sent.
    #[serde(rename = "nobody")]
    UserOnly,
}

impl Agent {
    /// Runs a shell command for the user and stores its output. During a turn the message waits for
    /// the turn's end: it never comes between a tool call and its result.
    pub async fn run_shell_command(
        &self,
        command: String,
        visibility: ShellVisibility,
    ) -> Result<AgentMessage, AgentError> {
        let exclude_from_context = visibility == ShellVisibility::UserOnly;
        let event = UserBash { command: command.clone(), exclude_from_context };
        let mut done = None;
        let (_, faults) = self
            .events()
            .ask_handlers(self, event, |_, reply| {
                done = reply;
                if done.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .await;
        self.events().report_faults(&faults);
        let UserBashReply { output, exit_code } = match done {
            Some(done) => done,
            None => self.execute_shell(&command).await?,
        };
        let body = MessageBody::BashExecution {
            command: command.into(),
            output: Text::new(output),
            exit_code,
            exclude_from_context,
        };
        let message = lock(&self.inner.conversation).new_message(body, self.now());
        lock(&self.inner.pending_shell_messages).push(message.clone());
        self.flush_shell_messages_if_idle().await?;
        Ok(message)
    }

    /// Stores pending shell messages if the agent is idle. Whatever worked with the conversation
    /// calls this afterwards, so that no message is left waiting.
    pub(crate) async fn flush_shell_messages_if_idle(&self) -> Result<(), AgentError> {
        while !lock(&self.inner.pending_shell_messages).is_empty() {
            let Ok(_alone) = self.try_begin(Activity::Finishing) else { return Ok(()) };
            self.flush_shell_messages().await?;
        }
        Ok(())
    }

    /// Stops the shell commands that the user is running.
    pub fn abort_shell_command(&self) {
        lock(&self.inner.shell_abort).cancel();
    }

    /// Stores the shell messages that waited for the turn's end.
    pub(crate) async fn flush_shell_messages(&self) -> Result<(), AgentError> {
        let late = std::mem::take(&mut *lock(&self.inner.pending_shell_messages));
        for message in late {
            self.events().emit(self, MessageStart { message: message.clone(), input: None }).await;
            self.store_message(message, ResultData::default()).await?;
        }
        Ok(())
    }

    async fn execute_shell(&self, command: &str) -> Result<UserBashReply, AgentError> {
        let _running = self.mark_shell_command();
        let shell = self.inner.setup.shell.clone().ok_or(AgentError::NoShell)?;
        // Commands that run at the same time share a token and are stopped together.
        let token = {
            let mut token = lock(&self.inner.shell_abort);
            if token.is_cancelled() {
                *token = CancellationToken::new();
            }
            token.clone()
        };
        let arguments = Json::new(&json!({ "command": command }));
        let (sender, mut updates) = mpsc::unbounded_channel::<String>();
        let progress = move |text: &str| drop(sender.send(text.to_owned()));
        let call = ToolInvocation {
            id: "user_bash",
            arguments: &arguments,
            scope: &self.inner.setup.scope,
            knowledge: &FileKnowledge::default(),
            progress: &progress,
        };
        let running = shell.run(call);
        tokio::pin!(running);
        let mut printed = String::new();
        loop {
            tokio::select! {
                biased;
                Some(partial) = updates.recv() => {
                    partial.clone_into(&mut printed);
                    let (call_id, tool_name) = ("user_bash".into(), "user_bash".into());
                    let args = Arc::new(json!({ "command": command }));
                    self.events().publish(&ToolExecutionUpdate { call_id, tool_name, partial, args });
                    self.wait_for_faces(&token).await;
                }
                () = token.cancelled() => return Ok(UserBashReply { output: printed, exit_code: None }),
                outcome = &mut running => {
                    let text = |part: &MessagePart| if let MessagePart::Text { text } = part { Some(text.to_string()) } else { None };
                    let code = outcome.details.as_ref().and_then(|details| details["exit_code"].as_i64());
                    return Ok(UserBashReply {
                        output: outcome.content.iter().filter_map(text).collect(),
                        exit_code: code.and_then(|code| i32::try_from(code).ok()),
                    });
                }
            }
        }
    }
}
