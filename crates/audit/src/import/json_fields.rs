//! [`JsonFields`]: reads fields of JSON objects that may be absent or of an unexpected type.

use hardpan_economy::cache::Moment;
use serde_json::Value;

/// The largest count that is believed. A larger number is an error in the file, and sums must not
/// overflow.
const MAX_COUNT: u64 = 1 << 40;

pub(super) trait JsonFields {
    /// A string. `None` if the field is absent or something else.
    fn str(&self, key: &str) -> Option<&str>;
    /// A count. 0 if the field is absent, negative or not a number.
    fn count(&self, key: &str) -> u64;
    /// A boolean. False if the field is absent or something else.
    fn is(&self, key: &str) -> bool;
    /// The elements of an array. Empty if the field is absent or something else.
    fn list(&self, key: &str) -> &[Value];
    /// A time, written as RFC 3339 or as milliseconds since 1970.
    fn moment(&self, key: &str) -> Option<Moment>;
}

impl JsonFields for Value {
    fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    fn count(&self, key: &str) -> u64 {
        let Some(value) = self.get(key) else { return 0 };
        let count = value.as_u64().or_else(|| value.as_f64().map(|count| count.max(0.0) as u64));
        count.unwrap_or(0).min(MAX_COUNT)
    }

    fn is(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn moment(&self, key: &str) -> Option<Moment> {
        match self.get(key)? {
            Value::String(text) => {
                text.parse::<jiff::Timestamp>().ok().map(|time| Moment(time.as_millisecond()))
            }
            Value::Number(ms) => ms.as_i64().or_else(|| ms.as_f64().map(|ms| ms as i64)).map(Moment),
            _ => None,
        }
    }
}
