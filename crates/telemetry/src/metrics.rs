//! [`MetricStore`]: counters and histograms since the process began, by their attributes.

use crate::span::{Attribute, AttributeValue};

/// How many different sets of attributes a metric keeps: models and tools have few names, but a model may
/// call tools by names that nobody declared.
const MAX_POINTS: usize = 1_000;

/// The metrics there are, each with what it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Tokens of a request by their type.
    TokenUsage,
    /// Seconds that an operation took.
    OperationDuration,
    /// The share of a prompt's tokens that was read from the provider's cache.
    CacheHitRate,
    /// Dollars.
    Cost,
}

impl MetricKind {
    /// All of them, in the order in which they are sent.
    pub const ALL: [MetricKind; 4] =
        [MetricKind::TokenUsage, MetricKind::OperationDuration, MetricKind::CacheHitRate, MetricKind::Cost];

    /// Its name: that of the conventions where they have one.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::TokenUsage => "gen_ai.client.token.usage",
            MetricKind::OperationDuration => "gen_ai.client.operation.duration",
            MetricKind::CacheHitRate => "hardpan.cache.hit_rate",
            MetricKind::Cost => "hardpan.cost",
        }
    }

    /// Its unit, in the notation of UCUM.
    pub fn unit(self) -> &'static str {
        match self {
            MetricKind::TokenUsage => "{token}",
            MetricKind::OperationDuration => "s",
            MetricKind::CacheHitRate => "1",
            MetricKind::Cost => "{USD}",
        }
    }

    /// What it measures, for people.
    pub fn description(self) -> &'static str {
        match self {
            MetricKind::TokenUsage => {
                "Tokens of a request, by type; cache_read and cache_creation are parts of input"
            }
            MetricKind::OperationDuration => "Duration of a request, a tool call or a run",
            MetricKind::CacheHitRate => {
                "Share of the prompt's tokens that was read from the provider's cache"
            }
            MetricKind::Cost => "Price of the requests at the prices of their time",
        }
    }

    /// The upper bounds of a histogram's buckets; none for a counter. Those of the conventions' metrics
    /// are the ones that the conventions recommend.
    pub fn bounds(self) -> Option<&'static [f64]> {
        const TOKENS: &[f64] = &[
            1.0,
            4.0,
            16.0,
            64.0,
            256.0,
            1_024.0,
            4_096.0,
            16_384.0,
            65_536.0,
            262_144.0,
            1_048_576.0,
            4_194_304.0,
            16_777_216.0,
            67_108_864.0,
        ];
        const SECONDS: &[f64] =
            &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
        const SHARES: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
        match self {
            MetricKind::TokenUsage => Some(TOKENS),
            MetricKind::OperationDuration => Some(SECONDS),
            MetricKind::CacheHitRate => Some(SHARES),
            MetricKind::Cost => None,
        }
    }
}

/// What was measured under one set of attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// How many values.
    pub count: u64,
    /// Their sum: all that a counter has.
    pub sum: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// How many values each bucket has: one more than there are bounds.
    pub buckets: Vec<u64>,
}

/// A metric's values under one set of attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// Which metric.
    pub kind: MetricKind,
    /// Under which attributes.
    pub attributes: Vec<Attribute>,
    /// The values.
    pub values: Histogram,
}

/// All values since the process began.
#[derive(Clone, Debug, Default)]
pub struct MetricStore {
    points: Vec<MetricPoint>,
}

impl MetricStore {
    /// Adds a value.
    pub fn record(&mut self, kind: MetricKind, attributes: Vec<Attribute>, value: f64) {
        let found = self.points.iter().position(|point| point.kind == kind && point.attributes == attributes);
        let index = match found {
            Some(index) => index,
            None if self.points.len() >= MAX_POINTS => return,
            None => {
                let buckets = kind.bounds().map_or(0, |bounds| bounds.len() + 1);
                let values =
                    Histogram { min: value, max: value, buckets: vec![0; buckets], ..Histogram::default() };
                self.points.push(MetricPoint { kind, attributes, values });
                self.points.len() - 1
            }
        };
        let values = &mut self.points[index].values;
        values.count += 1;
        values.sum += value;
        values.min = values.min.min(value);
        values.max = values.max.max(value);
        if let Some(bounds) = kind.bounds() {
            let bucket = bounds.iter().take_while(|bound| value > **bound).count();
            values.buckets[bucket] += 1;
        }
    }

    /// What was measured, in the order in which attributes were first seen.
    pub fn points(&self) -> &[MetricPoint] {
        &self.points
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The sum of a metric's values whose attribute `name` has this text.
    pub fn sum_of(&self, kind: MetricKind, name: &str, text: &str) -> f64 {
        let has = |point: &&MetricPoint| {
            let value = AttributeValue::Text(text.to_owned());
            point.kind == kind
                && point.attributes.iter().any(|attribute| attribute.name == name && attribute.value == value)
        };
        self.points.iter().filter(has).map(|point| point.values.sum).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_in_the_bucket_whose_bound_it_does_not_exceed() {
        let mut store = MetricStore::default();
        for value in [0.0, 0.1, 0.11, 1.0] {
            store.record(MetricKind::CacheHitRate, vec![Attribute::new("model", "m")], value);
        }
        store.record(MetricKind::CacheHitRate, vec![Attribute::new("model", "n")], 0.5);
        store.record(MetricKind::Cost, Vec::new(), 0.25);
        store.record(MetricKind::Cost, Vec::new(), 0.5);
        let values: Vec<&Histogram> = store.points().iter().map(|point| &point.values).collect();
        let buckets = vec![2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(*values[0], Histogram { count: 4, sum: 1.21, min: 0.0, max: 1.0, buckets });
        assert_eq!((values[1].count, values[1].buckets[4]), (1, 1));
        assert_eq!((values[2].count, values[2].sum, values[2].buckets.len()), (2, 0.75, 0));
    }

    #[test]
    fn names_without_end_do_not_grow_the_store_without_end() {
        let mut store = MetricStore::default();
        for number in 0..2 * MAX_POINTS {
            store.record(MetricKind::Cost, vec![Attribute::new("tool", number.to_string())], 1.0);
        }
        assert_eq!(store.points().len(), MAX_POINTS);
    }
}
