//! The fields of one line, each still as it was written: only what is needed is parsed, and that only once.

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

/// The fields of a JSON object in their order; of two with one name, the later counts.
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A field's name, borrowed from the line where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    /// The fields of a line.
    pub(crate) fn of(line: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// Takes a field out, as it was written.
    pub(crate) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// Takes a field that must be a string.
    pub(crate) fn take_text(&mut self, key: &str) -> Result<Arc<str>, String> {
        let text = self.take(key).and_then(|raw| string(raw.get()));
        text.ok_or_else(|| format!("its `{key}` is missing or no string"))
    }

    /// Takes a field that must be a string or null.
    pub(crate) fn take_text_or_null(&mut self, key: &str) -> Result<Option<Arc<str>>, String> {
        match self.get(key).is_some_and(|raw| raw.get() == "null") {
            true => Ok(self.take(key).and(None)),
            false => self.take_text(key).map(Some),
        }
    }

    /// Takes a field of some type that must be there.
    pub(crate) fn take_typed<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, String> {
        let raw = self.take(key).ok_or_else(|| format!("its `{key}` is missing"))?;
        serde_json::from_str(raw.get()).map_err(|error| format!("its {key} cannot be read: {error}"))
    }

    /// Takes a field that may be there. One that cannot be read stays: it is no reason to lose the rest.
    pub(crate) fn take_if_readable<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = serde_json::from_str(self.get(key)?.get()).ok()?;
        self.take(key);
        Some(value)
    }

    /// Takes the time, under the same rule.
    pub(crate) fn take_time(&mut self) -> Option<Timestamp> {
        let time = string(self.get("time")?.get())?.parse().ok()?;
        self.take("time");
        Some(time)
    }

    /// Takes the message; its name and, unless it has one of its own, its time are the entry's.
    pub(crate) fn take_message(
        &mut self,
        id: &Arc<str>,
        time: Option<Timestamp>,
    ) -> Result<AgentMessage, String> {
        let raw = self.take("message").map_or("", RawValue::get);
        if !raw.starts_with('{') {
            return Err("its `message` is missing or no object".into());
        }
        let named = Named { id: Some(id), inner: () };
        let mut message = serde_json::Deserializer::from_str(raw)
            .deserialize_map(named)
            .map_err(|error| format!("its message cannot be read: {error}"))?;
        message.time = message.time.or(time);
        Ok(message)
    }

    /// What was not taken.
    pub(crate) fn rest(self) -> Result<Map<String, Value>, String> {
        let value = |(key, raw): (Cow<'a, str>, &'a RawValue)| {
            let value = serde_json::from_str(raw.get());
            let value = value.map_err(|error| format!("its {key} cannot be read: {error}"))?;
            Ok((key.into_owned(), value))
        };
        self.0.into_iter().map(value).collect()
    }
}

/// The string that this JSON is.
fn string(raw: &str) -> Option<Arc<str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        true => serde_json::from_str::<String>(raw).ok().map(Into::into),
        false => Some(inner.into()),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(6);
                while let Some((Key(key), value)) = map.next_entry()? {
                    match fields.iter_mut().find(|(name, _)| *name == key) {
                        Some(field) => field.1 = value,
                        None => fields.push((key, value)),
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A message's object, read as if it had the field `id`, which in the file is the entry's.
struct Named<'a, M> {
    id: Option<&'a str>,
    inner: M,
}

impl<'de> Visitor<'de> for Named<'_, ()> {
    type Value = AgentMessage;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentMessage, A::Error> {
        AgentMessage::deserialize(MapAccessDeserializer::new(Named { id: self.id, inner: map }))
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Named<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        if self.id.is_some() {
            return seed.deserialize(CowStrDeserializer::new(Cow::Borrowed("id"))).map(Some);
        }
        while let Some(Key(key)) = self.inner.next_key()? {
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
