//! Stored answers and items, put in place of the ids that refer to them.

use hardpan_prompt::{Hash, Json};
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use super::checks::{is_stored, not_found};
use crate::engine::AcceptedRequest;
use crate::error_reply::ErrorReply;
use crate::server_codec::StoredPart;
use crate::stored::{ResponseStore, StoredResponse};

/// The body with everything in it that it refers to. `None`: it refers to nothing.
pub fn resolve(
    decoded: &DecodedRequest,
    body: &[u8],
    store: &ResponseStore,
    owner: Hash,
) -> Result<Option<Vec<u8>>, ErrorReply> {
    let previous = decoded.other.get("previous_response_id").map(Json::value);
    let previous = previous.as_ref().and_then(Value::as_str);
    let is_reference = |item: &Value| {
        let is_unnamed = item["type"].is_null() && item["role"].is_null();
        item["type"] == "item_reference" || is_unnamed
    };
    let is_bare = |item: &Value| item["type"] == "reasoning" && !item["encrypted_content"].is_string();
    let items: Vec<Value> = decoded.items.iter().map(Json::value).collect();
    if previous.is_none() && !items.iter().any(|item| is_reference(item) || is_bare(item)) {
        return Ok(None);
    }
    let mut input = Vec::new();
    if let Some(id) = previous {
        let Some(stored) = store.get(owner, id) else {
            let message = format!("Previous response with id '{id}' not found.");
            return Err(ErrorReply::invalid(message)
                .with_param("previous_response_id")
                .with_code("previous_response_not_found"));
        };
        input.extend(stored.input.iter().chain(stored.output()).cloned());
    }
    for item in items {
        let id = item["id"].as_str().unwrap_or_default();
        let stored = store.item(owner, id);
        match stored {
            Some(stored) if is_reference(&item) || is_bare(&item) => input.push(stored.clone()),
            None if is_reference(&item) => return Err(not_found(id, is_stored(decoded))),
            _ => input.push(item),
        }
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(body) else { return Ok(None) };
    body["input"] = Value::Array(input);
    Ok(Some(body.to_string().into_bytes()))
}

/// Keeps an answer if the request asks for it; of others, only which items belong together.
pub fn store_answer(request: &AcceptedRequest, response: Value, owner: Hash, store: &mut ResponseStore) {
    if let Some(output) = response["output"].as_array() {
        store.remember_items(output);
    }
    let Some(id) = response["id"].as_str().filter(|_| is_stored(&request.decoded)) else { return };
    let id = id.to_owned();
    let number = |(index, item): (usize, &Json)| {
        let mut item = item.value();
        // The server gives every stored item an id.
        if let Some(fields) = item.as_object_mut()
            && !fields.contains_key("id")
            && fields.get("type").is_none_or(|kind| kind == "message")
        {
            fields.insert("id".into(), json!(format!("msg_{index}_{}", &id[id.len().saturating_sub(16)..])));
            fields.entry("type").or_insert_with(|| json!("message"));
        }
        item
    };
    let input = request.decoded.items.iter().enumerate().map(number).collect();
    store.insert(StoredResponse { id: id.clone(), owner, response, input });
}

/// What a request for a stored answer gets.
pub fn stored_body(stored: &StoredResponse, part: StoredPart) -> Result<Value, ErrorReply> {
    match part {
        StoredPart::Response => Ok(stored.response.clone()),
        StoredPart::InputItems => {
            let newest_first: Vec<&Value> = stored.input.iter().rev().collect();
            let id = |item: Option<&&Value>| item.map(|item| item["id"].clone());
            let (first, last) = (id(newest_first.first()), id(newest_first.last()));
            Ok(
                json!({"object": "list", "data": newest_first, "first_id": first, "last_id": last, "has_more": false}),
            )
        }
        StoredPart::Cancellation => Err(ErrorReply::invalid("Cannot cancel a synchronous response.")),
    }
}
