//! [`CachedContents`]: prefixes that clients store, and begin later requests with.

use std::collections::BTreeMap;

use hardpan_economy::cache::Moment;
use hardpan_prompt::{Hash, Prompt};
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use crate::error_reply::ErrorReply;
use crate::wire::make_id;

/// The smallest prefix that is stored, in tokens: measured on newer models.
const MIN_TOKENS: usize = 1024;
/// How long a prefix is stored unless the client says otherwise.
const DEFAULT_LIFETIME_MS: i64 = 60 * 60 * 1000;
/// The shortest lifetime.
const MIN_LIFETIME_MS: i64 = 60 * 1000;
/// The most prefixes that are kept; the oldest names go first.
const MAX_STORED: usize = 1024;

/// All stored prefixes, by id.
#[derive(Debug, Default)]
pub struct CachedContents {
    stored: BTreeMap<String, CachedContent>,
}

#[derive(Debug)]
struct CachedContent {
    /// Whose it is: nobody else may see it.
    owner: Hash,
    prompt: Prompt,
    display_name: Option<String>,
    tokens: usize,
    created: Moment,
    updated: Moment,
    expires: Moment,
}

impl CachedContents {
    /// Stores the content of a request that was counted as `tokens`. `number`: the request's.
    pub fn create(
        &mut self,
        decoded: DecodedRequest,
        tokens: usize,
        owner: Hash,
        number: u64,
        now: Moment,
    ) -> Result<Value, ErrorReply> {
        let field = |name: &str| decoded.other.get(name).map(|value| value.value().clone());
        let lifetime = lifetime_ms(field("ttl"), field("expireTime"), now)?.unwrap_or(DEFAULT_LIFETIME_MS);
        if tokens < MIN_TOKENS {
            return Err(ErrorReply::invalid(format!(
                "Cached content is too small. total_token_count={tokens}, min_total_token_count={MIN_TOKENS}"
            )));
        }
        let display_name = field("displayName").and_then(|name| name.as_str().map(str::to_owned));
        let content = CachedContent {
            owner,
            prompt: decoded.prompt,
            display_name,
            tokens,
            created: now,
            updated: now,
            expires: now.plus(lifetime),
        };
        let id = make_id("", number, 0);
        let shown = content.to_json(&id);
        if self.stored.len() >= MAX_STORED {
            self.stored.pop_first();
        }
        self.stored.insert(id, content);
        Ok(shown)
    }

    /// One stored content.
    pub fn get(&mut self, id: &str, owner: Hash, now: Moment) -> Result<Value, ErrorReply> {
        self.find(id, owner, now).map(|content| content.to_json(id))
    }

    /// All stored contents of an owner.
    pub fn list(&mut self, owner: Hash, now: Moment) -> Value {
        self.stored.retain(|_, content| content.expires > now);
        let own = self.stored.iter().filter(|(_, content)| content.owner == owner);
        let own: Vec<Value> = own.map(|(id, content)| content.to_json(id)).collect();
        json!({"cachedContents": own})
    }

    /// Changes when a content expires; nothing else can be changed.
    pub fn update(&mut self, id: &str, body: &[u8], owner: Hash, now: Moment) -> Result<Value, ErrorReply> {
        let invalid =
            |error: serde_json::Error| ErrorReply::invalid(format!("Invalid JSON payload received. {error}"));
        let body: Value = serde_json::from_slice(body).map_err(invalid)?;
        let known = ["ttl", "expireTime", "expire_time"];
        let mut names = body.as_object().into_iter().flat_map(serde_json::Map::keys);
        if let Some(name) = names.find(|name| !known.contains(&name.as_str())) {
            return Err(ErrorReply::invalid(format!(
                "{name} cannot be changed: only ttl and expire_time can."
            )));
        }
        let expires = body.get("expireTime").or(body.get("expire_time"));
        let lifetime = lifetime_ms(body.get("ttl").cloned(), expires.cloned(), now)?;
        let content = self.find(id, owner, now)?;
        if let Some(lifetime) = lifetime {
            (content.expires, content.updated) = (now.plus(lifetime), now);
        }
        Ok(content.to_json(id))
    }

    /// Deletes a content.
    pub fn delete(&mut self, id: &str, owner: Hash, now: Moment) -> Result<Value, ErrorReply> {
        self.find(id, owner, now)?;
        self.stored.remove(id);
        Ok(json!({}))
    }

    /// Puts the stored content that a request names before its own. Returns its tokens.
    pub fn prepend(
        &mut self,
        decoded: &mut DecodedRequest,
        owner: Hash,
        now: Moment,
    ) -> Result<Option<usize>, ErrorReply> {
        let Some(name) = decoded.cached_content.clone() else { return Ok(None) };
        let content = self.find(name.strip_prefix("cachedContents/").unwrap_or(&name), owner, now)?;
        let prompt = &mut decoded.prompt;
        if !prompt.system.is_empty() || !prompt.tools.is_empty() || decoded.tool_choice.is_some() {
            return Err(ErrorReply::invalid(
                "CachedContent can not be used with GenerateContent request setting system_instruction, tools or \
                 tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request.",
            ));
        }
        if prompt.model != content.prompt.model {
            return Err(ErrorReply::invalid(format!(
                "Model used by GenerateContent request (models/{}) and CachedContent (models/{}) has to be the same.",
                prompt.model, content.prompt.model
            )));
        }
        prompt.system.clone_from(&content.prompt.system);
        prompt.tools.clone_from(&content.prompt.tools);
        prompt.messages.splice(..0, content.prompt.messages.iter().cloned());
        Ok(Some(content.tokens))
    }

    fn find(&mut self, id: &str, owner: Hash, now: Moment) -> Result<&mut CachedContent, ErrorReply> {
        let content = self.stored.get_mut(id);
        let content = content.filter(|content| content.owner == owner && content.expires > now);
        content.ok_or_else(|| ErrorReply::new(403, "CachedContent not found (or permission denied)"))
    }
}

impl CachedContent {
    fn to_json(&self, id: &str) -> Value {
        let mut content = json!({
            "name": format!("cachedContents/{id}"),
            "model": format!("models/{}", self.prompt.model),
            "createTime": timestamp(self.created),
            "updateTime": timestamp(self.updated),
            "expireTime": timestamp(self.expires),
            "usageMetadata": {"totalTokenCount": self.tokens},
        });
        if let Some(name) = &self.display_name {
            content["displayName"] = json!(name);
        }
        content
    }
}

fn timestamp(moment: Moment) -> String {
    jiff::Timestamp::from_millisecond(moment.0).map_or_else(|_| String::new(), |time| time.to_string())
}

/// The lifetime that `ttl` (`600s`) or `expireTime` (a date) gives. `None`: neither is given.
fn lifetime_ms(ttl: Option<Value>, expires: Option<Value>, now: Moment) -> Result<Option<i64>, ErrorReply> {
    let lifetime = match (ttl, expires) {
        (Some(_), Some(_)) => {
            return Err(ErrorReply::invalid("Only one of ttl and expire_time may be set."));
        }
        (Some(ttl), None) => {
            let seconds = ttl.as_str().and_then(|ttl| ttl.strip_suffix('s')?.parse::<f64>().ok());
            let invalid = || {
                ErrorReply::invalid(format!(
                    "Invalid value at 'cached_content.ttl' (type.googleapis.com/google.protobuf.Duration), {ttl}"
                ))
            };
            (seconds.ok_or_else(invalid)? * 1000.0) as i64
        }
        (None, Some(expires)) => {
            let time = expires.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
            let invalid = || {
                ErrorReply::invalid(format!(
                    "Invalid value at 'cached_content.expire_time' (type.googleapis.com/google.protobuf.Timestamp), {expires}"
                ))
            };
            time.ok_or_else(invalid)?.as_millisecond() - now.0
        }
        (None, None) => return Ok(None),
    };
    if lifetime < MIN_LIFETIME_MS {
        return Err(ErrorReply::invalid("The lifetime of cached content must be at least one minute."));
    }
    Ok(Some(lifetime))
}
