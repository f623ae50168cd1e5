//! The form that [`TokenUsage`] has in the JSON of bills: `input`, `read`, `write`, `write_1h`,
//! `output`. Stored sessions and reports use these names.

use hardpan_prompt::TokenUsage;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ShortNames {
    input: u64,
    read: u64,
    write: u64,
    write_1h: u64,
    output: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<u64>,
}

pub fn serialize<S: Serializer>(usage: &TokenUsage, serializer: S) -> Result<S::Ok, S::Error> {
    // Every field is named, so that a new one forces a decision here.
    let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning } = *usage;
    let [read, write, write_1h] = [cache_read, cache_write_5m, cache_write_1h];
    ShortNames { input, read, write, write_1h, output, reasoning }.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TokenUsage, D::Error> {
    let ShortNames { input, read, write, write_1h, output, reasoning } =
        ShortNames::deserialize(deserializer)?;
    let [cache_read, cache_write_5m, cache_write_1h] = [read, write, write_1h];
    Ok(TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning })
}
