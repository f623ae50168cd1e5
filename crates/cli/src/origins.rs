//! [`BlockOrigins`]: where each block of a request came from.

use hardpan_context::AssembledPrompt;
use hardpan_prompt::{CacheLifetime, Content, ItemKind, Origin, Region, ResultPart, Source};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A block of a request, and where its parts came from. As JSON it is a row of `--origins`.
#[derive(Serialize)]
pub struct BlockOrigins {
    /// Its address in the body: `messages[3].content[0]`.
    pub block: String,
    /// The region of the layout that it stands in.
    #[serde(rename = "place", serialize_with = "serialize_region")]
    pub region: Region,
    pub tokens: usize,
    #[serde(rename = "from")]
    pub parts: Vec<PartOrigin>,
    /// How long the provider is asked to keep a cache entry up to here, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakpoint: Option<CacheLifetime>,
}

/// A part of a block with one origin.
pub struct PartOrigin {
    pub origin: Origin,
    pub tokens: u32,
    /// Its length as sent; 0 for tools.
    pub bytes: usize,
}

impl Serialize for PartOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("origin", &self.origin.to_string())?;
        fields.serialize_entry("kind", self.origin.kind.name())?;
        fields.serialize_entry("tokens", &self.tokens)?;
        if self.bytes > 0 {
            fields.serialize_entry("bytes", &self.bytes)?;
        }
        fields.end()
    }
}

fn serialize_region<S: Serializer>(region: &Region, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(region.name())
}

/// The origins of every block, tools included, in the order of the request.
pub fn origins(assembled: &AssembledPrompt, addresses: &[String]) -> Vec<BlockOrigins> {
    let prompt = &assembled.prompt;
    let tools = prompt.tools.iter().map(|block| {
        let origin = Origin { kind: ItemKind::Tool, source: Source::Tool(block.tool.name.clone()) };
        (block.region, block.breakpoint, vec![(origin, 0)])
    });
    let blocks = prompt.blocks().map(|block| (block.region, block.breakpoint, parts(&block.content)));
    let rows = tools.chain(blocks).zip(addresses).enumerate();
    rows.map(|(index, ((region, breakpoint, parts), address))| {
        let parts = parts.into_iter().zip(assembled.measured.segments(index));
        let parts = parts.map(|((origin, bytes), tokens)| PartOrigin { origin, tokens: *tokens, bytes });
        BlockOrigins {
            block: address.clone(),
            region,
            tokens: assembled.measured.tokens(index),
            parts: parts.collect(),
            breakpoint,
        }
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
        Content::ToolChange(change) => vec![(change.origin.clone(), change.action.size())],
        Content::Provider(block) => vec![(block.origin.clone(), block.json.as_str().len())],
    }
}
