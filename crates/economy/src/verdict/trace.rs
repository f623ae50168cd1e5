//! What is remembered of a prompt: enough to say what changed, without its texts.

use std::collections::HashMap;
use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, Copy, Hash, Held, Lifetime, Origin, Place, Prompt, ResultPart, Role, Segment, Source,
};
use serde::{Deserialize, Serialize};

use crate::cache::{Implicit, Rules, Salts, Section, identities, tool_identity};
use crate::ledger::Answered;

/// Where a piece of a prompt came from, in a form that can be kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whence {
    /// An item, by its key.
    Item(Arc<str>),
    /// A line that says where an item's body went.
    Stub(Arc<str>),
    /// A message, by its id.
    Message(Arc<str>),
    /// A tool, by its name.
    Tool(Arc<str>),
    /// A rule of the layout.
    Rule(Arc<str>),
}

impl Whence {
    fn of(origin: &Origin) -> Self {
        match &origin.source {
            Source::Item { key, copy: Copy::Stub } => Whence::Stub(key.clone()),
            Source::Item { key, .. } => Whence::Item(key.clone()),
            Source::Message(id) => Whence::Message(id.0.clone()),
            Source::Tool(name) => Whence::Tool(name.clone()),
            Source::Rule(name) => Whence::Rule((*name).into()),
        }
    }

    /// The words for it: `file:src/a.rs`, `message m3`, `tool read`, `project files`.
    pub fn words(&self) -> String {
        match self {
            Whence::Item(key) => key.to_string(),
            Whence::Stub(key) => format!("the stub of {key}"),
            Whence::Message(id) => format!("message {id}"),
            Whence::Tool(name) => format!("tool {name}"),
            Whence::Rule(name) => name.to_string(),
        }
    }

    pub(super) fn is_rule(&self) -> bool {
        matches!(self, Whence::Rule(_))
    }
}

/// Who had the last word before an answer was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LastWord {
    Person,
    Tools,
}

/// A segment: its hash, its tokens by our count, the number of its origin. Written as a list, since there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece(pub u64, pub u32, u32);

impl Piece {
    /// Whether it is the same, and its size is but for the last digits.
    fn is_about(&self, other: &Piece) -> bool {
        let most = 1 + self.1 / 50;
        self.0 == other.0 && self.2 == other.2 && self.1.abs_diff(other.1) <= most
    }
}

/// A block: its hash, the number of its pieces, its region, its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TraceBlock(u64, u32, Place, Option<Lifetime>);

/// A setting that a cache may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Setting {
    WebSearch,
    Citations,
    ToolChoice,
    ParallelTools,
    Images,
    Thinking,
    Effort,
}

/// What the trace of the next prompt can be made from: most of its blocks are the same. It changes nothing but the time taken, so
/// it is not written, and no two of them differ.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The first blocks after the tools: who speaks, and what is held. None speaks in the system prompt.
    blocks: Vec<(Option<Role>, Held)>,
    /// The number of each origin; only ever looked up by key.
    numbers: HashMap<Whence, u32>,
}

impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Known {}

/// What is remembered of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    pub provider: Arc<str>,
    pub model: Arc<str>,
    pub last_word: LastWord,
    /// Those that a prompt has; switched off, they are not there.
    pub settings: Vec<(Setting, String)>,
    tools: usize,
    system: usize,
    blocks: Vec<TraceBlock>,
    pieces: Vec<Piece>,
    origins: Vec<Whence>,
    #[serde(skip)]
    known: Known,
}

/// How long the starts of a trace's lists are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lengths {
    pub blocks: usize,
    pieces: usize,
    origins: usize,
}

/// The lists of a trace, in parts.
impl Trace {
    /// How much both have in common, counts that differ a little aside.
    pub fn common(&self, other: &Trace) -> Lengths {
        fn same<T>(ours: &[T], theirs: &[T], is_same: impl Fn(&T, &T) -> bool) -> usize {
            ours.iter().zip(theirs).take_while(|(ours, theirs)| is_same(ours, theirs)).count()
        }
        Lengths {
            blocks: same(&self.blocks, &other.blocks, TraceBlock::eq),
            pieces: same(&self.pieces, &other.pieces, Piece::is_about),
            origins: same(&self.origins, &other.origins, Whence::eq),
        }
    }

    /// The same without the starts of the lists.
    pub fn without_first(&self, Lengths { blocks, pieces, origins }: &Lengths) -> Self {
        Trace {
            provider: self.provider.clone(),
            model: self.model.clone(),
            settings: self.settings.clone(),
            blocks: self.blocks[*blocks..].to_vec(),
            pieces: self.pieces[*pieces..].to_vec(),
            origins: self.origins[*origins..].to_vec(),
            known: Known::default(),
            ..*self
        }
    }

    /// Puts the starts of another trace's lists before these. None if they are not so long.
    pub fn put_before(&mut self, other: &Trace, Lengths { blocks, pieces, origins }: &Lengths) -> Option<()> {
        let starts =
            (other.blocks.get(..*blocks)?, other.pieces.get(..*pieces)?, other.origins.get(..*origins)?);
        self.blocks.splice(..0, starts.0.iter().copied());
        self.pieces.splice(..0, starts.1.iter().copied());
        self.origins.splice(..0, starts.2.iter().cloned());
        Some(())
    }
}

impl Trace {
    /// The trace of a prompt that follows another one, or none. What both have in common is taken over from there.
    pub fn of(answered: &Answered<'_>, before: Option<&mut Trace>) -> Self {
        let Answered { prompt, model, settings, .. } = answered;
        let mut trace = Trace {
            provider: model.provider.as_str().into(),
            model: model.id.as_str().into(),
            last_word: last_word(prompt.turns.last().map_or(&[], |turn| &turn.blocks)),
            settings: kept(settings, &Salts::of(prompt)),
            tools: prompt.tools.len(),
            system: prompt.system.len(),
            blocks: Vec::with_capacity(prompt.block_count()),
            pieces: Vec::with_capacity(prompt.block_count()),
            origins: Vec::new(),
            known: Known::default(),
        };
        let tools: Vec<u64> = prompt.tools.iter().map(|block| short(tool_identity(&block.tool))).collect();
        let same = before.map_or(0, |before| trace.take_over(answered, before, &tools));
        if same == 0 {
            for (block, hash) in prompt.tools.iter().zip(tools) {
                let whence = Whence::Tool(block.tool.name.clone());
                trace.push(answered, (hash, block.place, block.breakpoint), |add| add(hash, whence.clone()));
            }
        }
        let mut rest = same;
        for block in prompt.system.iter().skip(rest) {
            trace.push_block(answered, block.hash(), block);
        }
        rest = rest.saturating_sub(prompt.system.len());
        for turn in &prompt.turns {
            if rest >= turn.blocks.len() {
                rest -= turn.blocks.len();
                continue;
            }
            identities(turn).skip(rest).for_each(|(hash, block)| trace.push_block(answered, hash, block));
            rest = 0;
        }
        let known = speakers(prompt).map(|(role, block)| (role, block.content.clone()));
        trace.known.blocks = known.collect();
        trace
    }

    /// Takes over what another trace has in common with this one, and says how many blocks after the tools that is.
    fn take_over(&mut self, answered: &Answered<'_>, before: &mut Trace, tools: &[u64]) -> usize {
        let prompt = answered.prompt;
        let known = std::mem::take(&mut before.known);
        let is_like = before.tools == self.tools
            && before.system == self.system
            && before.blocks.iter().zip(tools).all(|(block, tool)| block.0 == *tool);
        let now = speakers(prompt).zip(&known.blocks);
        let same = now.take_while(|((role, block), (spoke, held))| role == spoke && block.content.is(held));
        let same = if is_like { same.count() } else { 0 };
        if same == 0 {
            return 0;
        }
        let end = self.tools + same;
        let places = prompt.tools.iter().map(|block| (block.place, block.breakpoint));
        let places = places.chain(prompt.blocks().map(|block| (block.place, block.breakpoint)));
        let blocks = before.blocks[..end].iter().zip(places);
        self.blocks
            .extend(blocks.map(|(block, (place, marker))| TraceBlock(block.0, block.1, place, marker)));
        // The factor between our count and the provider's may have moved.
        let sizes = (0..end).flat_map(|block| answered.measured.segments(block));
        let pieces = before.pieces[..before.first_piece(end)].iter().zip(sizes);
        self.pieces.extend(pieces.map(|(piece, size)| Piece(piece.0, *size, piece.2)));
        let origins = self.pieces.iter().map(|piece| piece.2 as usize + 1).max().unwrap_or(0);
        self.origins.extend_from_slice(&before.origins[..origins]);
        self.known.numbers = known.numbers;
        before.origins[origins..].iter().for_each(|whence| {
            self.known.numbers.remove(whence);
        });
        same
    }

    fn push_block(&mut self, answered: &Answered<'_>, hash: Hash, block: &Block) {
        let hash = short(hash);
        let marked = (hash, block.place, block.breakpoint);
        self.push(answered, marked, |add| each_piece(block, hash, add));
    }

    /// Adds a block: its hash, its region, its marker, and its pieces.
    fn push(
        &mut self,
        answered: &Answered<'_>,
        (hash, place, marker): (u64, Place, Option<Lifetime>),
        pieces: impl FnOnce(&mut dyn FnMut(u64, Whence)),
    ) {
        let sizes = answered.measured.segments(self.blocks.len());
        let first = self.pieces.len();
        let (numbers, origins) = (&mut self.known.numbers, &mut self.origins);
        pieces(&mut |hash, whence| {
            let next = origins.len() as u32;
            let number = *numbers.entry(whence).or_insert_with_key(|whence| {
                origins.push(whence.clone());
                next
            });
            let size = sizes.get(self.pieces.len() - first).copied().unwrap_or(0);
            self.pieces.push(Piece(hash, size, number));
        });
        let count = (self.pieces.len() - first) as u32;
        self.blocks.push(TraceBlock(hash, count, place, marker));
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn section(&self, block: usize) -> Section {
        match block {
            block if block < self.tools => Section::Tools,
            block if block < self.tools + self.system => Section::System,
            _ => Section::Messages,
        }
    }

    /// The first block of a section, or where it would be.
    pub fn start_of(&self, section: Section) -> usize {
        match section {
            Section::Tools => 0,
            Section::System => self.tools,
            Section::Messages => self.tools + self.system,
        }
    }

    pub fn place(&self, block: usize) -> Option<Place> {
        self.blocks.get(block).map(|block| block.2)
    }

    /// Whether a block is meant to be gone by the next request: no layout counts on its being cached.
    pub fn passes(&self, block: usize) -> bool {
        matches!(self.place(block), Some(Place::Tail | Place::Active))
    }

    /// The markers that the provider sees, its own included.
    pub fn markers(&self, rules: &Rules) -> Vec<(usize, Lifetime)> {
        let implicit = match rules.implicit {
            Implicit::Last => self.len().checked_sub(1),
            Implicit::None => None,
        };
        let marker = |(index, block): (usize, &TraceBlock)| {
            let unasked = Some(Lifetime::FiveMinutes).filter(|_| implicit == Some(index));
            block.3.or(unasked).map(|lifetime| (index, lifetime))
        };
        self.blocks.iter().enumerate().filter_map(marker).collect()
    }

    /// Tokens by our own count up to and including a block.
    pub fn through(&self, block: usize) -> u64 {
        self.pieces[..self.first_piece(block + 1)].iter().map(|piece| u64::from(piece.1)).sum()
    }

    pub fn total(&self) -> u64 {
        self.through(self.len())
    }

    fn first_piece(&self, block: usize) -> usize {
        self.blocks.iter().take(block).map(|block| block.1 as usize).sum()
    }

    pub fn pieces(&self, block: usize) -> &[Piece] {
        self.blocks
            .get(block)
            .map_or(&[], |_| &self.pieces[self.first_piece(block)..self.first_piece(block + 1)])
    }

    pub fn pieces_from(&self, block: usize) -> &[Piece] {
        &self.pieces[self.first_piece(block)..]
    }

    pub fn pieces_through(&self, block: usize) -> &[Piece] {
        &self.pieces[..self.first_piece(block + 1)]
    }

    pub fn whence(&self, piece: Piece) -> Option<&Whence> {
        self.origins.get(piece.2 as usize)
    }

    /// Where the block stands that shows something, if any does.
    pub fn block_of(&self, wanted: impl Fn(&Whence) -> bool) -> Option<usize> {
        (0..self.len())
            .find(|block| self.pieces(*block).iter().any(|piece| self.whence(*piece).is_some_and(&wanted)))
    }

    pub fn shows(&self, whence: &Whence) -> bool {
        self.origins.contains(whence)
    }

    /// The messages of the conversation, in order.
    pub fn messages(&self) -> Vec<&Arc<str>> {
        let messages = self.origins.iter().filter_map(|whence| match whence {
            Whence::Message(id) => Some(id),
            _ => None,
        });
        messages.collect()
    }

    /// The tools' names with their hashes, in order.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        // A tool is one piece.
        self.pieces.iter().take(self.tools).filter_map(|piece| match self.whence(*piece) {
            Some(Whence::Tool(name)) => Some((name, piece.0)),
            _ => None,
        })
    }

    /// The hashes of BASE in `strata`: the only layout that puts messages there.
    pub fn base(&self) -> Vec<u64> {
        let messages = self.start_of(Section::Messages)..self.len();
        let base = messages.filter(|block| self.place(*block) == Some(Place::Base));
        base.map(|block| self.blocks[block].0).collect()
    }

    /// The first block that is not the same in both; where one has ended, the block after its last.
    pub fn first_difference(&self, other: &Trace) -> Option<usize> {
        let same =
            self.blocks.iter().zip(&other.blocks).take_while(|(ours, theirs)| ours.0 == theirs.0).count();
        (same < self.len().max(other.len())).then_some(same)
    }
}

/// Who speaks each block after the tools, nobody in the system prompt: up to the first message with documents, which is not
/// known by its blocks alone.
fn speakers(prompt: &Prompt) -> impl Iterator<Item = (Option<Role>, &Block)> {
    let system = prompt.system.iter().map(|block| (None, block));
    let turns = prompt.turns.iter().take_while(|turn| turn.documents.is_empty());
    system.chain(turns.flat_map(|turn| turn.blocks.iter().map(move |block| (Some(turn.role), block))))
}

fn short(hash: Hash) -> u64 {
    let bytes = hash.bytes();
    bytes[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The pieces of a block: as many as its measure has segments.
fn each_piece(block: &Block, hash: u64, add: &mut dyn FnMut(u64, Whence)) {
    match &*block.content {
        Content::Text(segments) => each_segment(segments, add),
        Content::Result(result) => {
            for part in &result.parts {
                match part {
                    ResultPart::Text(segments) => each_segment(segments, add),
                    ResultPart::Image(image) => add(short(image.hash()), Whence::of(&result.origin)),
                }
            }
        }
        Content::Image(_, origin) => add(hash, Whence::of(origin)),
        Content::Reasoning(reasoning) => add(hash, Whence::of(&reasoning.origin)),
        Content::Call(call) => add(hash, Whence::of(&call.origin)),
    }
}

fn each_segment(segments: &[Segment], add: &mut dyn FnMut(u64, Whence)) {
    segments.iter().for_each(|segment| add(short(segment.text.hash()), Whence::of(&segment.origin)));
}

/// A person's, if the last message of the request holds words of the conversation.
fn last_word(blocks: &[Block]) -> LastWord {
    let is_said = |block: &Block| {
        let Content::Text(segments) = &*block.content else { return false };
        segments.iter().any(|segment| matches!(segment.origin.source, Source::Message(_)))
    };
    if blocks.iter().any(is_said) { LastWord::Person } else { LastWord::Tools }
}

/// The settings that are on: what a prompt holds itself is read off the prompt.
fn kept(given: &Salts, prompt: &Salts) -> Vec<(Setting, String)> {
    // Every field is named, so that a new one forces a decision here.
    let Salts { citations, tool_choice, parallel_tools_off, effort, web_search: _, images: _, thinking: _ } =
        given;
    let on = |setting, on: bool| on.then(|| (setting, "on".to_owned()));
    let word = |setting, word: &Option<Arc<str>>| word.as_ref().map(|word| (setting, word.to_string()));
    let thinking = match prompt.thinking {
        hardpan_prompt::Thinking::Off => None,
        hardpan_prompt::Thinking::Budget(tokens) => Some((Setting::Thinking, format!("{tokens} tokens"))),
    };
    let all = [
        on(Setting::WebSearch, prompt.web_search),
        on(Setting::Citations, *citations),
        word(Setting::ToolChoice, tool_choice),
        on(Setting::ParallelTools, *parallel_tools_off).map(|(setting, _)| (setting, "off".to_owned())),
        on(Setting::Images, prompt.images),
        thinking,
        word(Setting::Effort, effort),
    ];
    all.into_iter().flatten().collect()
}
