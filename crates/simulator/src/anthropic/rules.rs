//! [`RULES`]: what Anthropic's server refuses beyond the rules for messages, one row per rule.
//!
//! A row says for which models and API versions it holds, what a request must contain to break it,
//! and the status and words of the refusal. `hardpan simulator --rules` prints the table.

use hardpan_models::{Model, ThinkingOff};
use hardpan_prompt::{Effort, Role, Thinking};
use hardpan_providers::decode::{ApiVersion, DecodedRequest, SpecialBlock, betas};

use super::thinking::is_in_tool_round;
use super::web_search::find_problem;
use crate::error_reply::ErrorReply;
use crate::tool_choice::ToolChoice;

/// The versions of the API that a rule holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleVersions {
    /// All of them.
    All,
    /// Only this one.
    Only(ApiVersion),
}

/// One rule of the server.
#[derive(Clone, Copy)]
pub struct Rule {
    /// A short name, for tests and lists.
    pub name: &'static str,
    /// What breaks it, in a few words.
    pub sent: &'static str,
    /// The versions of the API that it holds for.
    pub versions: RuleVersions,
    /// The models that it holds for.
    pub models: fn(&Model) -> bool,
    /// Whether a request breaks it; the values fill the places in `message`.
    find: fn(&RuleInput<'_>) -> Option<Vec<String>>,
    /// The HTTP status of the refusal.
    pub status: u16,
    /// The stable code of the error, where it has one.
    pub code: Option<&'static str>,
    /// The words of the refusal, with `{}` for each value.
    pub message: &'static str,
}

/// What a rule looks at.
pub struct RuleInput<'a> {
    pub decoded: &'a DecodedRequest,
    pub model: &'a Model,
    pub choice: &'a ToolChoice,
}

impl Rule {
    const fn new(name: &'static str, sent: &'static str, message: &'static str) -> Self {
        Rule {
            name,
            sent,
            versions: RuleVersions::All,
            models: |_| true,
            find: |_| None,
            status: 400,
            code: None,
            message,
        }
    }

    /// The refusal of a request that breaks the rule.
    pub fn check(&self, input: &RuleInput<'_>) -> Option<ErrorReply> {
        let holds = match self.versions {
            RuleVersions::All => true,
            RuleVersions::Only(version) => input.decoded.anthropic.version == version,
        };
        if !holds || !(self.models)(input.model) {
            return None;
        }
        let values = (self.find)(input)?;
        let mut words = self.message.split("{}");
        let mut message = words.next().unwrap_or_default().to_owned();
        for (value, rest) in values.iter().zip(words) {
            message.push_str(value);
            message.push_str(rest);
        }
        Some(ErrorReply { code: self.code, ..ErrorReply::new(self.status, message) })
    }
}

/// The first rule that a request breaks.
pub fn check_rules(input: &RuleInput<'_>) -> Result<(), ErrorReply> {
    RULES.iter().find_map(|rule| rule.check(input)).map_or(Ok(()), Err)
}

/// Models with fast mode; the first without a beta header.
const FAST_MODELS: [&str; 3] = ["claude-opus-5-5", "claude-opus-5", "claude-opus-4-8"];
/// Models that take no other `top_p` than 0.99.
const TOP_P_099: [&str; 1] = ["claude-haiku-5-5"];
/// The most messages of one request.
const MAX_MESSAGES: usize = 100_000;

/// All rules, in the order in which they are checked.
pub const RULES: &[Rule] = &[
    Rule {
        find: |input| find_problem(input.decoded).map(|(path, words)| vec![path, words]),
        ..Rule::new(
            "web search",
            "a search without its result, or a result or citation that is not as the server made it",
            "{}: {}",
        )
    },
    Rule {
        find: |input| {
            let fields = &input.decoded.anthropic;
            let missing = fields.gated.iter().find(|field| !fields.has_beta(field.betas));
            missing.map(|field| vec![field.path.clone()])
        },
        ..Rule::new("beta field", "a field without its beta header", "{}: Extra inputs are not permitted")
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2026_10_21),
        find: |input| input.decoded.anthropic.sampling.keys().next().map(|name| vec![(*name).to_owned()]),
        ..Rule::new("sampling", "temperature, top_p or top_k", "{}: Extra inputs are not permitted")
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2026_10_21),
        find: |input| {
            let mut blocks = input.decoded.anthropic.sources.iter();
            blocks.find(|block| block.is_document && block.in_answer).map(|block| vec![block.path.clone()])
        },
        ..Rule::new(
            "document in answer",
            "a document in an assistant message",
            "{}: document blocks are not permitted in assistant messages",
        )
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2026_10_21),
        find: |input| {
            let mut blocks = input.decoded.anthropic.sources.iter();
            blocks.find(|block| !block.is_document && !block.in_answer).map(|block| vec![block.path.clone()])
        },
        ..Rule::new(
            "citations of user",
            "citations on a text of the user",
            "{}.text.citations: citations are not permitted in user messages",
        )
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2023_06_01),
        models: |model| !model.sampling,
        find: |input| refused_sampling(input).map(|name| vec![name.to_owned()]),
        ..Rule::new(
            "deprecated sampling",
            "temperature other than 1, top_p under 0.99, both, or top_k",
            "`{}` is deprecated for this model",
        )
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2023_06_01),
        models: |model| model.sampling,
        find: |input| {
            let temperature = input.decoded.anthropic.sampling.get("temperature")?;
            (input.decoded.prompt.thinking.is_on() && *temperature != 1.0).then(Vec::new)
        },
        ..Rule::new(
            "temperature with thinking",
            "temperature other than 1 with thinking on",
            "`temperature` may only be set to 1 when thinking is enabled.",
        )
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2023_06_01),
        models: |model| model.sampling,
        find: |input| {
            let sampling = &input.decoded.anthropic.sampling;
            (input.decoded.prompt.thinking.is_on() && sampling.contains_key("top_k")).then(Vec::new)
        },
        ..Rule::new(
            "top_k with thinking",
            "top_k with thinking on",
            "`top_k` must be unset when thinking is enabled.",
        )
    },
    Rule {
        versions: RuleVersions::Only(ApiVersion::V2023_06_01),
        models: |model| model.sampling,
        find: |input| {
            let top_p = input.decoded.anthropic.sampling.get("top_p")?;
            (input.decoded.prompt.thinking.is_on() && *top_p < 0.95).then(Vec::new)
        },
        ..Rule::new(
            "top_p with thinking",
            "top_p under 0.95 with thinking on",
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.",
        )
    },
    Rule {
        models: |model| !model.reasoning,
        find: |input| input.decoded.prompt.thinking.is_on().then(Vec::new),
        ..Rule::new("no thinking", "thinking on", "thinking is not supported on this model")
    },
    Rule {
        models: |model| model.thinking.adaptive && !model.thinking.budget,
        find: |input| input.decoded.prompt.thinking.budget().map(|_| Vec::new()),
        ..Rule::new(
            "thinking enabled",
            "thinking.type enabled",
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
             \"output_config.effort\" to control thinking behavior.",
        )
    },
    Rule {
        models: |model| !model.thinking.adaptive,
        find: |input| (input.decoded.prompt.thinking == Thinking::Adaptive).then(Vec::new),
        ..Rule::new(
            "thinking adaptive",
            "thinking.type adaptive",
            "adaptive thinking is not supported on this model",
        )
    },
    Rule {
        models: |model| model.thinking.off == ThinkingOff::Never,
        find: |input| (input.decoded.prompt.thinking == Thinking::Disabled).then(Vec::new),
        ..Rule::new(
            "thinking disabled",
            "thinking.type disabled",
            "\"thinking.type.disabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \
             \"output_config.effort\" to control thinking behavior.",
        )
    },
    Rule {
        models: |model| model.thinking.off == ThinkingOff::BetweenTools,
        find: |input| (input.decoded.prompt.thinking == Thinking::Disabled).then(Vec::new),
        ..Rule::new(
            "thinking disabled, between tools",
            "thinking.type disabled",
            "To turn thinking off on this model, send \"thinking\": {\"type\": \"between_tools\"} instead of \
             {\"type\": \"disabled\"}.",
        )
    },
    Rule {
        models: |model| model.thinking.off != ThinkingOff::BetweenTools,
        find: |input| (input.decoded.prompt.thinking == Thinking::BetweenTools).then(Vec::new),
        ..Rule::new(
            "thinking between tools",
            "thinking.type between_tools",
            "\"thinking.type.between_tools\" is not supported for this model.",
        )
    },
    Rule {
        models: |model| model.thinking.efforts.is_empty(),
        find: |input| efforts(input).next().map(|_| Vec::new()),
        ..Rule::new("no effort", "an effort", "This model does not support the effort parameter.")
    },
    Rule {
        models: |model| !model.thinking.efforts.is_empty(),
        find: |input| {
            let offered = &input.model.thinking.efforts;
            let other = efforts(input).find(|effort| !offered.contains(effort))?;
            let mut words: Vec<&str> = offered.iter().map(|effort| effort.as_str()).collect();
            words.sort_unstable();
            Some(vec![other.to_string(), words.join(", ")])
        },
        ..Rule::new(
            "effort level",
            "an effort that the model does not have",
            "This model does not support effort level '{}'. Supported levels: {}.",
        )
    },
    Rule {
        models: |model| model.thinking.max_effort_when_off.is_some(),
        find: |input| {
            let most = input.model.thinking.max_effort_when_off?;
            let effort = input.decoded.prompt.effort.filter(|effort| *effort > most)?;
            is_off(input).then(|| vec![effort.to_string()])
        },
        ..Rule::new(
            "effort without thinking",
            "an effort over high with thinking off",
            "output_config.effort '{}' is not supported when thinking is disabled on this model.",
        )
    },
    Rule {
        find: |input| {
            let mut messages = input.decoded.prompt.messages.iter();
            let sets_effort = messages.any(|message| message.effort.is_some());
            (sets_effort && (!input.model.message_effort || is_off(input))).then(Vec::new)
        },
        ..Rule::new(
            "effort of a message",
            "an effort in a system message, on other models or with thinking off",
            "output_config.effort requires a model that supports per-turn effort; set it on the request instead.",
        )
    },
    Rule {
        models: |model| !model.forced_tool,
        find: |input| input.choice.is_forced().then(Vec::new),
        ..Rule::new(
            "forced tool",
            "tool_choice any or tool",
            "tool_choice: type \"tool\" and \"any\" are not supported for this model.",
        )
    },
    Rule {
        find: |input| {
            let thinks = input.decoded.prompt.thinking.budget().is_some();
            (thinks && input.choice.is_forced()).then(Vec::new)
        },
        ..Rule::new(
            "forced tool with thinking",
            "tool_choice any or tool with thinking.type enabled",
            "Thinking may not be enabled when tool_choice forces tool use.",
        )
    },
    Rule {
        models: |model| !model.prefill,
        find: |input| ends_with_answer(input.decoded).then(Vec::new),
        ..Rule::new(
            "prefill",
            "a conversation that ends with the assistant",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        )
    },
    Rule {
        models: |model| !FAST_MODELS.contains(&model.id.as_str()),
        find: |input| (input.decoded.anthropic.speed.as_deref() == Some("fast")).then(Vec::new),
        ..Rule::new("speed", "speed fast", "speed: fast mode is not supported on this model")
    },
    Rule {
        models: |model| FAST_MODELS[1..].contains(&model.id.as_str()),
        find: |input| {
            let fields = &input.decoded.anthropic;
            (fields.speed.is_some() && !fields.has_beta(betas::FAST_MODE)).then(Vec::new)
        },
        ..Rule::new("speed header", "speed without its beta header", "speed: Extra inputs are not permitted")
    },
    Rule {
        find: |input| (input.decoded.prompt.messages.len() > MAX_MESSAGES).then(Vec::new),
        ..Rule::new("messages", "over 100,000 messages", "messages: at most 100000 messages are permitted")
    },
    Rule {
        find: |input| {
            let mut special = input.decoded.anthropic.special_blocks.iter();
            let is_late = |at: &(usize, usize)| *at != (0, 0);
            let late = special.find(|(at, kind)| **kind == SpecialBlock::SignedCompaction && is_late(at));
            late.map(|((message, block), _)| vec![message.to_string(), block.to_string()])
        },
        code: Some("compaction_block_misplaced"),
        ..Rule::new(
            "misplaced compaction",
            "a signed compaction block that is not the first block",
            "messages.{}.content.{}: a compaction block must be the first block of the conversation",
        )
    },
    Rule {
        find: |input| {
            let DecodedRequest { anthropic, stop_sequences, .. } = input.decoded;
            let others = [
                ("context_management", anthropic.context_management.is_some()),
                ("stop_sequences", !stop_sequences.is_empty()),
                ("output_config.format", anthropic.output_config.contains_key("format")),
                ("tool_choice", input.choice.is_forced()),
            ];
            let found = others.into_iter().find(|(_, is_sent)| *is_sent)?;
            anthropic.compaction.then(|| vec![found.0.to_owned()])
        },
        ..Rule::new(
            "compaction with others",
            "compaction with context_management, stop_sequences, a format or a forced tool",
            "compaction: cannot be combined with {}",
        )
    },
    Rule {
        find: |input| {
            let is_open = ends_with_answer(input.decoded) || is_in_tool_round(&input.decoded.prompt);
            (input.decoded.anthropic.compaction && is_open).then(Vec::new)
        },
        code: Some("compaction_incomplete_turn"),
        ..Rule::new(
            "compaction in a turn",
            "compaction before the turn is complete",
            "compaction: the last turn is not complete",
        )
    },
    Rule {
        find: |input| thread_with_others(input.decoded).map(|name| vec![name.to_owned()]),
        code: Some("thread_unsupported_request"),
        ..Rule::new(
            "thread with others",
            "thread with context_management or fallbacks",
            "thread: cannot be combined with {}",
        )
    },
];

/// The efforts of the request and of its messages.
fn efforts<'a>(input: &RuleInput<'a>) -> impl Iterator<Item = Effort> + use<'a> {
    let prompt = &input.decoded.prompt;
    prompt.effort.into_iter().chain(prompt.messages.iter().filter_map(|message| message.effort))
}

/// The field that does not go together with `thread`.
pub fn thread_with_others(decoded: &DecodedRequest) -> Option<&'static str> {
    let fields = &decoded.anthropic;
    fields.thread.as_ref()?;
    let others =
        [("context_management", fields.context_management.is_some()), ("fallbacks", fields.fallbacks)];
    others.into_iter().find(|(_, is_sent)| *is_sent).map(|(name, _)| name)
}

/// Whether the request turns thinking off.
fn is_off(input: &RuleInput<'_>) -> bool {
    matches!(input.decoded.prompt.thinking, Thinking::Disabled | Thinking::BetweenTools)
}

/// The sampling parameter that a model without sampling does not take.
fn refused_sampling(input: &RuleInput<'_>) -> Option<&'static str> {
    let sampling = &input.decoded.anthropic.sampling;
    let is_refused = |name: &str, value: f64| match name {
        "temperature" => value != 1.0 || sampling.contains_key("top_p"),
        "top_p" => value < 0.99 || (TOP_P_099.contains(&input.model.id.as_str()) && value != 0.99),
        _ => true,
    };
    sampling.iter().find(|(name, value)| is_refused(name, **value)).map(|(name, _)| *name)
}

/// Whether the model spoke last. An answer that ends with a tool of the server is sent back so that
/// the server goes on.
fn ends_with_answer(decoded: &DecodedRequest) -> bool {
    let messages = decoded.prompt.messages.iter().enumerate();
    let Some((index, last)) = messages.rev().find(|(_, message)| message.role != Role::System) else {
        return false;
    };
    last.role == Role::Assistant && !ends_with_server_tool(decoded, index)
}

/// Whether the last block of a message belongs to a tool of the server.
pub fn ends_with_server_tool(decoded: &DecodedRequest, message: usize) -> bool {
    let last = decoded.prompt.messages[message].blocks.len().saturating_sub(1);
    let special = decoded.anthropic.special_blocks.get(&(message, last));
    matches!(special, Some(SpecialBlock::ServerToolUse | SpecialBlock::ServerToolResult))
}
