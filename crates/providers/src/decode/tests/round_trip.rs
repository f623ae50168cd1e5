//! Bodies that our codecs write decode to the same blocks, roles and breakpoints.

use hardpan_models::{MarkerFormat, MaxTokensField, Protocol, ProviderProfile, ReasoningField};
use hardpan_prompt::validate::{ValidationRules, validate};
use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Hash, Image, ItemKind, Json, MediaType, Prompt, PromptMessage,
    Reasoning, Region, ResultPart, Role, Text, Thinking, ToolChange, ToolChangeAction, ToolOutcome,
    ToolResult, WebSearch,
};
use proptest::prelude::*;
use serde_json::json;

use crate::decode::{DecodedRequest, decode_request, origin, segments, tool_block};
use crate::encode;

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,8}[a-z]", "\\PC{0,6}x", Just("é\n\"\\\t\u{1F600}".to_owned())]
}

fn picture() -> impl Strategy<Value = Image> {
    let kinds = [MediaType::Png, MediaType::Jpeg, MediaType::Gif, MediaType::Webp];
    let image = |(media_type, data): (MediaType, String)| Image {
        media_type,
        data: data.into(),
        width: None,
        height: None,
    };
    (prop::sample::select(kinds.to_vec()), "([A-Za-z0-9+/]{4}){1,3}").prop_map(image)
}

fn marker() -> impl Strategy<Value = Option<CacheLifetime>> {
    prop_oneof![4 => Just(None), 1 => Just(Some(CacheLifetime::FiveMinutes)), 1 => Just(Some(CacheLifetime::OneHour))]
}

fn text() -> impl Strategy<Value = Content> {
    // Several segments are one text on the wire.
    prop::collection::vec(words(), 1..3).prop_map(|texts| {
        Content::Text(texts.iter().flat_map(|text| segments(text, ItemKind::History)).collect())
    })
}

fn said_by_user() -> impl Strategy<Value = Content> {
    prop_oneof![3 => text(), 1 => picture().prop_map(|image| Content::Image(image, origin(ItemKind::History)))]
}

fn reasoning() -> impl Strategy<Value = Content> {
    let thought = |text: String, signature: Option<&str>, redacted: Option<&str>| {
        let (signature, redacted) = (signature.map(Into::into), redacted.map(Into::into));
        Content::Reasoning(Reasoning {
            text: Text::new(text),
            signature,
            redacted,
            origin: origin(ItemKind::History),
        })
    };
    prop_oneof![
        words().prop_map(move |text| thought(text, Some("sig=="), None)),
        Just(thought(String::new(), None, Some("sealed"))),
    ]
}

fn marked(content: impl Strategy<Value = Content>) -> impl Strategy<Value = Block> {
    (content, marker()).prop_map(|(content, breakpoint)| {
        // Reasoning cannot have a marker.
        let breakpoint = breakpoint.filter(|_| !matches!(content, Content::Reasoning(_)));
        Block { breakpoint, ..Block::new(Region::Log, content) }
    })
}

fn answer() -> impl Strategy<Value = (Vec<ResultPart>, ToolOutcome)> {
    let text = words().prop_map(|text| ResultPart::Text(segments(&text, ItemKind::History)));
    let part = prop_oneof![3 => text, 1 => picture().prop_map(ResultPart::Image)];
    (prop::collection::vec(part, 0..3), prop::sample::select(vec![ToolOutcome::Done, ToolOutcome::Failed]))
}

type Answer = ((Vec<ResultPart>, ToolOutcome), Option<CacheLifetime>);
type Round = (Vec<Block>, Vec<Block>, Vec<Answer>);

/// One exchange: a user message, reasoning, text and calls of the model, results of the calls.
fn round() -> impl Strategy<Value = Round> {
    let user = prop::collection::vec(marked(said_by_user()), 1..3);
    let model = (prop::option::of(reasoning()), prop::collection::vec(marked(text()), 1..3)).prop_map(
        |(thought, said)| {
            thought.into_iter().map(|thought| Block::new(Region::Log, thought)).chain(said).collect()
        },
    );
    (user, model, prop::collection::vec((answer(), marker()), 0..3))
}

fn prompts() -> impl Strategy<Value = Prompt> {
    let tool = (0..9_u8, words(), marker()).prop_map(|(name, about, marker)| {
        let schema = json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {}}});
        tool_block(&format!("tool{name}"), &about, Some(&schema), marker)
    });
    let tools = prop::collection::vec(tool, 0..3);
    let system = prop::collection::vec(marked(text()), 0..3);
    let thinking = prop_oneof![
        Just(Thinking::Unspecified),
        Just(Thinking::Adaptive),
        Just(Thinking::Disabled),
        Just(Thinking::BetweenTools),
        (1024..2000_u32).prop_map(Thinking::Budget)
    ];
    (tools, system, prop::collection::vec(round(), 1..4), thinking, 1..9000_u32).prop_map(
        |(tools, system, rounds, thinking, max_tokens)| {
            let mut messages = Vec::new();
            for (number, (user, mut model, answers)) in rounds.into_iter().enumerate() {
                messages.push(PromptMessage::new(Role::User, user));
                let mut results = Vec::new();
                for (index, ((parts, outcome), breakpoint)) in answers.into_iter().enumerate() {
                    let id: std::sync::Arc<str> = format!("call_{number}_{index}").into();
                    let arguments = Json::new(&json!({"z": [1, 0.5, null], "path": "a\n"}));
                    let call = Call {
                        id: id.clone(),
                        name: "read".into(),
                        arguments,
                        origin: origin(ItemKind::History),
                    };
                    model.push(Block::new(Region::Log, Content::Call(call)));
                    let result =
                        ToolResult { call_id: id, parts, outcome, origin: origin(ItemKind::History) };
                    results.push(Block { breakpoint, ..Block::new(Region::Log, Content::Result(result)) });
                }
                messages.push(PromptMessage::new(Role::Assistant, model));
                if !results.is_empty() {
                    messages.push(PromptMessage::new(Role::User, results));
                }
            }
            Prompt { model: "m".into(), max_tokens, thinking, tools, system, messages, ..Prompt::default() }
        },
    )
}

type Seen = (Option<Role>, Hash, Option<CacheLifetime>);

fn seen(prompt: &Prompt) -> Vec<Seen> {
    let block = |role, block: &Block| (role, block.hash(), block.breakpoint);
    let system = prompt.system.iter().map(move |b| block(None, b));
    system
        .chain(
            prompt
                .messages
                .iter()
                .flat_map(|turn| turn.blocks.iter().map(move |b| block(Some(turn.role), b))),
        )
        .collect()
}

fn read_back(prompt: &Prompt, profile: &ProviderProfile) -> DecodedRequest {
    let body = encode(prompt, profile);
    decode_request(profile.protocol, &body)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)))
}

/// The prompt reduced to what OpenAI's protocol can express: results have no outcome and are
/// messages of their own, before the rest of their message; the reasoning of a message is one text;
/// tools have no markers.
fn as_openai(prompt: &Prompt, profile: &ProviderProfile) -> Prompt {
    let mut seen = Prompt { messages: Vec::new(), ..prompt.clone() };
    seen.system = contents(&prompt.system, profile);
    for turn in &prompt.messages {
        let mut images = Vec::new();
        for block in &turn.blocks {
            let Content::Result(result) = &*block.content else { continue };
            let (held, moved): (Vec<_>, Vec<_>) = result
                .parts
                .iter()
                .cloned()
                .partition(|part| profile.tool_result_images || matches!(part, ResultPart::Text(_)));
            images.extend(moved.into_iter().filter_map(|part| match part {
                ResultPart::Image(image) => {
                    Some(Block::new(Region::Log, Content::Image(image, origin(ItemKind::History))))
                }
                ResultPart::Text(_) => None,
            }));
            // The marker of a result without parts moves to its last image.
            let breakpoint = block.breakpoint.filter(|_| !held.is_empty());
            if let Some(image) = images.last_mut().filter(|_| held.is_empty() && !result.parts.is_empty()) {
                image.breakpoint = block.breakpoint;
            }
            let is_list = profile.markers != MarkerFormat::None
                || held.iter().any(|part| matches!(part, ResultPart::Image(_)));
            let parts = if is_list { held } else { joined_parts(&held) };
            let result = ToolResult { parts, outcome: ToolOutcome::Done, ..result.clone() };
            let block = Block {
                breakpoint: known(breakpoint, profile),
                ..Block::new(Region::Log, Content::Result(result))
            };
            seen.messages.push(PromptMessage::new(Role::User, vec![block]));
        }
        let thoughts: Vec<&str> = turn
            .blocks
            .iter()
            .filter_map(|block| match &*block.content {
                Content::Reasoning(reasoning) => Some(reasoning.text.as_str()),
                _ => None,
            })
            .collect();
        let mut blocks = Vec::new();
        if !thoughts.is_empty() && profile.reasoning_field != ReasoningField::None {
            let reasoning = Reasoning {
                text: Text::new(thoughts.join("\n")),
                signature: None,
                redacted: None,
                origin: origin(ItemKind::History),
            };
            blocks.push(Block::new(Region::Log, Content::Reasoning(reasoning)));
        }
        images.extend(
            turn.blocks
                .iter()
                .filter(|b| matches!(*b.content, Content::Text(_) | Content::Image(..)))
                .cloned(),
        );
        blocks.extend(contents(&images, profile));
        blocks.extend(turn.blocks.iter().filter(|b| matches!(*b.content, Content::Call(_))).cloned());
        if !blocks.is_empty() {
            seen.messages.push(PromptMessage::new(turn.role, blocks));
        }
    }
    seen
}

/// The prompt reduced to what Gemini's protocol can express: results are a message of their own with
/// one text; reasoning is its text, and a signature that stands before the next part.
fn as_gemini(prompt: &Prompt, profile: &ProviderProfile) -> Prompt {
    let mut seen = Prompt { messages: Vec::new(), ..prompt.clone() };
    let unmarked = |block: &Block| Block { breakpoint: None, ..block.clone() };
    seen.system = prompt.system.iter().map(unmarked).collect();
    for turn in &prompt.messages {
        let (mut results, mut rest) = (Vec::new(), Vec::new());
        let mut has_call = false;
        for block in &turn.blocks {
            match &*block.content {
                Content::Result(result) => {
                    let (texts, images): (Vec<_>, Vec<_>) =
                        result.parts.iter().cloned().partition(|part| matches!(part, ResultPart::Text(_)));
                    let mut parts = joined_parts(&texts);
                    for image in images {
                        match image {
                            image if profile.tool_result_images => parts.push(image),
                            ResultPart::Image(image) => rest.push(Block::new(
                                Region::Log,
                                Content::Image(image, origin(ItemKind::History)),
                            )),
                            ResultPart::Text(_) => {}
                        }
                    }
                    let result = ToolResult { parts, ..result.clone() };
                    results.push(Block::new(Region::Log, Content::Result(result)));
                }
                Content::Reasoning(thought) => {
                    if !thought.text.is_empty() {
                        rest.push(reasoning_block(&thought.text, None));
                    }
                    rest.extend(thought.signature.as_deref().map(|it| reasoning_block("", Some(it))));
                }
                Content::Call(_) => {
                    // Texts have taken all other signatures.
                    if !std::mem::replace(&mut has_call, true) && profile.signed_calls {
                        rest.push(reasoning_block("", Some(crate::SKIP_SIGNATURES[0])));
                    }
                    rest.push(unmarked(block));
                }
                Content::Text(_) | Content::Image(..) | Content::ToolChange(_) | Content::Provider(_) => {
                    rest.push(unmarked(block));
                }
            }
        }
        let blocks = [results, rest].into_iter().filter(|blocks| !blocks.is_empty());
        seen.messages.extend(blocks.map(|blocks| PromptMessage::new(turn.role, blocks)));
    }
    seen
}

fn reasoning_block(text: &str, signature: Option<&str>) -> Block {
    let (text, signature) = (Text::new(text), signature.map(Into::into));
    let origin = origin(ItemKind::History);
    Block::new(Region::Log, Content::Reasoning(Reasoning { text, signature, redacted: None, origin }))
}

/// The prompt reduced to what the Responses API can express: results have no outcome, encrypted
/// reasoning is its only proof, and what the model said has no markers.
fn as_responses(prompt: &Prompt, profile: &ProviderProfile) -> Prompt {
    let mut seen = prompt.clone();
    for message in &mut seen.messages {
        for block in &mut message.blocks {
            let content = match (*block.content).clone() {
                Content::Result(result) => {
                    block.breakpoint = block.breakpoint.filter(|_| !result.parts.is_empty());
                    Content::Result(ToolResult { outcome: ToolOutcome::Done, ..result })
                }
                Content::Reasoning(Reasoning { text, signature, redacted, origin }) => {
                    Content::Reasoning(Reasoning {
                        text,
                        signature: signature.or(redacted),
                        redacted: None,
                        origin,
                    })
                }
                other => other,
            };
            block.content = content.into();
            block.breakpoint = known(block.breakpoint, profile).filter(|_| message.role == Role::User);
        }
    }
    seen.system.iter_mut().for_each(|block| block.breakpoint = known(block.breakpoint, profile));
    seen
}

/// Without markers, the texts of a message become one string with newlines, unless there is an
/// image.
fn contents(blocks: &[Block], profile: &ProviderProfile) -> Vec<Block> {
    let has_image = blocks.iter().any(|block| matches!(*block.content, Content::Image(..)));
    if profile.markers != MarkerFormat::None || has_image || blocks.is_empty() {
        let unmarked =
            |block: &Block| Block { breakpoint: known(block.breakpoint, profile), ..block.clone() };
        return blocks.iter().map(unmarked).collect();
    }
    let texts: Vec<String> = blocks
        .iter()
        .map(|block| match &*block.content {
            Content::Text(segments) => segments.iter().map(|segment| segment.text.as_str()).collect(),
            _ => String::new(),
        })
        .collect();
    vec![Block::new(Region::Log, Content::Text(segments(&texts.join("\n"), ItemKind::History)))]
}

fn joined_parts(parts: &[ResultPart]) -> Vec<ResultPart> {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            ResultPart::Text(segments) => segments.iter().map(|segment| segment.text.as_str()).collect(),
            ResultPart::Image(_) => String::new(),
        })
        .collect();
    if parts.is_empty() {
        Vec::new()
    } else {
        vec![ResultPart::Text(segments(&texts.join("\n"), ItemKind::History))]
    }
}

fn known(breakpoint: Option<CacheLifetime>, profile: &ProviderProfile) -> Option<CacheLifetime> {
    match profile.markers {
        MarkerFormat::None => None,
        MarkerFormat::CacheControl => breakpoint,
        MarkerFormat::PromptCacheBreakpoint => breakpoint.map(|_| CacheLifetime::FiveMinutes),
    }
}

fn profiles() -> impl Strategy<Value = ProviderProfile> {
    let markers = prop::sample::select(vec![
        MarkerFormat::None,
        MarkerFormat::CacheControl,
        MarkerFormat::PromptCacheBreakpoint,
    ]);
    let fields = vec![ReasoningField::None, ReasoningField::ReasoningContent, ReasoningField::Reasoning];
    (markers, prop::sample::select(fields), any::<bool>(), any::<bool>()).prop_map(
        |(markers, field, images, new)| ProviderProfile {
            protocol: Protocol::Openai,
            markers,
            reasoning_field: field,
            tool_result_images: images,
            include_reasoning: new,
            stream_usage: new,
            max_tokens_field: if new {
                MaxTokensField::MaxCompletionTokens
            } else {
                MaxTokensField::MaxTokens
            },
            web_search_plugin: Some("web".into()),
            message_ids: true,
            document_context: true,
            ..ProviderProfile::default()
        },
    )
}

proptest! {
    #[test]
    fn anthropics_body_comes_back_as_the_prompt_it_was(prompt in prompts()) {
        let profile = ProviderProfile { protocol: Protocol::Anthropic, markers: MarkerFormat::CacheControl, ..ProviderProfile::default() };
        let decoded = read_back(&prompt, &profile);
        prop_assert_eq!(seen(&decoded.prompt), seen(&prompt));
        prop_assert_eq!(decoded.prompt.breakpoints(), prompt.breakpoints());
        prop_assert_eq!(&decoded.prompt.tools, &prompt.tools);
        let DecodedRequest { prompt: Prompt { max_tokens, thinking, messages, .. }, stream, .. } = decoded;
        prop_assert_eq!((max_tokens, thinking, messages.len(), stream), (prompt.max_tokens, prompt.thinking, prompt.messages.len(), true));
    }

    #[test]
    fn openais_body_comes_back_as_far_as_the_wire_holds_it(mut prompt in prompts(), profile in profiles()) {
        // A marker on an empty result cannot be expressed either.
        let is_empty = |block: &Block| matches!(&*block.content, Content::Result(result) if result.parts.is_empty());
        for turn in prompt.messages.iter_mut().filter(|turn| turn.blocks.iter().any(is_empty)) {
            turn.blocks.iter_mut().for_each(|block| block.breakpoint = None);
        }
        let decoded = read_back(&prompt, &profile);
        let expected = as_openai(&prompt, &profile);
        prop_assert_eq!(seen(&decoded.prompt), seen(&expected));
        let tools = |prompt: &Prompt| prompt.tools.iter().map(|block| block.tool.clone()).collect::<Vec<_>>();
        prop_assert_eq!(tools(&decoded.prompt), tools(&prompt));
        prop_assert_eq!((decoded.prompt.max_tokens, decoded.stream), (prompt.max_tokens, true));
        prop_assert_eq!(decoded.include_usage, profile.stream_usage);
    }

    #[test]
    fn geminis_body_comes_back_as_far_as_the_wire_holds_it(
        prompt in prompts(), signed_calls: bool, tool_result_images: bool, include_reasoning: bool,
    ) {
        let profile = ProviderProfile { protocol: Protocol::Gemini, signed_calls, tool_result_images, include_reasoning, ..ProviderProfile::default() };
        let decoded = read_back(&prompt, &profile);
        prop_assert_eq!(seen(&decoded.prompt), seen(&as_gemini(&prompt, &profile)));
        let tools = |prompt: &Prompt| prompt.tools.iter().map(|block| block.tool.clone()).collect::<Vec<_>>();
        prop_assert_eq!(tools(&decoded.prompt), tools(&prompt));
        let thinking = match prompt.thinking {
            told @ (Thinking::Disabled | Thinking::Budget(_)) => told,
            _ => Thinking::Unspecified,
        };
        prop_assert_eq!((decoded.prompt.max_tokens, decoded.prompt.thinking), (prompt.max_tokens, thinking));
        prop_assert_eq!(decoded.include_thoughts, include_reasoning && thinking != Thinking::Disabled);
        let again = read_back(&decoded.prompt, &profile).prompt;
        prop_assert_eq!(seen(&again), seen(&decoded.prompt), "a second trip changes nothing");
        prop_assert_eq!(crate::block_addresses(&prompt, &profile).len(), prompt.block_count());
        let mut valid = decoded.prompt;
        valid.tools.clear();
        prop_assert_eq!(validate(&valid, &ValidationRules::gemini()), Ok(()));
    }

    #[test]
    fn the_body_of_responses_comes_back_but_for_outcomes(mut prompt in prompts(), has_markers: bool, message_phase: bool) {
        let markers = if has_markers { MarkerFormat::PromptCacheBreakpoint } else { MarkerFormat::None };
        let profile = ProviderProfile { protocol: Protocol::OpenaiResponses, markers, message_phase, ..ProviderProfile::default() };
        prompt.effort = Some(hardpan_prompt::Effort::High);
        let decoded = read_back(&prompt, &profile);
        let expected = as_responses(&prompt, &profile);
        prop_assert_eq!(seen(&decoded.prompt), seen(&expected));
        let tools = |prompt: &Prompt| prompt.tools.iter().map(|block| block.tool.clone()).collect::<Vec<_>>();
        let mut declared = tools(&prompt);
        let mut names = std::collections::BTreeSet::new();
        declared.retain(|tool| names.insert(tool.name.clone()));
        prop_assert_eq!(tools(&decoded.prompt), declared);
        let room = prompt.max_tokens.max(16);
        prop_assert_eq!((decoded.prompt.max_tokens, decoded.prompt.effort, decoded.stream), (room, prompt.effort, true));
        prop_assert_eq!(seen(&read_back(&decoded.prompt, &profile).prompt), seen(&expected));
        let rules = ValidationRules { breakpoints: hardpan_prompt::validate::Acceptance::Accepted, max_breakpoints: None, ..ValidationRules::openai_responses() };
        prop_assert_eq!(validate(&decoded.prompt, &rules), Ok(()));
    }

    #[test]
    fn a_second_trip_changes_nothing(prompt in prompts(), profile in profiles()) {
        let first = read_back(&prompt, &profile).prompt;
        let second = read_back(&first, &profile).prompt;
        prop_assert_eq!(seen(&second), seen(&first));
    }

    #[test]
    fn what_was_valid_is_valid_after_the_trip(prompt in prompts()) {
        let (rules, profile) = (ValidationRules::openai(), ProviderProfile { protocol: Protocol::Openai, ..ProviderProfile::default() });
        let mut prompt = prompt;
        prompt.blocks_mut().for_each(|block| block.breakpoint = None);
        prompt.tools.clear();
        prop_assert_eq!(validate(&prompt, &rules), Ok(()));
        prop_assert_eq!(validate(&read_back(&prompt, &profile).prompt, &rules), Ok(()));
    }
}

#[test]
fn tools_that_come_and_go_are_written_and_read() {
    let profile = ProviderProfile { protocol: Protocol::Anthropic, ..ProviderProfile::default() };
    let tool = |name: &str| tool_block(name, "about", Some(&json!({"type": "object"})), None);
    let changes = [
        ToolChangeAction::Remove("read".into()),
        ToolChangeAction::Define(tool("grep").tool),
        ToolChangeAction::Restore("read".into()),
    ];
    let blocks = changes.map(|change| Block::new(Region::Log, Content::ToolChange(ToolChange::new(change))));
    let say = Block::new(Region::Log, Content::Text(segments("hi", ItemKind::History)));
    let prompt = Prompt {
        model: "m".into(),
        max_tokens: 9,
        tools: vec![tool("read")],
        messages: vec![
            PromptMessage::new(Role::User, vec![say]),
            PromptMessage::new(Role::System, blocks.into()),
        ],
        ..Prompt::default()
    };
    let body: serde_json::Value = serde_json::from_slice(&encode(&prompt, &profile)).unwrap();
    let expected = json!({
        "model": "m", "max_tokens": 9, "stream": true,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "system", "content": [
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}},
                {"type": "tool_addition", "tool": {"type": "tool_definition", "definition":
                    {"name": "grep", "description": "about", "input_schema": {"type": "object"}}}},
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "read"}},
            ]},
        ],
        "tools": [{"name": "read", "description": "about", "input_schema": {"type": "object"}}],
    });
    assert_eq!(body, expected);
    let decoded = read_back(&prompt, &profile);
    assert_eq!(seen(&decoded.prompt), seen(&prompt));
    assert!(decoded.has_tool("read") && decoded.has_tool("grep") && !decoded.has_tool("bash"));
}

#[test]
fn ids_documents_and_search_come_back() {
    let profile = ProviderProfile {
        message_ids: true,
        document_context: true,
        web_search_plugin: Some("web".into()),
        ..ProviderProfile::default()
    };
    let say = |text: &str, kind| Block::new(Region::Log, Content::Text(segments(text, kind)));
    let mut turn = PromptMessage::new(Role::User, vec![say("hi", ItemKind::History)]);
    (turn.id, turn.documents) = (Some("m1".into()), vec!["d1".into(), "d2".into()]);
    let prompt = Prompt {
        model: "m".into(),
        max_tokens: 5,
        system: vec![say("be brief", ItemKind::System)],
        system_id: Some("s1".into()),
        messages: vec![turn],
        web_search: Some(WebSearch { max_results: 3 }),
        ..Prompt::default()
    };
    let decoded = read_back(&prompt, &profile);
    assert_eq!((&decoded.prompt.messages, &decoded.prompt.system_id), (&prompt.messages, &prompt.system_id));
    assert_eq!((decoded.prompt.web_search, decoded.system_messages), (prompt.web_search, 1));
}
