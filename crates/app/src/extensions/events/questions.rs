//! The events whose replies count.

use hardpan_agent::events::{
    BeforeAgentStart, BeforeAgentStartReply, BeforeCompactReply, BeforeSwitchReply, BeforeTreeReply,
    ContextEvent, DiscoveryReason, Input, InputReply, ProviderPayload, ResourcesDiscover, ResourcesReply,
    SessionBeforeCompact, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SwitchReason,
    ToolCallEvent, ToolCallReply, ToolResultEvent, ToolResultReply, UserBash, UserBashReply,
};
use hardpan_agent::{Agent, CompactReason, InputSource};
use hardpan_prompt::{MessageBody, MessageId};
use hardpan_session::Entry;
use hardpan_tools::ToolState;

use super::super::api::{self, ScriptEvent};
use super::super::entries::entries_to_script;
use super::super::event_order::ToolEventOrder;
use super::super::files::resource_place;
use super::super::messages::{
    arguments_from_script, content_from_script, custom_message, details_to_script, image_from_script,
    images_to_script, input_to_script, lazy_messages, messages_from_script, messages_to_script,
    parts_to_script,
};
use super::super::tool::{MAX_RESULT_TEXT, limit_details, limit_parts, limit_text};
use super::Subscriber;

impl Subscriber<'_> {
    /// Subscribes to an event whose reply counts. False if it is none.
    pub(super) fn subscribe_question(&self) -> bool {
        match self.name {
            api::InputEvent::NAME => self.on(|event, _| input_payload(event), |_, reply| input_reply(reply)),
            api::BeforeAgentStartEvent::NAME => {
                let cwd = self.host.cwd();
                self.on(
                    move |event: &BeforeAgentStart, agent| api::BeforeAgentStartEvent {
                        prompt: event.prompt.clone(),
                        images: images_to_script(&event.images),
                        system_prompt: event.system_prompt.clone(),
                        system_prompt_options: prompt_options(agent, &cwd),
                    },
                    |_, reply| BeforeAgentStartReply {
                        message: reply.message.map(custom_message),
                        system_prompt: reply.system_prompt,
                    },
                )
            }
            api::ContextEvent::NAME => {
                let owner = self.host.owner().clone();
                self.on_checked(
                    |event: &ContextEvent, _| api::ContextEvent { messages: lazy_messages(&event.messages) },
                    move |event, reply| {
                        let Some(returned) = reply.messages else { return Ok(None) };
                        let messages = messages_from_script(&returned, &event.messages, &owner)?;
                        Ok((messages != event.messages).then_some(messages))
                    },
                )
            }
            api::ToolCallEvent::NAME => {
                let order = self.order();
                let input_counts = order == ToolEventOrder::AroundQuestions;
                self.on(
                    move |event: &ToolCallEvent, _| api::ToolCallEvent {
                        tool_name: event.tool_name.clone(),
                        tool_call_id: event.call_id.clone(),
                        input: input_to_script(&event.tool_name, &event.input, order),
                        input_counts,
                    },
                    move |_, reply| match (reply.block, reply.changed_input) {
                        (Some(true), _) => {
                            let reason = reply.reason.map_or_else(
                                || "Tool execution was blocked".to_owned(),
                                |reason| limit_text(&reason, MAX_RESULT_TEXT),
                            );
                            match reply.terminate {
                                Some(true) => ToolCallReply::BlockAndEnd { reason },
                                _ => ToolCallReply::Block { reason },
                            }
                        }
                        (_, Some(input)) if input_counts => {
                            ToolCallReply::Change { input: arguments_from_script(&input) }
                        }
                        _ => ToolCallReply::Allow,
                    },
                )
            }
            api::ToolResultEvent::NAME => {
                let order = self.order();
                self.on(
                    move |event: &ToolResultEvent, _| api::ToolResultEvent {
                        tool_name: event.tool_name.clone(),
                        tool_call_id: event.call_id.clone(),
                        input: input_to_script(&event.tool_name, &event.input, order),
                        content: parts_to_script(&event.content),
                        details: event.details.as_ref().map(details_to_script),
                        is_error: event.is_error,
                    },
                    |_, reply| ToolResultReply {
                        content: reply.content.map(content_from_script).map(limit_parts),
                        details: reply.details.as_ref().and_then(limit_details),
                        is_error: reply.is_error,
                    },
                )
            }
            api::BeforeProviderRequestEvent::NAME => self.on(
                |event: &ProviderPayload, _| api::BeforeProviderRequestEvent {
                    payload: event.payload.clone(),
                    provider: event.provider.clone(),
                    model: event.model.clone(),
                    tokens: event.tokens,
                },
                |_, reply| reply.payload,
            ),
            api::SessionBeforeSwitchEvent::NAME => self.on(
                |event: &SessionBeforeSwitch, _| api::SessionBeforeSwitchEvent {
                    reason: switch_kind(event.reason),
                    target_session_file: event.target_file.clone(),
                },
                |_, reply| switch_reply(reply),
            ),
            api::SessionBeforeForkEvent::NAME => self.on(
                |event: &SessionBeforeFork, agent| {
                    let last = || agent.messages().last().map(|message| message.id.0.clone());
                    let position = api::ForkPosition::default();
                    api::SessionBeforeForkEvent { entry_id: event.entry.clone().or_else(last), position }
                },
                |_, reply| switch_reply(reply),
            ),
            api::SessionBeforeTreeEvent::NAME => {
                self.on(|event, _| tree_payload(event), |_, reply| tree_reply(reply))
            }
            api::SessionBeforeCompactEvent::NAME => self.on(compact_payload, |_, reply| compact_reply(reply)),
            api::ResourcesDiscoverEvent::NAME => {
                let host = self.host.clone();
                self.on(
                    |event: &ResourcesDiscover, _| api::ResourcesDiscoverEvent {
                        cwd: event.cwd.clone(),
                        reason: match event.reason {
                            DiscoveryReason::Startup => api::DiscoverReason::Startup,
                            DiscoveryReason::Reload => api::DiscoverReason::Reload,
                        },
                    },
                    move |_, reply| {
                        let below = |paths: Option<Vec<String>>| {
                            let paths = paths.into_iter().flatten();
                            paths.filter_map(|path| resource_place(&host, &path)).collect()
                        };
                        let (skill_paths, prompt_paths) =
                            (below(reply.skill_paths), below(reply.prompt_paths));
                        ResourcesReply { skill_paths, prompt_paths }
                    },
                )
            }
            api::UserBashEvent::NAME => {
                let (cwd, host) = (self.host.cwd(), self.host.clone());
                self.on(
                    move |event: &UserBash, _| {
                        host.let_typed_command_run(&event.command);
                        api::UserBashEvent {
                            command: event.command.clone(),
                            exclude_from_context: event.exclude_from_context,
                            cwd: cwd.clone(),
                        }
                    },
                    |_, reply| {
                        let result = reply.result?;
                        Some(UserBashReply { output: result.output, exit_code: result.exit_code })
                    },
                )
            }
            _ => false,
        }
    }
}

/// What the system prompt is made of, as far as extensions know its parts. A copy: changes do nothing.
fn prompt_options(agent: &Agent, cwd: &str) -> api::SystemPromptOptions {
    let listed = agent.tools().list();
    let active = || listed.iter().filter(|tool| tool.state == ToolState::On);
    let tools = agent.tools().declarations();
    let skills = agent.expansions().model_listing();
    api::SystemPromptOptions {
        cwd: cwd.to_owned(),
        selected_tools: active().map(|tool| tool.name.to_string()).collect(),
        tool_snippets: active().map(|tool| (tool.name.to_string(), tool.summary.to_string())).collect(),
        prompt_guidelines: tools.iter().flat_map(|tool| &tool.guidelines).map(ToString::to_string).collect(),
        skills: skills
            .iter()
            .map(|skill| api::SkillInfo {
                name: skill.name.to_string(),
                description: skill.description.to_string(),
            })
            .collect(),
    }
}

pub(super) fn switch_kind(reason: SwitchReason) -> api::SwitchKind {
    match reason {
        SwitchReason::New => api::SwitchKind::New,
        SwitchReason::Resume => api::SwitchKind::Resume,
    }
}

fn switch_reply(reply: api::CancelResult) -> BeforeSwitchReply {
    reply.into_reason().map_or(BeforeSwitchReply::Continue, |reason| BeforeSwitchReply::Cancel { reason })
}

fn input_payload(event: &Input) -> api::InputEvent {
    let source = match event.source {
        InputSource::Interactive => api::InputOrigin::Interactive,
        InputSource::Rpc => api::InputOrigin::Rpc,
        InputSource::Extension | InputSource::Agent => api::InputOrigin::Extension,
    };
    let images = (!event.images.is_empty()).then(|| images_to_script(&event.images));
    api::InputEvent { text: event.text.clone(), images, source }
}

fn input_reply(reply: api::InputEventResult) -> InputReply {
    match reply {
        api::InputEventResult::Continue => InputReply::Continue,
        api::InputEventResult::Handled => InputReply::Handled,
        api::InputEventResult::Transform { text, images } => InputReply::Transform {
            text,
            images: images.map(|images| images.into_iter().map(image_from_script).collect()),
        },
    }
}

fn tree_payload(event: &SessionBeforeTree) -> api::SessionBeforeTreeEvent {
    let entries: Vec<&Entry> = event.entries.iter().collect();
    api::SessionBeforeTreeEvent {
        preparation: api::TreePreparation {
            target_id: event.target.clone(),
            old_leaf_id: event.old_leaf.clone(),
            common_ancestor_id: event.common_ancestor.clone(),
            entries_to_summarize: entries_to_script(&entries),
            user_wants_summary: event.wants_summary,
            custom_instructions: event.instructions.clone(),
        },
        has_signal: true,
    }
}

fn tree_reply(reply: api::SessionBeforeTreeResult) -> BeforeTreeReply {
    BeforeTreeReply {
        cancel: reply.cancel.into_reason(),
        summary: reply.summary.map(|given| given.summary),
        instructions: reply.custom_instructions,
        label: reply.label,
    }
}

/// Why a conversation is compacted, and whether the request is made again after it.
pub(super) fn compaction_reason(why: CompactReason) -> (api::CompactionReason, bool) {
    match why {
        CompactReason::Requested => (api::CompactionReason::Manual, false),
        CompactReason::NearlyFull => (api::CompactionReason::Threshold, false),
        CompactReason::TooLong => (api::CompactionReason::Overflow, true),
    }
}

fn compact_payload(event: &SessionBeforeCompact, agent: &Agent) -> api::SessionBeforeCompactEvent {
    let entries: Vec<&Entry> = event.entries.iter().collect();
    let previous_summary = event.summarized.iter().find_map(|message| match &*message.body {
        MessageBody::CompactionSummary { summary } => Some(summary.to_string()),
        _ => None,
    });
    let (reason, will_retry) = compaction_reason(event.why);
    let (read, edited) = agent.known_file_lists();
    api::SessionBeforeCompactEvent {
        preparation: api::CompactionPreparation {
            first_kept_entry_id: event.first_kept.0.clone(),
            messages_to_summarize: messages_to_script(&event.summarized),
            turn_prefix_messages: Vec::new(),
            is_split_turn: false,
            tokens_before: event.tokens_before,
            previous_summary,
            file_ops: api::FileOperations { read, written: Vec::new(), edited },
            settings: api::CompactionSettings { enabled: true },
        },
        branch_entries: entries_to_script(&entries),
        custom_instructions: event.instructions.clone(),
        reason,
        will_retry,
        has_signal: true,
    }
}

fn compact_reply(reply: api::SessionBeforeCompactResult) -> BeforeCompactReply {
    if let Some(reason) = reply.cancel.into_reason() {
        return BeforeCompactReply::Cancel { reason };
    }
    match reply.compaction {
        Some(given) => BeforeCompactReply::Summary {
            text: given.summary,
            first_kept: given.first_kept_entry_id.as_deref().map(MessageId::from),
            details: given.details,
        },
        None => BeforeCompactReply::Continue,
    }
}
