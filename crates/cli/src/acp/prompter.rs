//! [`ClientPrompter`]: asks the person through the client, with permission requests.

use std::sync::OnceLock;

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationContentValue,
    ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionUpdate,
    StringPropertySchema, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use futures_util::future::BoxFuture;
use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use hardpan_app::attachment_price::AttachmentPrice;
use hardpan_tools::{CallSubject, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::connection::Connection;
use super::session::SessionItem;
use super::tool_calls::{CallView, file_change, text_content};
use crate::page_chat::command_warnings::warnings;
use crate::page_chat::modes::{SharedMode, verdict_of_mode};

const ALLOW_ONCE: &str = "allow-once";
const ALLOW_SESSION: &str = "allow-session";
const ALLOW_ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// The one field of a form.
const TEXT_FIELD: &str = "text";

/// Asks the person of one session.
pub struct ClientPrompter {
    connection: Connection,
    /// Questions are written between the session's updates, where they belong.
    items: mpsc::UnboundedSender<SessionItem>,
    mode: SharedMode,
    /// Known once the conversation is open.
    session: OnceLock<(SessionId, Scope)>,
}

impl ClientPrompter {
    pub fn new(
        connection: &Connection,
        items: mpsc::UnboundedSender<SessionItem>,
        mode: &SharedMode,
    ) -> Self {
        ClientPrompter { connection: connection.clone(), items, mode: mode.clone(), session: OnceLock::new() }
    }

    /// Says which session asks; nothing is asked before.
    pub fn open(&self, id: SessionId, scope: Scope) {
        // A session is opened once.
        let _ = self.session.set((id, scope));
    }

    /// The client's answer to a request that is written between the updates; none if there is none.
    async fn request<T: DeserializeOwned>(&self, method: &str, request: impl Serialize) -> Option<T> {
        let params = serde_json::to_value(request).ok()?;
        let (message, answer) = self.connection.request(method, &params)?;
        self.items.send(SessionItem::Message(message)).ok()?;
        match answer.wait().await? {
            Ok(answer) => serde_json::from_value(answer).ok(),
            Err(error) => {
                tracing::warn!(%error, method, "the client refused a question");
                None
            }
        }
    }

    /// A text that the person types into a form, if the client has forms.
    async fn ask_for_text(&self, title: String, field: StringPropertySchema) -> Option<String> {
        self.connection.client().elicitation?.form?;
        let (session, _) = self.session.get()?;
        let schema = ElicitationSchema::new().property(TEXT_FIELD, field, true);
        let form = ElicitationFormMode::new(ElicitationSessionScope::new(session.clone()), schema);
        let request = CreateElicitationRequest::new(form, title);
        let answer: CreateElicitationResponse = self.request("elicitation/create", request).await?;
        let ElicitationAction::Accept(accepted) = answer.action else { return None };
        match accepted.content?.remove(TEXT_FIELD)? {
            ElicitationContentValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The id of the option that the person chose; none if there is no answer.
    async fn ask(&self, call: ToolCallUpdate, options: Vec<PermissionOption>) -> Option<String> {
        let (session, _) = self.session.get()?;
        let request = RequestPermissionRequest::new(session.clone(), call, options);
        let answer: RequestPermissionResponse = self.request("session/request_permission", request).await?;
        match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => Some(selected.option_id.0.to_string()),
            _ => None,
        }
    }

    /// A question that is no tool call, with its choices. The number of the chosen one.
    async fn ask_choice(&self, title: String, text: &str, choices: &[String]) -> Option<usize> {
        let id = format!("question-{}", self.connection.next_number());
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending)
            .content(text_content(text));
        let kind = |index: usize| match index + 1 == choices.len() && choices.len() == 2 {
            true => PermissionOptionKind::RejectOnce,
            false => PermissionOptionKind::AllowOnce,
        };
        let options = choices
            .iter()
            .enumerate()
            .map(|(index, choice)| PermissionOption::new(index.to_string(), choice.clone(), kind(index)));
        let chosen = self.ask(ToolCallUpdate::new(id.clone(), fields), options.collect()).await;
        // The client shows the question as a call, which is over now.
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        let ended = SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields));
        // Fails once the session has ended.
        let _ = self.items.send(SessionItem::Update(Box::new(ended)));
        chosen?.parse().ok().filter(|index| *index < choices.len())
    }

    async fn ask_yes_or_no(&self, title: String, text: &str) -> Option<bool> {
        let chosen = self.ask_choice(title, text, &["Yes".to_owned(), "No".to_owned()]).await;
        chosen.map(|index| index == 0)
    }
}

/// What the person can answer. A call that no rule describes can be allowed this once alone, and a
/// dangerous command is never allowed for good.
fn approval_options(question: &ApprovalRequest, rule: Option<&ApprovalRule>) -> Vec<PermissionOption> {
    let option = |id: &str, name: String, kind| PermissionOption::new(id.to_owned(), name, kind);
    let mut options = vec![option(ALLOW_ONCE, "Allow once".into(), PermissionOptionKind::AllowOnce)];
    if let Some(rule) = rule.filter(|_| dangers(question).is_empty()) {
        let session = format!("Allow {rule} in this session");
        options.push(option(ALLOW_SESSION, session, PermissionOptionKind::AllowAlways));
        options.push(option(ALLOW_ALWAYS, format!("Always allow {rule}"), PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT, "Reject".into(), PermissionOptionKind::RejectOnce));
    options
}

/// What is dangerous in a command, in words.
fn dangers(question: &ApprovalRequest) -> Vec<String> {
    match &question.subject {
        CallSubject::Command(command) => {
            warnings(command).into_iter().map(|(part, why)| format!("{part}: {why}")).collect()
        }
        _ => Vec::new(),
    }
}

/// Everything of a call that the person decides about: its change of a file, or its arguments.
fn call_content(question: &ApprovalRequest, scope: &Scope) -> Vec<ToolCallContent> {
    let mut text = question.handler_reason.iter().map(|reason| format!("{reason}\n\n")).collect::<String>();
    if let Some(diff) = file_change(&question.tool_name, &question.args, scope) {
        let reason = question.handler_reason.iter().flat_map(|_| text_content(&text));
        return reason.chain([ToolCallContent::Diff(diff)]).collect();
    }
    text.extend(dangers(question).iter().map(|danger| format!("Warning: {danger}\n\n")));
    text.extend(question.claim.map(|claim| format!("{}\n\n", claim.sentence())));
    match &question.subject {
        CallSubject::Command(command) => text.push_str(command),
        _ => text.push_str(&serde_json::to_string_pretty(&question.args).unwrap_or_default()),
    }
    text_content(&text)
}

impl UserPrompter for ClientPrompter {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(async move {
            if let Some(verdict) = verdict_of_mode(&self.mode, question, rule) {
                return verdict;
            }
            let Some((_, scope)) = self.session.get() else {
                return ApprovalVerdict::No("nobody is there to ask yet".into());
            };
            let view = CallView::new(&question.tool_name, &question.args, scope);
            let title = match &question.agent {
                Some(agent) => format!("{agent}: {}", view.title),
                None => view.title,
            };
            let fields = ToolCallUpdateFields::new()
                .title(title)
                .kind(view.kind)
                .status(ToolCallStatus::Pending)
                .locations(view.locations)
                .content(call_content(question, scope))
                .raw_input(question.args.clone());
            let call = ToolCallUpdate::new(question.call_id.clone(), fields);
            let options = approval_options(question, rule);
            let offered: Vec<String> = options.iter().map(|option| option.option_id.0.to_string()).collect();
            // An answer that was not offered is none.
            let chosen = self.ask(call, options).await.filter(|chosen| offered.contains(chosen));
            match chosen.as_deref() {
                Some(ALLOW_ONCE) => ApprovalVerdict::Once,
                Some(ALLOW_SESSION) => ApprovalVerdict::Session,
                Some(ALLOW_ALWAYS) => ApprovalVerdict::Always,
                Some(_) => ApprovalVerdict::No("the person said no".into()),
                None => ApprovalVerdict::No("the person gave no answer".into()),
            }
        })
    }

    /// Only keys are asked for in this way, and the protocol's forms are not for secrets.
    fn ask_text<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn ask_dialog<'a>(&'a self, owner: &'a str, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogAnswer>> {
        Box::pin(async move {
            let title = format!("{owner} asks: {}", dialog.title().replace('\n', " "));
            match dialog {
                Dialog::Confirm { message, .. } => {
                    let text = message.as_deref().unwrap_or_default();
                    self.ask_yes_or_no(title, text).await.map(DialogAnswer::Confirmed)
                }
                Dialog::Select { choices, .. } => {
                    let chosen = self.ask_choice(title, "", choices).await?;
                    choices.get(chosen).cloned().map(DialogAnswer::Text)
                }
                Dialog::Input { title: label, placeholder } => {
                    let field = StringPropertySchema::new().title(label.clone());
                    let field = field.description(placeholder.clone().filter(|text| !text.is_empty()));
                    self.ask_for_text(title, field).await.map(DialogAnswer::Text)
                }
                Dialog::Editor { title: label, text } => {
                    let field = StringPropertySchema::new().title(label.clone());
                    let field = field.default_value(text.clone());
                    self.ask_for_text(title, field).await.map(DialogAnswer::Text)
                }
            }
        })
    }

    fn mode(&self) -> &'static str {
        "acp"
    }

    fn confirm_price(&self, subject: &str, price: AttachmentPrice, _limit: f64) -> BoxFuture<'_, bool> {
        let title = format!("{subject} costs {price}. Send it?");
        Box::pin(async move { self.ask_yes_or_no(title, "").await.unwrap_or(false) })
    }
}
