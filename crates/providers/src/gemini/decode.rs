//! Parses bodies of Gemini's `generateContent`, `countTokens` and `cachedContents`. Field names are
//! camelCase or snake_case.

mod call_ids; // CallIds: which response answers which call
mod content; // messages and their parts
mod field_names; // snake_case as camelCase

use hardpan_prompt::{Json, Thinking, ToolBlock, WebSearch};
use serde_json::Value;

use self::call_ids::CallIds;
use super::dialect::GeminiDialect;
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, RequestKind, parse_json, passthrough_fields, tool_block,
};

/// Fields of every request that this module parses.
const READ: [&str; 5] = ["model", "contents", "systemInstruction", "tools", "toolConfig"];
/// Further parsed fields of a request for an answer.
const READ_FOR_ANSWER: [&str; 2] = ["generationConfig", "cachedContent"];
/// Fields of a request for an answer that change neither prompt nor bill.
const OTHER: [&str; 4] = ["safetySettings", "labels", "serviceTier", "store"];
/// Fields of stored content.
const STORED: [&str; 4] = ["ttl", "expireTime", "displayName", "name"];

/// Fields of `generationConfig` that this module parses.
const CONFIG: [&str; 4] = ["maxOutputTokens", "stopSequences", "thinkingConfig", "candidateCount"];
/// Fields of `generationConfig` that change neither prompt nor bill.
const OTHER_CONFIG: [&str; 17] = [
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "mediaResolution",
    "responseLogprobs",
    "logprobs",
    "speechConfig",
    "imageConfig",
    "enableEnhancedCivicAnswers",
    "routingConfig",
];
/// Tools that the server runs itself.
const SERVER_TOOLS: [&str; 9] = [
    "googleSearch",
    "googleSearchRetrieval",
    "urlContext",
    "codeExecution",
    "computerUse",
    "fileSearch",
    "googleMaps",
    "mcpServers",
    "enterpriseWebSearch",
];
const LEVELS: [&str; 4] = ["minimal", "low", "medium", "high"];
const MODES: [&str; 5] = ["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"];
/// The most stop sequences in a request.
const MAX_STOPS: usize = 5;

/// Parses the body of a request. The path names the model and the method.
pub fn decode_request(kind: RequestKind, path: &str, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let mut value = parse_json(&GeminiDialect, body)?;
    field_names::to_camel_case(&mut value);
    let root = Node::root(&GeminiDialect, &value);
    // `countTokens` takes the messages, or a whole request.
    let inner = root.record()?.non_null("generateContentRequest").filter(|_| kind == RequestKind::Count);
    if inner.is_some() {
        root.reject_unknown_fields(&["model", "contents", "generateContentRequest"])?;
    }
    let body = inner.as_ref().unwrap_or(&root);
    let mut decoded = DecodedRequest::default();
    let (url_path, query) = path.split_once('?').unwrap_or((path, ""));
    decoded.stream = url_path.ends_with(":streamGenerateContent");
    decoded.json_array = decoded.stream && !query.split('&').any(|pair| pair == "alt=sse");
    decoded.prompt.model = model_name(url_path, body.record()?)?.into();
    read_contents(kind, body, &mut decoded)?;
    decoded.prompt.max_tokens = u32::MAX;
    if let Some(tools) = body.non_null("tools") {
        read_tools(&tools, &mut decoded)?;
    }
    if let Some(config) = body.non_null("toolConfig") {
        read_tool_config(&config, &mut decoded)?;
    }
    if kind == RequestKind::Store {
        body.reject_unknown_fields(&[&READ[..], &STORED].concat())?;
        decoded.other = passthrough_fields(body, &STORED);
        return Ok(decoded);
    }
    body.reject_unknown_fields(&[&READ[..], &READ_FOR_ANSWER, &OTHER].concat())?;
    if let Some(config) = body.non_null("generationConfig") {
        read_generation_config(&config, &mut decoded)?;
    }
    let cached = body.non_null("cachedContent").map(|name| name.text().map(str::to_owned)).transpose()?;
    decoded.cached_content = cached.filter(|name| !name.is_empty());
    decoded.other.extend(passthrough_fields(body, &OTHER));
    Ok(decoded)
}

/// The model that the path names (`…/models/MODEL:method`), or else the body.
fn model_name(path: &str, body: &Node<'_>) -> Result<String, DecodeError> {
    let after = path.rsplit_once("models/").map(|(_, name)| name);
    if let Some(name) = after {
        return Ok(name.split(':').next().unwrap_or_default().to_owned());
    }
    let name = body.non_null("model").map_or(Ok(""), |name| name.text())?;
    Ok(name.strip_prefix("models/").unwrap_or(name).to_owned())
}

fn read_contents(
    kind: RequestKind,
    body: &Node<'_>,
    decoded: &mut DecodedRequest,
) -> Result<(), DecodeError> {
    let prompt = &mut decoded.prompt;
    let mut ids = CallIds::default();
    let contents = body.optional("contents");
    let contents = contents.map_or(Ok(Vec::new()), |contents| contents.list(ExpectedType::Records))?;
    if contents.is_empty() && kind != RequestKind::Store {
        let words = "* GenerateContentRequest.contents: contents is not specified\n";
        return Err(body.reject(DecodeErrorKind::Missing, words));
    }
    for (index, node) in contents.iter().enumerate() {
        prompt.messages.push(content::message(node, index, &mut ids)?);
    }
    if let Some(system) = body.non_null("systemInstruction") {
        prompt.system = content::system(&system)?;
    }
    Ok(())
}

fn read_tools(tools: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    for node in tools.list(ExpectedType::Records)? {
        let node = node.record()?;
        let declared = node.non_null("functionDeclarations");
        let declared = declared.map_or(Ok(Vec::new()), |list| list.list(ExpectedType::Records))?;
        for declaration in &declared {
            decoded.prompt.tools.push(function(declaration)?);
        }
        for name in SERVER_TOOLS.iter().filter(|name| node.non_null(name).is_some()) {
            decoded.server_tools.push((*name).into());
            if *name == "googleSearch" {
                decoded.prompt.web_search = Some(WebSearch { max_results: u32::MAX });
            }
        }
        node.reject_unknown_fields(&[&["functionDeclarations"], &SERVER_TOOLS[..]].concat())?;
    }
    Ok(())
}

fn function(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let node = node.record()?;
    let name = node.required("name")?.text()?;
    let description = node.non_null("description").map_or(Ok(""), |text| text.text())?;
    let (openapi, schema) = (node.non_null("parameters"), node.non_null("parametersJsonSchema"));
    if let (Some(_), Some(schema)) = (&openapi, &schema) {
        return Err(schema.invalid_value("only one of parameters and parameters_json_schema may be set"));
    }
    if let Some(parameters) = &openapi {
        parameters.object()?;
        check_openapi_schema(parameters)?;
    }
    let schema = openapi.or(schema).map(|schema| schema.object()).transpose()?;
    let known = ["name", "description", "parameters", "parametersJsonSchema"];
    node.reject_unknown_fields(&[&known[..], &["response", "responseJsonSchema", "behavior"]].concat())?;
    Ok(tool_block(name, description, schema, None))
}

/// Rejects an object without properties, which the OpenAPI subset does not have.
fn check_openapi_schema(node: &Node<'_>) -> Result<(), DecodeError> {
    let is_object = |kind: &Value| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
    let properties = node.value.get("properties").and_then(Value::as_object);
    if node.value.get("type").is_some_and(is_object) && properties.is_none_or(serde_json::Map::is_empty) {
        let place = node.optional("properties").map_or_else(
            || node.invalid_value("properties should be non-empty for OBJECT type"),
            |properties| properties.invalid_value("should be non-empty for OBJECT type"),
        );
        return Err(place);
    }
    for name in properties.into_iter().flat_map(serde_json::Map::keys) {
        if let Some(property) = node.optional("properties").and_then(|properties| properties.optional(name)) {
            check_openapi_schema(&property)?;
        }
    }
    node.non_null("items").map_or(Ok(()), |items| check_openapi_schema(&items))
}

fn read_tool_config(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let config = node.record()?.non_null("functionCallingConfig");
    node.reject_unknown_fields(&[
        "functionCallingConfig",
        "retrievalConfig",
        "includeServerSideToolInvocations",
    ])?;
    let flag = node.non_null("includeServerSideToolInvocations");
    if let Some(flag) = flag.filter(|flag| flag.value == true) {
        decoded.other.insert("includeServerSideToolInvocations".into(), Json::new(flag.value));
    }
    let Some(config) = config else { return Ok(()) };
    config.record()?.non_null("mode").map(|mode| mode.one_of(&MODES)).transpose()?;
    config.non_null("allowedFunctionNames").map(|names| names.texts()).transpose()?;
    config.reject_unknown_fields(&["mode", "allowedFunctionNames", "streamFunctionCallArguments"])?;
    decoded.tool_choice = Some(Json::new(config.value));
    Ok(())
}

fn read_generation_config(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let node = node.record()?;
    node.reject_unknown_fields(&[&CONFIG[..], &OTHER_CONFIG].concat())?;
    if let Some(tokens) = node.non_null("maxOutputTokens") {
        decoded.prompt.max_tokens = tokens.integer(1)?;
    }
    if let Some(stops) = node.non_null("stopSequences") {
        decoded.stop_sequences = stops.texts()?;
        if decoded.stop_sequences.len() > MAX_STOPS {
            return Err(stops.invalid_value("at most 5 stop sequences may be given"));
        }
    }
    if let Some(count) = node.non_null("candidateCount")
        && count.integer(1)? > 1
    {
        return Err(count.invalid_value("one candidate is given here; leave the count out, or 1"));
    }
    node.non_null("temperature").map(|number| number.number_up_to(2.0)).transpose()?;
    node.non_null("topP").map(|number| number.number_up_to(1.0)).transpose()?;
    decoded.other.extend(passthrough_fields(node, &OTHER_CONFIG));
    node.non_null("thinkingConfig").map_or(Ok(()), |thinking| read_thinking(&thinking, decoded))
}

/// Thinking: a level for newer models, a budget for older ones (0 for none, −1 for any), never both.
fn read_thinking(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let node = node.record()?;
    node.reject_unknown_fields(&["includeThoughts", "thinkingLevel", "thinkingBudget"])?;
    decoded.include_thoughts = node.non_null("includeThoughts").map_or(Ok(false), |flag| flag.flag())?;
    let (level, budget) = (node.non_null("thinkingLevel"), node.non_null("thinkingBudget"));
    if level.is_some() && budget.is_some() {
        let words = "You can only set only one of thinking budget and thinking level.";
        return Err(node.reject(DecodeErrorKind::Unsupported, words));
    }
    if let Some(level) = level {
        let word = level.text()?.to_ascii_lowercase();
        if word != "thinking_level_unspecified" {
            let known = LEVELS.contains(&word.as_str()).then(|| word.parse().ok()).flatten();
            let problem = crate::decode::node::Problem::NotOneOf(&LEVELS);
            decoded.prompt.effort = Some(known.ok_or_else(|| level.problem(problem))?);
        }
    }
    if let Some(budget) = budget {
        decoded.prompt.thinking = match budget.value.as_i64() {
            Some(-1) => Thinking::Adaptive,
            Some(0) => Thinking::Disabled,
            _ => Thinking::Budget(budget.integer(0)?),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests;
