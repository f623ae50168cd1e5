//! Fields of a JSON object, each possibly absent or of another type than expected.

use hardpan_economy::cache::Moment;
use serde_json::Value;

/// No provider counts so many tokens: a larger number is a fault of the file, and sums must not overflow.
const MOST: u64 = 1 << 40;

pub(super) trait Fields {
    /// A string.
    fn str(&self, key: &str) -> Option<&str>;
    /// A count; negative and broken ones count as none.
    fn count(&self, key: &str) -> u64;
    /// A truth.
    fn is(&self, key: &str) -> bool;
    /// The elements of an array; none if it is something else.
    fn list(&self, key: &str) -> &[Value];
    /// A moment: RFC 3339, or milliseconds since 1970.
    fn moment(&self, key: &str) -> Option<Moment>;
}

impl Fields for Value {
    fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    fn count(&self, key: &str) -> u64 {
        let Some(value) = self.get(key) else { return 0 };
        let count = value.as_u64().or_else(|| value.as_f64().map(|count| count.max(0.0) as u64));
        count.unwrap_or(0).min(MOST)
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
