//! [`AcpServer`]: reads messages of the client and carries them out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest,
    DeleteSessionResponse, Error, InitializeRequest, ListSessionsRequest, ListSessionsResponse,
    LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, PromptRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionConfigOptionValue, SessionId, SessionInfo,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use futures_util::future::join_all;
use hardpan_app::options::{OpenOptions, SessionChoice};
use hardpan_session::{SessionStore, SessionSummary};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::connection::{Answer, Connection};
use super::editor_servers::editor_servers;
use super::history::history_updates;
use super::initialize::{authenticate, initialize};
use super::options::modes;
use super::session::AcpSession;
use crate::command_setup::session_store;
use crate::rpc::input::{InputLine, MAX_LINE_BYTES};

/// Sessions on a page of `session/list`.
const PAGE: usize = 50;

/// Serves one client.
#[derive(Clone)]
pub struct AcpServer {
    /// What every conversation is opened with, except for its folder and its messages.
    options: Arc<OpenOptions>,
    connection: Connection,
    sessions: Arc<Mutex<BTreeMap<Arc<str>, Arc<AcpSession>>>>,
}

impl AcpServer {
    pub fn new(options: OpenOptions, connection: &Connection) -> Self {
        AcpServer { options: Arc::new(options), connection: connection.clone(), sessions: Arc::default() }
    }

    /// Runs until standard input ends.
    pub async fn serve(&self, lines: &mut mpsc::Receiver<InputLine>) {
        while let Some(line) = lines.recv().await {
            let refused = match line {
                InputLine::Line(line) => match serde_json::from_str(&line) {
                    Ok(message) => self.handle(message).await,
                    Err(error) => Some((Value::Null, Error::parse_error().data(error.to_string()))),
                },
                InputLine::TooLong { id } => {
                    let data = format!("ignored a message longer than {} MB", MAX_LINE_BYTES >> 20);
                    Some((id.unwrap_or_default(), Error::invalid_request().data(data)))
                }
                InputLine::NotUtf8 => Some((Value::Null, Error::parse_error().data("the line is not UTF-8"))),
            };
            if let Some((id, error)) = refused {
                self.connection.respond(&id, Err(error)).await;
            }
        }
    }

    /// Ends every session; what arrived is stored.
    pub async fn shut_down(&self) {
        let sessions = std::mem::take(&mut *self.sessions());
        join_all(sessions.values().map(|session| session.close())).await;
    }

    /// Carries out a message. Some if it is refused at once.
    async fn handle(&self, message: Value) -> Option<(Value, Error)> {
        let Value::Object(mut message) = message else {
            return Some((Value::Null, Error::invalid_request().data("a message is a JSON object")));
        };
        let id = message.remove("id");
        let params = message.remove("params").unwrap_or_else(|| json!({}));
        match (message.remove("method"), id) {
            (Some(Value::String(method)), None) => {
                self.notify(&method, params);
                None
            }
            (Some(Value::String(method)), Some(id)) if id.is_string() || id.is_number() || id.is_null() => {
                self.request(method, id, params)
            }
            (Some(_), id) => {
                let error =
                    Error::invalid_request().data("\"method\" is a string, \"id\" a string or a number");
                Some((id.filter(|id| id.is_string() || id.is_number()).unwrap_or_default(), error))
            }
            (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
                let answer = match (message.remove("result"), message.remove("error")) {
                    (_, Some(error)) => {
                        Err(serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error()))
                    }
                    (result, None) => Ok(result.unwrap_or_default()),
                };
                if !self.connection.deliver(&id, answer) {
                    tracing::debug!(%id, "an answer came for a question that nobody asks any more");
                }
                None
            }
            (None, id) => {
                let error =
                    Error::invalid_request().data("a message has a \"method\", or the result of a request");
                Some((id.filter(|id| id.is_string() || id.is_number()).unwrap_or_default(), error))
            }
        }
    }

    fn notify(&self, method: &str, params: Value) {
        match method {
            "session/cancel" => {
                let cancelled: Result<CancelNotification, Error> = read(params);
                if let Some(session) = cancelled.ok().and_then(|cancel| self.find(&cancel.session_id).ok()) {
                    session.cancel();
                }
            }
            _ => tracing::debug!(method, "ignored a notification"),
        }
    }

    /// Carries out a request: prompts in the order of their arrival, others beside them.
    fn request(&self, method: String, id: Value, params: Value) -> Option<(Value, Error)> {
        if method == "session/prompt" {
            let prompted = read(params).and_then(|request: PromptRequest| {
                self.find(&request.session_id)?.prompt(id.clone(), request)
            });
            return prompted.err().map(|error| (id, error));
        }
        let server = self.clone();
        tokio::spawn(async move {
            let (answer, session) = match server.answer(&method, params).await {
                Ok((answer, session)) => (Ok(answer), session),
                Err(error) => (Err(error), None),
            };
            server.connection.respond(&id, answer).await;
            // Its updates come after the response that tells its id.
            if let Some(session) = session {
                session.start();
            }
        });
        None
    }

    /// The answer to a request, and the session that begins with it.
    async fn answer(&self, method: &str, params: Value) -> Result<(Value, Option<Arc<AcpSession>>), Error> {
        let answer: Answer = match method {
            "initialize" => read(params).and_then(|request: InitializeRequest| {
                self.connection.set_client(request.client_capabilities.clone());
                write(initialize(&request))
            }),
            "authenticate" => read(params)
                .and_then(|request: AuthenticateRequest| authenticate(&request, &self.options))
                .and_then(write),
            "session/new" => {
                let request: NewSessionRequest = read(params)?;
                let session = self.open(&request.cwd, SessionChoice::New, &request.mcp_servers).await?;
                let answer = NewSessionResponse::new(session.id.clone())
                    .modes(modes(session.mode()))
                    .config_options(session.config_options());
                return Ok((write(answer)?, Some(session)));
            }
            "session/load" => {
                let request: LoadSessionRequest = read(params)?;
                let session = self.reopen(&request.cwd, &request.session_id, &request.mcp_servers).await?;
                for update in history_updates(&session.app) {
                    session.write_update(update).await;
                }
                let answer = LoadSessionResponse::new()
                    .modes(modes(session.mode()))
                    .config_options(session.config_options());
                return Ok((write(answer)?, Some(session)));
            }
            "session/resume" => {
                let request: ResumeSessionRequest = read(params)?;
                let session = self.reopen(&request.cwd, &request.session_id, &request.mcp_servers).await?;
                let answer = ResumeSessionResponse::new()
                    .modes(modes(session.mode()))
                    .config_options(session.config_options());
                return Ok((write(answer)?, Some(session)));
            }
            "session/list" => self.list(read(params)?).await.and_then(write),
            "session/close" => {
                let request: CloseSessionRequest = read(params)?;
                let session = self.find(&request.session_id)?;
                self.sessions().remove(&session.id.0);
                session.close().await;
                write(CloseSessionResponse::new())
            }
            "session/delete" => {
                let request: DeleteSessionRequest = read(params)?;
                self.delete(&request.session_id).await?;
                write(DeleteSessionResponse::new())
            }
            "session/set_mode" => {
                let request: SetSessionModeRequest = read(params)?;
                self.find(&request.session_id)?.set_mode(&request.mode_id.0).await?;
                write(SetSessionModeResponse::new())
            }
            "session/set_config_option" => {
                let request: SetSessionConfigOptionRequest = read(params)?;
                let session = self.find(&request.session_id)?;
                let SessionConfigOptionValue::ValueId { value } = &request.value else {
                    return Err(
                        Error::invalid_params().data("every option is a choice: \"value\" is a string")
                    );
                };
                let options = session.set_option(&request.config_id.0, &value.0).await?;
                write(SetSessionConfigOptionResponse::new(options))
            }
            _ => Err(Error::method_not_found().data(format!("there is no method {method:?}"))),
        };
        answer.map(|answer| (answer, None))
    }

    /// Opens a conversation in a folder.
    async fn open(
        &self,
        cwd: &Path,
        choice: SessionChoice,
        mcp_servers: &[McpServer],
    ) -> Result<Arc<AcpSession>, Error> {
        let folder = folder(cwd)?;
        let (servers, problems) = editor_servers(mcp_servers);
        let options =
            OpenOptions { folder, session: choice, mcp_servers: servers, ..(*self.options).clone() };
        let session = AcpSession::open(options, &self.connection).await?;
        problems.iter().for_each(|problem| session.note(problem));
        self.sessions().insert(session.id.0.clone(), session.clone());
        Ok(session)
    }

    /// Opens an earlier conversation of a folder. One that is open in this process is closed first.
    async fn reopen(
        &self,
        cwd: &Path,
        id: &SessionId,
        mcp_servers: &[McpServer],
    ) -> Result<Arc<AcpSession>, Error> {
        let before = self.sessions().remove(&id.0);
        if let Some(before) = before {
            before.close().await;
        }
        let (folder, store) = (folder(cwd)?, store()?);
        let id = id.0.to_string();
        let wanted = id.clone();
        let found = in_background(move || store.find(Some(&folder), &wanted).ok()).await?;
        // A name or a file is no id.
        if found.is_none_or(|found| *found.id != *id) {
            return Err(Error::session_not_found(id));
        }
        self.open(cwd, SessionChoice::Resume { session: id, at: None }, mcp_servers).await
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let folder = request.cwd.as_deref().map(folder).transpose()?;
        let start: usize = match &request.cursor {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| Error::invalid_params().data("\"cursor\" is none that session/list gave"))?,
        };
        let store = store()?;
        let found = in_background(move || store.list(folder.as_deref())).await?;
        let end = start.saturating_add(PAGE);
        let next = (found.len() > end).then(|| end.to_string());
        let page = found.into_iter().skip(start).take(PAGE).map(session_info).collect();
        Ok(ListSessionsResponse::new(page).next_cursor(next))
    }

    /// Deletes a conversation, of whatever folder; one that is open here is closed first. What is not there counts as
    /// deleted.
    async fn delete(&self, id: &SessionId) -> Result<(), Error> {
        let open = self.sessions().remove(&id.0);
        if let Some(open) = open {
            open.close().await;
        }
        let (store, id) = (store()?, id.clone());
        in_background(move || {
            let found = store.list(None).into_iter().find(|summary| *summary.id == *id.0);
            found.map_or(Ok(()), |found| store.delete(&found))
        })
        .await?
        .map_err(|error| Error::internal_error().data(hardpan_app::error_text(&error)))
    }

    fn find(&self, id: &SessionId) -> Result<Arc<AcpSession>, Error> {
        self.sessions().get(&id.0).cloned().ok_or_else(|| Error::session_not_found(id.clone()))
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<AcpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn session_info(summary: SessionSummary) -> SessionInfo {
    let title = summary.name.map(|name| name.to_string()).or(summary.first_prompt);
    let time = summary.last_activity.map(|time| time.to_string());
    SessionInfo::new(summary.id, PathBuf::from(&*summary.cwd)).title(title).updated_at(time)
}

/// The folder of a session, which a client names with its whole path.
fn folder(cwd: &Path) -> Result<PathBuf, Error> {
    if !cwd.is_absolute() {
        return Err(Error::invalid_params().data("\"cwd\" is an absolute path"));
    }
    hardpan_app::gather::canonical_folder(cwd)
        .map_err(|error| Error::invalid_params().data(hardpan_app::error_text(&error)))
}

fn store() -> Result<SessionStore, Error> {
    session_store().map_err(|error| Error::internal_error().data(error.to_string()))
}

/// Reads files on a thread that may block.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::internal_error().data(error.to_string()))
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(error.to_string()))
}

fn write(answer: impl Serialize) -> Answer {
    serde_json::to_value(answer).map_err(|error| Error::internal_error().data(error.to_string()))
}
