//! Commands that the person runs: `!cmd` for the model to see, `!!cmd` for the person alone.

use std::ops::ControlFlow;
use std::sync::Mutex;

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
        lock(&self.inner.late).push(message.clone());
        self.settle().await?;
        Ok(message)
    }

    /// Stores what waits for the agent to be idle, if it is. Whoever ends the agent's work calls it afterwards, so that
    /// nothing is left waiting.
    pub(crate) async fn settle(&self) -> Result<(), AgentError> {
        while !lock(&self.inner.late).is_empty() {
            let Ok(_idle) = self.inner.bench.try_lock() else { return Ok(()) };
            self.store_late().await?;
        }
        Ok(())
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
        // Commands that run at the same time are stopped together.
        let token = {
            let mut token = lock(&self.inner.shell_token);
            if token.is_cancelled() {
                *token = CancellationToken::new();
            }
            token.clone()
        };
        let arguments = Json::new(&json!({ "command": command }));
        let printed = Mutex::new(String::new());
        let progress = |text: &str| {
            text.clone_into(&mut lock(&printed));
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
            () = token.cancelled() => Ok(UserBashReply { output: lock(&printed).clone(), exit_code: None }),
        }
    }
}
