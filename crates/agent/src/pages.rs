//! Pages: what the addresses in a prompt hold, as items of the context.
//!
//! A page is fetched once, before the run's first request, and stored in the session: a resumed
//! conversation shows it as it was. Whoever has something else to read for the model adds it as a page
//! with [`Agent::add_page`], under a name of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::figures::{format_dollars, format_number};
use hardpan_prompt::{Item, ItemKind, MessageId, Text, TokenCounter, Volatility};
use hardpan_session::Record;
use hardpan_tools::{CallSubject, WebPage, find_urls, page_address};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::events::{Note, NoteKind, RunEnd};
use crate::queue::PreparedInput;
use crate::run::unless_aborted;
use crate::setup::{ApprovalDecision, ApprovalRequest, FetchedPage};

/// How many pages of one message are fetched.
const MAX_PAGES_PER_MESSAGE: usize = 3;

/// What the `custom_type` of a page's session entry begins with; the address follows.
const PAGE_ENTRY: &str = "hardpan.page:";

/// The tool whose rules apply.
const RULES_OF: &str = "fetch";

/// The data of the session entry.
#[derive(Serialize, Deserialize)]
struct StoredPage {
    /// Its number among all pages of the conversation, from 1.
    number: usize,
    /// The message that named it; none if no message did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    page: WebPage,
}

/// What became of a page that was to join the context.
#[derive(Clone, Debug, PartialEq)]
pub enum PageAddition {
    /// Requests show it; with the price of sending it for the first time.
    Added(FetchedPage),
    /// It is not sent, for this reason.
    Refused(String),
}

/// The data of the session entry of a page that was closed.
#[derive(Serialize, Deserialize)]
struct ClosedPage {
    closed: usize,
}

/// A number that no page of the conversation has had.
fn next_number(custom: &BTreeMap<Arc<str>, Value>) -> usize {
    let pages = custom.iter().filter(|(name, _)| name.starts_with(PAGE_ENTRY));
    let number = |data: &Value| {
        let open = StoredPage::deserialize(data).map(|stored| stored.number);
        open.or_else(|_| ClosedPage::deserialize(data).map(|page| page.closed)).unwrap_or(0)
    };
    pages.map(|(_, data)| number(data)).max().unwrap_or(0) + 1
}

/// The pages that a branch shows, oldest first.
fn stored_pages(custom: &BTreeMap<Arc<str>, Value>) -> Vec<(&str, StoredPage)> {
    let entries = custom.range(Arc::<str>::from(PAGE_ENTRY)..);
    let pages = entries.map_while(|(name, data)| Some((name.strip_prefix(PAGE_ENTRY)?, data)));
    let mut pages: Vec<(&str, StoredPage)> =
        pages.filter_map(|(url, data)| Some((url, StoredPage::deserialize(data).ok()?))).collect();
    pages.sort_by_key(|(_, stored)| stored.number);
    pages
}

/// The pages of a conversation, as items.
pub(crate) fn page_items(custom: &BTreeMap<Arc<str>, Value>) -> Vec<Item> {
    let item = |(url, StoredPage { number, page, .. }): (&str, StoredPage)| Item {
        key: format!("url:{url}").into(),
        id: format!("U{number}").into(),
        kind: ItemKind::Page,
        title: page.title.as_deref().unwrap_or(url).into(),
        body: Text::new(page.text),
        changed_at_ms: page.fetched_ms,
        volatility: Volatility::Static,
        tier: None,
        unchanged_responses: None,
        shown_by: None,
    };
    stored_pages(custom).into_iter().map(item).collect()
}

impl FetchedPage {
    /// That it joins the context, with its price.
    pub fn sentence(&self) -> String {
        let price = self.dollars.map(|dollars| format!(", {}", format_dollars(dollars)));
        let (url, tokens, price) = (&self.url, format_number(self.tokens as u64), price.unwrap_or_default());
        format!("{url} joins the context ({tokens} tokens{price}); /close {url} takes it out")
    }
}

impl Agent {
    /// The addresses of the pages that requests show, oldest first.
    pub fn pages(&self) -> Vec<String> {
        let conversation = lock(&self.inner.conversation);
        stored_pages(&conversation.custom).into_iter().map(|(url, _)| url.to_owned()).collect()
    }

    /// Takes a page out of the context. Returns whether it was there; the session keeps it.
    pub async fn close_page(&self, url: &str) -> Result<bool, AgentError> {
        let as_found = find_urls(url);
        let found = {
            let conversation = lock(&self.inner.conversation);
            let mut known = stored_pages(&conversation.custom).into_iter();
            let found = known.find(|(known, _)| *known == url || as_found.iter().any(|url| url == known));
            found.map(|(url, stored)| (url.to_owned(), stored.number))
        };
        let Some((url, closed)) = found else { return Ok(false) };
        self.store_page(&url, json!(ClosedPage { closed })).await?;
        Ok(true)
    }

    /// Fetches the pages that an input names, as far as that is allowed.
    pub(crate) async fn fetch_pages(
        &self,
        prepared: &PreparedInput,
        message: &MessageId,
        token: &CancellationToken,
    ) -> Result<Result<(), RunEnd>, AgentError> {
        if self.inner.setup.pages.is_none() {
            return Ok(Ok(()));
        }
        let known = self.pages();
        let urls = find_urls(&prepared.typed);
        let (now, left_out) = urls.split_at(urls.len().min(MAX_PAGES_PER_MESSAGE));
        for url in now.iter().filter(|url| !known.contains(url)) {
            match unless_aborted(token, self.fetch_page(url, message)).await {
                Ok(fetched) => fetched?,
                Err(stop) => return Ok(Err(stop)),
            }
        }
        for url in left_out {
            let why = format!("a message names at most {MAX_PAGES_PER_MESSAGE} pages");
            self.note_page_problem(url, &why).await;
        }
        Ok(Ok(()))
    }

    async fn fetch_page(&self, url: &str, message: &MessageId) -> Result<(), AgentError> {
        let Some(reader) = &self.inner.setup.pages else { return Ok(()) };
        let address = page_address(url);
        let question = ApprovalRequest {
            call_id: format!("{}.page", message.0).into(),
            tool_name: RULES_OF.into(),
            args: json!({"url": address}),
            subject: CallSubject::Url(address.clone()),
            claim: None,
            agent: None,
            handler_reason: None,
        };
        let decision = self.inner.setup.approval_handler.approve_page(&question).await;
        if let ApprovalDecision::Deny { reason, .. } = decision {
            self.note_page_problem(url, &reason).await;
            return Ok(());
        }
        match reader.read(&address, self.now().as_millisecond()).await {
            Ok(page) => {
                let bytes = page.text.len();
                match self.join_page(url, page, Some(message)).await? {
                    PageAddition::Refused(reason) => {
                        let text = format!("{url} is not sent: {reason}");
                        let kind = NoteKind::PageNotFetched { url: url.to_owned() };
                        self.events().emit(self, Note { text, kind }).await;
                    }
                    PageAddition::Added(fetched) => {
                        let kind = NoteKind::PageFetched { url: url.to_owned(), bytes };
                        self.events().emit(self, Note { text: fetched.sentence(), kind }).await;
                    }
                }
            }
            Err(error) => self.note_page_problem(url, &error.to_string()).await,
        }
        Ok(())
    }

    /// Adds something to read that is no page of the web, under a name of its own, unless it costs too
    /// much. One that is there already gets this content.
    pub async fn add_page(&self, page: WebPage) -> Result<PageAddition, AgentError> {
        let name = page.url.clone();
        self.join_page(&name, page, None).await
    }

    /// Gives a page another content. Requests show it as a change. Returns whether there is such a page and
    /// its content is another one.
    pub async fn update_page(&self, page: WebPage) -> Result<bool, AgentError> {
        let name = page.url.clone();
        let known = {
            let conversation = lock(&self.inner.conversation);
            let mut known = stored_pages(&conversation.custom).into_iter();
            known.find(|(known, _)| *known == name).map(|(_, stored)| stored)
        };
        match known {
            Some(stored) if stored.page.text != page.text => {
                self.store_page(&name, json!(StoredPage { page, ..stored })).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Adds a page to the context, if its price is accepted.
    async fn join_page(
        &self,
        url: &str,
        page: WebPage,
        message: Option<&MessageId>,
    ) -> Result<PageAddition, AgentError> {
        let fetched = self.price_page(url, &page);
        let accepted = self.inner.setup.approval_handler.accept_page(&fetched).await;
        if let ApprovalDecision::Deny { reason, .. } = accepted {
            return Ok(PageAddition::Refused(reason));
        }
        let number = {
            let conversation = lock(&self.inner.conversation);
            let known = stored_pages(&conversation.custom).into_iter().find(|(known, _)| *known == url);
            known.map_or_else(|| next_number(&conversation.custom), |(_, stored)| stored.number)
        };
        let stored = StoredPage { number, message: message.cloned(), page };
        self.store_page(url, json!(stored)).await?;
        Ok(PageAddition::Added(fetched))
    }

    /// What a page costs when it is sent for the first time.
    fn price_page(&self, url: &str, page: &WebPage) -> FetchedPage {
        let target = self.target();
        let counter = TokenCounter::new(target.vocabulary());
        let tokens = target.factor.scale(counter.count(&Text::new(page.text.as_str())));
        let price = &target.model.price;
        let is_paid = price.is_known() && !self.inner.setup.client_factory.is_simulated();
        let dollars = is_paid.then(|| tokens as f64 * price.write().max(price.input) / 1e6);
        FetchedPage { url: url.to_owned(), tokens, dollars }
    }

    async fn note_page_problem(&self, url: &str, why: &str) {
        let text = format!("{url} was not fetched: {why}");
        let kind = NoteKind::PageNotFetched { url: url.to_owned() };
        self.events().emit(self, Note { text, kind }).await;
    }

    async fn store_page(&self, url: &str, data: Value) -> Result<(), AgentError> {
        let custom_type: Arc<str> = format!("{PAGE_ENTRY}{url}").into();
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            conversation.custom.insert(custom_type.clone(), data.clone());
            conversation.append_record(Record::Custom { custom_type, data }, self.now())
        };
        Ok(saved.await?)
    }
}
