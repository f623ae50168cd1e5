//! `fetch`: a page of the web as Markdown.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use hardpan_prompt::Hash;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::json;

use crate::bash::clean::clean;
use crate::limits::{BYTES, with_notices};
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool, arguments};

mod address; // which addresses may be fetched from
mod html; // HTML as a series of tags and texts
mod markdown; // a page as Markdown

use address::Guard;

/// How often a page may send us on.
const REDIRECTS: usize = 5;

/// The longest address that is asked for.
const ADDRESS: usize = 4096;

/// What may be fetched.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// Hosts that may have private addresses (this machine, the local network), by name or number; `*` is all.
    pub private_hosts: Vec<String>,
    /// The proxy to go through. It then finds the names' addresses, too: those found here are still checked.
    pub proxy: Option<String>,
}

/// The tool `fetch`.
pub(crate) struct Fetch {
    client: Result<Client, String>,
    guard: Guard,
    proxied: bool,
    limits: Limits,
    /// The last page: going on in it is not fetching it again.
    last: Mutex<Option<(String, Arc<Page>)>>,
}

/// How long a page may take, and how many bytes of it are taken.
#[derive(Clone, Copy)]
struct Limits {
    time: Duration,
    bytes: usize,
}

const LIMITS: Limits = Limits { time: Duration::from_secs(30), bytes: 5 * 1024 * 1024 };

/// A page as it came.
#[derive(Debug)]
struct Page {
    url: Url,
    status: u16,
    title: Option<String>,
    text: String,
    bytes: usize,
    hash: Hash,
    /// More would have come.
    cut: bool,
}

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("fetch", include_str!("../texts/fetch.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
    #[serde(default)]
    offset: usize,
}

impl Tool for Fetch {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    // It changes nothing here, but an address can carry what nobody meant to tell.
    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { self.call(&call).await.unwrap_or_else(|failed| failed) })
    }
}

impl Fetch {
    pub fn new(web: &Web) -> Self {
        Fetch::with_limits(web, LIMITS)
    }

    fn with_limits(web: &Web, limits: Limits) -> Self {
        let proxy = web.proxy.as_ref().and_then(|proxy| proxy.parse::<Url>().ok());
        let proxy = proxy.as_ref().and_then(|proxy| proxy.host_str()).map(str::to_owned);
        let guard = Guard { private_hosts: web.private_hosts.clone().into() };
        // The proxy was chosen by the person, wherever it is.
        let for_client = Guard { private_hosts: web.private_hosts.iter().cloned().chain(proxy).collect() };
        let client = client(web, for_client).map_err(|error| reason(&error));
        Fetch { client, guard, proxied: web.proxy.is_some(), limits, last: Mutex::default() }
    }

    async fn call(&self, call: &Call<'_>) -> Result<Outcome, Outcome> {
        let Arguments { url, offset } = arguments(call)?;
        let page = match self.last(&url).filter(|_| offset > 0) {
            Some(page) => page,
            None => {
                let fetched = tokio::time::timeout(self.limits.time, self.fetch(&url)).await;
                let late = |_| format!("it took longer than {} seconds", self.limits.time.as_secs());
                let page = fetched.map_err(late).flatten();
                let page =
                    page.map_err(|why| Outcome::failed(format!("{} was not fetched: {why}.", clean(&url))))?;
                let page = Arc::new(page);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((url, page.clone()));
                page
            }
        };
        answer(&page, offset, self.limits)
    }

    fn last(&self, url: &str) -> Option<Arc<Page>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(fetched, _)| fetched == url).map(|(_, page)| page.clone())
    }

    async fn fetch(&self, url: &str) -> Result<Page, String> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let mut url: Url =
            url.trim().parse().map_err(|error| format!("the address is not valid: {error}"))?;
        for _ in 0..=REDIRECTS {
            if url.as_str().len() > ADDRESS {
                return Err(format!("the address is longer than {ADDRESS} bytes"));
            }
            self.guard.check(&url).map_err(|refused| refused.to_string())?;
            if self.proxied {
                self.check_name(&url).await?;
            }
            let asked = client
                .get(url.clone())
                .header(ACCEPT, "text/html, text/*, application/json;q=0.9, */*;q=0.1");
            let response = asked.send().await.map_err(|error| reason(&error))?;
            match redirect(&response) {
                Some(to) => {
                    let to = url.join(&to).map_err(|error| format!("it sends to {to:?}: {error}"))?;
                    self.guard.check(&to).map_err(|refused| refused.to_string())?;
                    if !is_same_host(&url, &to) {
                        return Err(format!("it sends to another host: fetch {to} if that is meant"));
                    }
                    url = to;
                }
                None => return self.page(url, response).await,
            }
        }
        Err(format!("it sends from one address to the next more than {REDIRECTS} times"))
    }

    /// Behind a proxy, names that are known here are checked here; the others only the proxy knows.
    async fn check_name(&self, url: &Url) -> Result<(), String> {
        match self.guard.addresses(url.host_str().unwrap_or_default()).await {
            Err(refused @ address::Refused::Private { .. }) => Err(refused.to_string()),
            _ => Ok(()),
        }
    }

    async fn page(&self, url: Url, response: Response) -> Result<Page, String> {
        let status = response.status().as_u16();
        let kind = Kind::of(response.headers())?;
        let latin = is_latin(response.headers());
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        let mut cut = false;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| format!("it broke off: {}", reason(&error)))?;
            let room = self.limits.bytes - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        let (bytes, hash) = (body.len(), Hash::of(&body));
        if kind == Kind::Unknown && body.contains(&0) {
            return Err("it does not say what it is, and it is not text".to_owned());
        }
        let text = match latin {
            true => body.iter().copied().map(char::from).collect(),
            false => String::from_utf8_lossy(&body).into_owned(),
        };
        let text = clean(&text).replace('\r', "\n");
        let base = url.clone();
        let converted = tokio::task::spawn_blocking(move || match kind {
            Kind::Html => markdown::markdown(&text, &base),
            Kind::Unknown if text.trim_start().starts_with('<') => markdown::markdown(&text, &base),
            _ => markdown::Markdown { title: None, text },
        });
        let markdown::Markdown { title, text } = converted.await.map_err(|error| error.to_string())?;
        Ok(Page { url, status, title, text, bytes, hash, cut })
    }
}

fn client(web: &Web, guard: Guard) -> Result<Client, reqwest::Error> {
    // The first one to install a provider wins; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("hardpan/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .dns_resolver(guard);
    match &web.proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?).build(),
        None => builder.build(),
    }
}

/// Whether two addresses are of one host, but for a leading `www.`: what was allowed for one says nothing about another.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let host = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).trim_end_matches('.').to_owned()
    };
    host(from) == host(to)
}

/// Where a response sends us.
fn redirect(response: &Response) -> Option<String> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    Some(String::from_utf8_lossy(to.as_bytes()).into_owned())
}

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    /// It does not say.
    Unknown,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Result<Self, String> {
        let Some(kind) = content_type(headers) else { return Ok(Kind::Unknown) };
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "" => Ok(Kind::Unknown),
            "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
            kind if kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") => {
                Ok(Kind::Text)
            }
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-ndjson"
            | "application/yaml"
            | "application/toml" => Ok(Kind::Text),
            kind => Err(format!("it is {}, not text", clean(kind))),
        }
    }
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
}

/// Whether the page says that it is in the old encoding of western Europe; all others are taken as UTF-8.
fn is_latin(headers: &HeaderMap) -> bool {
    let kind = content_type(headers).unwrap_or_default();
    ["iso-8859-1", "latin1", "windows-1252"].iter().any(|name| kind.contains(&format!("charset={name}")))
}

fn answer(page: &Page, offset: usize, limits: Limits) -> Result<Outcome, Outcome> {
    let text = &page.text;
    if offset > 0 && offset >= text.len() {
        return Err(Outcome::failed(format!(
            "The page has only {} bytes: offset {offset} is past its end.",
            text.len()
        )));
    }
    let start = text.floor_char_boundary(offset);
    let mut end = text.floor_char_boundary((start + BYTES).min(text.len()));
    if end < text.len() {
        // After a line, if there is one in the second half.
        let line_end = text[start..end].rfind('\n').map(|at| start + at + 1);
        end = line_end.filter(|&line_end| line_end > start + BYTES / 2).unwrap_or(end);
    }
    let mut notices = Vec::new();
    if page.status >= 400 {
        notices.push(format!("the server answered with status {}", page.status));
    }
    if start > 0 || end < text.len() {
        notices.push(format!("bytes {start}-{end} of {}", text.len()));
    }
    if end < text.len() {
        notices.push(format!("go on with offset={end}"));
    } else if page.cut {
        notices.push(format!("the page goes on, but no more than {} bytes of it are taken", limits.bytes));
    }
    let title = page.title.as_deref().map(|title| format!("Title: {title}\n")).unwrap_or_default();
    let body = if text.is_empty() { "(the page holds no text)" } else { &text[start..end] };
    let text = with_notices(format!("{title}Address: {}\n\n{body}", page.url), &notices);
    let details = json!({
        "url": page.url.as_str(),
        "title": page.title,
        "status": page.status,
        "bytes": page.bytes,
        "hash": page.hash,
    });
    Ok(Outcome { is_error: page.status >= 400, ..Outcome::text(text).with_details(details) })
}

/// The innermost cause: it says what happened, the outer ones only that something did.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
