//! [`Protocol`]: the protocols that providers speak, and what a layout must know about each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The protocol that a provider's endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Anthropic Messages: requests go to `base_url` + `/messages`.
    Anthropic,
    /// OpenAI Chat Completions: requests go to `base_url` + `/chat/completions`.
    #[default]
    Openai,
    /// Gemini's own protocol: requests go to `base_url` + `/models/MODEL:streamGenerateContent`.
    Gemini,
    /// OpenAI Responses: requests go to `base_url` + `/responses`.
    OpenaiResponses,
}

/// What a layout must know about a protocol. Everything else is the codec's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolTraits {
    /// Reasoning goes back only with the provider's signature, and a turn that began without
    /// reasoning cannot think later. Otherwise reasoning goes back as text, in the provider's
    /// [`ReasoningField`](crate::ReasoningField).
    pub signed_reasoning: bool,
    /// The system prompt is a field of its own, apart from the messages. The layout `panels` repeats
    /// it after the panels there.
    pub separate_system: bool,
    /// Requests can ask for the server's own search tool, and Hardpan knows its form.
    pub search_tool: bool,
    /// Clients of this protocol append the version to whatever base URL they are given: `/v1`.
    pub version_after_base_url: bool,
    /// A signature stands apart from the text of its reasoning: it goes back with the part that
    /// follows it, or alone at the end of its message. The text does not go back.
    pub detached_signatures: bool,
    /// The model's messages must alternate with the user's, so neighbours are sent as one.
    pub alternating_roles: bool,
    /// How many tools a request may declare; none if no limit is documented.
    pub max_tools: Option<usize>,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 4] =
        [Protocol::Anthropic, Protocol::Openai, Protocol::OpenaiResponses, Protocol::Gemini];

    /// What a layout must know about the protocol.
    pub fn traits(self) -> ProtocolTraits {
        match self {
            Protocol::Anthropic => ProtocolTraits {
                signed_reasoning: true,
                separate_system: true,
                search_tool: true,
                version_after_base_url: true,
                detached_signatures: false,
                alternating_roles: false,
                max_tools: None,
            },
            Protocol::Openai => ProtocolTraits {
                signed_reasoning: false,
                separate_system: false,
                search_tool: false,
                version_after_base_url: false,
                detached_signatures: false,
                alternating_roles: false,
                max_tools: Some(128),
            },
            Protocol::Gemini => ProtocolTraits {
                signed_reasoning: true,
                separate_system: true,
                search_tool: true,
                version_after_base_url: true,
                detached_signatures: true,
                alternating_roles: true,
                max_tools: None,
            },
            Protocol::OpenaiResponses => ProtocolTraits {
                signed_reasoning: true,
                separate_system: false,
                search_tool: true,
                version_after_base_url: false,
                detached_signatures: false,
                alternating_roles: false,
                max_tools: Some(128),
            },
        }
    }
}
