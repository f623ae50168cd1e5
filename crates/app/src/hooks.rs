//! Hooks: shell commands from `config.toml` that take part in a conversation, for those who do not
//! want to write an extension. Names and JSON are those of Claude Code's hooks where they fit.
//!
//! A hook is a handler of the agent's events like any other: one that fails is reported, and a hook of
//! `PreToolUse` that fails blocks the call.

mod command; // runs a hook
mod output; // HookOutput: what a hook wants
mod payload; // what a hook reads

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hardpan_agent::events::{
    AgentEnd, BeforeCompactReply, CustomMessage, HandlerClock, Input as InputEvent, InputReply, Note,
    NoteKind, NoteLevel, SessionBeforeCompact, SessionShutdown, SessionStart, ToolCallEvent, ToolCallReply,
    ToolResultEvent, ToolResultReply,
};
use hardpan_agent::{Agent, Delivery, Event, HandlerError, Input, InputSource, RunEnd};
use hardpan_prompt::MessagePart;
use hardpan_tools::{Confinement, ShellOptions};
use serde_json::{Value, json};

use crate::settings::{HookConfig, HookEvent, HooksConfig};
use output::HookOutput;
use payload::hook_tool_name;

/// How often in a row hooks of `Stop` may make the agent go on.
const MAX_CONTINUATIONS: u32 = 8;

/// Where hooks run.
pub(crate) struct HookPlace {
    /// The root of the workspace.
    pub root: PathBuf,
    /// How the model's commands run.
    pub shell: ShellOptions,
    /// How a hook runs that needs no sandbox.
    pub unconfined: Confinement,
}

/// Blocks every tool call: the hooks that decide about them are those of a project whose files have changed since they
/// were trusted.
pub(crate) fn block_calls(agent: &Agent) {
    agent.events().subscribe::<ToolCallEvent, _>("hooks", |_, _| async {
        let reason = "the hooks of this folder decide about tool calls, and its files have changed since they were \
                      trusted: run `hardpan trust`";
        Ok(ToolCallReply::Block { reason: reason.into() })
    });
}

/// The hooks of a conversation.
struct Hooks {
    config: HooksConfig,
    place: HookPlace,
    /// How often in a row a hook made the agent go on.
    continuations: AtomicU32,
}

/// Lets the hooks of the settings take part in a conversation.
pub(crate) fn follow(agent: &Agent, config: &HooksConfig, place: HookPlace) {
    let hooks = Arc::new(Hooks { config: config.clone(), place, continuations: AtomicU32::new(0) });
    for event in config.keys() {
        match event {
            HookEvent::PreToolUse => hooks.on(agent, Hooks::before_call),
            HookEvent::PostToolUse => hooks.on(agent, Hooks::after_call),
            HookEvent::UserPromptSubmit => hooks.on(agent, Hooks::before_prompt),
            HookEvent::Stop => hooks.on(agent, Hooks::at_end),
            HookEvent::SessionStart => hooks.on(agent, Hooks::at_start),
            HookEvent::SessionEnd => hooks.on(agent, Hooks::at_shutdown),
            HookEvent::PreCompact => hooks.on(agent, Hooks::before_compaction),
        }
    }
}

impl Hooks {
    fn on<E: Event, F>(self: &Arc<Self>, agent: &Agent, handle: fn(Arc<Self>, E, Agent) -> F)
    where
        F: Future<Output = Result<E::Reply, HandlerError>> + Send + 'static,
    {
        let hooks = self.clone();
        agent.events().subscribe::<E, _>("hooks", move |event, agent| handle(hooks.clone(), event, agent));
    }

    /// Runs the hooks of an event that are about one of these tools, until one objects.
    async fn run(
        &self,
        agent: &Agent,
        event: HookEvent,
        tool: Option<&str>,
        payload: Value,
    ) -> Result<HookOutput, HandlerError> {
        let names = tool.map(|name| (name, hook_tool_name(name)));
        let concerns = |hook: &&HookConfig| {
            names.as_ref().is_none_or(|(own, other)| hook.matcher.matches(&[own, other]))
        };
        let mut given = payload::common(agent, event, &self.place.root);
        if let (Value::Object(given), Value::Object(fields)) = (&mut given, payload) {
            given.extend(fields);
        }
        let mut wanted = HookOutput::default();
        for hook in self.config.get(&event).into_iter().flatten().filter(concerns) {
            // A hook has its own limit.
            let _pause = HandlerClock::current().map(|clock| clock.pause());
            let output = command::run(hook, &self.place, &given).await;
            let output =
                output.map_err(|error| format!("{} hook `{}`: {error}", event.name(), hook.command))?;
            if let Some(message) = &output.message {
                tell(agent, message, NoteLevel::Info);
            }
            if let Some(reason) = &output.stop {
                tell(agent, reason, NoteLevel::Warning);
                agent.abort();
            }
            if let (Some(updated), Some(_)) = (output.updated_input, tool) {
                // The next hook reads what this one made of it.
                let changed = payload::changed_arguments(&given["tool_input"], &updated, &self.place.root);
                given["tool_input"] = payload::arguments(&changed, &self.place.root);
                wanted.updated_input.get_or_insert_default().extend(updated);
            }
            wanted.reason_to_ask = wanted.reason_to_ask.or(output.reason_to_ask);
            let contexts = wanted.context.take().into_iter().chain(output.context);
            let contexts: Vec<String> = contexts.collect();
            wanted.context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
            wanted.objection = output.objection.or(output.stop);
            if wanted.objection.is_some() {
                break;
            }
        }
        Ok(wanted)
    }

    async fn before_call(
        self: Arc<Self>,
        event: ToolCallEvent,
        agent: Agent,
    ) -> Result<ToolCallReply, HandlerError> {
        let payload = payload::of_call(&event, &self.place.root);
        let wanted = self.run(&agent, HookEvent::PreToolUse, Some(&event.tool_name), payload).await?;
        let change = |updated| payload::changed_arguments(&event.input, &updated, &self.place.root);
        let input = wanted.updated_input.map(change);
        Ok(match (wanted.objection, wanted.reason_to_ask, input) {
            (Some(reason), ..) => ToolCallReply::Block { reason },
            (None, Some(reason), input) => ToolCallReply::Ask { reason, input },
            (None, None, Some(input)) => ToolCallReply::Change { input },
            (None, None, None) => ToolCallReply::Allow,
        })
    }

    async fn after_call(
        self: Arc<Self>,
        event: ToolResultEvent,
        agent: Agent,
    ) -> Result<ToolResultReply, HandlerError> {
        let payload = payload::of_result(&event, &self.place.root);
        let wanted = self.run(&agent, HookEvent::PostToolUse, Some(&event.tool_name), payload).await?;
        let texts: Vec<String> = wanted.objection.into_iter().chain(wanted.context).collect();
        let content = (!texts.is_empty()).then(|| {
            let text = format!("\n\nA hook of the user says: {}", texts.join("\n\n"));
            event.content.into_iter().chain([MessagePart::Text { text: text.into() }]).collect()
        });
        Ok(ToolResultReply { content, details: None, is_error: None })
    }

    async fn before_prompt(
        self: Arc<Self>,
        event: InputEvent,
        agent: Agent,
    ) -> Result<InputReply, HandlerError> {
        if event.source == InputSource::Extension {
            return Ok(InputReply::Continue);
        }
        self.continuations.store(0, Ordering::Relaxed);
        let payload = json!({ "prompt": event.text });
        let wanted = self.run(&agent, HookEvent::UserPromptSubmit, None, payload).await?;
        if let Some(reason) = wanted.objection {
            tell(&agent, &format!("A hook did not let the prompt pass: {reason}"), NoteLevel::Warning);
            return Ok(InputReply::Handled);
        }
        if let Some(context) = wanted.context {
            match agent.is_busy() {
                true => agent.append_message(hook_message(&context)).await?,
                false => agent.attach_to_next_prompt(hook_message(&context)),
            }
        }
        Ok(InputReply::Continue)
    }

    async fn at_end(self: Arc<Self>, event: AgentEnd, agent: Agent) -> Result<(), HandlerError> {
        if event.stop != RunEnd::Done {
            return Ok(());
        }
        let before = self.continuations.load(Ordering::Relaxed);
        let payload = json!({
            "stop_hook_active": before > 0,
            "last_assistant_message": payload::last_answer(&event.messages),
        });
        let wanted = self.run(&agent, HookEvent::Stop, None, payload).await?;
        let Some(reason) = wanted.objection else { return Ok(()) };
        if before >= MAX_CONTINUATIONS {
            let text = format!("A hook wants the agent to go on once more, after {before} times: {reason}");
            tell(&agent, &text, NoteLevel::Warning);
            return Ok(());
        }
        self.continuations.store(before + 1, Ordering::Relaxed);
        let text = format!("A hook of the user says that the work is not done: {reason}");
        let input = Input { text, below: None, images: Vec::new(), source: InputSource::Extension, id: None };
        agent.queue(input, Delivery::FollowUp).await?;
        Ok(())
    }

    async fn at_start(self: Arc<Self>, event: SessionStart, agent: Agent) -> Result<(), HandlerError> {
        let source = if event.resumed { "resume" } else { "startup" };
        let wanted = self.run(&agent, HookEvent::SessionStart, None, json!({ "source": source })).await?;
        if let Some(context) = wanted.context {
            agent.attach_to_next_prompt(hook_message(&context));
        }
        Ok(())
    }

    async fn at_shutdown(self: Arc<Self>, _: SessionShutdown, agent: Agent) -> Result<(), HandlerError> {
        self.run(&agent, HookEvent::SessionEnd, None, json!({ "reason": "other" })).await.map(drop)
    }

    async fn before_compaction(
        self: Arc<Self>,
        event: SessionBeforeCompact,
        agent: Agent,
    ) -> Result<BeforeCompactReply, HandlerError> {
        let payload = payload::of_compaction(&event);
        let wanted = self.run(&agent, HookEvent::PreCompact, None, payload).await?;
        Ok(wanted
            .objection
            .map_or(BeforeCompactReply::Continue, |reason| BeforeCompactReply::Cancel { reason }))
    }
}

/// What a hook tells the model, as a message.
fn hook_message(text: &str) -> CustomMessage {
    let content = vec![MessagePart::Text { text: text.into() }];
    CustomMessage { custom_type: "hook".into(), content, display: true, details: None }
}

fn tell(agent: &Agent, text: &str, level: NoteLevel) {
    let kind = NoteKind::Extension { extension: "hooks".into(), level };
    agent.publish_note(&Note { text: text.to_owned(), kind });
}
