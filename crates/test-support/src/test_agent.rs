//! [`TestAgent`]: an agent, its provider, its folder, and everything that happened.

mod assertions; // what must hold for every conversation
mod driving; // prompting, queueing, waiting
mod records; // events, requests, messages, bills

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use hardpan_agent::{Agent, Conversation, ConversationError};
use hardpan_session::LogErrorCause;
use hardpan_tools::{Journal, ToolSource};
use serde_json::Value;

use crate::environment::{AgentParts, TestEnvironment, write_file};
use crate::{
    EventLog, LookTool, NoteLog, TestAgentBuilder, WorkspaceContents, canned_answer::serve_canned_answer,
    header,
};

/// Opens a session that an agent has just let go. A program that another test starts holds its lock
/// until it runs, which is waited for.
fn open_again(path: &Path) -> Conversation {
    for _ in 0..1000 {
        match Conversation::resume(path, None) {
            Err(ConversationError::Log(error)) if matches!(error.cause, LogErrorCause::Busy) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.expect("the session opens again"),
        }
    }
    panic!("{} stays locked", path.display());
}

/// An agent, its provider and its folder. Copies and forks share the provider and the folder.
pub struct TestAgent {
    /// The agent itself.
    pub agent: Agent,
    environment: Arc<TestEnvironment>,
    seen: Option<EventLog>,
    journal: Option<Arc<Journal>>,
}

impl TestAgent {
    /// For tests of the loop itself: the simulator over HTTP, fake tools, `a.txt` of two lines in the
    /// folder, `open.md` shown if it is there.
    pub fn builder() -> TestAgentBuilder {
        TestAgentBuilder::for_loop()
    }

    /// For tests of what changes files: the binary's tools, all allowed, an empty folder, a small
    /// window that is never compacted by itself, a frozen clock.
    pub fn with_real_tools() -> TestAgentBuilder {
        TestAgentBuilder::for_real_tools()
    }

    /// For tests of what costs money and time: the simulator in this process, and a clock that the
    /// test moves. Asked to look, the model calls `look`.
    pub fn in_process() -> TestAgentBuilder {
        TestAgentBuilder::for_billing()
    }

    pub(crate) fn begin_in(environment: Arc<TestEnvironment>) -> Self {
        let conversation = Conversation::begin(&environment.session_path("s1"), header("s1"));
        TestAgent::on(environment, conversation.expect("a conversation"))
    }

    fn on(environment: Arc<TestEnvironment>, conversation: Conversation) -> Self {
        let AgentParts { agent, journal } = environment.agent(conversation);
        let seen = environment.builder.is_recording.then(|| EventLog::new(&agent));
        TestAgent { agent, environment, seen, journal }
    }

    /// Another agent at the same provider, in the same folder, with this conversation.
    pub fn with_conversation(&self, conversation: Conversation) -> Self {
        TestAgent::on(self.environment.clone(), conversation)
    }

    /// The same session, opened again without the agent having been shut down.
    pub fn resume(self) -> Self {
        let TestAgent { agent, environment, .. } = self;
        let (_, path) = agent.session();
        drop(agent);
        TestAgent::on(environment, open_again(&path))
    }

    /// The same session, shut down and opened again.
    pub async fn restart(self) -> Self {
        self.agent.shutdown().await.expect("everything is stored");
        self.resume()
    }

    /// Another agent with a copy of the session as it is on the disk.
    pub fn copy(&self) -> Self {
        let path = self.environment.session_path(&self.environment.free_session_name("copy"));
        std::fs::copy(self.session_path(), &path).expect("a copy");
        self.with_conversation(Conversation::resume(&path, None).expect("the copy opens"))
    }

    /// Another agent that goes on from an entry, in a session of its own.
    pub fn fork(&self, leaf: Option<&str>) -> Self {
        let name = self.environment.free_session_name("fork");
        self.with_conversation(self.fork_session(&name, leaf))
    }

    /// The session up to an entry, as one of its own.
    pub fn fork_session(&self, name: &str, leaf: Option<&str>) -> Conversation {
        let path = self.environment.session_path(name);
        Conversation::fork(&self.session(), leaf, &path, header(name)).expect("a fork")
    }

    /// A new session beside this one.
    pub fn begin_session(&self, name: &str) -> Conversation {
        Conversation::begin(&self.environment.session_path(name), header(name)).expect("a conversation")
    }

    /// Where the session is stored.
    pub fn session_path(&self) -> PathBuf {
        self.agent.session().1
    }

    /// A file of the folder that the agent works in.
    pub fn file(&self, path: &str) -> PathBuf {
        self.environment.work().join(path)
    }

    /// Writes a file of that folder.
    pub fn write(&self, path: &str, content: &str) {
        write_file(&self.file(path), content);
    }

    /// Reads a file of that folder.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.file(path)).expect("the file")
    }

    /// What the agent observes, to be changed.
    pub fn workspace(&self) -> MutexGuard<'_, WorkspaceContents> {
        self.environment.workspace.contents()
    }

    /// Shows an item, or changes it.
    pub fn set_item(&self, key: &str, body: &str) {
        self.workspace().set_item(key, body);
    }

    /// Shows an item no longer.
    pub fn remove_item(&self, key: &str) {
        self.workspace().remove_item(key);
    }

    /// The journal of file changes, with the real tools.
    pub fn journal(&self) -> &Journal {
        self.journal.as_deref().expect("the real tools have a journal")
    }

    /// Has `smell` in place of `listen` among the tools.
    pub fn change_tools(&self) {
        let (tools, own) = (self.agent.tools(), ToolSource::built_in());
        assert!(tools.remove(&own, "listen"), "there is a tool to take away");
        tools.register(&own, Arc::new(LookTool::new("smell"))).expect("the name is free");
    }

    /// Forgets everything that the simulated provider has cached.
    pub fn clear_caches(&self) {
        self.environment.clear_caches();
    }

    /// Moves a manual clock.
    pub fn pass_minutes(&self, minutes: i64) {
        self.environment.clock.advance(minutes * 60_000);
    }

    /// Has the next request answered with these events, or with silence if there are none, by
    /// another server than the simulator. The server notes when the request has come.
    pub fn answer_once(&self, events: &[Value], notes: &NoteLog) {
        let url = serve_canned_answer(events, notes.clone());
        *self.environment.traffic.elsewhere.lock().expect("the address") = Some(url);
    }
}
