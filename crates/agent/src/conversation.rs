//! [`Conversation`]: a branch of a session in memory, and the session file it is stored in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_context::knowledge::FileKnowledge;
use hardpan_context::{AssembledPrompt, DetachLimits, Fold, LayoutStateLog, Snapshot};
use hardpan_economy::Verdict;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{
    AgentMessage, Hash, ItemKind, MessageBody, MessageId, MessagePart, OmissionKey, Prompt, Text,
};
use hardpan_session::{
    Entry, Fork, GIT_BRANCH_RECORD, Header, LogError, PartialRecord, PendingSave, Record, RequestRecord,
    Session, SessionError, SessionLog, SessionProblem,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::session_ledger::{FlushScope, RequestBill, SessionLedger, TASK_PURPOSE, TaskRequest};
use crate::spending::Spending;
use crate::stored_knowledge::{ResultData, rebuild_knowledge};

/// Why a session cannot be continued or copied. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// Its file cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its file cannot be read, or has no such entry.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A branch of a session, open for writing.
pub struct Conversation {
    /// The session's id, as in the header of its file.
    pub session: Arc<str>,
    /// The branch's messages, oldest first; after a compaction the summary comes first.
    pub messages: Vec<AgentMessage>,
    /// What the layouts remember from the last request.
    pub memory: LayoutStateLog,
    /// Tokens and dollars of the whole session, all branches and helper requests included.
    pub spending: Spending,
    /// Number of requests that `spending` sums up.
    pub requests: u64,
    /// Provider and model that the branch last selected; `None` if it never did.
    pub model: Option<(Arc<str>, Arc<str>)>,
    /// Thinking level that the branch last selected, in the text form of [`ThinkingSetting`].
    pub thinking: Option<Arc<str>>,
    /// Layout of the branch's last turn.
    pub layout: Option<Arc<str>>,
    /// The branch of git that was checked out when that was last stored.
    pub git_branch: Option<Arc<str>>,
    /// The last stored state of each extension, by its `custom_type`.
    pub custom: BTreeMap<Arc<str>, Value>,
    /// What the model has seen of files.
    pub knowledge: FileKnowledge,
    /// The last request: when its answer began (which is when its cache entries start to age), its
    /// provider and its model.
    pub last_request: Option<(Timestamp, Arc<str>, Arc<str>)>,
    /// Pauses between turns, in seconds: they predict whether a ping pays.
    pub pauses: Vec<u32>,
    /// Provider and id of the branch's last answer, to ask the provider why a cache was lost.
    pub(crate) last_answer: Option<(Arc<str>, Arc<str>)>,
    /// What each answer came after, for models whose reasoning is bound to that.
    pub(crate) answer_prefixes: Arc<BTreeMap<MessageId, Hash>>,
    /// Messages whose reasoning is not sent any more.
    pub(crate) stale_reasoning: Arc<BTreeSet<MessageId>>,
    /// What the next request freezes, if the user asked for it.
    pub(crate) freeze: Option<DetachLimits>,
    /// Whether the next request folds, because the user asked for it.
    pub(crate) is_fold_requested: bool,
    /// Number of cache pings since the last turn.
    pub pings: u32,
    /// Lines of the session file that could not be read, or not as they are.
    pub problems: Vec<SessionProblem>,
    /// The bills of the session, and the monitor that explains cache losses.
    pub(crate) billing: SessionLedger,
    /// Which items changed their tier after the last answer.
    pub(crate) tier_moves: Vec<hardpan_context::TierChange>,
    path: PathBuf,
    log: SessionLog,
    leaf: Option<Arc<str>>,
    /// Number of entries in the file; the next entry's id is made from it.
    entries: usize,
    entry_ids: BTreeSet<Arc<str>>,
    /// The state of the layouts that it began with, until its first entry is stored.
    unstored_state: Option<Value>,
}

impl Conversation {
    /// Creates a session. Its file is created when the first entry is stored.
    pub fn begin(path: &Path, header: Header) -> Result<Self, LogError> {
        let (session, git_branch) = (header.id.clone(), header.git_branch().map(Into::into));
        let log = SessionLog::create(path, header)?;
        Ok(Conversation { git_branch, ..Conversation::with_log(session, path, log) })
    }

    /// Opens a session and continues at `leaf`, or at its last entry if that is `None`.
    pub fn resume(path: &Path, leaf: Option<&str>) -> Result<Self, ConversationError> {
        let (log, session) = SessionLog::open(path)?;
        let mut conversation = Conversation::with_log(session.header.id.clone(), path, log);
        conversation.load(&session, leaf, BilledEntries::Session)?;
        Ok(conversation)
    }

    /// A conversation that goes on from `leaf` of a session, to be looked at: nothing may be added
    /// to it, and its file stays as it is.
    pub fn look_at(path: &Path, session: &Session, leaf: Option<&str>) -> Result<Self, ConversationError> {
        let mut conversation = Conversation::begin(path, session.header.clone())?;
        conversation.load(session, leaf, BilledEntries::Session)?;
        Ok(conversation)
    }

    /// Creates a session that starts with a copy of a branch of `session`.
    pub fn fork(
        session: &Session,
        leaf: Option<&str>,
        path: &Path,
        header: Header,
    ) -> Result<Self, ConversationError> {
        let Fork { header, entries } = session.fork(leaf, header)?;
        let mut conversation = Conversation::begin(path, header)?;
        for entry in entries {
            drop(conversation.log.append(entry));
        }
        conversation.load(session, leaf, BilledEntries::Branch)?;
        Ok(conversation)
    }

    /// A conversation that has not begun, whose requests begin like those of `other`: they read from
    /// the cache what that one has there.
    pub(crate) fn begin_like(other: &Conversation, path: &Path, header: Header) -> Result<Self, LogError> {
        let mut conversation = Conversation::begin(path, header)?;
        conversation.unstored_state = conversation.memory.commit(other.memory.current().clone());
        conversation.last_request.clone_from(&other.last_request);
        Ok(conversation)
    }

    fn with_log(session: Arc<str>, path: &Path, log: SessionLog) -> Self {
        Conversation {
            session,
            messages: Vec::new(),
            memory: LayoutStateLog::default(),
            spending: Spending::default(),
            requests: 0,
            model: None,
            thinking: None,
            layout: None,
            git_branch: None,
            custom: BTreeMap::new(),
            knowledge: FileKnowledge::default(),
            last_request: None,
            last_answer: None,
            answer_prefixes: Arc::default(),
            stale_reasoning: Arc::default(),
            pauses: Vec::new(),
            freeze: None,
            is_fold_requested: false,
            pings: 0,
            problems: Vec::new(),
            billing: SessionLedger::default(),
            tier_moves: Vec::new(),
            path: path.to_owned(),
            log,
            leaf: None,
            entries: 0,
            entry_ids: BTreeSet::new(),
            unstored_state: None,
        }
    }

    fn load(
        &mut self,
        session: &Session,
        leaf: Option<&str>,
        bill: BilledEntries,
    ) -> Result<(), SessionError> {
        let branch = session.branch(leaf)?;
        self.leaf = branch.leaf;
        self.messages = branch.messages;
        self.model = branch.model;
        self.thinking = branch.thinking;
        self.layout = branch.layout;
        self.git_branch = branch.git_branch;
        self.custom = branch.custom;
        (self.last_request, self.last_answer, self.pauses, self.pings) = Default::default();
        (self.answer_prefixes, self.stale_reasoning) = Default::default();
        branch.requests.iter().for_each(|request| self.track_timing(request));
        self.knowledge = rebuild_knowledge(&session.path_to(leaf)?);
        self.memory = LayoutStateLog::from_records(branch.memories);
        let path = session.path_to(leaf)?;
        let billed = match bill {
            BilledEntries::Session => session.entries.iter().collect(),
            BilledEntries::Branch => path.clone(),
        };
        for entry in &billed {
            if let Record::Request(request) = &entry.record {
                self.spending += request_spending(request);
                self.requests += 1;
            }
        }
        self.billing = SessionLedger::from_entries(billed, path);
        self.entries = session.entries.len();
        self.entry_ids = session.entries.iter().map(|entry| entry.id.clone()).collect();
        self.problems.clone_from(&session.problems);
        Ok(())
    }

    /// Path of the session file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry that the next one will follow; `None` for an empty branch.
    pub fn leaf(&self) -> Option<&Arc<str>> {
        self.leaf.as_ref()
    }

    /// Whether the session has an entry of this id, on any branch.
    pub fn has_entry(&self, entry: &str) -> bool {
        self.entry_ids.contains(entry)
    }

    /// An id that no entry has yet.
    fn next_id(&mut self) -> Arc<str> {
        loop {
            self.entries += 1;
            let id: Arc<str> = format!("e{}", self.entries).into();
            if self.entry_ids.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Makes a message with a new id. It is not stored before [`Conversation::add_message`].
    pub fn new_message(&mut self, body: MessageBody, now: Timestamp) -> AgentMessage {
        let id = self.next_id();
        AgentMessage { time: Some(now), ..AgentMessage::new(MessageId(id), body) }
    }

    /// The messages as they would be with some more, and the id of the first of these. Adds nothing.
    pub(crate) fn messages_with(
        &self,
        bodies: Vec<MessageBody>,
        now: Timestamp,
    ) -> (Vec<AgentMessage>, Option<MessageId>) {
        let free = (self.entries + 1..).map(|n| Arc::from(format!("e{n}")));
        let ids = free.filter(|id| !self.entry_ids.contains(id)).map(MessageId);
        let message = |(id, body)| AgentMessage { time: Some(now), ..AgentMessage::new(id, body) };
        let mut messages = self.messages.clone();
        let at = messages.len();
        messages.extend(ids.zip(bodies).map(message));
        let first = messages.get(at).map(|message| message.id.clone());
        (messages, first)
    }

    /// Adds a message to the conversation and stores it, with the data of a tool result.
    pub fn add_message(&mut self, message: AgentMessage, data: ResultData) -> PendingSave {
        for observation in &data.file_observations {
            self.knowledge.record(&message.id, observation.clone());
        }
        let mut entry = Entry::message(self.leaf.as_deref(), message.clone());
        data.store_in(&mut entry);
        self.messages.push(message);
        self.append(entry)
    }

    /// Stores any other record after the current leaf.
    pub fn append_record(&mut self, record: Record, now: Timestamp) -> PendingSave {
        let id = self.next_id();
        let entry = Entry::new(id, self.leaf.as_deref(), Some(now), record);
        self.append(entry)
    }

    fn append(&mut self, mut entry: Entry) -> PendingSave {
        if let Some(memory) = self.unstored_state.take() {
            let id = self.next_id();
            let state =
                Entry::new(id.clone(), entry.parent.as_deref(), entry.time, Record::Memory { memory });
            drop(self.log.append(state));
            entry.parent = Some(id);
        }
        self.leaf = Some(entry.id.clone());
        self.log.append(entry)
    }

    /// Stores the thinking level; `None` if the branch has this level already.
    pub fn set_thinking(&mut self, setting: ThinkingSetting, now: Timestamp) -> Option<PendingSave> {
        let level: Arc<str> = setting.to_string().into();
        let stored = self.thinking.as_ref().map_or(Ok(ThinkingSetting::Default), |stored| stored.parse());
        if stored == Ok(setting) {
            return None;
        }
        self.thinking = Some(level.clone());
        Some(self.append_record(Record::ThinkingChange { level }, now))
    }

    /// Stores which branch of git is checked out; `None` if that is stored already.
    pub(crate) fn set_git_branch(&mut self, branch: &str, now: Timestamp) -> Option<PendingSave> {
        if self.git_branch.as_deref() == Some(branch) {
            return None;
        }
        self.git_branch = Some(branch.into());
        let record = Record::Custom { custom_type: GIT_BRANCH_RECORD.into(), data: branch.into() };
        Some(self.append_record(record, now))
    }

    /// Stores a compaction whose summary replaces the first `cut` messages. The layouts start from
    /// an empty state.
    pub fn record_compaction(
        &mut self,
        record: Record,
        summary: Text,
        cut: usize,
        now: Timestamp,
    ) -> PendingSave {
        let saved = self.append_record(record, now);
        let id = self.leaf.clone().unwrap_or_default();
        let body = MessageBody::CompactionSummary { summary };
        let message = AgentMessage { time: Some(now), ..AgentMessage::new(MessageId(id), body) };
        self.messages.splice(..cut, [message]);
        self.knowledge.retain_messages(&self.messages.iter().map(|message| &message.id).collect());
        self.memory.compact();
        saved
    }

    /// Continues the conversation from another entry of its session. `session` is its file as read
    /// after the last message was stored.
    pub fn go_to_entry(&mut self, session: &Session, entry: &str) -> Result<(), SessionError> {
        session.path_to(Some(entry))?;
        // What was appended since the session was read has its ids, too.
        let (entries, ids) = (self.entries, std::mem::take(&mut self.entry_ids));
        (self.spending, self.requests) = Default::default();
        self.load(session, Some(entry), BilledEntries::Session)?;
        self.billing.mark_continued();
        self.entries = self.entries.max(entries);
        self.entry_ids.extend(ids);
        Ok(())
    }

    /// Stores a part of an answer that is still streaming, in case the rest never arrives. Nobody
    /// waits for it to be written.
    pub fn store_partial(
        &mut self,
        of: &MessageId,
        parts: Vec<MessagePart>,
        maker: (&str, &str),
        now: Timestamp,
    ) {
        let (provider, model) = (Some(maker.0.into()), Some(maker.1.into()));
        let record = Record::Partial(PartialRecord { message_id: of.0.clone(), parts, provider, model });
        let entry = Entry::new(self.next_id(), self.leaf.as_deref(), Some(now), record);
        drop(self.log.append(entry));
    }

    /// Records which files a request that was answered showed as items.
    pub(crate) fn record_items(&mut self, snapshot: &Snapshot, prompt: &Prompt) {
        for item in snapshot.items_of(ItemKind::File) {
            let is_item =
                |key: &OmissionKey| matches!(key, OmissionKey::Item(left_out) if *left_out == item.key);
            // Few items change between two requests; only for those is the list looked through.
            if !self.knowledge.is_item(item.name(), item.body.hash())
                && !prompt.left_out.iter().any(|omission| is_item(&omission.key))
            {
                self.knowledge.record_item(item.name(), &item.body);
            }
        }
    }

    /// Commits the layout state of a request that the provider has begun to answer, and stores what
    /// changed in it. Nobody waits for it to be written: lost state costs a fold.
    pub fn commit_layout_state(&mut self, assembled: &AssembledPrompt, now: Timestamp) {
        let AssembledPrompt { layout, layout_state, fold, stale_reasoning, .. } = assembled;
        self.stale_reasoning = stale_reasoning.clone();
        if let Some(Fold { reason, position: _, tokens, garbage, price, rent }) = fold {
            tracing::info!(%layout, %reason, tokens, garbage, price, rent, "fold");
        }
        for (path, hash) in layout.layout().cached_files(layout_state) {
            self.knowledge.record_kept_item(path, hash);
        }
        self.freeze = None;
        self.is_fold_requested = false;
        if let Some(memory) = self.memory.commit(layout_state.clone()) {
            drop(self.append_record(Record::Memory { memory }, now));
        }
    }

    /// Bills a request and stores the record. Returns the record, and the verdict if the request paid
    /// again for tokens that had been cached.
    pub(crate) fn bill_request(
        &mut self,
        billed: &RequestBill<'_>,
    ) -> (Arc<RequestRecord>, PendingSave, Option<Verdict>) {
        let (request, loss) = self.billing.record_request(billed);
        self.spending += request_spending(&request);
        self.requests += 1;
        self.track_timing(&request);
        let answer =
            self.messages.iter_mut().rev().find(|message| Some(&message.id.0) == request.message.as_ref());
        if let Some(answer) = answer {
            answer.note(|facts| facts.usage = Some((request.usage, request.dollars)));
        }
        let request = Arc::new(request);
        (request.clone(), self.append_record(Record::Request(request), billed.ended), loss)
    }

    /// Bills a request of a sub-agent and stores the record. Nobody waits for it to be written.
    pub(crate) fn bill_task_request(&mut self, task: &TaskRequest<'_>, now: Timestamp) -> Arc<RequestRecord> {
        let request = Arc::new(self.billing.record_task_request(task));
        self.spending += request_spending(&request);
        self.requests += 1;
        drop(self.append_record(Record::Request(request.clone()), now));
        request
    }

    /// Tracks when requests happened, which decides how long the cache lives.
    fn track_timing(&mut self, request: &RequestRecord) {
        match &*request.purpose {
            // It says nothing about the cache of this conversation.
            TASK_PURPOSE => return,
            "ping" => self.pings += 1,
            "turn" => {
                let answer = request.answer.clone();
                self.last_answer = answer.map(|id| (request.provider.clone(), id));
                if let (Some(message), Some(prefix)) = (&request.message, request.prefix) {
                    Arc::make_mut(&mut self.answer_prefixes).insert(MessageId(message.clone()), prefix);
                }
                self.pauses.extend(self.pause_until(request.started));
                self.pings = 0;
            }
            _ => {}
        }
        self.last_request = Some(cache_entry_time(request));
    }

    /// Seconds from the last request to a moment; `None` before the first one.
    pub(crate) fn pause_until(&self, now: Timestamp) -> Option<u32> {
        let (at, ..) = self.last_request.as_ref()?;
        u32::try_from(now.as_second() - at.as_second()).ok()
    }

    /// Stores what is written once per run: counters of the layouts, costs by key, and the cache
    /// monitor's trace. Nobody waits for it: what is lost is counted anew.
    pub(crate) fn store_run_records(&mut self, end: FlushScope, now: Timestamp) {
        for memory in self.memory.end_run() {
            drop(self.append_record(Record::Memory { memory }, now));
        }
        for record in self.billing.flush(end) {
            drop(self.append_record(record, now));
        }
    }

    /// Completes when everything appended so far is on disk.
    pub fn flush(&self) -> PendingSave {
        self.log.flush()
    }
}

/// When the cache entries of a request were last used, with its provider and model.
fn cache_entry_time(request: &RequestRecord) -> (Timestamp, Arc<str>, Arc<str>) {
    // Cache entries age from the moment the answer begins.
    let began = i64::try_from(request.first_token_ms.unwrap_or(0)).unwrap_or(0);
    let at = request.started.checked_add(jiff::SignedDuration::from_millis(began)).unwrap_or(request.started);
    (at, request.provider.clone(), request.model.clone())
}

/// Which requests of a session file count as this conversation's spending.
#[derive(Clone, Copy)]
enum BilledEntries {
    /// All of them, on whatever branch.
    Session,
    /// Those of the branch: a fork copies nothing else.
    Branch,
}

fn request_spending(request: &RequestRecord) -> Spending {
    Spending {
        tokens: request.usage,
        dollars: request.dollars,
        would_cost: request.would_cost.unwrap_or_default(),
    }
}
