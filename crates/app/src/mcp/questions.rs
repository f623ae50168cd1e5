//! Questions of servers to the person: forms, field by field, and addresses to visit.

use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_mcp::{FieldKind, FormAnswer, FormField, ServerForm, ServerVisit};
use serde_json::{Map, Value};

use super::McpServer;

/// How often a field is asked for until a server has to do without an answer.
const MAX_TRIES: usize = 10;

/// The choice that begins a form, and the one that does not.
const ANSWER: &str = "Answer";
const DECLINE: &str = "Decline";

/// The choice that leaves a field out.
const LEAVE_OUT: &str = "(no answer)";

/// Asks the person to fill in a form. Without a person, it is declined.
pub(super) async fn fill_form(server: &McpServer, form: &ServerForm) -> FormAnswer {
    if !server.link.has_person() {
        return FormAnswer::Declined;
    }
    let names: Vec<&str> = form.fields.iter().map(|field| field.title.as_str()).collect();
    let wants = match names.is_empty() {
        true => String::new(),
        false => format!(" It wants to know: {}. Give it no passwords or keys.", names.join(", ")),
    };
    // Every face says which server asks.
    let title = format!("{}{wants}", form.message);
    let begin = Dialog::Select { title, choices: [ANSWER, DECLINE].map(str::to_owned).to_vec() };
    match server.link.ask(&server.name, &begin).await {
        Some(DialogAnswer::Text(chosen)) if chosen == ANSWER => {}
        Some(_) => return FormAnswer::Declined,
        None => return FormAnswer::Cancelled,
    }
    let mut content = Map::new();
    for field in &form.fields {
        match ask_field(server, field).await {
            Some(Some(value)) => content.extend([(field.name.clone(), value)]),
            Some(None) => {}
            None => return FormAnswer::Cancelled,
        }
    }
    FormAnswer::Accepted(content)
}

/// Asks for a field until the answer fits it: its value, or that it is left out. None without an answer.
async fn ask_field(server: &McpServer, field: &FormField) -> Option<Option<Value>> {
    let mut problem = String::new();
    for _ in 0..MAX_TRIES {
        let dialog = field_dialog(field, &problem);
        let typed = match server.link.ask(&server.name, &dialog).await? {
            DialogAnswer::Text(text) if text == LEAVE_OUT => return Some(None),
            DialogAnswer::Text(text) => text,
            DialogAnswer::Confirmed(is_yes) => if is_yes { "yes" } else { "no" }.to_owned(),
        };
        match field.parse(&typed) {
            Ok(value) => return Some(value),
            Err(error) => problem = format!("That does not fit: {error}. "),
        }
    }
    None
}

fn field_dialog(field: &FormField, problem: &str) -> Dialog {
    let about = field.description.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
    let must = if field.is_required { "" } else { ", not required" };
    let title = format!("{problem}{}{about}{must}", field.title);
    let choices = match &field.kind {
        FieldKind::Choice(choices) => Some(choices.iter().map(|(_, title)| title.clone()).collect()),
        FieldKind::Boolean => Some(vec!["yes".to_owned(), "no".to_owned()]),
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Choices { .. } => None,
    };
    match choices {
        Some(mut choices) => {
            let mut choices: Vec<String> = std::mem::take(&mut choices);
            if !field.is_required {
                choices.push(LEAVE_OUT.to_owned());
            }
            Dialog::Select { title, choices }
        }
        None => {
            let expected = field.expectation();
            let default = field.default_text().map(|text| format!("empty: {text}"));
            let hints: Vec<String> = expected.into_iter().chain(default).collect();
            let placeholder = (!hints.is_empty()).then(|| hints.join("; "));
            Dialog::Input { title, placeholder }
        }
    }
}

/// Asks the person to visit an address. Nothing here opens it.
pub(super) async fn visit(server: &McpServer, visit: &ServerVisit) -> FormAnswer {
    if !server.link.has_person() {
        return FormAnswer::Declined;
    }
    let title = format!("Visit {}?", visit.host);
    let message = format!(
        "{}\n{}\nHardpan does not open it. If you trust the address, open it in your browser; yes tells the server that you will.",
        visit.message, visit.url
    );
    match server.link.ask(&server.name, &Dialog::Confirm { title, message: Some(message) }).await {
        Some(DialogAnswer::Confirmed(true)) => FormAnswer::Accepted(Map::new()),
        Some(_) => FormAnswer::Declined,
        None => FormAnswer::Cancelled,
    }
}
