//! Thought signatures. A signature is bound to the model, and to the function that it came with.

use std::collections::BTreeSet;

use hardpan_prompt::{Content, Hash, Prompt, PromptMessage, Role};
use hardpan_providers::SKIP_SIGNATURES;
use serde_json::Value;

use crate::error_reply::ErrorReply;

/// The two signatures that switch the check off, as clients encode them in base64.
const ENCODED_SKIP_SIGNATURES: [&str; 2] =
    ["c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv"];
/// Hexadecimal digits of the request's number at the beginning of a signature.
const NUMBER_DIGITS: usize = 16;

/// A signature for a call of `function`, or for a text if that is empty. `number`: the request that
/// it answers. Hexadecimal digits are valid base64, and clients may decode it.
pub fn sign(model: &str, function: &str, number: u64) -> String {
    let number = format!("{number:0NUMBER_DIGITS$x}");
    let parts = ["simulated", model, function, &number].map(|part| Hash::of(part.as_bytes()));
    format!("{number}{}", Hash::chain(parts))
}

/// Checks the signatures of all calls. `is_required`: the first call of every step of the current
/// turn needs one.
pub fn check(prompt: &Prompt, is_required: bool) -> Result<(), ErrorReply> {
    let turn_start = prompt.messages.iter().rposition(begins_turn).unwrap_or(0);
    for (index, message) in prompt.messages.iter().enumerate() {
        if message.role == Role::Assistant {
            check_step(prompt, index, is_required && index > turn_start)?;
        }
    }
    Ok(())
}

/// Whether the message is the user's, and more than function responses.
fn begins_turn(message: &PromptMessage) -> bool {
    let is_more = |content: &Content| !matches!(content, Content::Result(_));
    message.role == Role::User && message.blocks.iter().any(|block| is_more(&block.content))
}

fn check_step(prompt: &Prompt, index: usize, mut is_required: bool) -> Result<(), ErrorReply> {
    let mut signature = None;
    let mut searches = BTreeSet::new();
    for block in &prompt.messages[index].blocks {
        match &*block.content {
            Content::Reasoning(reasoning) => signature = reasoning.signature.as_deref().or(signature),
            Content::Call(call) => {
                match signature.take() {
                    Some(given) if !is_valid(given, &prompt.model, &call.name) => {
                        return Err(ErrorReply::invalid("Corrupted thought signature."));
                    }
                    None if is_required => {
                        return Err(ErrorReply::invalid(format!(
                            "Function call is missing a thought_signature in functionCall parts. This is required \
                             for tools to work correctly, and missing thought_signature may lead to degraded model \
                             performance. Additional data, function call `default_api:{}` , position {}.",
                            call.name,
                            index + 1
                        )));
                    }
                    _ => {}
                }
                is_required = false; // only the first call of a step
            }
            Content::Text(segments) => {
                let text: String = segments.iter().map(|segment| segment.text.as_str()).collect();
                check_search(&text, signature.take(), &prompt.model, &mut searches)?;
            }
            Content::Image(..) | Content::Result(_) | Content::ToolChange(_) | Content::Provider(_) => {
                signature = None;
            }
        }
    }
    Ok(())
}

/// The function that the signature of a search is bound to.
pub fn search_name(id: &str) -> String {
    format!("search {id}")
}

/// Checks a part of the server's own search, which is a text here: its signature, and that a result
/// follows its search. Other texts pass.
fn check_search(
    text: &str,
    signature: Option<&str>,
    model: &str,
    searches: &mut BTreeSet<String>,
) -> Result<(), ErrorReply> {
    let tool: Value = serde_json::from_str(text).unwrap_or_default();
    let (Some("GOOGLE_SEARCH_WEB"), Some(id)) = (tool["toolType"].as_str(), tool["id"].as_str()) else {
        return Ok(());
    };
    if !signature.is_some_and(|signature| is_valid(signature, model, &search_name(id))) {
        return Err(ErrorReply::invalid("Corrupted thought signature."));
    }
    let is_call = tool.get("args").is_some();
    match searches.remove(id) {
        false if is_call => drop(searches.insert(id.to_owned())),
        true if !is_call => {}
        _ => {
            let words = "Please ensure that the number of tool response parts is equal to the number of tool call parts of the tool call turn.";
            return Err(ErrorReply::invalid(words));
        }
    }
    Ok(())
}

fn is_valid(signature: &str, model: &str, function: &str) -> bool {
    let is_skip = SKIP_SIGNATURES.contains(&signature) || ENCODED_SKIP_SIGNATURES.contains(&signature);
    let number = signature.get(..NUMBER_DIGITS).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    is_skip || number.is_some_and(|number| sign(model, function, number) == signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_bound_to_model_and_function() {
        let signature = sign("m", "read", 7);
        assert!(is_valid(&signature, "m", "read"));
        assert!(!is_valid(&signature, "other", "read"));
        assert!(!is_valid(&signature, "m", "write"));
        assert!(!is_valid(&signature[1..], "m", "read"));
        assert!(!is_valid("ünlesbar-ünlesbar", "m", "read"));
        assert_eq!(signature.len() % 4, 0, "valid base64");
        for skip in SKIP_SIGNATURES.iter().chain(&ENCODED_SKIP_SIGNATURES) {
            assert!(is_valid(skip, "m", "read"));
        }
    }
}
