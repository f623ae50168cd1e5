//! [`AssembledRequest`]: a request that is ready to be sent. [`assemble`] has the agent build it, on
//! the way that its own requests take; `assemble_snapshot` builds one from a snapshot file.

use std::path::Path;
use std::sync::Arc;

use hardpan_agent::{
    Agent, BuildError, ClientFactory, ClientFactoryError, DenyAll, Input, InputSource, PreviewError,
    RequestPreview, Setup,
};
use hardpan_context::{Breakdown, FoldReason, RenderCache, Snapshot, SnapshotError, SnapshotFile};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::Image;
use hardpan_prompt::validate::validate;
use hardpan_providers::{
    CapabilityCache, Client, ClientRequest, Endpoint, HttpRequest, PreparedRequest, ProviderError,
    RetryPolicy,
};
use hardpan_session::SessionStore;
use hardpan_tools::{Scope, ToolRegistry};
use hardpan_workspace as workspace;
use hardpan_workspace::ImageFileError;
use jiff::Timestamp;

use crate::agents::{UnknownAgent, choose_agent, switch_tools, with_model_of};
use crate::clock::now;
use crate::conversation_app::restore_pinned;
use crate::conversation_panels::{ConversationPanels, PanelSources, restore_panels};
use crate::gather::{
    FolderReader, GatherError, canonical_folder, discover_expansions, read_named_image, read_snapshot_file,
};
use crate::git_access::{find_programs, git_for};
use crate::learned_state::LearnedState;
use crate::mcp::{ConversationLink, McpServers, McpSetup, shown_place};
use crate::mentions::Mentions;
use crate::notice::{DiscardNotices, Notice, NoticeSink};
use crate::open::{
    OpenError, agent_settings, choose_target, choose_thinking, look_at_conversation, with_outputs,
    workspace_scope,
};
use crate::options::{ProviderAccess, RequestOptions, RequestPurpose, SessionChoice};
use crate::prompt_settings::PromptSettings;
use crate::provider_connection::ProviderConnection;
use crate::provider_route::ProviderRoute;
use crate::secrets::{find_secrets, secret_settings};
use crate::send::TextFallbacks;
use crate::settings::Settings;
use crate::subagents::register_shown_tool;
use crate::target::{
    TargetError, resolve_keep, resolve_layout, resolve_lifetime, resolve_target, target_notices,
};
use crate::tool_set::{SessionArtifacts, shown_shell, shown_tools};
use crate::workspace_context::WorkspaceContext;

/// Why a request cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Its inputs cannot be gathered.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// The conversation that it goes on with cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no such agent.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// There is no such model or layout.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An image cannot be sent.
    #[error(transparent)]
    Image(#[from] ImageFileError),
    /// The agent cannot build it.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// The snapshot does not make a valid request.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no way to the provider.
    #[error(transparent)]
    Client(#[from] ClientFactoryError),
    /// It cannot be encoded.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl From<SnapshotError> for RequestError {
    fn from(error: SnapshotError) -> Self {
        GatherError::from(error).into()
    }
}

/// A request that is ready to be sent, with everything that it was made from.
pub struct AssembledRequest {
    /// The request, and what it was made from.
    pub preview: RequestPreview,
    /// The skills of the home folder that the system prompt does not list.
    pub unlisted_skills: Vec<hardpan_context::Skill>,
    pub(crate) connection: Arc<ProviderConnection>,
}

impl AssembledRequest {
    /// Address, headers and body, with keys masked.
    pub fn http(&self) -> &HttpRequest {
        &self.preview.http
    }

    /// The bytes of the request's body.
    pub fn body(&self) -> &[u8] {
        &self.preview.http.body
    }

    /// Where each block stands in the body, such as `messages[0].content[1]`.
    pub fn addresses(&self) -> Vec<String> {
        self.preview.addresses()
    }

    /// What fills the context window, and what it costs.
    pub fn breakdown(&self) -> Breakdown {
        self.preview.breakdown()
    }

    /// The snapshot in its file form.
    pub fn snapshot_file(&self) -> SnapshotFile {
        SnapshotFile::from_snapshot(&self.preview.snapshot)
    }
}

/// Builds the request that a conversation would send, and sends notices about it. Nothing is stored.
pub async fn assemble(
    options: &RequestOptions,
    settings: &Arc<Settings>,
    notices: &Arc<dyn NoticeSink>,
) -> Result<AssembledRequest, RequestError> {
    if let Some(path) = &options.snapshot {
        return assemble_snapshot(path, options, settings, notices);
    }
    let folder = canonical_folder(&options.folder)?;
    let root = workspace::find_project_root(&folder);
    let scope = workspace_scope(&root, &folder, settings);
    let conversation = look_at_conversation(options, &store(options, settings)?, &scope, &**notices)?;
    let state = LearnedState::load(&settings.user_folders);
    let (expansions, pinned) =
        (discover_expansions(&scope, settings, &options.reserved_names), restore_pinned(&conversation));
    let asked = &options.target;
    let chosen_agent = choose_agent(&expansions, asked, settings, &pinned, &conversation, &**notices)?;
    let asked = with_model_of(asked, chosen_agent.as_ref(), &conversation);
    let target = choose_target(&asked, settings, &conversation, &state, &**notices)?;
    let thinking = choose_thinking(&options.target, &conversation);
    target_notices(settings, &target, thinking).into_iter().for_each(|notice| notices.notice(notice));
    let artifacts = SessionArtifacts::for_session(&conversation.session, &settings.user_folders, None);
    let scope = with_outputs(scope, &artifacts.outputs);
    let index = workspace::LiveIndex::new(scope.guard(), &root, settings.user_folders.cache.as_deref());
    let (tools, skills) = match options.tools {
        true => (shown_tools(settings, index.clone()), expansions.model_listing()),
        false => (ToolRegistry::default(), Vec::new()),
    };
    let sandbox_mode = settings.config.sandbox.unwrap_or_default();
    let git = git_for(&root, settings, find_programs(&root, settings), sandbox_mode, None);
    let prompt_settings =
        PromptSettings::resolve(&options.target, settings, &**notices).map_err(OpenError::from)?;
    let reader = FolderReader::new(scope.clone(), git, settings.clone(), skills, index, notices.clone())
        .with_prompt_settings(prompt_settings);
    let map_tokens = if options.symbol_map { settings.config.map_tokens } else { Some(0) };
    let layout = resolve_layout(&options.target, settings, conversation.layout.as_deref())?;
    let secrets = secret_settings(settings, &options.folder);
    let sources = PanelSources {
        settings,
        layout,
        scope: &scope,
        tools: &tools,
        expansions: &expansions,
        secrets: &secrets.known,
        notices,
        auto_continue: None,
        shell: shown_shell(),
        git: reader.git_reader(),
    };
    let panels = ConversationPanels::new(&sources, restore_panels(&conversation));
    let context = WorkspaceContext::new(reader, map_tokens, pinned, panels.registry.clone(), layout);
    let context = Arc::new(context);
    if options.tools {
        panels.register_tools(&tools, context.clone());
        register_shown_tool(settings, &expansions.agents, &tools);
    }
    let mcp_setup = McpSetup {
        configs: &settings.config.mcp_servers,
        loading: settings.config.mcp_tools.unwrap_or_default(),
        requests: state.usual_requests(),
        cache: settings.user_folders.cache.as_deref(),
        registry: &tools,
        place: shown_place(&root),
    };
    // What the servers are remembered to have; none is started.
    let mcp = options.tools.then(|| {
        McpServers::new(
            mcp_setup,
            notices,
            ConversationLink::new(settings.clone(), None, secrets.known.clone()),
        )
    });
    if let Some(mcp) = &mcp {
        mcp.take_up(&conversation, &target);
    }
    context.select_agent(chosen_agent.as_ref());
    if conversation.messages.is_empty() || options.target.agent.is_some() {
        switch_tools(&tools, None, chosen_agent.as_ref());
    }
    let input = open_input(options, &context, &scope, &**notices)?;
    let connection = connection(options, settings, &state, notices);
    let setup = Setup {
        texts: Arc::new(settings.texts.clone()),
        context_source: context,
        client_factory: connection.clone(),
        approval_handler: Arc::new(DenyAll),
        clock: clock(options.now),
        tools,
        edit_block_tool: Some(hardpan_tools::edit_block_tool(None)),
        pages: None,
        shell: None,
        scope,
        expansions,
        layout,
        keep: resolve_keep(&options.target, settings),
        cache_lifetime: resolve_lifetime(&options.target, settings),
        thinking,
        secrets,
        settings: agent_settings(settings),
        target,
    };
    let agent = Agent::new(setup, conversation);
    let fold = options.fold.then_some(FoldReason::Requested);
    let preview = agent.preview_request(input, fold).await?;
    let unlisted_skills = agent.expansions().unlisted_home_skills();
    send_refusals(&preview, options, &connection, &**notices);
    Ok(AssembledRequest { preview, unlisted_skills, connection })
}

/// Builds a request from a snapshot file. To be shown, it is the same on every machine: neither the
/// user's settings of the provider nor what its server refused count.
fn assemble_snapshot(
    path: &Path,
    options: &RequestOptions,
    settings: &Arc<Settings>,
    notices: &Arc<dyn NoticeSink>,
) -> Result<AssembledRequest, RequestError> {
    let mut snapshot =
        read_snapshot_file(path, options, settings)?.into_snapshot(&path.display().to_string())?;
    let layout = resolve_layout(&options.target, settings, None)?;
    let target = resolve_target(&options.target, settings, None)?;
    // Nobody asked for what the file of a snapshot says about thinking.
    let thinking = options.target.thinking.map_or(ThinkingSetting::default(), |_| snapshot.thinking);
    target_notices(settings, &target, thinking).into_iter().for_each(|notice| notices.notice(notice));
    let render_cache = Arc::new(RenderCache::new(target.vocabulary()));
    let assemble = |snapshot: &Snapshot| {
        hardpan_context::assemble(snapshot, layout, &target, &settings.texts, &render_cache)
            .map_err(BuildError::from)
    };
    let mut assembled = assemble(&snapshot)?;
    let secrets = find_secrets(settings, &options.folder, &assembled.prompt);
    if !secrets.is_empty() {
        snapshot.redactions = Arc::new(secrets.iter().collect());
        assembled = assemble(&snapshot)?;
        notices.notice(Notice::secrets_replaced(&secrets));
    }
    let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
    validate(&assembled.prompt, &rules).map_err(BuildError::from)?;
    let connection = connection(options, settings, &LearnedState::load(&settings.user_folders), notices);
    let client = match options.purpose {
        RequestPurpose::Show => {
            let endpoint = Endpoint { base_url: target.profile.base_url.clone(), ..Endpoint::default() };
            let transport = ProviderRoute::simulated().transport;
            Client::new(transport, endpoint, RetryPolicy::default(), Arc::new(CapabilityCache::default()))
        }
        RequestPurpose::Send => {
            connection.client(&target, &crate::session_folder::new_id(&options.folder))?
        }
    };
    let at = now();
    let request = ClientRequest {
        prompt: &assembled.prompt,
        profile: &target.profile,
        provider: &target.provider,
        fallbacks: &TextFallbacks { texts: &settings.texts },
        previous_answer: None,
        now_ms: at.as_millisecond(),
    };
    let PreparedRequest { http, .. } = client.prepare(&request)?;
    let refusals =
        client.known_refusals(&target.provider, &target.profile, &target.model.id, at.as_millisecond());
    let client = Arc::new(client);
    let preview = RequestPreview {
        assembled,
        snapshot,
        target,
        render_cache,
        client,
        previous_answer: None,
        http,
        refusals,
    };
    Ok(AssembledRequest { preview, unlisted_skills: Vec::new(), connection })
}

/// Where the conversation is looked up. A new one needs no folder: it is never stored.
fn store(options: &RequestOptions, settings: &Settings) -> Result<SessionStore, OpenError> {
    match settings.user_folders.sessions() {
        Some(folder) => Ok(SessionStore::new(folder)),
        None if options.session == SessionChoice::New => Ok(SessionStore::new(std::env::temp_dir())),
        None => Err(OpenError::NoDataFolder),
    }
}

/// The way to the provider. A request that is only shown goes nowhere, so that nothing need be said
/// about the way.
fn connection(
    options: &RequestOptions,
    settings: &Arc<Settings>,
    state: &LearnedState,
    notices: &Arc<dyn NoticeSink>,
) -> Arc<ProviderConnection> {
    let notices = match options.purpose {
        RequestPurpose::Show => Arc::new(DiscardNotices),
        RequestPurpose::Send => notices.clone(),
    };
    let (settings, refusals) = (settings.clone(), state.refusals());
    Arc::new(ProviderConnection::new(settings, ProviderAccess::ByKey, Arc::default(), refusals, notices))
}

/// Tells what a shown request leaves out because the server has refused it.
fn send_refusals(
    preview: &RequestPreview,
    options: &RequestOptions,
    connection: &ProviderConnection,
    notices: &dyn NoticeSink,
) {
    if options.purpose == RequestPurpose::Show {
        let notice = connection.refusal_notice(&preview.client, &preview.target);
        notice.into_iter().for_each(|notice| notices.notice(notice));
    }
}

/// Opens the files that the options and the prompt name, and returns the input; none if there is
/// nothing to say.
fn open_input(
    options: &RequestOptions,
    context: &WorkspaceContext,
    scope: &Scope,
    notices: &dyn NoticeSink,
) -> Result<Option<Input>, RequestError> {
    let mut images: Vec<Image> = Vec::new();
    for path in &options.files {
        let place = scope.folder.join(path);
        // What cannot be read is listed with the reason.
        match scope.guard().open_named_by_user(&place) {
            Ok(file) if workspace::read_open_text(&file, workspace::TEXT_LIMIT).is_err() => {
                match workspace::read_open_image(&file, &place) {
                    Ok(image) => images.push(image),
                    Err(_) => context.open(path.clone()),
                }
            }
            _ => context.open(path.clone()),
        }
    }
    for path in &options.images {
        images.push(read_named_image(scope, path)?);
    }
    let text = options.prompt.clone().unwrap_or_default();
    let mentioned = Mentions::find(&text, scope, options.prompt_source);
    mentioned.files.into_iter().for_each(|path| context.open(path));
    images.extend(mentioned.images.into_iter().map(|(_, image)| image));
    mentioned.notes.into_iter().for_each(|note| notices.notice(Notice::Mention(note)));
    if text.trim().is_empty() && images.is_empty() {
        return Ok(None);
    }
    Ok(Some(Input { text, below: None, images, source: InputSource::Interactive, id: None }))
}

fn clock(fixed: Option<Timestamp>) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
    match fixed {
        Some(time) => Arc::new(move || time),
        None => Arc::new(now),
    }
}
