//! Which thinking blocks of a request still count: signatures, and the conversation they belong to.

use std::collections::BTreeSet;

use hardpan_models::{Catalogue, Model, ReasoningBinding};
use hardpan_prompt::{Content, Hash, Reasoning, Role};
use hardpan_providers::decode::{DecodedRequest, MismatchBehavior, betas};
use serde_json::{Value, json};

use super::signature::{PrefixHash, Signature, identity};
use super::{Account, AnthropicSettings};
use crate::error_reply::ErrorReply;

/// The thinking blocks that the server leaves out, and what it says about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThinkingCheck {
    /// The blocks that are left out, by message and block.
    pub dropped: BTreeSet<(usize, usize)>,
    /// The field `input_transformations` of the answer.
    pub transformations: Vec<Value>,
}

/// Checks every thinking block of a request that was signed by the simulator.
pub fn check_thinking(
    decoded: &DecodedRequest,
    model: &Model,
    settings: &AnthropicSettings,
    catalogue: &Catalogue,
) -> Result<ThinkingCheck, ErrorReply> {
    let mut check = ThinkingCheck::default();
    let behavior = decoded.anthropic.mismatch;
    let is_enforced = match model.binding {
        ReasoningBinding::None => false,
        ReasoningBinding::NewAccounts => settings.account == Account::New || behavior.is_some(),
        ReasoningBinding::AllAccounts => true,
    };
    let mut prefix = PrefixHash::new(&decoded.prompt);
    let (mut turn_prefix, mut last_role) = (prefix, None);
    let (mut previous, mut is_stale): (Option<Hash>, bool) = (None, false);
    for (message_index, message) in decoded.prompt.messages.iter().enumerate() {
        if last_role.replace(message.role) != Some(message.role) && message.role == Role::Assistant {
            turn_prefix = prefix;
        }
        for (index, block) in message.blocks.iter().enumerate() {
            let Content::Reasoning(reasoning) = &*block.content else {
                prefix.add(message.role, block.hash());
                continue;
            };
            let before = previous.replace(identity(reasoning));
            let Reasoning { text, signature: Some(written), redacted: None, .. } = reasoning else {
                continue;
            };
            let at = (message_index, index);
            let path = format!("messages.{message_index}.content.{index}");
            let invalid = || format!("{path}: Invalid `signature` in `thinking` block");
            let signature = Signature::decode(written).ok_or_else(|| ErrorReply::invalid(invalid()))?;
            if !can_read(catalogue, model, signature.model) {
                check.dropped.insert(at);
                continue;
            }
            if signature.text.is_some_and(|shown| shown != Hash::of(text.as_bytes())) {
                return Err(ErrorReply::invalid(invalid()));
            }
            let follows = before.is_none_or(|before| before == signature.previous);
            let is_bound_here = signature.prefix == turn_prefix.0 && follows;
            if model.binding == ReasoningBinding::None || (is_bound_here && !is_stale) {
                continue;
            }
            let is_first = !std::mem::replace(&mut is_stale, true);
            let reason = "prefix_binding_mismatch";
            if !is_enforced {
                if is_first && decoded.anthropic.has_beta(betas::BINDING) {
                    let kind = "thinking_mismatch_allowed";
                    check.transformations.push(json!({"type": kind, "path": path, "reason": reason}));
                }
                continue;
            }
            if behavior != Some(MismatchBehavior::DropBlock) {
                return Err(ErrorReply::invalid(format!(
                    "{}. The block is bound to a different conversation. Send it back only after the same \
                     system prompt, tools and messages, or leave out all thinking.",
                    invalid()
                )));
            }
            check.dropped.insert(at);
            check.transformations.push(json!({"type": "thinking_dropped", "path": path, "reason": reason}));
        }
    }
    Ok(check)
}

/// Whether a model reads the thinking of another, given by the hash of its id.
fn can_read(catalogue: &Catalogue, reader: &Model, writer: Hash) -> bool {
    let is_writer = |model: &&Model| Hash::of(model.id.as_bytes()) == writer;
    let readers = catalogue.models().filter(is_writer).find_map(|model| model.reasoning_readers.as_ref());
    let is_its_own = Hash::of(reader.id.as_bytes()) == writer;
    is_its_own || readers.is_none_or(|readers| readers.contains(&reader.id))
}
