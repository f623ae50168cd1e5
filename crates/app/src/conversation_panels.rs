//! [`ConversationPanels`]: the panels of a conversation. The settings say which there are, events keep
//! them up to date, and the session stores them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, AgentStart, HandlerError, SessionShutdown, SessionStart, SessionTree, ToolExecutionEnd,
    ToolExecutionStart, TurnStart,
};
use hardpan_agent::expand::Expansions;
use hardpan_agent::{Agent, Conversation, Delivery, Input, InputSource, RunEnd};
use hardpan_context::{KnownSecrets, LayoutName, SecretScanner};
use hardpan_panels::{
    ConsoleTool, Library, LibraryEntry, LibraryKind, Logs, Memories, NotificationKind, OpenFiles, Panel,
    PanelRegistry, PanelTool, RunSummary, SavedPanels, Scratchpad, Spine, SpineDecision, SpineLimits,
    Statistics, StatisticsFigures, Todo, TodoStatus, ToolPanel, Tree,
};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_tools::{ConsoleShell, Scope, ShellOptions, Tool, ToolRegistry, ToolSource};
use jiff::SignedDuration;
use tokio::task::AbortHandle;

use crate::clock::now;
use crate::file_changes::FileChanges;
use crate::gather::ContentTimes;
use crate::git_panels::{GitReader, GitTool};
use crate::github_panels::{GitHubReader, GitHubTool};
use crate::notice::{Notice, NoticeSink};
use crate::settings::{PanelKind, Settings};

/// The session entry that stores the [`SavedPanels`]. Sessions on disk have this name.
pub(crate) const PANELS_ENTRY: &str = "hardpan.panels";

/// How often a wait looks whether the user has aborted it.
const ABORT_CHECK: Duration = Duration::from_millis(50);

/// How long the agent sleeps at most before it looks at the clock again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The panels of a conversation.
pub struct ConversationPanels {
    /// The panels themselves: their ids, pages and content.
    pub registry: Arc<PanelRegistry>,
    todo: Option<Arc<Todo>>,
    statistics: Option<Arc<Statistics>>,
    spine: Option<Arc<Spine>>,
    logs: Option<Arc<Logs>>,
    /// The tools that open panels of their own.
    opening_tools: Vec<Arc<dyn Tool>>,
    /// What the session file has.
    stored: Mutex<SavedPanels>,
    /// Tokens and dollars of the session when the current run began.
    before_run: Mutex<(u64, f64)>,
    /// Whether the next run is one that the spine started.
    is_continuation: AtomicBool,
    /// Which open files somebody else changed.
    file_changes: FileChanges,
    /// Wakes the agent; once.
    waker: Mutex<Option<AbortHandle>>,
    notices: Arc<dyn NoticeSink>,
}

/// What panels are made of.
pub(crate) struct PanelSources<'a> {
    pub settings: &'a Settings,
    pub layout: LayoutName,
    pub scope: &'a Scope,
    pub tools: &'a ToolRegistry,
    pub expansions: &'a Expansions,
    pub secrets: &'a KnownSecrets,
    pub notices: &'a Arc<dyn NoticeSink>,
    /// Whether the agent goes on by itself while work remains; replaces the setting.
    pub auto_continue: Option<bool>,
    /// How the programs of consoles run.
    pub shell: ShellOptions,
    pub git: Arc<GitReader>,
}

impl ConversationPanels {
    /// The panels that the settings ask for, as the conversation stored them.
    pub(crate) fn new(sources: &PanelSources<'_>, saved: SavedPanels) -> Arc<Self> {
        let registry = Arc::new(PanelRegistry::default());
        let limits = spine_limits(sources);
        let kinds = enabled_kinds(sources, &limits);
        let (has_consoles, has_git) = (kinds.contains(&PanelKind::Console), kinds.contains(&PanelKind::Git));
        let has_github = kinds.contains(&PanelKind::GitHub);
        let (mut todo, mut statistics, mut spine, mut logs) = (None, None, None, None);
        for kind in kinds {
            let panel: Arc<dyn Panel> = match kind {
                PanelKind::Todo => todo.insert(Arc::new(Todo::default())).clone(),
                PanelKind::Library => Arc::new(Library::new(library_entries(sources.expansions), &registry)),
                PanelKind::Statistics => statistics.insert(Arc::new(Statistics::default())).clone(),
                PanelKind::Tools => Arc::new(ToolPanel::new(sources.tools.clone())),
                PanelKind::Tree => Arc::new(Tree::new(sources.scope.clone())),
                PanelKind::Memories => Arc::new(Memories::new(
                    sources.scope.clone(),
                    SecretScanner::new(sources.secrets.clone()),
                )),
                PanelKind::Spine => spine.insert(Arc::new(Spine::new(limits))).clone(),
                PanelKind::Logs => logs.insert(Arc::new(Logs::default())).clone(),
                PanelKind::Scratchpad => Arc::new(Scratchpad::default()),
                PanelKind::Console | PanelKind::Git | PanelKind::GitHub => continue,
            };
            registry.add(panel);
        }
        let mut opening_tools: Vec<Arc<dyn Tool>> = Vec::new();
        if has_consoles {
            let told = spine.clone();
            let listener = move |_: &str, event: &str| {
                told.iter()
                    .for_each(|spine: &Arc<Spine>| spine.notify(NotificationKind::Console, event, now()));
            };
            let shell = ConsoleShell::new(sources.shell.clone());
            opening_tools.push(Arc::new(ConsoleTool::new(&registry, shell, Arc::new(listener))));
        }
        if has_git {
            opening_tools.push(Arc::new(GitTool::new(&registry, sources.git.clone())));
        }
        let github = GitHubReader::new(sources.git.clone());
        // By default there is no tool that cannot work; who asks for it is told what is missing.
        if has_github && (sources.settings.config.panels.is_some() || github.is_installed()) {
            opening_tools.push(Arc::new(GitHubTool::new(&registry, Arc::new(github))));
        }
        // After the tools are made, which say how their panels come back.
        registry.restore(saved.clone());
        let (before_run, is_continuation, waker) = Default::default();
        let file_changes = FileChanges::new(sources.scope.clone(), sources.git.watch.clone());
        let stored = Mutex::new(saved);
        Arc::new(ConversationPanels {
            registry,
            todo,
            statistics,
            spine,
            logs,
            opening_tools,
            stored,
            before_run,
            is_continuation,
            file_changes,
            waker,
            notices: sources.notices.clone(),
        })
    }

    /// Whether the conversation may have panels.
    fn is_used(&self) -> bool {
        !self.registry.is_empty() || !self.opening_tools.is_empty()
    }

    /// The spine, which takes notifications; none if the settings leave it out.
    pub fn spine(&self) -> Option<&Arc<Spine>> {
        self.spine.as_ref()
    }

    /// Declares the tool `panel` and those that panels bring. They stay as they are declared now.
    pub(crate) fn register_tools(&self, tools: &ToolRegistry, files: Arc<dyn OpenFiles>) {
        if !self.is_used() {
            return;
        }
        let tool = PanelTool::new(self.registry.clone(), files, Arc::new(now));
        let brought = self.registry.tools().into_iter().chain(self.opening_tools.iter().cloned());
        for tool in [Arc::new(tool) as _].into_iter().chain(brought) {
            // Tests check that no other tool has one of their names.
            let _ = tools.register(&ToolSource::built_in(), tool);
        }
    }

    /// Keeps the panels up to date, stores them when a tool changed them, and lets the spine decide
    /// what happens after a run.
    pub(crate) fn follow(self: &Arc<Self>, agent: &Agent) {
        if !self.is_used() {
            return;
        }
        let events = agent.events();
        let panels = self.clone();
        events.subscribe::<SessionStart, _>("hardpan", move |event, agent| {
            let panels = panels.clone();
            async move {
                panels.start_waker(&agent);
                // Otherwise nothing depends on it, and a resumed conversation sends the same bytes.
                let told = |spine: &&Arc<Spine>| event.resumed && spine.limits().auto_continue;
                if let Some(spine) = panels.spine.as_ref().filter(told) {
                    spine.notify(NotificationKind::Reload, "the conversation was resumed", now());
                }
                Ok(())
            }
        });
        let panels = self.clone();
        events.subscribe::<AgentStart, _>("hardpan", move |_, agent| {
            let panels = panels.clone();
            async move {
                panels.begin_run(&agent);
                Ok(())
            }
        });
        let panels = self.clone();
        events.subscribe::<TurnStart, _>("hardpan", move |_, _| {
            let panels = panels.clone();
            async move {
                panels.note_file_changes().await;
                panels.spine.iter().for_each(|spine| spine.before_request(now()));
                Ok(())
            }
        });
        let panels = self.clone();
        events.subscribe::<ToolExecutionStart, _>("hardpan", move |_, _| {
            let panels = panels.clone();
            async move {
                panels.note_file_changes().await;
                Ok(())
            }
        });
        let panels = self.clone();
        events.subscribe::<SessionShutdown, _>("hardpan", move |_, _| {
            let panels = panels.clone();
            async move {
                panels.lock_waker().take().iter().for_each(AbortHandle::abort);
                Ok(())
            }
        });
        // A branch has the panels that it had.
        let panels = self.clone();
        events.subscribe::<SessionTree, _>("hardpan", move |_, agent| {
            let panels = panels.clone();
            async move {
                panels.switch_to(saved_panels(agent.extension_state(PANELS_ENTRY)));
                Ok(())
            }
        });
        // Before the result of the call is stored: what the model was told to have changed is kept.
        let panels = self.clone();
        events.subscribe::<ToolExecutionEnd, _>("hardpan", move |_, agent| {
            let panels = panels.clone();
            async move {
                // What changed while a tool ran was changed by it.
                panels.look_at_files().await;
                panels.store(&agent).await
            }
        });
        let panels = self.clone();
        events.subscribe::<AgentEnd, _>("hardpan", move |event, agent| {
            let panels = panels.clone();
            async move { panels.end_run(&event, &agent).await }
        });
    }

    /// Wakes the agent when a timer is due or a console has news, if it may go on by itself.
    fn start_waker(self: &Arc<Self>, agent: &Agent) {
        let Some(spine) = self.spine.clone().filter(|spine| spine.limits().auto_continue) else { return };
        let mut waker = self.lock_waker();
        if waker.is_some() {
            return;
        }
        let (panels, agent) = (self.clone(), agent.clone());
        let waking = tokio::spawn(async move {
            loop {
                let due = spine.next_due().map(|due| due.duration_since(now()).max(SignedDuration::ZERO));
                let wait = due.map_or(LONGEST_SLEEP, |due| due.unsigned_abs().min(LONGEST_SLEEP));
                tokio::select! {
                    () = spine.wait_for_news() => {}
                    // A clock that jumps ahead, or a machine that slept, makes a timer due earlier.
                    () = tokio::time::sleep(wait), if due.is_some() => {}
                }
                agent.wait_until_idle().await;
                // A person who stopped the agent has not spoken since.
                if agent.is_abort_requested() || agent.status().is_working() {
                    spine.ring_timers(now());
                    continue;
                }
                let decision = spine.when_idle(now());
                if panels.carry_out(decision, &agent).await.is_err() {
                    tracing::debug!("the agent could not be woken");
                }
            }
        });
        *waker = Some(waking.abort_handle());
    }

    fn lock_waker(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the spine which open files somebody else changed.
    async fn note_file_changes(self: &Arc<Self>) {
        for path in self.look_at_files().await {
            self.spine.iter().for_each(|spine| spine.notify(NotificationKind::FileChanged, &path, now()));
        }
    }

    /// The open files that changed since they were last looked at.
    async fn look_at_files(self: &Arc<Self>) -> Vec<String> {
        if self.spine.is_none() {
            return Vec::new();
        }
        let panels = self.clone();
        let open = panels.registry.open_files();
        let looking = tokio::task::spawn_blocking(move || panels.file_changes.look(&open));
        looking.await.unwrap_or_default()
    }

    /// Goes on with a conversation that has shown these files.
    pub(crate) fn resume_files(&self, times: &ContentTimes) {
        self.file_changes.resume(times);
    }

    /// Switches to the panels of another conversation.
    pub(crate) fn switch_to(&self, saved: SavedPanels) {
        self.registry.restore(saved.clone());
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = saved;
    }

    /// Goes on with the same panels in a copy of the conversation, which has stored these.
    pub(crate) fn continue_in_fork(&self, stored: SavedPanels) {
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = stored;
    }

    /// Stores the panels in the session, if they changed.
    pub(crate) async fn store(&self, agent: &Agent) -> Result<(), HandlerError> {
        let saved = self.registry.save();
        {
            let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
            if *stored == saved {
                return Ok(());
            }
            stored.clone_from(&saved);
        }
        let data = serde_json::to_value(saved)?;
        Ok(agent.store_extension_state(PANELS_ENTRY, data).await?)
    }

    fn begin_run(&self, agent: &Agent) {
        let session = agent.token_usage().session;
        let before = (session.tokens.output, session.dollars);
        *self.before_run.lock().unwrap_or_else(PoisonError::into_inner) = before;
        let is_continuation = self.is_continuation.swap(false, Ordering::AcqRel);
        if let Some(spine) = self.spine.as_ref().filter(|_| !is_continuation) {
            spine.user_message(now());
        }
    }

    async fn end_run(&self, event: &AgentEnd, agent: &Agent) -> Result<(), HandlerError> {
        if let Some(statistics) = &self.statistics {
            statistics.set(figures(event, agent));
        }
        if let (Some(logs), RunEnd::Error { message }) = (&self.logs, &event.stop) {
            logs.record(&format!("the run failed: {message}"), now());
        }
        if let Some(spine) = &self.spine {
            let summary = self.summarize_run(event);
            let decision = spine.after_run(&summary, now());
            self.carry_out(decision, agent).await?;
        }
        self.store(agent).await
    }

    fn summarize_run(&self, event: &AgentEnd) -> RunSummary {
        let session = &event.token_usage.session;
        let (output, dollars) = *self.before_run.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = || event.messages.iter().filter(|message| is_answer(message));
        let last = event
            .messages
            .iter()
            .rev()
            .find(|message| is_answer(message) || matches!(&*message.body, MessageBody::User { .. }));
        RunSummary {
            aborted: event.stop == RunEnd::Aborted,
            failed: !matches!(event.stop, RunEnd::Done | RunEnd::Length | RunEnd::Aborted),
            answered: last.is_some_and(is_answer),
            calls: u32::try_from(answers().map(count_calls).sum::<usize>()).unwrap_or(u32::MAX),
            turns: u32::try_from(answers().count()).unwrap_or(u32::MAX),
            output_tokens: session.tokens.output.saturating_sub(output),
            dollars: session.dollars - dollars,
            inputs_wait: !event.queued.is_empty(),
            todos: self.todo.as_ref().map(|todo| todo.remaining()).unwrap_or_default(),
        }
    }

    /// The todo list, each todo with its status. Empty in layouts that have none.
    pub fn todos(&self) -> Vec<(String, TodoStatus)> {
        self.todo.as_ref().map(|todo| todo.entries()).unwrap_or_default()
    }

    /// Goes on with a message of the spine, unless the user speaks or aborts meanwhile.
    async fn carry_out(&self, decision: SpineDecision, agent: &Agent) -> Result<(), HandlerError> {
        let (message, work, wait) = match decision {
            SpineDecision::Rest => return Ok(()),
            SpineDecision::Stop(rail) => {
                if let Some(logs) = &self.logs {
                    logs.record(&format!("the agent stopped although work remains: {rail}"), now());
                }
                self.notices.notice(Notice::ContinuationStopped(rail));
                return Ok(());
            }
            SpineDecision::Continue { message, work, wait } => (message, work, wait),
        };
        let checks = wait.as_millis().div_ceil(ABORT_CHECK.as_millis());
        for _ in 0..checks {
            tokio::time::sleep(ABORT_CHECK).await;
            if agent.is_abort_requested() || !agent.queued_inputs().is_empty() {
                return Ok(());
            }
        }
        if agent.is_abort_requested() || !agent.queued_inputs().is_empty() {
            return Ok(());
        }
        self.is_continuation.store(true, Ordering::Release);
        self.notices.notice(Notice::Continued { work });
        let (below, images, source) = (None, Vec::new(), InputSource::Agent);
        let input = Input { text: message, below, images, source, id: None };
        agent.queue(input, Delivery::FollowUp).await?;
        Ok(())
    }
}

fn is_answer(message: &AgentMessage) -> bool {
    matches!(&*message.body, MessageBody::Assistant { .. })
}

fn count_calls(message: &AgentMessage) -> usize {
    match &*message.body {
        MessageBody::Assistant { content, .. } => {
            content.iter().filter(|part| matches!(part, MessagePart::ToolCall(_))).count()
        }
        _ => 0,
    }
}

/// The kinds of panels that a conversation has: those of the settings, else all where the layout is
/// about panels, and none elsewhere.
fn enabled_kinds(sources: &PanelSources<'_>, limits: &SpineLimits) -> Vec<PanelKind> {
    let is_about_panels = sources.layout.layout().is_about_panels();
    let default = || if is_about_panels { PanelKind::ALL.to_vec() } else { Vec::new() };
    let mut kinds = sources.settings.config.panels.clone().unwrap_or_else(default);
    // To go on while work remains, the model must be able to say what that is.
    let needed = [PanelKind::Todo, PanelKind::Spine].into_iter().filter(|_| limits.auto_continue);
    for kind in needed {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn spine_limits(sources: &PanelSources<'_>) -> SpineLimits {
    let limits = sources.settings.config.spine.limits();
    SpineLimits { auto_continue: sources.auto_continue.unwrap_or(limits.auto_continue), ..limits }
}

fn library_entries(expansions: &Expansions) -> Vec<LibraryEntry> {
    let skills = expansions.skills.iter().filter(|skill| skill.listed).map(|skill| LibraryEntry {
        kind: LibraryKind::Skill { body: skill.body.clone() },
        name: skill.name.clone(),
        description: skill.description.clone(),
    });
    let commands =
        expansions.templates.iter().filter(|template| template.listed).map(|template| LibraryEntry {
            kind: LibraryKind::Command,
            name: format!("/{}", template.name),
            description: template.description.clone(),
        });
    let agents = expansions.agents.iter().filter(|agent| agent.listed).map(|agent| LibraryEntry {
        kind: LibraryKind::Agent,
        name: agent.name.clone(),
        description: agent.description.clone(),
    });
    agents.chain(skills).chain(commands).collect()
}

fn figures(event: &AgentEnd, agent: &Agent) -> StatisticsFigures {
    let report = &event.token_usage;
    let tokens = &report.session.tokens;
    StatisticsFigures {
        requests: report.requests,
        input: tokens.prompt(),
        cached: tokens.cache_read,
        output: tokens.output,
        dollars: report.session.dollars,
        context: report.last_request.map_or(0, |last| last.tokens.prompt()),
        window: u64::from(agent.target().model.context),
    }
}

/// The panels that an earlier run of the conversation stored; none if there are none.
pub(crate) fn restore_panels(conversation: &Conversation) -> SavedPanels {
    saved_panels(conversation.custom.get(PANELS_ENTRY).cloned())
}

fn saved_panels(stored: Option<serde_json::Value>) -> SavedPanels {
    stored.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default()
}
