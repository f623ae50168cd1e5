//! [`ShownCopies`]: everything in a prompt that shows something which may be shown again: tool results,
//! updates, and the items of BASE. What of it is garbage follows from their order.

use std::sync::Arc;

use hardpan_prompt::{
    Call, Content, Hash, Item, Json, MessageId, Prompt, PromptTokens, ResultPart, Role, Source, Text,
    ToolResult, key_name,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::draft::convert_messages;
use super::idle::{IdleRule, Subject, Uses};
use super::sent_results::{SentResult, first_block_in_flight, sent_results, shows_images_again};
use super::state::{StrataState, UpdateForm};
use super::stubs::{LISTED_STUB_TOKENS, LONG_ARGUMENTS, STUB_TOKENS};
use crate::KeepLevel;
use crate::history::ConvertedMessage;
use crate::knowledge::{ObservationKind, RecordedObservation};
use crate::layout::LayoutInput;

/// The tool by which the model gets back what a fold took out.
const RECALL_TOOL: &str = "recall";

/// Something in the prompt that shows a file, another item, or the output of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownCopy {
    /// The index of its block.
    pub block: usize,
    /// How many tokens go if it is dropped, its part of a line counted.
    pub saving: usize,
    /// How many tokens go if it is paged out: the line and a short call stay.
    pub paged_saving: usize,
    /// How many tokens it has.
    pub tokens: usize,
    pub place: CopyPlace,
    /// Whether it shows all of its subject.
    pub is_whole: bool,
    /// Whether later messages show all that it shows.
    pub is_shown_again: bool,
    /// Whether it stays as it is: the model has not answered it yet, or it shows something else, too.
    pub is_fixed: bool,
}

/// Where a copy stands.
#[derive(Clone, Debug, PartialEq)]
pub enum CopyPlace {
    /// In the result, or the call, of this message.
    Message(MessageId),
    /// In the text of the update at this index.
    Update(usize),
    /// In BASE.
    Base,
}

/// What a prompt shows, by subject.
pub struct ShownCopies {
    /// For each item with several copies: all of them, in the order of the prompt, and what its
    /// current body would cost in their place. Ordered by key.
    pub items: Vec<ItemCopies>,
    /// Results that a later run of the same call replaced, with the name of the tool; the last first.
    pub superseded: Vec<(ShownCopy, Arc<str>)>,
    /// Results of calls that have not been used for long, with the name of the tool.
    pub idle: Vec<(ShownCopy, Arc<str>)>,
}

/// The copies of one item.
pub struct ItemCopies {
    pub key: Arc<str>,
    /// In the order of the prompt.
    pub copies: Vec<ShownCopy>,
    /// The tokens of the current body; none if it is not known, so that nothing can replace the parts
    /// that it is made of.
    pub body_tokens: Option<usize>,
    /// Whether the item is gone, so that all of its copies are outdated.
    pub is_closed: bool,
    /// Whether it has not been used for long, so that all of its copies may be paged out.
    pub is_idle: bool,
}

impl ItemCopies {
    /// Whether only messages show it, and it pays to page them out.
    fn may_page_out(&self, rule: &IdleRule<'_>) -> bool {
        let is_message = |copy: &ShownCopy| matches!(copy.place, CopyPlace::Message(_));
        let tokens = self.copies.iter().map(|copy| copy.tokens).sum();
        self.copies.iter().all(|copy| is_message(copy) && !copy.is_fixed)
            && rule.pays(Subject::File(key_name(&self.key)), tokens)
    }
}

impl ShownCopies {
    /// Finds what `prompt` shows. What the model has not answered yet counts as shown, and is never
    /// dropped.
    pub fn find(
        input: &LayoutInput<'_>,
        strata: &StrataState,
        live: &[&Item],
        prompt: &Prompt,
        measured: &PromptTokens,
    ) -> Self {
        let keep = input.snapshot.keep;
        if keep == KeepLevel::All {
            return ShownCopies { items: Vec::new(), superseded: Vec::new(), idle: Vec::new() };
        }
        let in_flight = first_block_in_flight(prompt);
        let mut found = CopyCollector::new(input, strata, live, in_flight);
        found.add_base(prompt, measured);
        found.add_updates(prompt, measured);
        let results = sent_results(prompt, measured);
        let stubbed: FxHashSet<&MessageId> = strata.stubs.iter().map(|stub| &stub.message).collect();
        let observed = observed_by_message(input);
        let mut later_calls: FxHashSet<(&str, Hash)> = FxHashSet::default();
        let mut later_images: FxHashSet<Hash> = FxHashSet::default();
        let history = (keep == KeepLevel::Lean).then(|| convert_messages(input).messages);
        let rule = history.as_ref().map(|history| idle_rule(input, measured.total(), history, &observed));
        let (mut superseded, mut idle) = (Vec::new(), Vec::new());
        // Backwards: what comes later decides what is shown again.
        for sent in results.iter().rev() {
            let call = sent.call.map(|call| (&*call.name, call.arguments.hash()));
            let is_repeated = call.is_some_and(|call| !later_calls.insert(call));
            let has_images_again = shows_images_again(sent.result, &mut later_images);
            if stubbed.contains(sent.message) {
                continue;
            }
            let is_fixed = found.is_needed(sent) || found.shown_by.contains_key(sent.message);
            let observations = observed.get(sent.message).map_or(&[][..], Vec::as_slice);
            let changes_files = observations.iter().any(|observed| !observed.observation.kind.is_in_result());
            if let [observed] = observations
                && found.add_result(sent, observed)
            {
                continue;
            }
            let is_file = !observations.is_empty();
            let may_drop = if is_file { keep >= KeepLevel::History } else { keep >= KeepLevel::Current };
            if (is_repeated || has_images_again) && !changes_files && !is_fixed && may_drop {
                let name = sent.call.map_or_else(|| Arc::from("tool"), |call| call.name.clone());
                superseded.push((message_copy(sent, true, true), name));
            } else if let Some((rule, call)) = rule.as_ref().zip(sent.call)
                && !is_fixed
                && !is_file
                && rule.pays(Subject::Call(&call.name, call.arguments.hash()), sent.tokens)
            {
                idle.push((message_copy(sent, true, false), call.name.clone()));
            }
        }
        ShownCopies { items: found.finish(rule.as_ref()), superseded, idle }
    }
}

/// What decides about results that have not been used for long. What folds took out was used as well.
fn idle_rule<'a>(
    input: &LayoutInput<'_>,
    tokens: usize,
    history: &'a [Arc<ConvertedMessage>],
    observed: &FxHashMap<&'a MessageId, Vec<&'a RecordedObservation>>,
) -> IdleRule<'a> {
    let mut uses = Uses::default();
    let mut calls: FxHashMap<&str, &Call> = FxHashMap::default();
    let mut answers = 0;
    for converted in history {
        answers += usize::from(converted.role == Role::Assistant);
        for content in &converted.contents {
            let result = match &**content {
                Content::Call(call) => {
                    calls.insert(&call.id, call);
                    continue;
                }
                Content::Result(result) => result,
                _ => continue,
            };
            let Source::Message(message) = &result.origin.source else { continue };
            let Some(call) = calls.remove(&*result.call_id) else { continue };
            let subject = match observed.get(message).map(Vec::as_slice) {
                Some([observed]) => Subject::File(&observed.observation.path),
                _ => Subject::Call(&call.name, call.arguments.hash()),
            };
            uses.record(message, subject, answers);
            // What is recalled is used.
            if &*call.name == RECALL_TOOL
                && let Some(id) = call.arguments.value()["id"].as_str()
                && let Some((recalled, subject)) = uses.subject_of(&MessageId::from(id))
            {
                uses.record(recalled, subject, answers);
            }
        }
    }
    uses.rule(input, answers, tokens)
}

fn observed_by_message<'a>(
    input: &LayoutInput<'a>,
) -> FxHashMap<&'a MessageId, Vec<&'a RecordedObservation>> {
    let knowledge = &input.snapshot.knowledge;
    let mut observed: FxHashMap<&MessageId, Vec<&RecordedObservation>> = FxHashMap::default();
    for recorded in knowledge.paths().flat_map(|path| knowledge.observations(path)) {
        observed.entry(&recorded.message).or_default().push(recorded);
    }
    observed
}

fn message_copy(sent: &SentResult<'_>, is_whole: bool, is_shown_again: bool) -> ShownCopy {
    let is_long = |arguments: &Json| arguments.as_str().len() > LONG_ARGUMENTS;
    let long_call = if sent.call.is_some_and(|call| is_long(&call.arguments)) { sent.call_tokens } else { 0 };
    ShownCopy {
        block: sent.block,
        saving: (sent.tokens + sent.call_tokens).saturating_sub(LISTED_STUB_TOKENS),
        paged_saving: (sent.tokens + long_call).saturating_sub(STUB_TOKENS),
        tokens: sent.tokens + sent.call_tokens,
        place: CopyPlace::Message(sent.message.clone()),
        is_whole,
        is_shown_again,
        is_fixed: false,
    }
}

/// The copies of items, under construction.
struct CopyCollector<'a> {
    input: LayoutInput<'a>,
    strata: &'a StrataState,
    bodies: FxHashMap<&'a str, &'a Text>,
    items: FxHashMap<Arc<str>, ItemCopies>,
    /// Messages whose result a fold replaced by the body.
    in_results: FxHashSet<&'a MessageId>,
    /// Messages that show an item, with its key.
    shown_by: FxHashMap<&'a MessageId, &'a str>,
    /// The first block that the model has not answered yet.
    in_flight: usize,
}

impl<'a> CopyCollector<'a> {
    fn new(input: &LayoutInput<'a>, strata: &'a StrataState, live: &[&'a Item], in_flight: usize) -> Self {
        let in_results = strata.updates.iter().filter(|update| update.form == UpdateForm::InResult);
        let shown_by = strata.updates.iter().filter(|update| update.form == UpdateForm::ShownByMessage);
        CopyCollector {
            input: *input,
            strata,
            bodies: live.iter().map(|item| (&*item.key, &item.body)).collect(),
            items: FxHashMap::default(),
            in_results: in_results.map(|update| &update.anchor).collect(),
            shown_by: shown_by.map(|update| (&update.anchor, &*update.key)).collect(),
            in_flight,
        }
    }

    /// Whether a result stays whatever else shows its content: the model has not answered it yet, or the
    /// message of its call, which would go with it, shows an item.
    fn is_needed(&self, sent: &SentResult<'_>) -> bool {
        let call_shows_item = sent.call.is_some_and(|call| match &call.origin.source {
            Source::Message(message) => self.shown_by.contains_key(message),
            _ => false,
        });
        sent.block >= self.in_flight || call_shows_item
    }

    fn item(&mut self, key: &Arc<str>) -> &mut ItemCopies {
        let (bodies, counter) = (&self.bodies, &self.input.render_cache.counter);
        let factor = &self.input.target.factor;
        self.items.entry(key.clone()).or_insert_with(|| {
            let body = bodies.get(&**key);
            ItemCopies {
                key: key.clone(),
                copies: Vec::new(),
                body_tokens: body.map(|body| factor.scale(counter.count(body))),
                is_closed: false,
                is_idle: false,
            }
        })
    }

    /// Adds the items of BASE that may be outdated: those with updates, and those that are gone.
    fn add_base(&mut self, prompt: &Prompt, measured: &PromptTokens) {
        let updated: FxHashSet<&str> = self.strata.updates.iter().map(|update| &*update.key).collect();
        let first = prompt.tools.len();
        for (block, content) in prompt.blocks().map(|block| &*block.content).enumerate() {
            let Content::Result(ToolResult { origin, parts, .. }) = content else { continue };
            if !matches!(origin.source, Source::Rule(_)) {
                continue;
            }
            let Some(ResultPart::Text(segments)) = parts.first() else { continue };
            for (segment, tokens) in segments.iter().zip(measured.segments(block + first)) {
                let Source::Item { key, .. } = &segment.origin.source else { continue };
                let is_gone = !self.bodies.contains_key(&**key);
                if !is_gone && !updated.contains(&**key) {
                    continue;
                }
                let tokens = *tokens as usize;
                let place = CopyPlace::Base;
                let copy = ShownCopy {
                    block: block + first,
                    saving: tokens,
                    paged_saving: tokens,
                    tokens,
                    place,
                    is_whole: true,
                    is_shown_again: false,
                    is_fixed: false,
                };
                let item = self.item(key);
                item.is_closed |= is_gone;
                item.copies.push(copy);
            }
        }
    }

    /// Adds the updates that have a text.
    fn add_updates(&mut self, prompt: &Prompt, measured: &PromptTokens) {
        let texts = self.strata.updates.iter().enumerate().filter(|(_, update)| !update.text.is_empty());
        let mut texts: FxHashMap<(&str, Hash), Vec<usize>> =
            texts.fold(FxHashMap::default(), |mut texts, (index, update)| {
                texts.entry((&*update.key, update.text.hash())).or_default().push(index);
                texts
            });
        if texts.is_empty() {
            return;
        }
        let first = prompt.tools.len();
        for (block, content) in prompt.blocks().map(|block| &*block.content).enumerate() {
            let Content::Text(segments) = content else { continue };
            let [segment] = segments.as_slice() else { continue };
            let Source::Item { key, .. } = &segment.origin.source else { continue };
            let Some(indexes) = texts.get_mut(&(&**key, segment.text.hash())) else { continue };
            if indexes.is_empty() {
                continue;
            }
            let index = indexes.remove(0);
            let tokens = measured.tokens(block + first);
            let is_whole = self.strata.updates[index].form == UpdateForm::Body;
            let is_closed = !self.bodies.contains_key(&**key);
            let copy = ShownCopy {
                block: block + first,
                saving: tokens,
                paged_saving: tokens,
                tokens,
                place: CopyPlace::Update(index),
                is_whole,
                is_shown_again: false,
                is_fixed: block + first >= self.in_flight,
            };
            let item = self.item(key);
            item.is_closed |= is_closed;
            item.copies.push(copy);
        }
    }

    /// Adds a result that tells about one file. False if nothing is known of the file's content, so
    /// that the result says nothing of what other results show.
    fn add_result(&mut self, sent: &SentResult<'_>, recorded: &RecordedObservation) -> bool {
        let observation = &recorded.observation;
        if observation.hash.is_none() {
            return false;
        }
        let is_whole = self.in_results.contains(sent.message)
            || match observation.kind {
                ObservationKind::Shown => observation.shows_all(),
                ObservationKind::Written | ObservationKind::Confirmed => true,
                ObservationKind::Edited | ObservationKind::Diffed => false,
            };
        let is_shown_again = !self.in_results.contains(sent.message) && recorded.is_shown_again();
        let mut copy = message_copy(sent, is_whole, is_shown_again);
        let key: Arc<str> = format!("file:{}", observation.path).into();
        let shows_others = self.shown_by.get(sent.message).is_some_and(|shown| *shown != &*key);
        copy.is_fixed = self.is_needed(sent) || shows_others;
        self.item(&key).copies.push(copy);
        true
    }

    /// The items of which something may go: those with more than one copy, those that are gone, and
    /// those that have not been used for long.
    fn finish(self, rule: Option<&IdleRule<'_>>) -> Vec<ItemCopies> {
        let mut items: Vec<ItemCopies> = self.items.into_values().collect();
        if let Some(rule) = rule {
            items.iter_mut().for_each(|item| item.is_idle = item.may_page_out(rule));
        }
        items.retain(|item| item.copies.len() > 1 || item.is_closed || item.is_idle);
        items.sort_by(|a, b| a.key.cmp(&b.key));
        for item in &mut items {
            item.copies.sort_by_key(|copy| copy.block);
        }
        items
    }
}

/// What a stub calls an item: a file by its path, others by their key.
pub fn subject_name(key: &Arc<str>) -> Arc<str> {
    match key_name(key) {
        name if name.len() < key.len() => name.into(),
        _ => key.clone(),
    }
}
