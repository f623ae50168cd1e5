//! What an extension does to the conversation: messages that it sends, tools and thinking that it sets.

use std::future::Future;
use std::sync::{Arc, Weak};

use hardpan_agent::{Agent, AgentError, Delivery, Input, InputSource};
use hardpan_extensions::{HostError, ScriptFault, ScriptHost};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_tools::ToolState;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::api::{CommandInfo, CommandSource, NewMessage, SourceInfo, ToolInfo, to_script};
use super::super::messages::{custom_message, parts_from_script};
use super::limits::{MAX_ATTACHED_BYTES, MAX_EPHEMERAL_BYTES, json_bytes};
use super::{ExtensionHost, failed, lock};

/// Tells the user what the extension sent in vain.
fn report<T>(host: &Weak<ExtensionHost>, sent: Result<T, AgentError>) {
    if let (Err(error), Some(host)) = (sent, host.upgrade()) {
        host.fault(ScriptFault::new(error.to_string()));
    }
}

/// The last message of a kind.
fn last_message(agent: &Agent, is_meant: impl Fn(&MessageBody) -> bool) -> Option<Arc<str>> {
    let messages = agent.messages();
    messages.iter().rfind(|message| is_meant(&message.body)).map(|message| message.id.0.clone())
}

impl ExtensionHost {
    pub(super) fn send_message(&self, arguments: &Value) -> Result<(), HostError> {
        let (agent, message) = (
            self.agent()?,
            custom_message(NewMessage::deserialize(&arguments["message"]).unwrap_or_default()),
        );
        let options = &arguments["options"];
        let triggers = options["triggerTurn"].as_bool();
        let delivery = match options["deliverAs"].as_str() {
            Some("nextTurn") => {
                let last = last_message(&agent, |body| matches!(body, MessageBody::User { .. }));
                let (bytes, what) = (json_bytes(arguments), "the messages that wait for the next prompt");
                lock(&self.sent).attached.count(last, bytes, MAX_ATTACHED_BYTES, what)?;
                agent.attach_to_next_prompt(message);
                return Ok(());
            }
            Some("followUp") => Delivery::FollowUp,
            _ => Delivery::Steer,
        };
        let me = self.me.clone();
        // To a run in progress, unless the extension says no; else a run begins only if it says so.
        if triggers.unwrap_or(agent.is_busy()) {
            let claim = agent.claim_work();
            self.send(async move {
                // A run may take long, and what is sent next does not wait for its end.
                tokio::spawn(async move {
                    report(&me, agent.queue_message(message, delivery, claim).await);
                });
            });
        } else {
            self.send(async move {
                report(&me, agent.append_message(message).await);
            });
        }
        Ok(())
    }

    /// Sends a text as the user would, without waiting for the run.
    /// Sends a text as a person would. `expands`: a call of a skill or a template at its start is replaced by what
    /// that says; otherwise it is meant as it is.
    pub(super) fn send_input(&self, agent: Agent, content: &Value, delivery: Delivery, expands: bool) {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in parts_from_script(content) {
            match part {
                MessagePart::Text { text } => texts.push(text.to_string()),
                MessagePart::Image(image) => images.push(image),
                _ => {}
            }
        }
        let mut text = texts.join("\n");
        if expands {
            text = agent.expansions().expand(&text).text;
        }
        let source = InputSource::Extension;
        let input = Input { text, below: None, images, source, id: None };
        let (me, claim) = (self.me.clone(), agent.claim_work());
        self.send(async move {
            // A run may take long, and what is sent next does not wait for its end.
            tokio::spawn(async move {
                report(&me, agent.queue_claimed(input, delivery, claim).await);
            });
        });
    }

    /// Counts what is to be stored in the session; an error if it is too much.
    pub(super) fn count_stored(&self, agent: &Agent, stored: &Value) -> Result<(), HostError> {
        let session = agent.session().0;
        self.setting.stored_bytes.count(&self.name, &session, json_bytes(stored))
    }

    pub(super) fn send(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The receiver lives as long as this host.
        let _ = self.outbox.send(Box::pin(work));
    }

    pub(super) fn tools(&self) -> Result<Value, HostError> {
        let registry = self.agent()?.tools().clone();
        let tools = registry.list();
        let tools = tools.iter().map(|tool| {
            let known = registry.describe(&tool.name);
            let declared = known.as_ref().map(|known| known.declaration());
            let description = declared.map_or(&tool.summary, |declared| &declared.description);
            let guidelines = declared.map_or(&[][..], |declared| &declared.guidelines);
            ToolInfo {
                name: tool.name.to_string(),
                description: description.to_string(),
                parameters: declared.map_or_else(|| json!({}), |declared| declared.parameters.value()),
                prompt_guidelines: guidelines.iter().map(ToString::to_string).collect(),
                active: tool.state == ToolState::On,
                source_info: SourceInfo::of(&tool.name, &tool.source.to_string(), None),
            }
        });
        Ok(to_script(&tools.collect::<Vec<_>>()))
    }

    /// The commands of extensions, and what can be expanded.
    pub(super) fn commands(&self) -> Result<Value, HostError> {
        let agent = self.agent()?;
        let commands = agent.commands();
        let own = commands.iter().filter(|(_, command)| command.owner.is_some());
        let own = own.map(|(name, command)| {
            let owner = format!("extension:{}", command.owner.as_deref().unwrap_or_default());
            CommandInfo {
                name: name.to_string(),
                description: command.description.to_string(),
                source: CommandSource::Extension,
                source_info: SourceInfo::of(name, &owner, None),
                path: None,
            }
        });
        let known = agent.expansions();
        let expansions = known.names();
        let expansions = expansions.into_iter().map(|expansion| {
            let (name, description) = (expansion.name.to_string(), expansion.description.to_string());
            let is_skill = name.starts_with("skill:");
            let source = if is_skill { CommandSource::Skill } else { CommandSource::Prompt };
            let file = known.file_of(&name);
            let source_info = SourceInfo::of(&name, if is_skill { "skill" } else { "prompt" }, file);
            let path = file.map(|file| file.to_string_lossy().into_owned());
            CommandInfo { name, description, source, source_info, path }
        });
        Ok(to_script(&own.chain(expansions).collect::<Vec<_>>()))
    }

    pub(super) fn set_active_tools(&self, names: &Value) -> Result<(), HostError> {
        let agent = self.agent()?;
        let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for tool in agent.tools().list() {
            let state = if names.contains(&&*tool.name) { ToolState::On } else { ToolState::Off };
            if tool.state != state {
                // Stored, and the tools of requests stay as they are until a fold.
                self.setting.runtime.block_on(agent.switch_tool(&tool.name, state)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Has the model read a text with the next request alone.
    pub(super) fn add_ephemeral(&self, text: &str) -> Result<(), HostError> {
        let agent = self.agent()?;
        let last = last_message(&agent, |body| matches!(body, MessageBody::Assistant { .. }));
        let what = "the texts for the next request";
        lock(&self.sent).ephemeral.count(last, text.len(), MAX_EPHEMERAL_BYTES, what)?;
        agent.add_ephemeral(&self.name, text);
        Ok(())
    }

    pub(super) fn set_thinking(&self, level: &str) -> Result<(), HostError> {
        let setting: ThinkingSetting = level.parse().map_err(failed)?;
        let app = self.app()?;
        *lock(&self.wanted_thinking) = Some(setting);
        let me = self.me.clone();
        // Not waited for: handlers of this extension may be told of it.
        self.send(async move {
            let selected = app.select_thinking(setting).await;
            let Some(host) = me.upgrade() else { return };
            lock(&host.wanted_thinking).take_if(|wanted| *wanted == setting);
            if let Err(error) = selected {
                host.fault(ScriptFault::new(format!("setThinkingLevel: {error}")));
            }
        });
        Ok(())
    }
}
