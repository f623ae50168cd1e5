//! The documented rules, one by one; `properties` holds them against a slow and obvious second
//! writing of the model.

mod automatic; // OpenAI, Groq, DeepSeek, xAI, vLLM, llama.cpp
mod lifetimes; // expiry, refresh, availability, forgetting
mod markers; // Anthropic's walk back and its bill; OpenAI from 5.6 on
mod prompt; // from a prompt to a request
mod properties; // random requests
mod table; // what a change loses; the smallest prefixes

use hardpan_models::Catalogue;
use hardpan_prompt::{CacheLifetime, Hash, TokenUsage};

use super::*;

const SHORT: CacheLifetime = CacheLifetime::FiveMinutes;
const LONG: CacheLifetime = CacheLifetime::OneHour;

fn rules(provider: &str, model: &str) -> CacheRules {
    let catalogue = Catalogue::builtin();
    let model = catalogue.model(Some(provider), model).unwrap();
    CacheRules::for_model(&model, &catalogue.provider(provider).unwrap().profile_for_model(&model))
}

fn anthropic() -> CacheRules {
    rules("anthropic", "claude-sonnet-5")
}

fn seconds(seconds: i64) -> Moment {
    Moment(seconds * 1000)
}

fn block(name: usize, tokens: usize) -> CacheBlock {
    CacheBlock::new(Section::Messages, Hash::of(&name.to_le_bytes()), tokens)
}

/// A conversation of so many blocks of 1000 tokens, with markers at some of them, counted from 1 as
/// the documentation does.
fn talk(at: i64, count: usize, markers: &[(usize, CacheLifetime)]) -> CacheRequest {
    let mut blocks: Vec<CacheBlock> = (1..=count).map(|name| block(name, 1000)).collect();
    for (number, lifetime) in markers {
        blocks[number - 1].marker = Some(*lifetime);
    }
    CacheRequest {
        at: seconds(at),
        model: "m".into(),
        blocks,
        settings: CacheSettings::default(),
        explicit_only: false,
    }
}

fn amounts(read: usize, write: usize, write_1h: usize, input: usize) -> TokenUsage {
    let [cache_read, cache_write_5m, cache_write_1h, input] =
        [read, write, write_1h, input].map(|tokens| tokens as u64);
    TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, ..TokenUsage::default() }
}

/// Sends a request whose answer begins after a second.
fn send(cache: &mut CacheModel, rules: &CacheRules, request: &CacheRequest) -> Billing {
    cache.send(rules, request, request.at.plus(1000))
}
