//! The rules of Gemini's `generateContent`.

use std::collections::BTreeSet;

use hardpan_context::Target;
use serde_json::{Value, json};

use super::{list, object, text};
use crate::violation::{CheckResult, require};

const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

pub fn check(body: &Value, target: &Target) -> CheckResult {
    object(body, &["systemInstruction", "tools", "toolConfig", "contents", "generationConfig"])?;
    let config = object(&body["generationConfig"], &["maxOutputTokens", "thinkingConfig"])?;
    require(config["maxOutputTokens"].as_u64() > Some(0), "there is room for an answer", || {
        body["generationConfig"].to_string()
    })?;
    if let Some(thinking) = config.get("thinkingConfig") {
        let thinking = object(thinking, &["includeThoughts", "thinkingLevel", "thinkingBudget"])?;
        let both = thinking.contains_key("thinkingLevel") && thinking.contains_key("thinkingBudget");
        require(!both, "a level or a budget", || body["generationConfig"].to_string())?;
    }
    if let Some(system) = body.get("systemInstruction") {
        require(
            !list(&object(system, &["parts"])?["parts"]).is_empty(),
            "a system prompt says something",
            || system.to_string(),
        )?;
    }
    let declared = check_tools(body, target)?;
    let contents = list(&body["contents"]);
    require(!contents.is_empty(), "there is a message", || "none".into())?;
    for content in contents {
        check_content(content, target)?;
    }
    require(contents[0]["role"] == "user", "the user speaks first", || contents[0].to_string())?;
    require(contents[contents.len() - 1]["role"] == "user", "the user speaks last", String::new)?;
    let parts = || contents.iter().flat_map(|content| list(&content["parts"]));
    let used = parts().any(|part| part.get("functionCall").is_some());
    require(!used || declared, "tools that are used are declared", || "none is".into())?;
    check_steps(contents)?;
    if target.profile.signed_calls { check_signatures(contents) } else { Ok(()) }
}

/// Whether there are tools.
fn check_tools(body: &Value, target: &Target) -> Result<bool, crate::violation::Violation> {
    let Some(tools) = body.get("tools") else { return Ok(false) };
    require(target.model.tools, "no tools for a model without", || tools.to_string())?;
    let is_search = |entry: &&Value| entry.get("googleSearch").is_some();
    let (searches, entries): (Vec<&Value>, Vec<&Value>) = list(tools).iter().partition(is_search);
    let is_some = searches.len() <= 1 && entries.len() <= 1 && !list(tools).is_empty();
    require(is_some, "declared tools are some", || tools.to_string())?;
    for search in &searches {
        require(
            object(search, &["googleSearch"])?["googleSearch"] == json!({}),
            "a search has no settings",
            || search.to_string(),
        )?;
    }
    let both = !searches.is_empty() && !entries.is_empty();
    let allowed = body.get("toolConfig") == Some(&json!({"includeServerSideToolInvocations": true}));
    require(
        both == body.get("toolConfig").is_some() && allowed == both,
        "a search beside tools is allowed",
        || body["toolConfig"].to_string(),
    )?;
    let Some(entry) = entries.first() else { return Ok(false) };
    let functions = list(&object(entry, &["functionDeclarations"])?["functionDeclarations"]);
    require(!functions.is_empty(), "declared tools are some", || tools.to_string())?;
    let mut seen = BTreeSet::new();
    for function in functions {
        object(function, &["name", "description", "parametersJsonSchema"])?;
        require_name(&function["name"])?;
        require(seen.insert(text(&function["name"])), "a tool is declared once", || function.to_string())?;
    }
    Ok(true)
}

/// A letter or `_` first, then letters, digits, `_ . : -`, at most 64.
fn require_name(name: &Value) -> CheckResult {
    let letters = text(name);
    let begins = letters.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = letters.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
    require(begins && plain && letters.len() <= 64, "a tool's name is plain", || name.to_string())
}

fn check_content(content: &Value, target: &Target) -> CheckResult {
    object(content, &["role", "parts"])?;
    let (role, parts) = (text(&content["role"]), list(&content["parts"]));
    require(["user", "model"].contains(&role), "a role is known", || role.to_owned())?;
    require(!parts.is_empty(), "a message says something", || content.to_string())?;
    for part in parts {
        object(part, &["text", "inlineData", "functionCall", "functionResponse", "thoughtSignature"])?;
        let signed = part.get("thoughtSignature").is_some();
        require(!signed || role == "model", "only the model signs", || part.to_string())?;
        require(!signed || !text(&part["thoughtSignature"]).is_empty(), "a signature is one", || {
            part.to_string()
        })?;
        let kinds = part.as_object().map_or(0, serde_json::Map::len) - usize::from(signed);
        require(kinds == 1, "a part is of one kind", || part.to_string())?;
        if let Some(words) = part.get("text") {
            require(signed || !text(words).is_empty(), "no text is empty", || part.to_string())?;
        }
        if let Some(image) = part.get("inlineData") {
            require(role == "user", "an image is the user's", || part.to_string())?;
            check_image(image, target)?;
        }
        if let Some(call) = part.get("functionCall") {
            let call = object(call, &["id", "name", "args"])?;
            require(role == "model", "a call is the model's", || part.to_string())?;
            require(call["args"].is_object(), "arguments are an object", || part.to_string())?;
            require_name(&call["name"])?;
        }
        if let Some(response) = part.get("functionResponse") {
            let response = object(response, &["id", "name", "response", "parts"])?;
            require(role == "user", "a result is the user's", || part.to_string())?;
            let said = object(&response["response"], &["output", "error"])?;
            require(said.len() == 1, "a result is an output or an error", || part.to_string())?;
            for image in response.get("parts").map_or(&[][..], list) {
                require(target.profile.tool_result_images, "an image is the user's", || part.to_string())?;
                check_image(&object(image, &["inlineData"])?["inlineData"], target)?;
            }
        }
    }
    Ok(())
}

fn check_image(image: &Value, target: &Target) -> CheckResult {
    let image = object(image, &["mimeType", "data"])?;
    let whole = text(&image["mimeType"]).starts_with("image/") && !text(&image["data"]).is_empty();
    require(whole, "an image is whole", || format!("{image:?}"))?;
    require(target.model.vision, "no image for a model that sees none", || format!("{image:?}"))
}

fn of_kind<'a>(content: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(&content["parts"]).iter().filter_map(|part| part.get(kind)).collect()
}

/// Calls follow the user's message, and the message after them answers each, in their order.
fn check_steps(contents: &[Value]) -> CheckResult {
    let mut used = BTreeSet::new();
    for (index, content) in contents.iter().enumerate() {
        let calls = of_kind(content, "functionCall");
        let responses = contents.get(index + 1).map_or(Vec::new(), |next| of_kind(next, "functionResponse"));
        let names = |values: &[&Value]| -> Vec<(String, String)> {
            values.iter().map(|it| (text(&it["id"]).to_owned(), text(&it["name"]).to_owned())).collect()
        };
        require(names(&calls) == names(&responses), "the next message answers every call", || {
            format!("{calls:?} {responses:?}")
        })?;
        for call in &calls {
            require(used.insert(text(&call["id"])), "a call's id is used once", || call.to_string())?;
        }
        if !calls.is_empty() {
            let after_user = index > 0 && contents[index - 1]["role"] == "user";
            require(after_user, "calls follow the user", || content.to_string())?;
        }
        let only = calls.is_empty() || list(&contents[index + 1]["parts"]).len() == responses.len();
        require(only, "results are a message of their own", || contents[index + 1].to_string())?;
    }
    let first = contents.first().map_or(Vec::new(), |first| of_kind(first, "functionResponse"));
    require(first.is_empty(), "the next message answers every call", || format!("{first:?}"))
}

/// The first call of every step has a signature, were it only the one that switches the check off.
fn check_signatures(contents: &[Value]) -> CheckResult {
    for content in contents {
        let first = list(&content["parts"]).iter().find(|part| part.get("functionCall").is_some());
        let signed = first.is_none_or(|part| part.get("thoughtSignature").is_some());
        require(signed, "the first call of a step is signed", || content.to_string())?;
        let skips = list(&content["parts"]).iter().filter(|part| part["thoughtSignature"] == SKIP_SIGNATURE);
        require(skips.count() <= 1, "the check is switched off once a step", || content.to_string())?;
    }
    Ok(())
}
