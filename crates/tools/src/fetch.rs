//! The tool `fetch`: a web page as Markdown.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use hardpan_prompt::Hash;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bash::sanitize::sanitize;
use crate::declarations::load_declaration;
use crate::limits::{MAX_ANSWER_BYTES, append_notices};
use crate::tool::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome, parse_arguments};

mod address_guard; // AddressGuard: which addresses may be fetched from
mod error; // FetchError: why a page was not fetched
mod html; // HTML as a series of tags and texts
mod markdown; // HTML to Markdown
mod page; // PageReader: pages that become context
mod pdf; // PDF to text
mod repository; // repositories as pages
mod web_client; // WebClient: requests of programs inside of Hardpan

use address_guard::AddressGuard;
use error::FetchError;
pub use page::{PageError, PageReader, WebPage, find_urls, page_address};
pub use web_client::{WebAnswer, WebBody, WebClient, WebRequest, WebRequestError};

/// The most redirects that are followed, all on one host.
const MAX_REDIRECTS: usize = 5;

/// The longest address that is requested, in bytes.
const MAX_ADDRESS_BYTES: usize = 4096;

/// What `fetch` may reach, and how.
#[derive(Clone, Debug, Default)]
pub struct WebOptions {
    /// Hosts that may have private addresses (this machine, the local network), by name or IP
    /// address; `*` allows all.
    pub private_hosts: Vec<String>,
    /// The URL of an HTTP proxy. The proxy resolves host names then; addresses that this machine
    /// finds for them are still checked.
    pub proxy: Option<String>,
}

/// The tool `fetch`.
pub(crate) struct Fetch {
    client: Result<Client, FetchError>,
    guard: AddressGuard,
    proxied: bool,
    limits: FetchLimits,
    /// The last page and its address, so that continuing with `offset` does not fetch it again.
    last: Mutex<Option<(String, Arc<FetchedPage>)>>,
}

/// How long a page may take, and how many bytes of it are read.
#[derive(Clone, Copy)]
struct FetchLimits {
    time: Duration,
    bytes: usize,
}

const DEFAULT_LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 5 * 1024 * 1024 };

/// How many times more bytes are read of a PDF file, whose text is a small part of it.
const PDF_FACTOR: usize = 4;

/// A page that was fetched and converted.
#[derive(Debug)]
struct FetchedPage {
    url: Url,
    status: u16,
    title: Option<String>,
    text: String,
    bytes: usize,
    hash: Hash,
    /// The page was longer than [`FetchLimits::bytes`].
    cut: bool,
}

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("fetch", include_str!("../texts/fetch.toml")));

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

    // It changes nothing here, but an address can leak data to another machine.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        CallSubject::of_argument(CallSubject::Url, arguments, "url")
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Url
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.call(&call).await.unwrap_or_else(|failed| failed) })
    }
}

impl Fetch {
    pub fn new(web: &WebOptions) -> Self {
        Fetch::with_limits(web, DEFAULT_LIMITS)
    }

    fn with_limits(web: &WebOptions, limits: FetchLimits) -> Self {
        let proxy = web.proxy.as_ref().and_then(|proxy| proxy.parse::<Url>().ok());
        let proxy = proxy.as_ref().and_then(|proxy| proxy.host_str()).map(str::to_owned);
        let guard = AddressGuard { private_hosts: web.private_hosts.clone().into() };
        // The user chose the proxy, so its own address may be private.
        let for_client =
            AddressGuard { private_hosts: web.private_hosts.iter().cloned().chain(proxy).collect() };
        let client = build_client(web, for_client).map_err(FetchError::from);
        Fetch { client, guard, proxied: web.proxy.is_some(), limits, last: Mutex::default() }
    }

    async fn call(&self, call: &ToolInvocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let Arguments { url, offset } = parse_arguments(call)?;
        let page = match self.last_page(&url).filter(|_| offset > 0) {
            Some(page) => page,
            None => {
                let page = self.fetch_in_time(&url).await.map_err(|why| {
                    ToolOutcome::failed(format!("{} was not fetched: {why}.", sanitize(&url)))
                })?;
                let page = Arc::new(page);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((url, page.clone()));
                page
            }
        };
        build_outcome(&page, offset, self.limits)
    }

    fn last_page(&self, url: &str) -> Option<Arc<FetchedPage>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(fetched, _)| fetched == url).map(|(_, page)| page.clone())
    }

    /// Fetches a page, unless it takes too long.
    async fn fetch_in_time(&self, url: &str) -> Result<FetchedPage, FetchError> {
        let fetched = tokio::time::timeout(self.limits.time, self.fetch(url)).await;
        let late = |_| FetchError::TimedOut { seconds: self.limits.time.as_secs() };
        fetched.map_err(late).flatten()
    }

    async fn fetch(&self, url: &str) -> Result<FetchedPage, FetchError> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let mut url: Url = url.trim().parse().map_err(FetchError::InvalidAddress)?;
        for _ in 0..=MAX_REDIRECTS {
            if url.as_str().len() > MAX_ADDRESS_BYTES {
                return Err(FetchError::LongAddress);
            }
            self.guard.check_url(&url)?;
            if self.proxied {
                self.check_host_addresses(&url).await?;
            }
            let asked = client
                .get(url.clone())
                .header(ACCEPT, "text/html, text/*, application/json;q=0.9, */*;q=0.1");
            let response = asked.send().await?;
            match redirect_target(&response) {
                Some(to) => {
                    let to = url.join(&to).map_err(|error| FetchError::InvalidRedirect { to, error })?;
                    self.guard.check_url(&to)?;
                    if !is_same_host(&url, &to) {
                        return Err(FetchError::OtherHost { to });
                    }
                    url = to;
                }
                None => return self.read_page(url, response).await,
            }
        }
        Err(FetchError::ManyRedirects)
    }

    /// Checks a host behind a proxy, as far as this machine can resolve it.
    async fn check_host_addresses(&self, url: &Url) -> Result<(), FetchError> {
        match self.guard.resolve_host(url.host_str().unwrap_or_default()).await {
            Err(refused @ address_guard::AddressError::Private { .. }) => Err(refused.into()),
            _ => Ok(()),
        }
    }

    async fn read_page(&self, url: Url, response: Response) -> Result<FetchedPage, FetchError> {
        let status = response.status().as_u16();
        let kind = ContentKind::from_headers(response.headers())?;
        let latin = is_latin(response.headers());
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        let mut cut = false;
        let most = if kind == ContentKind::Pdf { self.limits.bytes * PDF_FACTOR } else { self.limits.bytes };
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| FetchError::BrokeOff(error.into()))?;
            let room = most - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        let (bytes, hash) = (body.len(), Hash::of(&body));
        if kind == ContentKind::Pdf || (kind == ContentKind::Unknown && body.starts_with(b"%PDF-")) {
            let converted = tokio::task::spawn_blocking(move || pdf::pdf_to_text(&body));
            let converted = converted.await.map_err(|error| FetchError::Conversion(error.into()))?;
            let pdf::PdfText { title, text } = converted.map_err(|error| FetchError::Pdf { error, cut })?;
            let (title, text) = (title.map(|title| sanitize(&title)), sanitize(&text));
            return Ok(FetchedPage { url, status, title, text, bytes, hash, cut });
        }
        if kind == ContentKind::Unknown && body.contains(&0) {
            return Err(FetchError::UnknownContent);
        }
        let text = match latin {
            true => body.iter().copied().map(char::from).collect(),
            false => String::from_utf8_lossy(&body).into_owned(),
        };
        let text = sanitize(&text).replace('\r', "\n");
        let base = url.clone();
        let converted = tokio::task::spawn_blocking(move || match kind {
            ContentKind::Html => markdown::html_to_markdown(&text, &base),
            ContentKind::Unknown if text.trim_start().starts_with('<') => {
                markdown::html_to_markdown(&text, &base)
            }
            _ => markdown::MarkdownPage { title: None, text },
        });
        let converted = converted.await.map_err(|error| FetchError::Conversion(error.into()))?;
        let markdown::MarkdownPage { title, text } = converted;
        Ok(FetchedPage { url, status, title, text, bytes, hash, cut })
    }
}

fn build_client(web: &WebOptions, guard: AddressGuard) -> Result<Client, reqwest::Error> {
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

/// Whether two addresses are on the same host, but for a leading `www.`. A permission for one host
/// says nothing about another.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let host = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).trim_end_matches('.').to_owned()
    };
    host(from) == host(to)
}

/// The `Location` of a redirect. `None` for other responses.
fn redirect_target(response: &Response) -> Option<String> {
    let to = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    Some(String::from_utf8_lossy(to.as_bytes()).into_owned())
}

/// How the body of a response is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentKind {
    Html,
    Text,
    Pdf,
    /// There is no content type, or one that says nothing.
    Unknown,
}

impl ContentKind {
    fn from_headers(headers: &HeaderMap) -> Result<Self, FetchError> {
        let Some(kind) = content_type(headers) else { return Ok(ContentKind::Unknown) };
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "" | "application/octet-stream" | "binary/octet-stream" => Ok(ContentKind::Unknown),
            "application/pdf" | "application/x-pdf" => Ok(ContentKind::Pdf),
            "text/html" | "application/xhtml+xml" => Ok(ContentKind::Html),
            kind if kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") => {
                Ok(ContentKind::Text)
            }
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-ndjson"
            | "application/yaml"
            | "application/toml" => Ok(ContentKind::Text),
            kind => Err(FetchError::NotText { content_type: sanitize(kind) }),
        }
    }
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
}

/// Whether the page declares ISO-8859-1 or Windows-1252; all others are read as UTF-8.
fn is_latin(headers: &HeaderMap) -> bool {
    let kind = content_type(headers).unwrap_or_default();
    ["iso-8859-1", "latin1", "windows-1252"].iter().any(|name| kind.contains(&format!("charset={name}")))
}

fn build_outcome(page: &FetchedPage, offset: usize, limits: FetchLimits) -> Result<ToolOutcome, ToolOutcome> {
    let text = &page.text;
    if offset > 0 && offset >= text.len() {
        return Err(ToolOutcome::failed(format!(
            "The page has only {} bytes: offset {offset} is past its end.",
            text.len()
        )));
    }
    let start = text.floor_char_boundary(offset);
    let mut end = text.floor_char_boundary((start + MAX_ANSWER_BYTES).min(text.len()));
    if end < text.len() {
        // End after a whole line, if one ends in the second half.
        let line_end = text[start..end].rfind('\n').map(|at| start + at + 1);
        end = line_end.filter(|&line_end| line_end > start + MAX_ANSWER_BYTES / 2).unwrap_or(end);
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
    let text = append_notices(format!("{title}Address: {}\n\n{body}", page.url), &notices);
    let details = json!({
        "url": page.url.as_str(),
        "title": page.title,
        "status": page.status,
        "bytes": page.bytes,
        "hash": page.hash,
    });
    Ok(ToolOutcome { is_error: page.status >= 400, ..ToolOutcome::text(text).with_details(details) })
}

#[cfg(test)]
mod tests;
