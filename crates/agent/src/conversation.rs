//! The conversation in memory, and the log that it is stored in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_context::{Memory, ShownPanel, Tracker};
use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, Body, Kind, MessageId, Part, Text};
use hardpan_session::{Entry, Fork, Header, Log, LogError, Partial, Record, RequestRecord, Saved, Session};
use jiff::Timestamp;
use serde_json::Value;

use crate::books::{Billed, Books, Settle};
use crate::knowledge::Knowledge;
use crate::recall::Change;
use crate::spending::Spent;

/// The level of a model that does not think first.
pub(crate) const NO_THINKING: &str = "off";

/// A branch of a session, open for writing.
pub struct Conversation {
    /// The session's id.
    pub session: Arc<str>,
    /// The messages as they are stored.
    pub messages: Vec<AgentMessage>,
    /// What the layouts remember.
    pub memory: Memory,
    /// What the whole session used.
    pub spent: Spent,
    /// How many requests that was.
    pub requests: u64,
    /// The provider and the model of the branch, where it says so.
    pub model: Option<(Arc<str>, Arc<str>)>,
    /// The level of thinking of the branch, where it says so.
    pub thinking: Option<Arc<str>>,
    /// The layout of its last turn.
    pub layout: Option<Arc<str>>,
    /// The last state of each extension, by its name for it.
    pub custom: BTreeMap<Arc<str>, Value>,
    /// The files that the model knows.
    pub knowledge: Knowledge,
    /// The last request of the conversation: when it ended, and whom it was for.
    pub last: Option<(Timestamp, Arc<str>, Arc<str>)>,
    /// The pauses between requests, in seconds.
    pub gaps: Vec<u32>,
    /// How often the cache was kept warm since the last one.
    pub pings: u32,
    /// What was wrong with the file.
    pub problems: Vec<String>,
    /// What was paid for what, and what was paid again.
    pub(crate) books: Books,
    /// What moved between the tiers after the last answer.
    pub(crate) moved: Vec<hardpan_context::Change>,
    /// What is written once for a run, as the file has it.
    stored_tiers: Tracker,
    stored_shown: Vec<ShownPanel>,
    path: PathBuf,
    log: Log,
    leaf: Option<Arc<str>>,
    /// How many entries the file has, for the next name.
    entries: usize,
    taken: BTreeSet<Arc<str>>,
}

impl Conversation {
    /// A new session. Its file is made when something is stored.
    pub fn begin(path: &Path, header: Header) -> Result<Self, LogError> {
        let session = header.id.clone();
        Ok(Conversation::of(session, path, Log::create(path, header)?))
    }

    /// Goes on with a session: at its leaf, or at an entry.
    pub fn resume(path: &Path, leaf: Option<&str>) -> Result<Self, String> {
        let (log, session) = Log::open(path).map_err(|error| error.to_string())?;
        let mut conversation = Conversation::of(session.header.id.clone(), path, log);
        conversation.load(&session, leaf, Bill::Session)?;
        Ok(conversation)
    }

    /// A session of its own that begins as a branch of another.
    pub fn fork(session: &Session, leaf: Option<&str>, path: &Path, header: Header) -> Result<Self, String> {
        let Fork { header, entries } = session.fork(leaf, header).map_err(|error| error.to_string())?;
        let mut conversation = Conversation::begin(path, header).map_err(|error| error.to_string())?;
        for entry in entries {
            drop(conversation.log.append(entry));
        }
        conversation.load(session, leaf, Bill::Branch)?;
        Ok(conversation)
    }

    fn of(session: Arc<str>, path: &Path, log: Log) -> Self {
        Conversation {
            session,
            messages: Vec::new(),
            memory: Memory::default(),
            spent: Spent::default(),
            requests: 0,
            model: None,
            thinking: None,
            layout: None,
            custom: BTreeMap::new(),
            knowledge: Knowledge::default(),
            last: None,
            gaps: Vec::new(),
            pings: 0,
            problems: Vec::new(),
            books: Books::default(),
            moved: Vec::new(),
            stored_tiers: Tracker::default(),
            stored_shown: Vec::new(),
            path: path.to_owned(),
            log,
            leaf: None,
            entries: 0,
            taken: BTreeSet::new(),
        }
    }

    fn load(&mut self, session: &Session, leaf: Option<&str>, bill: Bill) -> Result<(), String> {
        let branch = session.branch(leaf).map_err(|error| error.to_string())?;
        self.leaf = branch.leaf;
        self.messages = branch.messages;
        self.model = branch.model;
        self.thinking = branch.thinking;
        self.layout = branch.layout;
        self.custom = branch.custom;
        (self.last, self.gaps, self.pings) = Default::default();
        branch.requests.iter().for_each(|request| self.follow(request));
        self.learn(session, leaf)?;
        for change in branch.memories {
            // A memory of another version is as good as none: it costs a fold.
            match serde_json::from_value::<Change>(change) {
                Ok(change) => change.apply(&mut self.memory),
                Err(_) => self.memory = Memory::default(),
            }
        }
        (self.stored_tiers, self.stored_shown) =
            (self.memory.tiers.clone(), self.memory.panels.shown.clone());
        let path = session.path_to(leaf).map_err(|error| error.to_string())?;
        let billed = match bill {
            Bill::Session => session.entries.iter().collect(),
            Bill::Branch => path.clone(),
        };
        for entry in &billed {
            if let Record::Request(request) = &entry.record {
                self.spent += spent(request);
                self.requests += 1;
            }
        }
        self.books = Books::read(billed, path);
        self.entries = session.entries.len();
        self.taken = session.entries.iter().map(|entry| entry.id.clone()).collect();
        self.problems = session
            .problems
            .iter()
            .map(|problem| format!("line {}: {}", problem.line, problem.what))
            .collect();
        Ok(())
    }

    /// Finds out what the model knows of files: what the results of the branch told.
    fn learn(&mut self, session: &Session, leaf: Option<&str>) -> Result<(), String> {
        self.knowledge = Knowledge::default();
        for entry in session.path_to(leaf).map_err(|error| error.to_string())? {
            if let (Record::Message(message), Some(details)) = (&entry.record, entry.extra.get("details")) {
                self.note(message, details);
            }
        }
        self.forget_lost();
        Ok(())
    }

    fn note(&mut self, message: &AgentMessage, details: &Value) {
        if let Body::ToolResult { tool_name: Some(tool), is_error: false, .. } = &*message.body {
            self.knowledge.note(tool, details, &message.id);
        }
    }

    fn forget_lost(&mut self) {
        let here: BTreeSet<&MessageId> = self.messages.iter().map(|message| &message.id).collect();
        self.knowledge.forget_lost(&here);
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry that the next one follows.
    pub fn leaf(&self) -> Option<&Arc<str>> {
        self.leaf.as_ref()
    }

    /// Whether the session has an entry of this name.
    pub fn has(&self, entry: &str) -> bool {
        self.taken.contains(entry)
    }

    /// A name that no entry has.
    fn next_id(&mut self) -> Arc<str> {
        loop {
            self.entries += 1;
            let id: Arc<str> = format!("e{}", self.entries).into();
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }

    /// A message with a name of its own; it is stored by [`Conversation::add`].
    pub fn message(&mut self, body: Body, now: Timestamp) -> AgentMessage {
        let id = self.next_id();
        AgentMessage { time: Some(now), ..AgentMessage::new(MessageId(id), body) }
    }

    /// Stores a message, and takes it into the conversation.
    pub fn add(&mut self, message: AgentMessage, details: Option<Value>) -> Saved {
        details.iter().for_each(|details| self.note(&message, details));
        let mut entry = Entry::message(self.leaf.as_deref(), message.clone());
        entry.extra.extend(details.map(|details| ("details".to_owned(), details)));
        self.messages.push(message);
        self.append(entry)
    }

    /// Stores anything else.
    pub fn record(&mut self, record: Record, now: Timestamp) -> Saved {
        let id = self.next_id();
        let entry = Entry::new(id, self.leaf.as_deref(), Some(now), record);
        self.append(entry)
    }

    fn append(&mut self, entry: Entry) -> Saved {
        self.leaf = Some(entry.id.clone());
        self.log.append(entry)
    }

    /// Stores how much the model thinks from now on, where the branch does not say so already.
    pub fn think(&mut self, level: &str, now: Timestamp) -> Option<Saved> {
        let known = self.thinking.as_deref().unwrap_or(NO_THINKING);
        (known != level).then(|| {
            self.thinking = Some(level.into());
            self.record(Record::ThinkingChange { level: level.into() }, now)
        })
    }

    /// Stores a compaction: its summary stands for the first `cut` messages. The layouts begin anew.
    pub fn compact(&mut self, record: Record, summary: Text, cut: usize, now: Timestamp) -> Saved {
        let saved = self.record(record, now);
        let id = self.leaf.clone().unwrap_or_default();
        let body = Body::CompactionSummary { summary };
        let message = AgentMessage { time: Some(now), ..AgentMessage::new(MessageId(id), body) };
        self.messages.splice(..cut, [message]);
        self.forget_lost();
        // What was counted of the session still counts.
        self.memory = Memory { empty_tiers: self.memory.empty_tiers, ..Memory::default() };
        (self.stored_tiers, self.stored_shown) = Default::default();
        saved
    }

    /// The session as it is stored, if it has this entry.
    pub fn find(&self, entry: &str) -> Result<Session, String> {
        self.log.flush().wait().map_err(|error| error.to_string())?;
        let session = Session::open(&self.path).map_err(|error| error.to_string())?;
        session.path_to(Some(entry)).map_err(|error| error.to_string())?;
        Ok(session)
    }

    /// Goes to another entry of the same session: what is said next follows it.
    pub fn go_to(&mut self, entry: &str) -> Result<(), String> {
        let session = self.find(entry)?;
        let entries = self.entries;
        (self.spent, self.requests, self.memory) = Default::default();
        self.load(&session, Some(entry), Bill::Session)?;
        self.books.go_on();
        self.entries = self.entries.max(entries);
        Ok(())
    }

    /// Stores a piece of an answer that is still coming: it is there should the rest never come. Nobody waits for it.
    pub fn partial(&mut self, of: &MessageId, parts: Vec<Part>, maker: (&str, &str), now: Timestamp) {
        let (provider, model) = (Some(maker.0.into()), Some(maker.1.into()));
        let record = Record::Partial(Partial { of: of.0.clone(), parts, provider, model });
        let entry = Entry::new(self.next_id(), self.leaf.as_deref(), Some(now), record);
        drop(self.log.append(entry));
    }

    /// Takes over the memory of a request that the provider has begun to answer. Nobody waits for it to be stored: a
    /// memory that is lost costs a fold.
    pub fn remember(&mut self, memory: Memory, now: Timestamp) {
        let placed = memory.strata.base.iter().flat_map(|group| &group.items);
        for file in placed.filter(|placed| placed.kind == Kind::File) {
            let path = file.key.strip_prefix("file:").unwrap_or(&file.key);
            self.knowledge.shown(path, file.body.hash());
        }
        if let Some(change) = Change::between(&self.memory, &memory) {
            if let Change::Whole(whole) = &change {
                self.stored_tiers = whole.tiers.clone();
                self.stored_shown = whole.panels.shown.clone();
            }
            let memory = serde_json::to_value(change).unwrap_or_default();
            drop(self.record(Record::Memory { memory }, now));
        }
        self.memory = memory;
    }

    /// Enters a request into the books and stores its bill; says what of it was paid again.
    pub(crate) fn bill(&mut self, billed: &Billed<'_>) -> (Saved, Option<Verdict>) {
        let (request, loss) = self.books.enter(billed);
        self.spent += spent(&request);
        self.requests += 1;
        self.follow(&request);
        (self.record(Record::Request(Arc::new(request)), billed.ended), loss)
    }

    /// Keeps the times of requests: what the cache lives by.
    fn follow(&mut self, request: &RequestRecord) {
        match &*request.purpose {
            "ping" => self.pings += 1,
            "turn" => {
                let gap = self.last.as_ref().map(|(at, ..)| request.started.as_second() - at.as_second());
                self.gaps.extend(gap.and_then(|gap| u32::try_from(gap).ok()));
                self.pings = 0;
            }
            _ => {}
        }
        self.last = Some(ended(request));
    }

    /// Stores what is written once for a run: what counts on in the layouts, the bill by key, what the next request is held
    /// against. Nobody waits for it: what is lost is counted anew.
    pub(crate) fn settle(&mut self, end: Settle, now: Timestamp) {
        let mut changes = Vec::new();
        if let Some(change) = Change::of_tiers(&self.stored_tiers, &self.memory.tiers) {
            self.stored_tiers = self.memory.tiers.clone();
            changes.push(change);
        }
        if self.stored_shown != self.memory.panels.shown {
            self.stored_shown = self.memory.panels.shown.clone();
            changes.push(Change::Shown(self.stored_shown.clone()));
        }
        for change in changes {
            let memory = serde_json::to_value(change).unwrap_or_default();
            drop(self.record(Record::Memory { memory }, now));
        }
        for record in self.books.settle(end) {
            drop(self.record(record, now));
        }
    }

    /// Tells when everything is stored.
    pub fn flush(&self) -> Saved {
        self.log.flush()
    }
}

/// When a request ended, and whom it was for.
fn ended(request: &RequestRecord) -> (Timestamp, Arc<str>, Arc<str>) {
    // What was read or written lives from the answer's beginning on.
    let began = i64::try_from(request.first_token_ms.unwrap_or(0)).unwrap_or(0);
    let at = request.started.checked_add(jiff::SignedDuration::from_millis(began)).unwrap_or(request.started);
    (at, request.provider.clone(), request.model.clone())
}

/// What of a session's file a conversation is billed for.
#[derive(Clone, Copy)]
enum Bill {
    /// All of it, on whatever branch.
    Session,
    /// Its own branch: a fork takes nothing else along.
    Branch,
}

fn spent(request: &RequestRecord) -> Spent {
    let usage = &request.usage;
    Spent {
        input: usage.input,
        read: usage.cache_read,
        written: usage.cache_write_5m + usage.cache_write_1h,
        output: usage.output,
        dollars: request.dollars,
    }
}
