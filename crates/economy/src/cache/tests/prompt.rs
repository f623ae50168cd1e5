use std::sync::Arc;

use hardpan_prompt::{
    Block, Call, Content, Image, ItemKind, Json, MediaType, Origin, Prompt, PromptMessage, Reasoning, Region,
    ResultPart, Role, Segment, Text, Thinking, TokenCounter, Tool, ToolBlock, ToolOutcome as Done,
    ToolResult, Vocabulary, WebSearch,
};

use super::*;

fn origin() -> Origin {
    Origin::rule(ItemKind::History, "test")
}

fn text(text: &str) -> Block {
    Block::text(Region::Log, Text::new(text), origin())
}

fn holding(content: Content) -> Block {
    Block::new(Region::Log, content)
}

fn prompt() -> Prompt {
    let tool = Tool {
        name: "read".into(),
        description: "Reads a file.".into(),
        parameters: Json::default(),
        snippet: None,
        guidelines: Vec::new(),
    };
    let call = Call { id: "c1".into(), name: "read".into(), arguments: Json::default(), origin: origin() };
    let parts = vec![ResultPart::Text(vec![Segment::new("fn main() {}", origin())])];
    let result = ToolResult { call_id: "c1".into(), parts, outcome: Done::Done, origin: origin() };
    let reasoning = Reasoning { text: "Hm.".into(), signature: None, redacted: None, origin: origin() };
    let answer = vec![holding(Content::Reasoning(reasoning)), holding(Content::Call(call))];
    let last = Block { breakpoint: Some(SHORT), ..holding(Content::Result(result)) };
    Prompt {
        model: "claude-sonnet-5".into(),
        tools: vec![ToolBlock { region: Region::Base, tool, breakpoint: None }],
        system: vec![Block { breakpoint: Some(LONG), ..text("Be brief.") }],
        messages: vec![
            PromptMessage::new(Role::User, vec![text("What is in main.rs?")]),
            PromptMessage::new(Role::Assistant, answer),
            PromptMessage::new(Role::User, vec![last]),
        ],
        ..Prompt::default()
    }
}

fn request(prompt: &Prompt) -> CacheRequest {
    CacheRequest::from_prompt(prompt, &TokenCounter::new(Vocabulary::O200k).measure(prompt), seconds(7))
}

#[test]
fn a_prompt_becomes_the_blocks_of_its_request() {
    let prompt = prompt();
    let measured = TokenCounter::new(Vocabulary::O200k).measure(&prompt);
    let request = request(&prompt);
    assert_eq!(
        (request.at, &*request.model, &request.settings),
        (seconds(7), "claude-sonnet-5", &CacheSettings::default())
    );
    let of = |pick: fn(&CacheBlock) -> usize| request.blocks.iter().map(pick).collect::<Vec<_>>();
    assert_eq!(of(|block| block.tokens), measured.blocks().collect::<Vec<_>>());
    assert_eq!(of(|block| block.section as usize), [0, 1, 2, 2, 2, 2]);
    assert_eq!(of(|block| usize::from(block.markable)), [1, 1, 1, 0, 1, 1]);
    let kinds: Vec<BlockKind> = request.blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds[3..], [BlockKind::Plain, BlockKind::Call, BlockKind::Result]);
    let markers: Vec<_> = request.blocks.iter().map(|block| block.marker).collect();
    assert_eq!(markers, [None, Some(LONG), None, None, None, Some(SHORT)]);
}

#[test]
fn a_marker_that_moves_and_a_message_that_is_split_change_no_identity() {
    let hashes = |prompt: &Prompt| request(prompt).blocks.iter().map(|block| block.hash).collect::<Vec<_>>();
    let mut other = prompt();
    let before = hashes(&other);
    other.blocks_mut().for_each(|block| block.breakpoint = None);
    other.messages[0].blocks[0].region = Region::Tail;
    other.tools[0].tool.snippet = Some("reads".into());
    assert_eq!(hashes(&other), before);
    other.messages[0].blocks.push(text("Well?"));
    let together = hashes(&other);
    let alone = other.messages[0].blocks.split_off(1);
    other.messages.insert(1, PromptMessage::new(Role::User, alone));
    assert_eq!(hashes(&other), together);
}

#[test]
fn what_the_model_sees_changes_the_identity() {
    let hashes = |prompt: &Prompt| request(prompt).blocks.iter().map(|block| block.hash).collect::<Vec<_>>();
    let before = hashes(&prompt());
    let first_change = |change: fn(&mut Prompt)| {
        let mut other = prompt();
        change(&mut other);
        hashes(&other).iter().zip(&before).position(|(now, before)| now != before)
    };
    assert_eq!(first_change(|prompt| prompt.tools[0].tool.name = "view".into()), Some(0));
    assert_eq!(first_change(|prompt| prompt.tools[0].tool.description = "Shows.".into()), Some(0));
    assert_eq!(first_change(|prompt| prompt.system[0] = text("Be long.")), Some(1));
    assert_eq!(first_change(|prompt| prompt.messages[0].role = Role::Assistant), Some(2));
    assert_eq!(first_change(|prompt| prompt.messages[0].documents.push(Arc::from("d1"))), Some(2));
    assert_eq!(first_change(|prompt| prompt.max_tokens = 0), None);
}

#[test]
fn settings_of_a_prompt_are_part_of_the_cache_keys() {
    let mut prompt = prompt();
    prompt.thinking = Thinking::Budget(2000);
    prompt.web_search = Some(WebSearch { max_results: 3 });
    let image = Image { media_type: MediaType::Png, data: "".into(), width: None, height: None };
    let Content::Result(result) = prompt.messages[2].blocks[0].content.edit() else { panic!("a result") };
    result.parts.push(ResultPart::Image(image));
    let thinking = Thinking::Budget(2000);
    let expected = CacheSettings { web_search: true, images: true, thinking, ..CacheSettings::default() };
    assert_eq!(request(&prompt).settings, expected);
}
