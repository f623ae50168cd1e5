//! [`PageReader`]: the pages that a prompt names, for the context: fetched as `fetch` does, kept for
//! a day.

use std::path::PathBuf;
use std::sync::Arc;

use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use hardpan_prompt::Hash;
use hardpan_workspace::{GitOptions, RemoteError};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::repository::RepositoryAddress;
use super::{Fetch, FetchError, WebOptions};

/// How long a fetched page is used again.
const KEPT_FOR_MS: i64 = 24 * 60 * 60 * 1000;

/// The most bytes of a page's text that become context: some 15,000 tokens.
const MAX_PAGE_BYTES: usize = 64 * 1024;

/// The largest file of the cache, in bytes: a page as JSON, in which every character may be escaped.
const MAX_CACHED_BYTES: u64 = 8 * MAX_PAGE_BYTES as u64;

/// A web page as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebPage {
    /// The address as it was asked for.
    pub url: String,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// The page as Markdown, or the text that it is.
    pub text: String,
    /// When it was fetched, in milliseconds since 1970.
    pub fetched_ms: i64,
}

/// Why a page was not fetched. The text completes "… was not fetched: ".
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PageError(#[from] PageProblem);

#[derive(Debug, Error)]
enum PageProblem {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the server answered with status {0}")]
    Status(u16),
    #[error("it holds no text")]
    Empty,
    #[error(transparent)]
    Repository(#[from] RemoteError),
    #[error("{page}; git says: {repository}")]
    NeitherForm {
        /// Why the repository was not fetched.
        repository: Box<PageProblem>,
        /// Why its web page was not.
        page: Box<PageProblem>,
    },
}

/// Fetches pages. Errors are not kept: the next time they are asked for again.
pub struct PageReader {
    fetch: Fetch,
    /// The folder of the pages that were fetched within a day; `None` keeps none.
    cache: Option<PathBuf>,
    /// How git runs that fetches repositories; `None` shows their web pages.
    git: Option<GitOptions>,
}

impl PageReader {
    /// A reader that may reach what `fetch` may reach.
    pub fn new(web: &WebOptions, cache: Option<PathBuf>) -> Self {
        PageReader { fetch: Fetch::new(web), cache, git: None }
    }

    /// The same reader, which fetches repositories with git.
    pub fn with_git(self, git: GitOptions) -> Self {
        PageReader { git: Some(git), ..self }
    }

    /// Fetches a page, or takes it from the cache. `url` is an address of [`page_address`].
    pub async fn read(self: &Arc<Self>, url: &str, now_ms: i64) -> Result<WebPage, PageError> {
        if let Some(page) = self.clone().cached(url.to_owned(), now_ms).await {
            return Ok(page);
        }
        let mut failed = None;
        if let (Some(address), Some(git)) = (RepositoryAddress::of_url(url), self.git.clone()) {
            match self.read_repository(url, address, git, now_ms).await {
                Ok(page) => return Ok(page),
                // Its web page may say what it is.
                Err(problem) => failed = Some(problem),
            }
        }
        match (self.read_page(url, now_ms).await, failed) {
            (Ok(page), None) => {
                self.clone().keep(page.clone()).await;
                Ok(page)
            }
            (Ok(page), Some(problem)) => {
                let text = format!("[the repository was not fetched: {problem}]\n{}", page.text);
                Ok(WebPage { text, ..page })
            }
            (Err(page), None) => Err(page.into()),
            (Err(page), Some(repository)) => {
                let (repository, page) = (Box::new(repository), Box::new(page));
                Err(PageProblem::NeitherForm { repository, page }.into())
            }
        }
    }

    async fn read_page(&self, url: &str, now_ms: i64) -> Result<WebPage, PageProblem> {
        let fetched = self.fetch.fetch_in_time(url).await?;
        if fetched.status >= 400 {
            return Err(PageProblem::Status(fetched.status));
        }
        let mut text = fetched.text.trim().to_owned();
        if text.is_empty() {
            return Err(PageProblem::Empty);
        }
        if text.len() > MAX_PAGE_BYTES || fetched.cut {
            let whole = text.len();
            text.truncate(text.floor_char_boundary(MAX_PAGE_BYTES));
            text.push_str(&format!("\n[cut: {} of at least {whole} bytes are shown]", text.len()));
        }
        Ok(WebPage { url: url.to_owned(), title: fetched.title, text, fetched_ms: now_ms })
    }

    async fn read_repository(
        self: &Arc<Self>,
        url: &str,
        address: RepositoryAddress,
        git: GitOptions,
        now_ms: i64,
    ) -> Result<WebPage, PageProblem> {
        let parsed: Url = url.parse().map_err(FetchError::InvalidAddress)?;
        self.fetch.guard.check_url(&parsed).map_err(FetchError::from)?;
        let host = parsed.host_str().unwrap_or_default();
        self.fetch.guard.resolve_host(host.trim_matches(['[', ']'])).await.map_err(FetchError::from)?;
        let read = tokio::task::spawn_blocking(move || address.read(&git)).await;
        let (title, text) = read.map_err(|error| FetchError::Conversion(error.into()))??;
        let page = WebPage { url: url.to_owned(), title: Some(title), text, fetched_ms: now_ms };
        self.clone().keep(page.clone()).await;
        Ok(page)
    }

    async fn cached(self: Arc<Self>, url: String, now_ms: i64) -> Option<WebPage> {
        let path = self.cached_file(&url)?;
        let read = tokio::task::spawn_blocking(move || {
            let page: WebPage = serde_json::from_str(&read_small_text(&path, MAX_CACHED_BYTES).ok()?).ok()?;
            let age = now_ms - page.fetched_ms;
            (page.url == url && (0..KEPT_FOR_MS).contains(&age)).then_some(page)
        });
        read.await.ok().flatten()
    }

    /// Keeps a page. A cache that cannot be written costs a request, nothing else.
    async fn keep(self: Arc<Self>, page: WebPage) {
        let Some(path) = self.cached_file(&page.url) else { return };
        let write = tokio::task::spawn_blocking(move || {
            path.parent().map_or(Ok(()), create_private_folder)?;
            write_private_file(&path, serde_json::to_string(&page)?.as_bytes())
        });
        drop(write.await);
    }

    fn cached_file(&self, url: &str) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join(format!("{}.json", Hash::of(url.as_bytes()))))
    }
}

/// The addresses in a text, in order, each once. Not those in code (between lines of three
/// backticks), which are quoted rather than meant.
pub fn find_urls(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find("http") {
            let begins_word = rest[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            let address = &rest[at..];
            let end = address.find(|c: char| c.is_whitespace() || "<>\"`|\\^{}".contains(c));
            let word = trim_address(&address[..end.unwrap_or(address.len())]);
            let is_address = word.starts_with("http://") || word.starts_with("https://");
            if begins_word
                && is_address
                && let Ok(mut url) = Url::parse(word)
                && url.has_host()
            {
                url.set_fragment(None);
                let url = String::from(url);
                if !urls.contains(&url) {
                    urls.push(url);
                }
            }
            rest = &address[word.len().max(4)..];
        }
    }
    urls
}

/// An address without the punctuation of the sentence that it stands in.
fn trim_address(mut word: &str) -> &str {
    loop {
        let closes = |open: char, close: char| {
            word.ends_with(close) && word.matches(close).count() > word.matches(open).count()
        };
        let is_punctuation = word.ends_with(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
        if !is_punctuation && !closes('(', ')') && !closes('[', ']') {
            return word;
        }
        // All of these are one byte.
        word = &word[..word.len() - 1];
    }
}

/// The address to fetch for one that a person named: files on GitHub as they are.
pub fn page_address(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    if parsed.host_str() != Some("github.com") || parsed.query().is_some() {
        return url.to_owned();
    }
    let parts: Vec<&str> = parsed.path().split('/').filter(|part| !part.is_empty()).collect();
    let raw = "https://raw.githubusercontent.com";
    match parts[..] {
        [owner, repository, "blob" | "raw", ref path @ ..] if path.len() > 1 => {
            format!("{raw}/{owner}/{repository}/{}", path.join("/"))
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_without_the_sentence_around_them() {
        let text = "See https://a.test/x, (http://b.test/y_(z)) and <https://c.test/?q=1#part>.\n\
                    Again https://a.test/x! xhttps://no.test ftp://no.test http:// https://\n\
                    ```\nhttps://code.test\n```\n[link](https://d.test/e).";
        let expected = ["https://a.test/x", "http://b.test/y_(z)", "https://c.test/?q=1", "https://d.test/e"];
        assert_eq!(find_urls(text), expected);
    }

    #[test]
    fn files_on_github_are_fetched_raw() {
        let raw = "https://raw.githubusercontent.com";
        for (url, address) in [
            ("https://github.com/o/r", "https://github.com/o/r".to_owned()),
            ("https://github.com/o/r/blob/main/src/a.rs", format!("{raw}/o/r/main/src/a.rs")),
            ("https://github.com/o/r/issues/1", "https://github.com/o/r/issues/1".to_owned()),
            ("https://github.com/o", "https://github.com/o".to_owned()),
            ("https://example.test/o/r", "https://example.test/o/r".to_owned()),
        ] {
            assert_eq!(page_address(url), address);
        }
    }
}
