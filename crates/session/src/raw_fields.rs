//! [`RawFields`]: the fields of one line as unparsed JSON, so that each field is parsed at most
//! once and only when it is needed.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use hardpan_prompt::AgentMessage;
use jiff::Timestamp;
use serde::de::value::{CowStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::problem::LineError;

/// The fields of a JSON object in file order. If a name occurs twice, the later value wins.
pub(crate) struct RawFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// The name of a field, borrowed from the line unless it has escapes.
#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> RawFields<'a> {
    pub(crate) fn parse(line: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// Removes a field and returns its JSON as written.
    pub(crate) fn take_raw(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// Removes a field that must be a string.
    pub(crate) fn take_text(&mut self, key: &'static str) -> Result<Arc<str>, LineError> {
        let text = self.take_raw(key).and_then(|raw| parse_string(raw.get()));
        text.ok_or(LineError::NotText { key })
    }

    /// Removes a field that must be a string or null.
    pub(crate) fn take_text_or_null(&mut self, key: &'static str) -> Result<Option<Arc<str>>, LineError> {
        match self.get(key).is_some_and(|raw| raw.get() == "null") {
            true => Ok(self.take_raw(key).and(None)),
            false => self.take_text(key).map(Some),
        }
    }

    /// Removes a required field of type `T`.
    pub(crate) fn take_typed<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<T, LineError> {
        let raw = self.take_raw(key).ok_or(LineError::Missing { key })?;
        serde_json::from_str(raw.get()).map_err(|error| LineError::field(key, error))
    }

    /// Removes an optional field. If it cannot be parsed it stays among the remaining fields: that
    /// is no reason to lose the rest of the line.
    pub(crate) fn take_if_readable<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = serde_json::from_str(self.get(key)?.get()).ok()?;
        self.take_raw(key);
        Some(value)
    }

    /// Removes `time`, with the same leniency as [`take_if_readable`](Self::take_if_readable).
    pub(crate) fn take_time(&mut self) -> Option<Timestamp> {
        let time = parse_string(self.get("time")?.get())?.parse().ok()?;
        self.take_raw("time");
        Some(time)
    }

    /// Removes and parses `message`. The message takes its id from the entry, and its time too
    /// unless it has one of its own.
    pub(crate) fn take_message(
        &mut self,
        id: &Arc<str>,
        time: Option<Timestamp>,
    ) -> Result<AgentMessage, LineError> {
        let raw = self.take_raw("message").map_or("", RawValue::get);
        if !raw.starts_with('{') {
            return Err(LineError::NoMessage);
        }
        let named = MessageWithId { id: Some(id), inner: () };
        let mut message = serde_json::Deserializer::from_str(raw)
            .deserialize_map(named)
            .map_err(|error| LineError::field("message", error))?;
        message.time = message.time.or(time);
        Ok(message)
    }

    /// Parses all fields that were not taken.
    pub(crate) fn into_remaining(self) -> Result<Map<String, Value>, LineError> {
        let value = |(key, raw): (Cow<'a, str>, &'a RawValue)| {
            let value = serde_json::from_str(raw.get());
            let value = value.map_err(|error| LineError::field(&key, error))?;
            Ok((key.into_owned(), value))
        };
        self.0.into_iter().map(value).collect()
    }
}

/// Parses a JSON string, without allocating twice where it has no escapes.
fn parse_string(raw: &str) -> Option<Arc<str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        true => serde_json::from_str::<String>(raw).ok().map(Into::into),
        false => Some(inner.into()),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RawFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(6);
                while let Some((FieldName(key), value)) = map.next_entry()? {
                    match fields.iter_mut().find(|(name, _)| *name == key) {
                        Some(field) => field.1 = value,
                        None => fields.push((key, value)),
                    }
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Deserializes a message as if its object had the field `id`, which the file stores only on the
/// entry.
struct MessageWithId<'a, M> {
    id: Option<&'a str>,
    inner: M,
}

impl<'de> Visitor<'de> for MessageWithId<'_, ()> {
    type Value = AgentMessage;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentMessage, A::Error> {
        AgentMessage::deserialize(MapAccessDeserializer::new(MessageWithId { id: self.id, inner: map }))
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for MessageWithId<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        if self.id.is_some() {
            return seed.deserialize(CowStrDeserializer::new(Cow::Borrowed("id"))).map(Some);
        }
        while let Some(FieldName(key)) = self.inner.next_key()? {
            if key != "id" {
                return seed.deserialize(CowStrDeserializer::new(key)).map(Some);
            }
            self.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        match self.id.take() {
            Some(id) => seed.deserialize(CowStrDeserializer::new(Cow::Borrowed(id))),
            None => self.inner.next_value_seed(seed),
        }
    }
}
