//! [`Charge`]: the bill of one request, split over the contents of its prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::{Block, Content, ItemKind, Origin, ResultPart, Source, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::ledger::{CompletedRequest, Prices, RequestPurpose, short_names};

/// How far our counts are stretched to match the provider's total. A difference of more than a
/// quarter is not an error in counting: the provider added something that we did not send (a
/// preamble for tools, results of its web search), which gets a row of its own. A quarter is the
/// spread of the first guess for a vocabulary that is not public.
const MAX_STRETCH: f64 = 1.25;

/// The key that the whole conversation is charged to.
const MESSAGES: &str = "messages";
/// What the keys of sub-agents begin with.
const TASK: &str = "task:";
/// The key of a kind whose keys are summed up.
const UNNAMED: &str = "all";

/// What tokens are charged to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// The kind of thing that was paid for. `None`: not a part of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ItemKind>,
    /// The item's key, `messages`, `tool:NAME` or `rule:NAME`; `answer`, `unaccounted` and
    /// `task:AGENT` outside the prompt; `all` where the keys of a kind are summed up.
    pub key: Arc<str>,
}

impl Account {
    fn from_origin(origin: &Origin) -> Self {
        let key: Arc<str> = match &origin.source {
            Source::Item { key, .. } => key.clone(),
            Source::Message(_) => MESSAGES.into(),
            Source::Tool(name) => format!("tool:{name}").into(),
            Source::Rule(name) => format!("rule:{name}").into(),
        };
        Account { kind: Some(origin.kind), key }
    }

    /// Whether text with this origin is charged to this account.
    fn matches_origin(&self, origin: &Origin) -> bool {
        let same = match &origin.source {
            Source::Item { key, .. } => *key == self.key,
            Source::Message(_) => &*self.key == MESSAGES,
            // Few, and each is one piece.
            Source::Tool(_) | Source::Rule(_) => false,
        };
        same && self.kind == Some(origin.kind)
    }

    /// The account of everything of a kind whose keys were not kept.
    pub fn unnamed(kind: ItemKind) -> Self {
        Account { kind: Some(kind), key: UNNAMED.into() }
    }

    /// Whether it sums up a kind.
    pub fn is_unnamed(&self) -> bool {
        self.kind.is_some() && &*self.key == UNNAMED
    }

    /// The account of the model's answers.
    pub fn answer() -> Self {
        Account { kind: None, key: "answer".into() }
    }

    /// The account of all requests of a sub-agent.
    pub fn task(agent: &str) -> Self {
        Account { kind: None, key: format!("{TASK}{agent}").into() }
    }

    /// The name of the sub-agent whose account it is.
    pub fn task_agent(&self) -> Option<&str> {
        self.kind.is_none().then(|| self.key.strip_prefix(TASK)).flatten()
    }

    /// The account of the searches of the provider's own tool.
    pub fn web_search() -> Self {
        Account { kind: None, key: "web_search".into() }
    }

    /// The account of what the provider billed although we did not send it.
    pub fn unaccounted() -> Self {
        Account { kind: None, key: "unaccounted".into() }
    }
}

/// One row of a split bill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChargeRow {
    /// What the row is charged to.
    #[serde(flatten)]
    pub account: Account,
    /// The row's tokens, by how they were billed.
    #[serde(flatten, with = "short_names")]
    pub tokens: TokenUsage,
    /// The price of these tokens, in dollars.
    pub dollars: f64,
}

/// The bill of one request. Its rows add up to its tokens exactly, and to its dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// When the request was sent, in milliseconds since 1970.
    pub at: i64,
    /// The day in the person's time zone: `2026-08-14`.
    pub day: Arc<str>,
    /// Id of the provider that billed it.
    pub provider: Arc<str>,
    /// Id of the model that answered.
    pub model: Arc<str>,
    /// What the request was made for.
    pub purpose: RequestPurpose,
    /// All billed tokens, the answer's included.
    #[serde(with = "short_names")]
    pub tokens: TokenUsage,
    /// The whole price, in dollars.
    pub dollars: f64,
    /// The prices that applied at the time.
    pub prices: Prices,
    /// The prompt's tokens by our own count, before they were reconciled with the bill.
    pub counted: u64,
    /// Whether the tokens are our own count, because the provider reported none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The parts of the bill, in the order of the prompt.
    pub rows: Vec<ChargeRow>,
}

impl Charge {
    /// Splits the bill of a request. The tokens that were read fill the prompt from its front; then
    /// come those written for an hour, those written for the usual lifetime, and plain input: the
    /// order in which providers bill.
    pub fn from_request(request: &CompletedRequest<'_>) -> Self {
        let tokens = request.billed();
        let prices = request.prices();
        let parts = parts_by_account(request);
        let counted = parts.iter().map(|(_, count)| count).sum();
        let mut rows = ChargeSplitter { bill: tokens, at: 0, order: BTreeMap::new(), rows: Vec::new() };
        let target = accounted_tokens(counted, tokens.prompt());
        // What the provider adds stands mostly at the front, as its preamble for tools does.
        rows.assign(Account::unaccounted(), tokens.prompt() - target);
        let (mut sum, mut taken) = (0_u64, 0_u64);
        for (account, count) in parts {
            sum += count;
            // Running totals are scaled, not the parts: so they add up to the token.
            let end = (u128::from(sum) * u128::from(target) / u128::from(counted.max(1))) as u64;
            rows.assign(account, end - taken);
            taken = end;
        }
        let mut rows = rows.rows;
        if tokens.output > 0 {
            let answer =
                TokenUsage { output: tokens.output, reasoning: tokens.reasoning, ..TokenUsage::default() };
            rows.push(ChargeRow { account: Account::answer(), tokens: answer, dollars: 0.0 });
        }
        rows.iter_mut().for_each(|row| row.dollars = prices.dollars(&row.tokens));
        Charge {
            at: request.sent_at.0,
            day: request.day.into(),
            provider: request.model.provider.as_str().into(),
            model: request.model.id.as_str().into(),
            purpose: request.purpose,
            tokens,
            dollars: prices.dollars(&tokens),
            prices,
            counted,
            estimated: request.reported_usage.is_none(),
            rows,
        }
    }

    /// The same bill with a fee that is not for tokens, as a row of its own; none if there is no fee.
    pub fn with_fee(mut self, account: Account, dollars: f64) -> Self {
        if dollars > 0.0 {
            self.dollars += dollars;
            self.rows.push(ChargeRow { account, tokens: TokenUsage::default(), dollars });
        }
        self
    }

    /// The same bill with one row per kind, small enough to be kept for every request. It still
    /// adds up.
    pub fn summarized_by_kind(&self) -> Self {
        let mut rows: Vec<ChargeRow> = Vec::new();
        for row in &self.rows {
            let account = row.account.kind.map_or_else(|| row.account.clone(), Account::unnamed);
            match rows.iter_mut().find(|known| known.account == account) {
                Some(known) => {
                    known.tokens += row.tokens;
                    known.dollars += row.dollars;
                }
                None => rows.push(ChargeRow { account, ..row.clone() }),
            }
        }
        Charge { rows, ..self.clone() }
    }
}

/// How many of the billed tokens our parts account for: all of them, unless that would stretch our
/// counts too far. There is no limit downwards, so parts never add up to more than the bill.
fn accounted_tokens(counted: u64, billed: u64) -> u64 {
    billed.min((counted as f64 * MAX_STRETCH).floor() as u64)
}

/// Fills the rows of a bill from the front of the prompt.
struct ChargeSplitter {
    bill: TokenUsage,
    /// How many tokens have been assigned so far.
    at: u64,
    order: BTreeMap<Account, usize>,
    rows: Vec<ChargeRow>,
}

impl ChargeSplitter {
    fn assign(&mut self, account: Account, count: u64) {
        if count == 0 {
            return;
        }
        let (from, to) = (self.at, self.at.saturating_add(count));
        self.at = to;
        let TokenUsage { cache_read, cache_write_5m, cache_write_1h, input, .. } = self.bill;
        let mut start = 0_u64;
        let mut within = |size: u64| {
            let (first, last) = (start, start.saturating_add(size));
            start = last;
            to.min(last).saturating_sub(from.max(first))
        };
        let cache_read = within(cache_read);
        let cache_write_1h = within(cache_write_1h);
        let cache_write_5m = within(cache_write_5m);
        let input = within(input);
        let tokens =
            TokenUsage { cache_read, cache_write_1h, cache_write_5m, input, ..TokenUsage::default() };
        let index = *self.order.entry(account.clone()).or_insert(self.rows.len());
        match self.rows.get_mut(index) {
            Some(row) => row.tokens += tokens,
            None => self.rows.push(ChargeRow { account, tokens, dollars: 0.0 }),
        }
    }
}

/// Every part of a prompt with its count, in the provider's order. Neighbours with the same account
/// are one part: a conversation has thousands of pieces, all charged to `messages`.
fn parts_by_account(request: &CompletedRequest<'_>) -> Vec<(Account, u64)> {
    let mut parts: Vec<(Account, u64)> = Vec::new();
    let mut add = |origin: &Origin, count: u32| match parts.last_mut() {
        Some((account, sum)) if account.matches_origin(origin) => *sum += u64::from(count),
        _ => parts.push((Account::from_origin(origin), count.into())),
    };
    let (tools, measured) = (&request.prompt.tools, request.prompt_tokens);
    for (index, block) in tools.iter().enumerate() {
        let origin = Origin { kind: ItemKind::Tool, source: Source::Tool(block.tool.name.clone()) };
        measured.segments(index).iter().for_each(|count| add(&origin, *count));
    }
    for (index, block) in request.prompt.blocks().enumerate() {
        let mut counts = measured.segments(tools.len() + index).iter().copied();
        for_each_origin(block, &mut |origin| counts.next().into_iter().for_each(|count| add(origin, count)));
    }
    parts
}

/// Calls `take` with the origin of each piece of a block: as many as
/// [`PromptTokens`](hardpan_prompt::PromptTokens) has segments.
fn for_each_origin(block: &Block, take: &mut impl FnMut(&Origin)) {
    match &*block.content {
        Content::Text(segments) => segments.iter().for_each(|segment| take(&segment.origin)),
        Content::Image(_, origin) => take(origin),
        Content::Reasoning(reasoning) => take(&reasoning.origin),
        Content::Call(call) => take(&call.origin),
        Content::ToolChange(change) => take(&change.origin),
        Content::Provider(block) => take(&block.origin),
        Content::Result(result) => {
            for part in &result.parts {
                match part {
                    ResultPart::Text(segments) => segments.iter().for_each(|segment| take(&segment.origin)),
                    ResultPart::Image(_) => take(&result.origin),
                }
            }
        }
    }
}
