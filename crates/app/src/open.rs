//! [`ConversationApp::open`]: from options to an agent that is ready to run.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hardpan_agent::{Agent, AgentSettings, Conversation, ConversationError, ReadCallMode, Setup};
use hardpan_context::Target;
use hardpan_files::create_private_folder;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::Image;
use hardpan_session::{LogError, Session, SessionError, SessionLookupError, SessionStore, SessionSummary};
use hardpan_tools::{PageReader, Scope};
use hardpan_workspace as workspace;
use hardpan_workspace::{GitOptions, ImageFileError};

use crate::agents::{UnknownAgent, choose_agent, switch_tools, with_model_of};
use crate::approval::{Approver, InvalidRule, UserPrompter};
use crate::audit_log::AuditLog;
use crate::awaited_target::choose_or_await;
use crate::clock::now;
use crate::command_sandbox::{hidden_files, without_restrictions};
use crate::context_items::{DocumentIdError, document_id};
use crate::conversation_app::{ConversationApp, restore_pinned};
use crate::conversation_panels::{ConversationPanels, PanelSources, restore_panels};
use crate::deferred::DeferredCommands;
use crate::extensions::{ExtensionProviders, Extensions, check_named, find_extensions};
use crate::gather::{FolderReader, GatherError, canonical_folder, discover_expansions, read_named_image};
use crate::git_access::{find_programs, git_for, git_options};
use crate::git_branch::record_git_branch;
use crate::hooks::{self, HookPlace};
use crate::learned_state::LearnedState;
use crate::mcp::{ConversationLink, McpServers, McpSetup, program_place};
use crate::notice::{DiscardNotices, Notice, NoticeSink};
use crate::options::{
    OpenOptions, RequestOptions, RequestPurpose, SessionChoice, SessionStorage, TargetOptions,
};
use crate::prompt_settings::PromptSettings;
use crate::provider_connection::ProviderConnection;
use crate::secrets::secret_settings;
use crate::session_folder::{ScratchFolder, begin_conversation, fork_conversation, unstored_conversation};
use crate::session_origin::{
    ForeignSession, ForeignSessions, drop_outside_files_of, drop_pinned_outside, foreign_session,
};
use crate::settings::{PagesMode, Settings, SettingsError, expand_home};
use crate::subagents::{Subagents, offers_tasks, register_shown_tool};
use crate::target::{
    TargetError, TargetNotices, apply_learned_factor, known_session_model, resolve_keep, resolve_layout,
    resolve_lifetime, resolve_target, undecided_providers,
};
use crate::telemetry::ConversationTelemetry;
use crate::tool_set::{CommandSetup, SessionArtifacts, ToolSet, web_options};
use crate::workspace_context::WorkspaceContext;

/// What a face provides.
#[derive(Clone)]
pub struct FaceHooks {
    /// Answers approval questions; without one, only rules and [`ApprovalMode::AllowAll`] allow
    /// changes.
    ///
    /// [`ApprovalMode::AllowAll`]: crate::approval::ApprovalMode::AllowAll
    pub prompter: Option<Arc<dyn UserPrompter>>,
    /// Shows notices.
    pub notices: Arc<dyn NoticeSink>,
}

impl Default for FaceHooks {
    /// Nobody to ask, and nobody to tell.
    fn default() -> Self {
        FaceHooks { prompter: None, notices: Arc::new(DiscardNotices) }
    }
}

/// Why a conversation cannot be opened. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] GatherError),
    /// The settings have a mistake.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An extension that was named is not there.
    #[error("--extension {}: {source}", path.display())]
    NamedExtension {
        /// As it was named.
        path: PathBuf,
        /// Why it cannot be used.
        source: io::Error,
    },
    /// There is no folder for sessions.
    #[error("no folder to store sessions in: set HOME or HARDPAN_DATA_DIR, or use --no-session")]
    NoDataFolder,
    /// The temporary folder of a conversation that is not stored cannot be created.
    #[error("cannot create a temporary folder: {0}")]
    Scratch(#[source] io::Error),
    /// No conversation has this id, name or file.
    #[error(transparent)]
    Lookup(#[from] SessionLookupError),
    /// The folder has no conversation to continue.
    #[error(
        "this folder has no conversation to continue; `hardpan sessions --all` lists those of other folders"
    )]
    NothingToContinue,
    /// The conversation comes from elsewhere, and the user has not said that it may be continued.
    #[error(
        "{0}. What it says, somebody else may have written, and the model believes it. If you know it, continue it with --foreign"
    )]
    ForeignSession(ForeignSession),
    /// The session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session file cannot be created.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The session cannot be continued or copied.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// There is no such agent.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// There is no such model or layout.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A permission rule has a mistake.
    #[error(transparent)]
    Rule(#[from] InvalidRule),
    /// An image cannot be sent.
    #[error(transparent)]
    Image(#[from] ImageFileError),
    /// It is no id of a document.
    #[error(transparent)]
    Document(#[from] DocumentIdError),
}

impl ConversationApp {
    /// Opens a conversation: reads the settings, finds or begins the session, makes the tools, and
    /// starts an agent that waits for a prompt.
    pub fn open(options: &OpenOptions, face: &FaceHooks) -> Result<Self, OpenError> {
        let notices = &face.notices;
        let folder = canonical_folder(&options.folder)?;
        let root = workspace::find_project_root(&folder);
        let settings = Arc::new(Settings::load(&root, options.user_folders.clone(), &**notices)?);
        let (store, scratch) = open_store(options, face)?;
        let workspace_scope = workspace_scope(&root, &folder, &settings);
        let conversation = open_conversation(options, &store, &workspace_scope, &**notices)?;
        let pinned = restore_pinned(&conversation);
        let artifacts = SessionArtifacts::for_session(
            &conversation.session,
            &settings.user_folders,
            scratch.as_ref().map(|scratch| &*scratch.0),
        );
        let scope = with_outputs(workspace_scope, &artifacts.outputs);
        let expansions = discover_expansions(&scope, &settings, &options.reserved_names);
        for problem in &expansions.problems {
            notices.notice(Notice::ExpansionSkipped(problem.clone()));
        }
        let asked = &options.target;
        let chosen_agent = choose_agent(&expansions, asked, &settings, &pinned, &conversation, &**notices)?;
        let asked = with_model_of(asked, chosen_agent.as_ref(), &conversation);
        let state = LearnedState::load(&options.user_folders);
        check_named(options).map_err(|(path, source)| OpenError::NamedExtension { path, source })?;
        let found_extensions = find_extensions(
            options,
            &root,
            settings.project_files.as_ref().or(settings.earlier_files.as_ref()),
            &**notices,
        );
        let has_extensions = !found_extensions.is_empty();
        let (target, awaited_target) =
            choose_or_await(&asked, &settings, &conversation, &state, &**notices, has_extensions)?;
        let index = workspace::LiveIndex::new(scope.guard(), &root, settings.user_folders.cache.as_deref());
        let programs = find_programs(&root, &settings);
        let sandbox_mode = options.sandbox.or(settings.config.sandbox).unwrap_or_default();
        let tool_set = ToolSet::new(
            &settings,
            &index,
            &conversation.session,
            scratch.as_ref().map(|scratch| &*scratch.0),
            CommandSetup {
                programs: programs.clone(),
                launcher: options.sandbox_launcher.clone(),
                sandbox_mode,
            },
            notices,
        );
        let git = git_options(&settings, programs.clone(), sandbox_mode, options.sandbox_launcher.clone());
        let pages = page_reader(&settings, git);
        let reader = FolderReader::new(
            scope.clone(),
            git_for(&root, &settings, programs, sandbox_mode, options.sandbox_launcher.clone()),
            settings.clone(),
            expansions.model_listing(),
            index,
            notices.clone(),
        )
        .with_prompt_settings(PromptSettings::resolve(&options.target, &settings, &**notices)?);
        let map_tokens = if options.symbol_map { settings.config.map_tokens } else { Some(0) };
        let layout = resolve_layout(&options.target, &settings, conversation.layout.as_deref())?;
        let secrets = secret_settings(&settings, &folder);
        let sources = PanelSources {
            settings: &settings,
            layout,
            scope: &scope,
            tools: &tool_set.tools,
            expansions: &expansions,
            secrets: &secrets.known,
            notices,
            auto_continue: options.auto_continue,
            shell: tool_set.commands.clone(),
            git: reader.git_reader(),
        };
        let panels = ConversationPanels::new(&sources, restore_panels(&conversation));
        panels.resume_files(&pinned.times);
        let free_tools = tool_set.tools.list().into_iter().map(|tool| tool.name).collect();
        let context =
            WorkspaceContext::new(reader, map_tokens, pinned.clone(), panels.registry.clone(), layout);
        let context = Arc::new(context);
        panels.register_tools(&tool_set.tools, context.clone());
        context.select_agent(chosen_agent.as_ref());
        for id in &options.documents {
            context.open_document(document_id(id)?);
        }
        let is_asked = options.target.agent.is_some() || conversation.messages.is_empty();
        let brought_providers: Arc<ExtensionProviders> = Arc::default();
        let connection = Arc::new(ProviderConnection::new(
            settings.clone(),
            options.access,
            brought_providers.clone(),
            state.refusals(),
            notices.clone(),
        ));
        let data = options.user_folders.data.as_deref().filter(|_| options.storage == SessionStorage::Stored);
        let log = Arc::new(AuditLog::new(data, &scope.root, secrets.known.clone()));
        let telemetry = ConversationTelemetry::open(&settings.config.telemetry, &secrets.known, notices);
        // Before the rules are read, and in the same order in every conversation.
        let mut servers = options.mcp_servers.clone();
        servers.extend(settings.config.mcp_servers.clone());
        let cache = settings.user_folders.cache.as_deref();
        let mcp_setup = McpSetup {
            configs: &servers,
            loading: settings.config.mcp_tools.unwrap_or_default(),
            requests: state.usual_requests(),
            cache,
            registry: &tool_set.tools,
            place: program_place(
                &root,
                settings.user_folders.logins(),
                &tool_set,
                options.sandbox_launcher.clone(),
            ),
        };
        let link = ConversationLink::new(settings.clone(), face.prompter.clone(), secrets.known.clone());
        let mcp = Arc::new(McpServers::new(mcp_setup, notices, link));
        mcp.take_up(&conversation, &target);
        let task_tool_agents = offers_tasks(&settings, &expansions.agents).then(|| expansions.agents.clone());
        if let Some(agents) = &task_tool_agents {
            // Before the rules are read, which may name it.
            register_shown_tool(&settings, agents, &tool_set.tools);
        }
        let approver = Arc::new(approver(options, face, &settings, &scope, &tool_set, log.clone())?);
        let task_tool = task_tool_agents.map(|agents| {
            let subagents = Arc::new(Subagents {
                settings: settings.clone(),
                agents,
                context: context.clone(),
                connection: connection.clone(),
                approvals: approver.clone(),
                scope: scope.clone(),
                secrets: secrets.clone(),
                agent_settings: agent_settings(&settings),
                journal: tool_set.journal.clone(),
                log: log.clone(),
                telemetry: telemetry.clone(),
                limits: settings.config.task.limits(),
                free_tools,
                questions: Arc::default(),
                file_locks: Arc::default(),
            });
            subagents.register_tool(&tool_set.tools)
        });
        let known_secrets = secrets.known.clone();
        let thinking = choose_thinking(&options.target, &conversation);
        let target_notices = TargetNotices::default();
        if awaited_target.is_none() {
            target_notices.send(&settings, &target, thinking, &**notices);
        }
        let setup = Setup {
            texts: Arc::new(settings.texts.clone()),
            context_source: context.clone(),
            client_factory: connection.clone(),
            approval_handler: approver.clone(),
            clock: Arc::new(now),
            tools: tool_set.tools.clone(),
            edit_block_tool: Some(hardpan_tools::edit_block_tool(tool_set.journal.clone())),
            pages,
            shell: Some(tool_set.shell.clone()),
            scope: scope.clone(),
            expansions,
            layout,
            keep: resolve_keep(&options.target, &settings),
            cache_lifetime: resolve_lifetime(&options.target, &settings),
            thinking,
            secrets,
            settings: AgentSettings {
                handler_timeout: options.handler_timeout.unwrap_or(AgentSettings::default().handler_timeout),
                ..agent_settings(&settings)
            },
            target,
        };
        let agent = Agent::new(setup, conversation);
        if let Some(tool) = task_tool {
            tool.serve(&agent);
        }
        if is_asked {
            switch_tools(agent.tools(), None, chosen_agent.as_ref());
        }
        tool_set.follow(&agent);
        log.follow(&agent);
        telemetry.follow(&agent, &context);
        panels.follow(&agent);
        mcp.follow(&agent, &approver);
        record_git_branch(&agent, root.clone());
        if settings.lost_guards {
            hooks::block_calls(&agent);
        }
        if !settings.config.hooks.is_empty() {
            let place = HookPlace {
                root: root.clone(),
                shell: tool_set.commands.clone(),
                unconfined: without_restrictions(options.sandbox_launcher.clone()),
            };
            hooks::follow(&agent, &settings.config.hooks, place);
        }
        let images = options.images.iter().map(|path| read_named_image(&scope, path));
        let images = images.collect::<Result<Vec<Image>, _>>()?;
        let deferred = DeferredCommands::restored(&agent);
        Ok(ConversationApp {
            agent,
            context,
            panels,
            settings,
            folder,
            scope,
            store,
            tool_set,
            deferred,
            mcp,
            telemetry,
            extensions: Extensions::new(options.clone(), root, brought_providers, known_secrets),
            found_extensions: Mutex::new(found_extensions),
            awaited_target: Mutex::new(awaited_target),
            approvals: approver,
            reserved_names: options.reserved_names.clone(),
            connection,
            notices: notices.clone(),
            target_notices,
            images: Mutex::new(images),
            foreign_sessions: options.foreign_sessions,
            approval: options.approval,
            prompter: face.prompter.clone(),
            _scratch: scratch,
        })
    }
}

/// The store for the conversation: the user's sessions, or a temporary one.
fn open_store(
    options: &OpenOptions,
    face: &FaceHooks,
) -> Result<(SessionStore, Option<ScratchFolder>), OpenError> {
    if options.storage == SessionStorage::Stored {
        let folder = options.user_folders.sessions().ok_or(OpenError::NoDataFolder)?;
        match check_writable(&folder) {
            // To a person, a conversation that cannot be kept is better than none. A script gets the
            // error with its first prompt.
            Err(error) if options.session == SessionChoice::New && face.prompter.is_some() => {
                face.notices.notice(Notice::SessionNotStored { folder, error });
            }
            _ => return Ok((SessionStore::new(folder), None)),
        }
    }
    let scratch = ScratchFolder::new().map_err(OpenError::Scratch)?;
    Ok((SessionStore::new(&scratch.0), Some(scratch)))
}

/// Whether a file can be created in a folder, which is created if it is missing.
fn check_writable(folder: &Path) -> io::Result<()> {
    create_private_folder(folder)?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    std::fs::File::create(&probe)?;
    std::fs::remove_file(probe)
}

fn open_conversation(
    options: &OpenOptions,
    store: &SessionStore,
    scope: &Scope,
    notices: &dyn NoticeSink,
) -> Result<Conversation, OpenError> {
    let folder = &scope.folder;
    let conversation = match (&options.session, find_session(&options.session, store, folder)?) {
        (SessionChoice::Fork { at, .. }, Some(found)) => {
            let foreign = accept_session(&found, store, scope, options.foreign_sessions)?;
            let mut session = Session::open(&found.path)?;
            if foreign.is_some() {
                drop_outside_files_of(&mut session, scope, notices);
            }
            fork_conversation(store, folder, &session, at.as_deref())?
        }
        (SessionChoice::Resume { at, .. }, Some(found)) => {
            send_other_folder(&found, folder, notices);
            resume_conversation(&found, at.as_deref(), store, scope, options.foreign_sessions, notices)?
        }
        (_, Some(found)) => {
            resume_conversation(&found, None, store, scope, options.foreign_sessions, notices)?
        }
        (_, None) => begin_conversation(store, folder)?,
    };
    send_session_problems(&conversation, notices);
    Ok(conversation)
}

/// Where a session comes from, if not from here. Fails unless the user accepts such sessions.
fn accept_session(
    found: &SessionSummary,
    store: &SessionStore,
    scope: &Scope,
    accepted: ForeignSessions,
) -> Result<Option<ForeignSession>, OpenError> {
    match foreign_session(found, store, &scope.root) {
        Some(foreign) if accepted == ForeignSessions::Refuse => Err(OpenError::ForeignSession(foreign)),
        origin => Ok(origin),
    }
}

/// Opens a session to continue it. One from elsewhere brings no files from outside of the workspace.
pub(crate) fn resume_conversation(
    found: &SessionSummary,
    at: Option<&str>,
    store: &SessionStore,
    scope: &Scope,
    accepted: ForeignSessions,
    notices: &dyn NoticeSink,
) -> Result<Conversation, OpenError> {
    let foreign = accept_session(found, store, scope, accepted)?;
    let mut conversation = Conversation::resume(&found.path, at)?;
    if foreign.is_some() {
        drop_pinned_outside(&mut conversation, scope, notices);
    }
    Ok(conversation)
}

/// The same conversation to be looked at: nothing is stored, and no file is touched.
pub(crate) fn look_at_conversation(
    options: &RequestOptions,
    store: &SessionStore,
    scope: &Scope,
    notices: &dyn NoticeSink,
) -> Result<Conversation, OpenError> {
    let folder = &scope.folder;
    let Some(found) = find_session(&options.session, store, folder)? else {
        return unstored_conversation(store, folder, options.purpose);
    };
    let at = match &options.session {
        SessionChoice::Resume { at, .. } | SessionChoice::Fork { at, .. } => at.as_deref(),
        SessionChoice::New | SessionChoice::Latest => None,
    };
    // To show it is no harm.
    let accepted = match options.purpose {
        RequestPurpose::Show => ForeignSessions::Accept,
        RequestPurpose::Send => options.foreign_sessions,
    };
    let foreign = accept_session(&found, store, scope, accepted)?;
    let mut conversation = Conversation::look_at(&found.path, &Session::open(&found.path)?, at)?;
    if foreign.is_some() {
        drop_pinned_outside(&mut conversation, scope, notices);
    }
    send_session_problems(&conversation, notices);
    Ok(conversation)
}

/// The session that a choice means; none for a new one.
fn find_session(
    choice: &SessionChoice,
    store: &SessionStore,
    folder: &Path,
) -> Result<Option<SessionSummary>, OpenError> {
    Ok(match choice {
        SessionChoice::New => None,
        SessionChoice::Latest => {
            let latest = store.list(Some(folder)).into_iter().next();
            Some(latest.ok_or(OpenError::NothingToContinue)?)
        }
        SessionChoice::Resume { session, .. } | SessionChoice::Fork { session, .. } => {
            Some(store.find(Some(folder), session)?)
        }
    })
}

fn send_other_folder(summary: &SessionSummary, folder: &Path, notices: &dyn NoticeSink) {
    if Path::new(&*summary.cwd) != folder {
        let began_in = summary.cwd.to_string();
        notices.notice(Notice::OtherFolder { began_in, folder: folder.to_owned() });
    }
}

/// Tells the user which lines of a conversation's file cannot be read.
pub(crate) fn send_session_problems(conversation: &Conversation, notices: &dyn NoticeSink) {
    for problem in &conversation.problems {
        let path = conversation.path().to_owned();
        notices.notice(Notice::SessionProblem { path, problem: problem.clone() });
    }
}

pub(crate) fn choose_target(
    options: &TargetOptions,
    settings: &Settings,
    conversation: &Conversation,
    state: &LearnedState,
    notices: &dyn NoticeSink,
) -> Result<Target, OpenError> {
    let model = known_session_model(settings, conversation.model.as_ref(), notices);
    if let [used, others @ ..] = &undecided_providers(options, settings, model.is_some())[..]
        && !others.is_empty()
    {
        notices.notice(Notice::SeveralKeys { used: used.clone(), others: others.to_vec() });
    }
    let mut target = resolve_target(options, settings, model)?;
    apply_learned_factor(&mut target, state);
    Ok(target)
}

/// What the agent may read and write: the workspace and what the settings add.
pub(crate) fn workspace_scope(root: &Path, folder: &Path, settings: &Settings) -> Scope {
    let mut scope = Scope::new(root, folder);
    let skills = settings.user_folders.skills(&settings.config.conventions.foreign_folders());
    for folder in settings.config.readable.iter().map(|folder| expand_home(folder)).chain(skills) {
        scope.add_readable(&folder);
    }
    scope.hidden = hidden_files(settings);
    scope
}

/// The same with the outputs of the agent's own commands.
pub(crate) fn with_outputs(mut scope: Scope, outputs: &Path) -> Scope {
    scope.add_readable(outputs);
    scope
}

/// Fetches the pages that prompts name, unless the settings say not to.
fn page_reader(settings: &Settings, git: GitOptions) -> Option<Arc<PageReader>> {
    let config = &settings.config;
    let cache = settings.user_folders.cache.as_ref().map(|cache| cache.join("pages"));
    let is_off = config.pages.unwrap_or_default() == PagesMode::Off;
    (!is_off).then(|| Arc::new(PageReader::new(&web_options(settings), cache).with_git(git)))
}

fn approver(
    options: &OpenOptions,
    face: &FaceHooks,
    settings: &Settings,
    scope: &Scope,
    tool_set: &ToolSet,
    log: Arc<AuditLog>,
) -> Result<Approver, InvalidRule> {
    let approver = Approver::new(
        settings,
        scope.clone(),
        tool_set.tools.clone(),
        options.approval,
        face.prompter.clone(),
        face.notices.clone(),
        log,
    )?
    .with_command_rules(tool_set.command_rules);
    for rule in approver.rules_for_unknown_tools() {
        let tools = tool_set.tools.list().into_iter().map(|tool| tool.name.to_string()).collect();
        face.notices.notice(Notice::RuleWithoutEffect { rule, tools });
    }
    Ok(approver)
}

/// How much the model thinks: the option, else what the conversation last used.
pub(crate) fn choose_thinking(options: &TargetOptions, conversation: &Conversation) -> ThinkingSetting {
    match (options.thinking, &conversation.thinking) {
        (Some(setting), _) => setting,
        (None, Some(level)) => level.parse().unwrap_or_default(),
        (None, None) => ThinkingSetting::Default,
    }
}

pub(crate) fn agent_settings(settings: &Settings) -> AgentSettings {
    let (config, default) = (&settings.config, AgentSettings::default());
    let parallel = config.parallel_reads.unwrap_or(false);
    AgentSettings {
        steering: config.steering.unwrap_or_default(),
        follow_up: config.follow_up.unwrap_or_default(),
        read_calls: if parallel { ReadCallMode::Parallel } else { ReadCallMode::Sequential },
        message_tool: config.message_tool.unwrap_or(default.message_tool),
        compact_at: config.compact_at.unwrap_or(default.compact_at),
        ..default
    }
}
