//! The edit blocks of an answer: [`StreamedBlocks`] finds them as they come, the agent carries them
//! out when the answer has ended well, and tells the model how each ended.

use std::sync::Arc;

use hardpan_context::fill_template;
use hardpan_context::knowledge::FileObservation;
use hardpan_prompt::{Json, MessageBody, MessageId, MessagePart, NotRunReason, ToolCall};
use hardpan_providers::AnswerCall;
use hardpan_session::Record;
use hardpan_tools::{EditBlock, EditBlockParser, EditBlockStatus, MalformedBlock, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::events::{EditBlockFound, EditBlockResults};
use crate::tool_calls::CallOutcome;

/// The `custom_type` of the message that tells the results, and of the entry that stores them.
pub(crate) const BLOCKS_ENTRY: &str = "hardpan.edit_blocks";

/// How often in a row the model is asked to correct its blocks before the run ends.
const MAX_BLOCK_RETRIES: u32 = 3;

/// A block as the parser found it.
pub(crate) type FoundBlock = Result<EditBlock, MalformedBlock>;

/// The blocks of an answer that is still streaming.
#[derive(Default)]
pub(crate) struct StreamedBlocks {
    parser: EditBlockParser,
    found: Vec<FoundBlock>,
}

impl StreamedBlocks {
    /// Takes the next piece of the answer. Returns the numbers and paths of the blocks it completes.
    pub fn push(&mut self, piece: &str) -> Vec<(usize, String)> {
        let before = self.found.len();
        self.found.extend(self.parser.push(piece));
        let new = self.found.iter().enumerate().skip(before);
        new.filter_map(|(at, block)| Some((at + 1, block.as_ref().ok()?.path.clone()))).collect()
    }

    /// All blocks of the answer, in order.
    pub fn finish(self) -> Vec<FoundBlock> {
        let mut found = self.found;
        found.extend(self.parser.finish());
        found
    }
}

/// The blocks of a stored answer.
pub(crate) struct AnswerBlocks {
    pub found: Vec<FoundBlock>,
    /// Whether the answer ended as the model wanted; otherwise none of them is carried out.
    pub ended_well: bool,
}

/// How a block of an answer ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditBlockResult {
    /// Number of the block within the answer, from 1.
    pub index: usize,
    /// The file, as the model named it; empty for a block without a path.
    pub path: String,
    /// How it ended.
    pub status: EditBlockStatus,
    /// What the model reads about it.
    pub text: String,
}

/// The data of the session entry.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredBlocks {
    /// The answer that the blocks are in.
    pub message: MessageId,
    pub results: Vec<EditBlockResult>,
    pub file_observations: Vec<FileObservation>,
}

/// What became of the blocks of an answer.
pub(crate) struct BlockOutcome {
    pub results: Vec<EditBlockResult>,
    ended_well: bool,
}

impl BlockOutcome {
    /// Whether the model is to correct something.
    pub fn has_failures(&self) -> bool {
        self.ended_well && self.results.iter().any(|result| !result.status.is_success())
    }
}

impl Agent {
    /// Whether a model that gets these tools edits files by blocks.
    pub(crate) fn uses_edit_blocks(&self, by_setting: bool, has_tools: bool) -> bool {
        self.inner.setup.edit_block_tool.is_some() && (by_setting || !has_tools)
    }

    /// Tells faces of blocks that the answer has completed.
    pub(crate) async fn announce_blocks(&self, message: &MessageId, blocks: Vec<(usize, String)>) {
        for (index, path) in blocks {
            let event = EditBlockFound { message: message.clone(), index, path };
            self.events().emit(self, event).await;
        }
    }

    /// Carries out the blocks of an answer in order, and stores what the model now knows of files.
    /// `None` if there are none.
    pub(crate) async fn apply_edit_blocks(
        &self,
        message: &MessageId,
        blocks: AnswerBlocks,
        token: &CancellationToken,
    ) -> Result<Option<BlockOutcome>, AgentError> {
        let AnswerBlocks { found, ended_well } = blocks;
        let Some(tool) = self.inner.setup.edit_block_tool.clone().filter(|_| !found.is_empty()) else {
            return Ok(None);
        };
        let mut results = Vec::new();
        let mut file_observations = Vec::new();
        for (index, block) in (1..).zip(found) {
            let result = match block {
                Err(malformed) => EditBlockResult {
                    index,
                    path: String::new(),
                    status: EditBlockStatus::Malformed,
                    text: format!("Block {index} cannot be read: {malformed}."),
                },
                Ok(block) if !ended_well => EditBlockResult {
                    index,
                    path: block.path,
                    status: EditBlockStatus::NotAllowed,
                    text: self.inner.setup.texts.phrases.agent.edit_blocks_cut.to_string(),
                },
                Ok(block) => {
                    let (result, observations) =
                        self.apply_edit_block(&tool, message, index, block, token).await;
                    file_observations.extend(observations);
                    result
                }
            };
            let result = self.open_unseen_file(result);
            results.push(result);
        }
        let stored = StoredBlocks { message: message.clone(), results, file_observations };
        let record = Record::Custom { custom_type: BLOCKS_ENTRY.into(), data: json!(stored) };
        let saved = lock(&self.inner.conversation).append_record(record, self.now());
        saved.await?;
        let results = stored.results;
        let event = EditBlockResults { message: message.clone(), results: results.clone() };
        self.events().emit(self, event).await;
        Ok(Some(BlockOutcome { results, ended_well }))
    }

    /// Carries out one block, as a call of the tool `edit` is.
    async fn apply_edit_block(
        &self,
        tool: &Arc<dyn Tool>,
        message: &MessageId,
        index: usize,
        block: EditBlock,
        token: &CancellationToken,
    ) -> (EditBlockResult, Vec<FileObservation>) {
        let arguments = Json::new(&json!(block));
        let call = AnswerCall {
            raw: arguments.as_str().to_owned(),
            call: ToolCall {
                id: format!("{}.{index}", message.0).into(),
                name: tool.declaration().name.clone(),
                arguments,
                result: None,
            },
            runnable: Ok(()),
        };
        let CallOutcome { outcome, not_run } = self.run_given_tool(tool, &call, token).await;
        let status = match not_run {
            // It may have been stopped after the change.
            Some(NotRunReason::Stopped) => EditBlockStatus::Failed,
            Some(_) => EditBlockStatus::NotAllowed,
            None => EditBlockStatus::of_outcome(&outcome),
        };
        {
            let mut conversation = lock(&self.inner.conversation);
            for observation in &outcome.file_observations {
                conversation.knowledge.record(message, observation.clone());
            }
        }
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text } => Some(text.to_string()),
            _ => None,
        };
        let text = outcome.content.iter().filter_map(text).collect::<Vec<_>>().join("\n");
        (EditBlockResult { index, path: block.path, status, text }, outcome.file_observations)
    }

    /// Opens the file of a block that the model wrote without having seen it.
    fn open_unseen_file(&self, mut result: EditBlockResult) -> EditBlockResult {
        if result.status == EditBlockStatus::NotInContext {
            let phrases = &self.inner.setup.texts.phrases.agent;
            let is_open = self.inner.setup.context_source.open_file(&result.path);
            let phrase = if is_open { &phrases.edit_block_opened } else { &phrases.edit_block_unseen };
            result.text = fill_template(phrase, &[("path", &result.path)]);
        }
        result
    }

    /// The tool that the model keeps failing to use, after too many answers with blocks that fail.
    pub(crate) fn looping_blocks(&self, failures: u32) -> Option<Arc<str>> {
        let tool = self.inner.setup.edit_block_tool.as_ref()?;
        (failures > MAX_BLOCK_RETRIES).then(|| tool.declaration().name.clone())
    }

    /// Adds the message that tells the model how its blocks ended.
    pub(crate) async fn tell_block_results(&self, outcome: &BlockOutcome) -> Result<MessageId, AgentError> {
        let phrases = &self.inner.setup.texts.phrases.agent;
        let lines: Vec<String> =
            outcome.results.iter().map(|result| format!("{}. {}", result.index, result.text)).collect();
        let phrase = if outcome.has_failures() { &phrases.edit_blocks_failed } else { &phrases.edit_blocks };
        let text = fill_template(phrase, &[("results", &lines.join("\n"))]);
        let (custom_type, content): (Arc<str>, _) = (BLOCKS_ENTRY.into(), vec![MessagePart::text(text)]);
        self.add_message(MessageBody::Custom { custom_type, content, display: true }, None, None).await
    }
}
