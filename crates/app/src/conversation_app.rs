//! [`ConversationApp`]: an agent with everything around it. Every face starts from it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::{
    Agent, AgentError, BranchExit, ClientFactory, Conversation, Input, InputSource, PreviewError,
    RequestPreview, SessionSwitchKind,
};
use hardpan_context::Target;
use hardpan_prompt::Image;
use hardpan_session::SessionStore;
use hardpan_tools::Scope;

use crate::actions::ActionError;
use crate::agents::{find_agent, switch_tools};
use crate::approval::{ApprovalMode, Approver, UserPrompter};
use crate::awaited_target::AwaitedTarget;
use crate::conversation_panels::{ConversationPanels, restore_panels};
use crate::deferred::DeferredCommands;
use crate::extensions::{Extensions, FoundExtension};
use crate::mcp::{AttachedResource, McpServers, ResourceError};
use crate::mentions::{MentionNote, Mentions, PromptSource};
use crate::notice::Notice;
use crate::notice::NoticeSink;
use crate::open::OpenError;
use crate::provider_connection::ProviderConnection;
use crate::session_folder::ScratchFolder;
use crate::session_origin::ForeignSessions;
use crate::settings::Settings;
use crate::target::TargetNotices;
use crate::telemetry::ConversationTelemetry;
use crate::tool_set::ToolSet;
use crate::workspace_context::{PinnedContext, WorkspaceContext};
use hardpan_agent::expand::{AgentDefinition, DEFAULT_AGENT};

/// The session entry that stores the [`PinnedContext`]. Sessions on disk have this name.
pub(crate) const PINNED_ENTRY: &str = "hardpan.around";

/// An agent that is ready to run, with its folder, its settings, its tools and its session store.
/// [`ConversationApp::open`] makes one.
pub struct ConversationApp {
    /// Takes prompts, runs turns, and sends events.
    pub agent: Agent,
    /// What the folder contributes to each request; opens and closes files.
    pub context: Arc<WorkspaceContext>,
    /// The panels of the conversation.
    pub panels: Arc<ConversationPanels>,
    /// The settings of the user and of the folder's project.
    pub settings: Arc<Settings>,
    /// The folder that the conversation works in, canonical.
    pub folder: PathBuf,
    /// The files that the agent may read and write.
    pub scope: Scope,
    /// Where this conversation and the others of the user are stored.
    pub store: SessionStore,
    /// The tools, and their journal for undoing changes.
    pub tool_set: ToolSet,
    /// Commands that wait until they cost nothing.
    pub deferred: DeferredCommands,
    /// The servers that bring tools.
    pub mcp: Arc<McpServers>,
    /// The extensions that were loaded.
    pub extensions: Extensions,
    /// Extensions that wait for [`ConversationApp::load_extensions`].
    pub(crate) found_extensions: Mutex<Vec<FoundExtension>>,
    /// The model that an extension may bring.
    pub(crate) awaited_target: Mutex<Option<AwaitedTarget>>,
    pub(crate) telemetry: ConversationTelemetry,
    pub(crate) approvals: Arc<Approver>,
    pub(crate) reserved_names: Vec<&'static str>,
    pub(crate) connection: Arc<ProviderConnection>,
    pub(crate) notices: Arc<dyn NoticeSink>,
    pub(crate) target_notices: TargetNotices,
    /// Images that go with the first prompt.
    pub(crate) images: Mutex<Vec<Image>>,
    pub(crate) foreign_sessions: ForeignSessions,
    /// Whether the user said yes to everything.
    pub(crate) approval: ApprovalMode,
    /// How to ask the user; none if nobody is there.
    pub(crate) prompter: Option<Arc<dyn UserPrompter>>,
    /// The temporary folder of a conversation that is not stored, removed on drop.
    pub(crate) _scratch: Option<ScratchFolder>,
}

/// What goes with a prompt.
#[derive(Debug, Default)]
pub struct Attachments {
    /// The images that the prompt mentions, unless the layout shows them as context, and those of [`OpenOptions::images`] with the first.
    ///
    /// [`OpenOptions::images`]: crate::options::OpenOptions::images
    pub images: Vec<Image>,
    /// What the user should know about mentions that are not attached in full.
    pub notes: Vec<MentionNote>,
}

impl ConversationApp {
    /// Whether the simulator answers. Its cache costs nothing and need not be kept warm.
    pub fn is_simulated(&self) -> bool {
        self.connection.is_simulated()
    }

    /// Whether the conversation is kept when the program ends.
    pub fn is_stored(&self) -> bool {
        self._scratch.is_none()
    }

    /// Whether the simulator would answer requests to a model, because there is no key for it.
    pub fn is_offline(&self, target: &Target) -> bool {
        self.connection.is_offline(target)
    }

    /// How to ask the user something; none if nobody is there.
    pub fn prompter(&self) -> Option<&Arc<dyn UserPrompter>> {
        self.prompter.as_ref()
    }

    /// Images that go with the next prompt.
    pub(crate) fn waiting_images(&self) -> Vec<Image> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a resource of a server to the context; its images go with the next prompt.
    pub async fn attach_resource(&self, name: &str) -> Result<AttachedResource, ResourceError> {
        let attached = self.mcp.attach_resource(name).await?;
        self.images.lock().unwrap_or_else(PoisonError::into_inner).extend(attached.images.iter().cloned());
        Ok(attached)
    }

    /// Tells the person something.
    pub fn notice(&self, notice: Notice) {
        self.notices.notice(notice);
    }

    /// Loads the conversation's extensions. A face calls it once, after its own commands are
    /// registered and before [`Agent::start`].
    ///
    /// # Errors
    ///
    /// If the model that was asked for is of a provider that nobody brings.
    pub async fn load_extensions(self: &Arc<Self>) -> Result<(), OpenError> {
        let found =
            std::mem::take(&mut *self.found_extensions.lock().unwrap_or_else(PoisonError::into_inner));
        self.extensions.load(self, found).await;
        let awaited = self.awaited_target.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.take_awaited_target(awaited)
    }

    /// Loads the extensions anew because the person wants it, once the agent is idle, from the files as they are now.
    /// Asks first about a project's extensions that are no longer those that the user trusted.
    pub async fn reload_extensions(self: &Arc<Self>) {
        self.extensions.want_reload();
        self.extensions.reload(self).await;
    }

    /// Opens the files that a prompt mentions with `@`, and returns the images that go with it. A
    /// slash command mentions none.
    pub fn attach_mentions(&self, prompt: &str, source: PromptSource) -> Attachments {
        if is_command(&self.agent, prompt) {
            return Attachments::default();
        }
        let mut images = std::mem::take(&mut *self.images.lock().unwrap_or_else(PoisonError::into_inner));
        if source == PromptSource::Typed {
            self.mcp.note_mentions(prompt);
        }
        let mentioned = Mentions::find(prompt, &self.scope, source);
        mentioned.files.into_iter().for_each(|path| self.context.open(path));
        for (path, image) in mentioned.images {
            if self.context.shows_images() {
                self.context.open(path);
            } else {
                images.push(image);
            }
        }
        Attachments { images, notes: mentioned.notes }
    }

    /// The request that a prompt would lead to now; without one, the request that would go on with
    /// the conversation as it is. Nothing is stored, and no file stays open.
    pub async fn preview_request(&self, prompt: &str) -> Result<RequestPreview, PreviewError> {
        let mentioned = Mentions::find(prompt, &self.scope, PromptSource::Typed);
        let open = self.context.pinned_context().files;
        let mut images = self.images.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut named = mentioned.files;
        for (path, image) in mentioned.images {
            if self.context.shows_images() {
                named.push(path);
            } else {
                images.push(image);
            }
        }
        let added: Vec<PathBuf> = named.into_iter().filter(|path| !open.contains(path)).collect();
        added.iter().for_each(|path| self.context.open(path.clone()));
        let (text, source) = (prompt.to_owned(), InputSource::Interactive);
        let input = Input { text, below: None, images, source, id: None };
        let input = Some(input).filter(|_| !prompt.trim().is_empty());
        let preview = self.agent.preview_request(input, None).await;
        for path in &added {
            self.context.close(path);
        }
        preview
    }

    /// Switches to another conversation once the agent is idle, with that conversation's open files
    /// and journal. A fork keeps the files that are open now.
    pub(crate) async fn switch_conversation(&self, conversation: Conversation, how: SessionSwitchKind) {
        let (mut pinned, session) = (restore_pinned(&conversation), conversation.session.clone());
        if conversation.messages.is_empty() {
            // A new conversation goes on with the agent of this one.
            pinned.agent = self.context.pinned_context().agent;
        }
        let panels = restore_panels(&conversation);
        self.mcp.take_up(&conversation, &self.agent.target());
        let is_fork = matches!(how, SessionSwitchKind::Fork { .. });
        self.agent.switch_session(conversation, how).await;
        if is_fork {
            self.panels.continue_in_fork(panels);
        } else {
            self.context.switch_to(pinned.clone());
            self.restore_agent(pinned.agent.as_deref());
            self.panels.switch_to(panels);
            self.panels.resume_files(&pinned.times);
            self.deferred.switch_to(&self.agent);
        }
        self.tool_set.switch_to(&session);
    }

    /// Goes on as the agent that a conversation had.
    fn restore_agent(&self, name: Option<&str>) {
        let found = name.map_or(Ok(None), |name| find_agent(self.agent.own_expansions(), name));
        let found = found.unwrap_or_else(|unknown| {
            self.notices.notice(Notice::AgentGone(unknown));
            None
        });
        self.context.select_agent(found);
    }

    /// The agents that there are besides the default one.
    pub fn agents(&self) -> &[AgentDefinition] {
        &self.agent.own_expansions().agents
    }

    /// Name of the agent that works.
    pub fn agent_name(&self) -> String {
        self.context.pinned_context().agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned())
    }

    /// Works as another agent from the next request on: with its text, its tools and its model. That
    /// changes the system prompt, so nothing after it is read from the cache.
    pub async fn switch_agent(&self, name: &str) -> Result<(), ActionError> {
        let found = find_agent(self.agent.own_expansions(), name)?.cloned();
        if let Some(model) = found.as_ref().and_then(|agent| agent.model.clone()) {
            self.select_model(None, model).await?;
        }
        let before = find_agent(self.agent.own_expansions(), &self.agent_name()).ok().flatten();
        switch_tools(self.agent.tools(), before, found.as_ref());
        self.context.select_agent(found.as_ref());
        Ok(())
    }

    /// Stores what there is, and ends the agent and what goes on behind the conversation, such as indexing; called
    /// before the program ends.
    pub async fn close(&self) -> Result<(), AgentError> {
        self.save_state().await;
        let stored = self.agent.shutdown().await;
        self.stop_indexing().await;
        self.telemetry.finish().await;
        stored
    }

    /// Stops building the index of symbols; requests do without it until it is asked for again.
    pub async fn stop_indexing(&self) {
        let context = self.context.clone();
        // A panic in there has been reported; the program ends anyway.
        let _ = tokio::task::spawn_blocking(move || context.stop_indexing()).await;
    }

    /// Goes on from an earlier entry. The open files and the commands that wait stay, and are stored
    /// there at once: whoever resumes the conversation comes to the same place.
    pub async fn go_to_entry(&self, entry: &str, exit: BranchExit) -> Result<(), AgentError> {
        self.agent.go_to_entry(entry, exit).await?;
        self.save_state().await;
        Ok(())
    }

    /// Stores the open files, the commands that wait and what was learned; called after each run and
    /// after what changes these.
    pub async fn save_state(&self) {
        let pinned = self.context.pinned_context();
        let stored = read_pinned(self.agent.extension_state(PINNED_ENTRY));
        if stored != pinned
            && let Ok(data) = serde_json::to_value(pinned)
        {
            // A session that cannot be written reports it with the next message.
            let _ = self.agent.store_extension_state(PINNED_ENTRY, data).await;
        }
        // As above.
        let _ = self.panels.store(&self.agent).await;
        self.deferred.store(&self.agent).await;
        let ((session, _), requests) = (self.agent.session(), self.agent.token_usage().requests);
        let is_real = self.is_stored() && !self.is_simulated() && requests > 0;
        self.connection.save_learned(is_real.then_some((&*session, requests)));
    }
}

/// Whether a text calls one of the agent's slash commands, other than those that make a prompt.
pub fn is_command(agent: &Agent, text: &str) -> bool {
    let name = text.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
    name.is_some_and(|name| agent.commands().get(name).is_some_and(|command| !command.is_prompt()))
}

/// The pinned context that an earlier run of the conversation stored; empty if there is none.
pub(crate) fn restore_pinned(conversation: &Conversation) -> PinnedContext {
    read_pinned(conversation.custom.get(PINNED_ENTRY).cloned())
}

fn read_pinned(pinned: Option<serde_json::Value>) -> PinnedContext {
    pinned.and_then(|pinned| serde_json::from_value(pinned).ok()).unwrap_or_default()
}
