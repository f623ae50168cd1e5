//! What was said earlier in a session, as blocks of the face's transcript.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::Agent;
use hardpan_app::mcp::shown_call;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, list_sources};
use hardpan_session::{Record, Session};
use hardpan_terminal::blocks::{CallState, Subject, ToolCall};
use hardpan_terminal::model::BlockKind;
use hardpan_terminal::theme::Role;
use hardpan_terminal::transcript::{BlockSource, CallRecord};

use super::agent_updates::{joined_texts, not_run_words, subject};

/// Everything that was said on the current branch, also what a compaction has replaced for the model.
pub fn earlier_blocks(agent: &Agent) -> Vec<(BlockKind, BlockSource)> {
    blocks(&stored_branch(agent))
}

/// The messages of the current branch, also those that a compaction has replaced for the model.
pub fn stored_branch(agent: &Agent) -> Vec<AgentMessage> {
    let (_, path) = agent.session();
    let messages = agent.messages();
    let leaf = messages.last().map(|message| message.id.clone());
    leaf.and_then(|leaf| stored_messages(&path, &leaf.0)).unwrap_or(messages)
}

/// The messages of the stored branch that ends with this one.
fn stored_messages(path: &Path, leaf: &str) -> Option<Vec<AgentMessage>> {
    let session = Session::open(path).ok()?;
    let entries = session.path_to(Some(leaf)).ok()?;
    let message = |record: &Record| match record {
        Record::Message(message) => Some((**message).clone()),
        _ => None,
    };
    Some(entries.iter().filter_map(|entry| message(&entry.record)).collect())
}

/// Knows the calls that wait for their results.
#[derive(Default)]
struct BlockReader {
    blocks: Vec<(BlockKind, BlockSource)>,
    calls: BTreeMap<Arc<str>, (String, Subject)>,
}

fn blocks(messages: &[AgentMessage]) -> Vec<(BlockKind, BlockSource)> {
    let mut reader = BlockReader::default();
    messages.iter().for_each(|message| reader.read(&message.body));
    reader.blocks
}

impl BlockReader {
    fn read(&mut self, message: &MessageBody) {
        match message {
            MessageBody::User { content } => {
                self.push(BlockKind::Text, BlockSource::Prompt(joined_texts(content)));
            }
            MessageBody::Assistant { content, .. } => content.iter().for_each(|part| self.read_part(part)),
            MessageBody::ToolResult { call_id, tool_name, content, is_error, not_run } => {
                let unknown =
                    || (tool_name.as_deref().unwrap_or("tool").to_owned(), Subject::Text(String::new()));
                let (tool, subject) = self.calls.remove(call_id).unwrap_or_else(unknown);
                let output = joined_texts(content);
                let facts =
                    not_run.iter().map(|reason| format!("not run: {}", not_run_words(reason, &output)));
                let facts = facts.collect();
                let elapsed = Duration::ZERO;
                let (state, output) = match (not_run, is_error) {
                    (Some(_), _) => (CallState::Refused, String::new()),
                    (None, true) => (CallState::Failed { elapsed, output }, String::new()),
                    (None, false) => (CallState::Done { elapsed }, output),
                };
                self.push_call(ToolCall { tool, subject, facts, state }, output);
            }
            MessageBody::BashExecution { command, output, exit_code, .. } => {
                let facts = exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}"));
                let call = ToolCall {
                    tool: "bash".to_owned(),
                    subject: Subject::Text(command.to_string()),
                    facts: facts.into_iter().collect(),
                    state: CallState::Done { elapsed: Duration::ZERO },
                };
                self.push_call(call, output.to_string());
            }
            MessageBody::Custom { custom_type, content, display: true } => {
                self.push_note(format!("{custom_type}: {}", joined_texts(content)));
            }
            MessageBody::Custom { .. } => {}
            MessageBody::CompactionSummary { .. } => {
                self.push_note("compacted: the model has a summary of what is above".to_owned());
            }
            MessageBody::BranchSummary { summary } => {
                self.push_note("summary of the branch that was left:".to_owned());
                self.push(BlockKind::Answer, BlockSource::Answer(summary.to_string()));
            }
        }
    }

    fn read_part(&mut self, part: &MessagePart) {
        match part {
            MessagePart::Text { text } => self.push(BlockKind::Answer, BlockSource::Answer(text.to_string())),
            MessagePart::Reasoning { text, .. } if !text.trim().is_empty() => {
                self.push(BlockKind::Note, BlockSource::Reasoning { text: text.to_string(), elapsed: None });
            }
            MessagePart::ToolCall(call) => {
                let call = shown_call(call);
                let about = (call.name.to_string(), subject(&call.arguments.value()));
                self.calls.insert(call.id.clone(), about);
            }
            MessagePart::Sources { sources } => self.push_note(list_sources(sources)),
            MessagePart::Reasoning { .. } | MessagePart::Image(_) | MessagePart::ProviderBlock(_) => {}
        }
    }

    fn push(&mut self, kind: BlockKind, source: BlockSource) {
        self.blocks.push((kind, source));
    }

    fn push_call(&mut self, call: ToolCall, output: String) {
        let record = CallRecord { call, details: Vec::new(), output };
        self.push(BlockKind::Tool, BlockSource::Call(Box::new(record)));
    }

    fn push_note(&mut self, text: String) {
        self.push(BlockKind::Note, BlockSource::Marked { mark: "!", role: Role::Care, text });
    }
}
