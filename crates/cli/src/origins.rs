//! [`origins`]: where each block of a request came from, as JSON.

use hardpan_context::AssembledPrompt;
use hardpan_prompt::{Content, Origin, ResultPart, Source};
use serde_json::{Value, json};

/// One object per block: its address in the body, its region, its tokens, its breakpoint, and the
/// origins of its parts.
pub fn origins(assembled: &AssembledPrompt, addresses: &[String]) -> Vec<Value> {
    let prompt = &assembled.prompt;
    let tools = prompt.tools.iter().map(|block| {
        let origin =
            Origin { kind: hardpan_prompt::ItemKind::Tool, source: Source::Tool(block.tool.name.clone()) };
        (block.region, block.breakpoint, vec![(origin, 0)])
    });
    let blocks = prompt.blocks().map(|block| (block.region, block.breakpoint, parts(&block.content)));
    let rows = tools.chain(blocks).zip(addresses).enumerate();
    rows.map(|(index, ((place, breakpoint, parts), address))| {
        let from: Vec<Value> = parts
            .iter()
            .zip(assembled.measured.segments(index))
            .map(|((origin, bytes), tokens)| {
                let mut part =
                    json!({"origin": origin.to_string(), "kind": origin.kind.name(), "tokens": tokens});
                if *bytes > 0 {
                    part["bytes"] = json!(bytes);
                }
                part
            })
            .collect();
        let mut row =
            json!({"block": address, "place": place.name(), "tokens": assembled.measured.tokens(index), "from": from});
        if let Some(lifetime) = breakpoint {
            row["breakpoint"] = json!(lifetime.name());
        }
        row
    })
    .collect()
}

/// The origin and the length in bytes of each part of a block.
fn parts(content: &Content) -> Vec<(Origin, usize)> {
    match content {
        Content::Text(segments) => segments.iter().map(|s| (s.origin.clone(), s.text.len())).collect(),
        Content::Result(result) => result
            .parts
            .iter()
            .flat_map(|part| match part {
                ResultPart::Text(segments) => {
                    segments.iter().map(|s| (s.origin.clone(), s.text.len())).collect()
                }
                ResultPart::Image(image) => vec![(result.origin.clone(), image.data.len())],
            })
            .collect(),
        Content::Image(image, origin) => vec![(origin.clone(), image.data.len())],
        Content::Reasoning(reasoning) => vec![(reasoning.origin.clone(), reasoning.text.len())],
        Content::Call(call) => vec![(call.origin.clone(), call.arguments.as_str().len())],
    }
}
