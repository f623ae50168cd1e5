//! Commands that the person runs: `!cmd` for the model to see, `!!cmd` for the person alone.

use std::ops::ControlFlow;

use hardpan_prompt::{AgentMessage, Body, Json, Part, Text};
use hardpan_tools::Call;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, lock};
use crate::events::{MessageStart, ToolExecutionUpdate, UserBash, UserBashReply};

/// Who is told what a command printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    /// The model, with the next request.
    Model,
    /// Nobody but the person.
    Nobody,
}

impl Agent {
    /// Runs a command of the person and stores what it printed. While the agent works, the message waits for the end of the
    /// turn: it never comes between a call and its result.
    pub async fn bash(&self, command: String, tell: Tell) -> Result<AgentMessage, AgentError> {
        let exclude_from_context = tell == Tell::Nobody;
        let event = UserBash { command: command.clone(), exclude_from_context };
        let mut done = None;
        let (_, faults) = self
            .events()
            .ask(self, event, |_, reply| {
                done = reply;
                if done.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .await;
        self.events().report(&faults);
        let UserBashReply { output, exit_code } = match done {
            Some(done) => done,
            None => self.run_shell(&command).await?,
        };
        let body = Body::BashExecution {
            command: command.into(),
            output: Text::new(output),
            exit_code,
            exclude_from_context,
        };
        let message = lock(&self.inner.conversation).message(body, self.now());
        match self.inner.bench.try_lock() {
            Ok(_idle) => {
                self.events().tell(self, MessageStart { message: message.clone() }).await;
                self.store(message.clone(), None).await?;
            }
            Err(_) => lock(&self.inner.late).push(message.clone()),
        }
        Ok(message)
    }

    /// Stops the command that the person runs.
    pub fn abort_bash(&self) {
        lock(&self.inner.shell_token).cancel();
    }

    /// Stores what commands printed while the model was answering.
    pub(crate) async fn store_late(&self) -> Result<(), AgentError> {
        let late = std::mem::take(&mut *lock(&self.inner.late));
        for message in late {
            self.events().tell(self, MessageStart { message: message.clone() }).await;
            self.store(message, None).await?;
        }
        Ok(())
    }

    async fn run_shell(&self, command: &str) -> Result<UserBashReply, AgentError> {
        let none = || AgentError::Bash { reason: "there is no shell to run commands with".into() };
        let shell = self.inner.setup.shell.clone().ok_or_else(none)?;
        let token = CancellationToken::new();
        *lock(&self.inner.shell_token) = token.clone();
        let arguments = Json::new(&json!({ "command": command }));
        let progress = |text: &str| {
            let (call_id, tool_name) = ("user_bash".into(), "user_bash".into());
            self.events().show(&ToolExecutionUpdate { call_id, tool_name, partial: text.to_owned() });
        };
        let scope = &self.inner.setup.scope;
        let call = Call { id: "user_bash", arguments: &arguments, scope, progress: &progress };
        tokio::select! {
            outcome = shell.run(call) => {
                let text = |part: &Part| if let Part::Text { text } = part { Some(text.to_string()) } else { None };
                let code = outcome.details.as_ref().and_then(|details| details["exit_code"].as_i64());
                Ok(UserBashReply {
                    output: outcome.content.iter().filter_map(text).collect(),
                    exit_code: code.and_then(|code| i32::try_from(code).ok()),
                })
            }
            () = token.cancelled() => Ok(UserBashReply { output: String::new(), exit_code: None }),
        }
    }
}
