//! The first block in which two requests differ.

use hardpan_prompt::Prompt;

/// Where two requests part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: `system[0]`, `messages[3].content[1]`.
    pub block: String,
    /// What stands there in the first request: its origin; none if the first has ended.
    pub first: Option<String>,
    /// What stands there in the second.
    pub second: Option<String>,
    /// How many blocks are the same before it.
    pub same: usize,
}

/// The first block in which two prompts differ; none where one is the same as the other.
pub fn first_difference(first: &Prompt, second: &Prompt) -> Option<Difference> {
    let (a, b) = (hashes(first), hashes(second));
    let same = a.iter().zip(&b).take_while(|(a, b)| a.0 == b.0).count();
    if same == a.len() && same == b.len() {
        return None;
    }
    let longer = if same < a.len() { first } else { second };
    let origin = |side: &[(hardpan_prompt::Hash, String)]| side.get(same).map(|(_, origin)| origin.clone());
    Some(Difference { block: longer.address(same), first: origin(&a), second: origin(&b), same })
}

fn hashes(prompt: &Prompt) -> Vec<(hardpan_prompt::Hash, String)> {
    use hardpan_prompt::Hash;
    let text = |text: &str| Hash::of(text.as_bytes());
    let tools = prompt.tools.iter().map(|block| {
        let tool = &block.tool;
        let hash = Hash::chain([text(&tool.name), text(&tool.description), tool.parameters.hash()]);
        (hash, format!("tool:{}", tool.name))
    });
    let origin = |block: &hardpan_prompt::Block| block.origin().map_or_else(String::new, ToString::to_string);
    let system = prompt.system.iter().map(|block| (Hash::chain([text("system"), block.hash()]), origin(block)));
    let messages = prompt.turns.iter().flat_map(|turn| {
        turn.blocks.iter().map(move |block| (Hash::chain([text(&format!("{:?}", turn.role)), block.hash()]), origin(block)))
    });
    tools.chain(system).chain(messages).collect()
}
