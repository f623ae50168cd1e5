//! `fetch` of extensions: to public addresses, and to hosts that the person allowed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hardpan_agent::ApprovalRequest;
use hardpan_extensions::HostError;
use hardpan_tools::{CallSubject, WebAnswer, WebBody, WebRequest, WebRequestError};
use serde_json::{Value, json};

use super::host::ExtensionHost;
use crate::approval::GrantTime;

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// Headers that belong to the connection: `fetch` sends none of them for a script.
const CONNECTION_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Words in the names of headers that are meant for one server alone.
const OWN_WORDS: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

fn refused(error: &WebRequestError) -> HostError {
    HostError(error.to_string())
}

/// Sends a request, and follows redirects unless the extension wants them itself.
pub async fn fetch(host: &Arc<ExtensionHost>, arguments: &Value) -> Result<Value, HostError> {
    let mut request = request(arguments)?;
    let mut is_redirected = false;
    for _ in 0..=MAX_REDIRECTS {
        approve(host, &request.url).await?;
        let answer = host.setting.web.send(request.clone()).await.map_err(|error| refused(&error))?;
        let to = match (&answer.redirect, arguments["redirect"].as_str()) {
            (Some(_), Some("error")) => return Err(HostError("unexpected redirect".into())),
            (Some(to), Some("follow") | None) => to.clone(),
            _ => return Ok(response(host, &request.url, is_redirected, answer)),
        };
        is_redirected = true;
        request = redirected(host, request, &answer, to)?;
    }
    Err(HostError(format!("it sends from one address to the next more than {MAX_REDIRECTS} times")))
}

fn request(arguments: &Value) -> Result<WebRequest, HostError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let headers = arguments["headers"].as_array().into_iter().flatten();
    let headers = headers.map(|pair| (text(&pair[0]), text(&pair[1])));
    let is_sent = |name: &str| !CONNECTION_HEADERS.contains(&name.trim().to_lowercase().as_str());
    let body = match arguments["body"].as_str() {
        Some(body) => Some(STANDARD.decode(body).map_err(|error| HostError(error.to_string()))?),
        None => None,
    };
    Ok(WebRequest {
        method: text(&arguments["method"]),
        url: text(&arguments["url"]),
        headers: headers.filter(|(name, _)| is_sent(name)).collect(),
        body,
    })
}

/// The request that a redirect asks for, without what was meant for the first host alone.
fn redirected(
    host: &ExtensionHost,
    mut request: WebRequest,
    answer: &WebAnswer,
    to: String,
) -> Result<WebRequest, HostError> {
    let web = &host.setting.web;
    let origin_of = |url: &str| web.check_origin(url).map_err(|error| refused(&error));
    if origin_of(&request.url)? != origin_of(&to)? {
        let is_own = |name: &str| OWN_WORDS.iter().any(|word| name.to_lowercase().contains(word));
        request.headers.retain(|(name, _)| !is_own(name));
    }
    let becomes_get =
        answer.status == 303 || (matches!(answer.status, 301 | 302) && request.method == "POST");
    if becomes_get && request.method != "HEAD" {
        request.method = "GET".into();
        request.body = None;
        request.headers.retain(|(name, _)| !name.to_lowercase().starts_with("content-"));
    }
    Ok(WebRequest { url: to, ..request })
}

/// Asks whether the extension may reach a host, unless that was answered.
async fn approve(host: &Arc<ExtensionHost>, url: &str) -> Result<(), HostError> {
    let (permissions, setting) = (&host.permissions, &host.setting);
    let name = setting.web.check_host(url).map_err(|error| refused(&error))?;
    if !permissions.may_ask_for_host(&name) {
        return Err(HostError(format!(
            "the extension's package.json does not declare {name} in \"network\""
        )));
    }
    let question = ApprovalRequest {
        call_id: format!("extension:{}", host.name()).into(),
        tool_name: "fetch".into(),
        args: json!({ "url": url }),
        subject: CallSubject::Url(url.to_owned()),
        claim: None,
        agent: Some(format!("extension {}", host.name()).into()),
        handler_reason: None,
    };
    let _pauses = host.pause_clocks();
    let _alone = setting.dialog.lock().await;
    let is_granted = permissions.has_host(&name);
    match setting.approver.approve_for_extension(&question, is_granted).await {
        Ok(GrantTime::Once) => Ok(()),
        Ok(GrantTime::Conversation) => {
            permissions.allow_host_for_now(&name);
            Ok(())
        }
        Ok(GrantTime::Always) => permissions.allow_host(&name).map_err(|error| HostError(error.to_string())),
        Err(reason) => Err(HostError(format!("{name} may not be reached: {reason}"))),
    }
}

fn response(host: &ExtensionHost, url: &str, is_redirected: bool, answer: WebAnswer) -> Value {
    json!({
        "url": url,
        "redirected": is_redirected,
        "status": answer.status,
        "headers": answer.headers,
        "body": host.bodies.keep(answer.body),
    })
}

/// The next part of a content, in base64; null after its end.
pub async fn read_body(host: &ExtensionHost, arguments: &Value) -> Result<Value, HostError> {
    let number = arguments["body"].as_u64().unwrap_or(u64::MAX);
    let Some(body) = host.bodies.find(number) else {
        return Err(HostError("the connection was closed".into()));
    };
    let part = body.lock().await.next_part().await;
    if !matches!(part, Ok(Some(_))) {
        host.bodies.close(number);
    }
    Ok(part.map_err(|error| refused(&error))?.map_or(Value::Null, |part| STANDARD.encode(part).into()))
}

/// How many contents an extension may leave unread. The oldest of more is given up.
const MAX_BODIES: usize = 128;

/// Contents that arrive while an extension reads them, by their numbers.
#[derive(Default)]
pub struct OpenBodies {
    by_number: Mutex<BTreeMap<u64, Arc<tokio::sync::Mutex<WebBody>>>>,
    last: AtomicU64,
}

impl OpenBodies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<tokio::sync::Mutex<WebBody>>>> {
        self.by_number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, body: WebBody) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let mut bodies = self.lock();
        bodies.insert(number, Arc::new(tokio::sync::Mutex::new(body)));
        // One that is being read is held by its reader, too.
        let unread = bodies.iter().find(|(_, body)| Arc::strong_count(body) == 1).map(|(number, _)| *number);
        if bodies.len() > MAX_BODIES
            && let Some(unread) = unread
        {
            bodies.remove(&unread);
        }
        number
    }

    fn find(&self, number: u64) -> Option<Arc<tokio::sync::Mutex<WebBody>>> {
        self.lock().get(&number).cloned()
    }

    /// Ends a connection whose content nobody reads any more.
    pub fn close(&self, number: u64) {
        self.lock().remove(&number);
    }
}
