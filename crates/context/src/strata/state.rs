//! [`StrataState`]: what `strata` carries over from one request to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::folds::RentAccounts;
use hardpan_prompt::{Effort, Hash, Item, ItemKind, MessageId, Text, ToolChangeAction, Volatility, key_name};
use serde::{Deserialize, Serialize};

use super::lifetimes::LongLived;
use crate::FoldOutlook;
use crate::declared_tools::DeclaredTools;

fn is_empty(groups: &Arc<Vec<BaseGroup>>) -> bool {
    groups.is_empty()
}

/// What `strata` carries over: what the model has been told, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrataState {
    /// The groups of BASE as the last fold laid them; empty before the first request.
    #[serde(skip_serializing_if = "is_empty")]
    pub base: Arc<Vec<BaseGroup>>,
    /// Whether BASE has been laid. An empty BASE counts: a first request may have no items.
    #[serde(rename = "laid", skip_serializing_if = "std::ops::Not::not")]
    pub has_base: bool,
    /// What the LOG has told about items since the last fold, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<ItemUpdate>,
    /// The tool results that folds took out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stubs: Vec<Stub>,
    /// How far the last request was cached; none before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frontier: Option<Frontier>,
    /// The hash of the last TAIL without its clock: an unchanged TAIL is not sent again in a turn.
    #[serde(rename = "tail", skip_serializing_if = "Option::is_none")]
    pub tail_hash: Option<Hash>,
    /// The TAILs that were sent as messages of their own, which must stay where they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<SentTail>,
    /// The effort that requests name as their own since BASE was laid, where later changes are told by
    /// messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_effort: Option<Effort>,
    /// The changes of effort since then, each before a message of the person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effort_changes: Vec<EffortChange>,
    /// The tools that requests declare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_tools: Option<DeclaredTools>,
    /// The changes of the tools since then, in order, where the model takes them by messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_changes: Vec<ToolChangeSet>,
    /// How far the provider was asked to keep the last request for the long lifetime.
    #[serde(skip_serializing_if = "LongLived::is_nothing")]
    pub long_lived: LongLived,
    /// How many folds there have been in this session.
    pub folds: u32,
    /// How many of them laid BASE anew.
    #[serde(skip_serializing_if = "is_zero")]
    pub bases: u32,
    /// What garbage has cost since the last folds, and where folds could begin.
    #[serde(skip_serializing_if = "GarbageAccount::is_empty")]
    pub account: GarbageAccount,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What garbage costs, and what a fold of everything would drop, as of the last request.
///
/// A fold is due at a place once the rent paid for the garbage after it has reached most of its price
/// (`docs/economy.md`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GarbageAccount {
    /// The places where a fold could begin, as numbers of blocks: the ends of earlier requests'
    /// cache entries, in order. The last request's is [`StrataState::frontier`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<usize>,
    /// The rent paid for the garbage after each place, in units of the price of one input token.
    pub rents: RentAccounts,
    /// Tokens after the system prompt.
    #[serde(rename = "after")]
    pub tokens_after_system: usize,
    /// How many of these tokens a fold of everything would drop.
    #[serde(rename = "garbage")]
    pub garbage_tokens: usize,
    /// The place whose account is closest to its price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_fold: Option<FoldOutlook>,
}

impl GarbageAccount {
    fn is_empty(&self) -> bool {
        *self == GarbageAccount::default()
    }
}

impl StrataState {
    /// Whether a fold took out what this message, a tool result, shows.
    pub fn is_taken_out(&self, message: &MessageId) -> bool {
        self.stubs.iter().any(|stub| stub.message == *message)
    }

    /// The items that the model has been told of, with their last bodies.
    pub fn told_items(&self) -> Vec<Item> {
        let mut items: BTreeMap<Arc<str>, Item> = BTreeMap::new();
        for group in self.base.iter() {
            for placed in &group.items {
                let title = placed.title.as_ref();
                let item = told_item(&placed.key, title, placed.kind, &placed.body, group.volatility());
                items.insert(placed.key.clone(), item);
            }
        }
        for update in &self.updates {
            match (&update.body, items.get_mut(&update.key)) {
                // Closed without a word: it is there still, and something else shows it.
                (None, _) if update.text.is_empty() => {}
                (None, _) => drop(items.remove(&update.key)),
                (Some(body), Some(item)) => item.body = body.clone(),
                (Some(body), None) => {
                    let item = told_item(&update.key, None, update.kind, body, Volatility::Active);
                    items.insert(update.key.clone(), item);
                }
            }
        }
        items.into_values().collect()
    }

    /// True before the first request in `strata`.
    pub fn is_empty(&self) -> bool {
        *self == StrataState::default()
    }
}

/// A group of items in BASE: one tool call and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseGroup {
    /// The group's name, by the volatility of its items: `still`, `calm` or `lively`.
    pub name: Arc<str>,
    /// Its items, ordered by kind and key.
    pub items: Vec<BaseItem>,
}

impl BaseGroup {
    /// How often its items were expected to change.
    fn volatility(&self) -> Volatility {
        match &*self.name {
            "still" => Volatility::Static,
            "calm" => Volatility::Slow,
            _ => Volatility::Active,
        }
    }
}

fn told_item(
    key: &Arc<str>,
    title: Option<&Arc<str>>,
    kind: ItemKind,
    body: &Text,
    volatility: Volatility,
) -> Item {
    let name: Arc<str> = key_name(key).into();
    Item {
        key: key.clone(),
        id: name.clone(),
        kind,
        title: title.cloned().unwrap_or(name),
        body: body.clone(),
        changed_at_ms: 0,
        volatility,
        tier: None,
        unchanged_responses: None,
        shown_by: None,
    }
}

/// An item as it stands in BASE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseItem {
    /// The item's key: `file:src/a.rs`.
    pub key: Arc<str>,
    /// The item's title, where the key does not say it (panels and pages).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The kind of the item, which decides its column in the breakdown.
    pub kind: ItemKind,
    /// The item's body when BASE was laid; it may have changed since.
    pub body: Text,
}

/// Something the LOG tells the model about an item: a change, a new body, or that it was closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemUpdate {
    /// The key of the item it is about.
    pub key: Arc<str>,
    /// The kind of that item.
    pub kind: ItemKind,
    /// The message it is sent with: the prompt, or the last result of a tool round.
    pub anchor: MessageId,
    /// How the update tells it: as a diff, a whole body, or a notice.
    pub form: UpdateForm,
    /// The text as sent; empty where the message itself shows the body.
    pub text: Text,
    /// The item's body after the update; none once the item is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
}

/// How an update tells the model what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateForm {
    /// A unified diff against the body that was told last.
    Diff,
    /// The whole body, where a diff would not be shorter or nothing was told before.
    Body,
    /// The message it is anchored to already shows the body (a read, a write): no text is added.
    #[serde(rename = "said")]
    ShownByMessage,
    /// The result of the message it is anchored to was replaced by the whole body, at a fold.
    InResult,
    /// The messages that showed the body were paged out: the model can recall it.
    PagedOut,
    /// A notice that the item was closed and is no longer kept up to date.
    Closed,
}

/// A change of effort that a message told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffortChange {
    /// The person's message that it stands before.
    pub before: MessageId,
    /// The effort from there on.
    pub effort: Effort,
}

/// Changes of the tools that one message told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolChangeSet {
    /// The person's message, or the results, that it stands after.
    pub after: MessageId,
    /// What becomes of which tool.
    pub actions: Vec<ToolChangeAction>,
    /// The guidelines of added tools as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidelines: Option<Text>,
}

/// A TAIL that was sent as a system message for one turn. The provider no longer shows it to the
/// model, but it must be sent again, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentTail {
    /// The message that it follows.
    pub anchor: MessageId,
    /// The text as sent.
    pub text: Text,
}

/// A tool result that a fold took out, because something newer says the same. A line stands for it: in
/// its own place, or in that of an earlier one, in which case its call is taken out, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stub {
    /// The message whose result it was; it is recalled by this id.
    pub message: MessageId,
    /// What it showed: the path of a file, or the name of the tool.
    #[serde(rename = "key")]
    pub what: Arc<str>,
    /// How many tokens call and result had.
    #[serde(default)]
    pub tokens: usize,
    /// Whether it was only not used for long: nothing newer says the same.
    #[serde(rename = "paged", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paged_out: bool,
    /// The message whose result tells of it, if its own result is not sent at all.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub told_in: Option<MessageId>,
}

/// How far a request was cached. The next request marks the same place again if it begins alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frontier {
    /// Blocks up to and including the last breakpoint, tools counted.
    pub blocks: usize,
    /// The hash over these blocks.
    pub hash: Hash,
}
