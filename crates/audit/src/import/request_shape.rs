//! [`RequestShape`]: what an agent recorded of a request itself, and how two requests differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::Cause;
use hardpan_economy::verdict::ContentChange;
use hardpan_prompt::Hash;
use serde_json::Value;

use super::json_fields::JsonFields;

/// A request as far as the agent recorded it, without its texts. A part that is `None` is not
/// recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestShape {
    /// The declared tools, in order.
    pub tools: Option<Arc<[ShapePart]>>,
    /// The parts of the system prompt, in order.
    pub system: Option<Arc<[ShapePart]>>,
    /// The settings that separate caches, by name.
    pub settings: BTreeMap<&'static str, String>,
    /// The messages in order, each as a number: equal messages of a recording have equal numbers.
    pub messages: Option<Vec<u32>>,
    /// How many of the messages come up to the last breakpoint. `None` where breakpoints are not
    /// recorded.
    pub marked_messages: Option<usize>,
}

/// A tool, or a part of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapePart {
    /// The tool's name, or what the part of the system prompt is called.
    pub name: Arc<str>,
    /// The hash of its content.
    pub hash: Hash,
}

impl ShapePart {
    pub(super) fn new(name: impl Into<Arc<str>>, content: &Value) -> Self {
        let hash = match content {
            Value::String(text) => Hash::of(text.as_bytes()),
            content => Hash::of(content.to_string().as_bytes()),
        };
        ShapePart { name: name.into(), hash }
    }

    /// The declared tools of a list. A namespace counts as the tools that it contains.
    pub(super) fn from_tools(tools: &[Value]) -> Vec<Self> {
        let mut parts = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = tool.str("name").or_else(|| tool.str("type")).unwrap_or_default();
            match tool.list("tools") {
                [] => parts.push(ShapePart::new(name, tool)),
                inner => parts.extend(ShapePart::from_tools(inner).into_iter().map(|part| {
                    let name = format!("{name}.{}", part.name).into();
                    ShapePart { name, ..part }
                })),
            }
        }
        parts
    }
}

impl RequestShape {
    /// Whether all that a provider's cache depends on is recorded, so that two requests without a
    /// difference were the same up to the last breakpoint.
    pub fn is_complete(&self) -> bool {
        self.tools.is_some() && self.system.is_some() && self.messages.is_some()
    }

    /// The first difference to an earlier request that loses what that one had left in the cache, in
    /// the order in which prompts are cached. `None` if what both record agrees.
    pub fn difference_from(&self, earlier: &RequestShape) -> Option<Cause> {
        let RequestShape { tools, system, settings, messages, marked_messages: _ } = self;
        let tools = tools.as_deref().zip(earlier.tools.as_deref()).and_then(tools_change);
        let system = || system.as_deref().zip(earlier.system.as_deref()).and_then(system_change);
        let setting = || setting_change(settings, &earlier.settings);
        let message = || {
            let (now, before) = (messages.as_deref()?, earlier.messages.as_deref()?);
            message_change(now, before, earlier.marked_messages.unwrap_or(before.len()))
        };
        tools.or_else(system).or_else(setting).or_else(message)
    }
}

fn tools_change((now, before): (&[ShapePart], &[ShapePart])) -> Option<Cause> {
    let find = |parts: &[ShapePart], name: &str| parts.iter().find(|part| *part.name == *name).cloned();
    let missing_in = |parts: &[ShapePart], others: &[ShapePart]| -> Vec<Arc<str>> {
        let missing = parts.iter().filter(|part| find(others, &part.name).is_none());
        missing.map(|part| part.name.clone()).collect()
    };
    let changed = now.iter().filter(|part| find(before, &part.name).is_some_and(|old| old.hash != part.hash));
    (now != before).then(|| Cause::ToolsChanged {
        added: missing_in(now, before),
        removed: missing_in(before, now),
        changed: changed.map(|part| part.name.clone()).collect(),
        listed: Vec::new(),
    })
}

fn system_change((now, before): (&[ShapePart], &[ShapePart])) -> Option<Cause> {
    let same = now.iter().zip(before).take_while(|(now, before)| now == before).count();
    let first = now.get(same).or_else(|| before.get(same))?;
    Some(Cause::SystemChanged(first.name.to_string()))
}

fn setting_change(
    now: &BTreeMap<&'static str, String>,
    before: &BTreeMap<&'static str, String>,
) -> Option<Cause> {
    let names = now.keys().chain(before.keys());
    let mut changed = names.filter(|name| now.get(*name) != before.get(*name));
    let name = *changed.next()?;
    Some(match name {
        THINKING => Cause::ThinkingChanged,
        EFFORT => Cause::EffortChanged,
        name => Cause::SettingChanged(name.into()),
    })
}

/// The settings with a cause of their own.
pub(super) const THINKING: &str = "thinking";
pub(super) const EFFORT: &str = "effort";

/// The first of the earlier messages, up to the last breakpoint, that is not where it was.
fn message_change(now: &[u32], before: &[u32], marked: usize) -> Option<Cause> {
    let before = &before[..marked.min(before.len())];
    let at = now.iter().zip(before).take_while(|(now, before)| now == before).count();
    let old = before.get(at)?;
    let how = if now.get(at..).unwrap_or_default().contains(old) {
        ContentChange::Added
    } else if now.contains(old) {
        ContentChange::Moved
    } else if now.get(at).is_none() || now.get(at) == before.get(at + 1) {
        ContentChange::Removed
    } else {
        ContentChange::Changed
    };
    Some(Cause::MessageChanged { id: format!("{} of {}", at + 1, before.len()).into(), how })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(tools: &[(&str, &str)], system: &[&str], messages: &[u32]) -> RequestShape {
        let tools = tools.iter().map(|(name, text)| ShapePart::new(*name, &json!(text)));
        let system =
            system.iter().enumerate().map(|(at, text)| ShapePart::new(format!("part {at}"), &json!(text)));
        RequestShape {
            tools: Some(tools.collect()),
            system: Some(system.collect()),
            settings: BTreeMap::new(),
            messages: Some(messages.to_vec()),
            marked_messages: None,
        }
    }

    fn words(now: &RequestShape, before: &RequestShape) -> Option<String> {
        now.difference_from(before).map(|cause| cause.describe())
    }

    #[test]
    fn the_first_difference_in_the_order_of_the_cache_is_named() {
        let before = shape(&[("read", "a"), ("bash", "b")], &["you", "are"], &[1, 2, 3]);
        let same = shape(&[("read", "a"), ("bash", "b")], &["you", "are"], &[1, 2, 3, 4]);
        assert_eq!(words(&same, &before), None);
        let tools = shape(&[("read", "A"), ("edit", "c")], &["you", "were"], &[9]);
        assert_eq!(
            words(&tools, &before).unwrap(),
            "the tools changed (added edit; removed bash; changed read)"
        );
        let order = shape(&[("bash", "b"), ("read", "a")], &["you", "are"], &[1, 2, 3]);
        assert_eq!(words(&order, &before).unwrap(), "the tools came in another order");
        let system = shape(&[("read", "a"), ("bash", "b")], &["you", "were"], &[9]);
        assert_eq!(words(&system, &before).unwrap(), "the system prompt changed (part 1)");
    }

    #[test]
    fn a_message_is_named_by_its_place_and_what_became_of_it() {
        let before = shape(&[], &[], &[1, 2, 3, 4]);
        let named = |messages: &[u32]| words(&shape(&[], &[], messages), &before).unwrap();
        assert_eq!(named(&[1, 9, 3, 4, 5]), "message 2 of 4 changed");
        assert_eq!(named(&[1, 3, 4, 5]), "message 2 of 4 was taken out");
        assert_eq!(named(&[1, 9, 2, 3, 4]), "message 2 of 4 was put in before what was cached");
        assert_eq!(named(&[1, 2]), "message 3 of 4 was taken out");
        // What comes after the last breakpoint was never cached.
        let marked = RequestShape { marked_messages: Some(2), ..before.clone() };
        assert_eq!(words(&shape(&[], &[], &[1, 2, 9]), &marked), None);
    }

    #[test]
    fn what_one_side_does_not_record_is_no_difference() {
        let before = shape(&[("read", "a")], &["you"], &[1]);
        assert_eq!(words(&RequestShape::default(), &before), None);
        assert!(before.is_complete() && !RequestShape::default().is_complete());
        let settings = BTreeMap::from([(EFFORT, "high".to_owned()), ("betas", "x".to_owned())]);
        let set = RequestShape { settings, ..before.clone() };
        assert_eq!(words(&set, &before).unwrap(), "a setting changed (betas)");
        let only = BTreeMap::from([(EFFORT, "high".to_owned())]);
        assert_eq!(
            words(&RequestShape { settings: only, ..before.clone() }, &before).unwrap(),
            "the effort setting changed"
        );
    }
}
