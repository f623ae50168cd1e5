//! Runs a session through a layout and asks the oracle about every request.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::{
    AssembleError, Assembled, LayoutName, Memo, Memory, PromptEntry, SnapshotFile, Target, Texts, assemble,
};
use hardpan_prompt::validate::validate;
use hardpan_prompt::{Content, MessageId, Prompt, ResultPart, Vocabulary};
use hardpan_providers::Encoder;

use crate::coverage::{self, Coverage};
use crate::oracle::{self, Sent};
use crate::session::{Request, Session, Step};
use crate::verdict::{Failure, Verdict, require};
use crate::{targets, wire};

/// What all sessions share.
pub struct World {
    pub texts: Texts,
    pub targets: Vec<Target>,
    /// Provider and model of each target.
    pub makers: Vec<(String, String)>,
}

impl World {
    pub fn new() -> Self {
        let targets = targets::all();
        let makers =
            targets.iter().map(|target| (target.provider.clone(), target.model.id.clone())).collect();
        World { texts: Texts::builtin().expect("the built-in texts"), targets, makers }
    }
}

/// Memos and an encoder that have seen other sessions: a collision in one would show.
#[derive(Default)]
pub struct Warm {
    memos: BTreeMap<Vocabulary, Memo>,
    encoder: Encoder,
}

impl Warm {
    fn memo(&mut self, vocabulary: Vocabulary) -> &Memo {
        self.memos.entry(vocabulary).or_insert_with(|| Memo::new(vocabulary))
    }
}

/// Every request of a session by every layout.
pub fn session(world: &World, warm: &mut Warm, session: &Session, seen: &mut Coverage) -> Verdict {
    for (number, request) in session.requests.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &session.requests[before]);
        coverage::observe(seen, number, request, before, &world.targets[request.target]);
    }
    LayoutName::ALL.into_iter().try_for_each(|layout| {
        let in_layout =
            |failure: Failure| Failure { detail: format!("{layout}: {}", failure.detail), ..failure };
        by_layout(world, warm, session, layout, seen).map_err(in_layout)
    })
}

fn by_layout(
    world: &World,
    warm: &mut Warm,
    session: &Session,
    layout: LayoutName,
    seen: &mut Coverage,
) -> Verdict {
    let mut memory = Memory::default();
    let mut before: Option<Sent> = None;
    for request in &session.requests {
        let target = &world.targets[request.target];
        let file = SnapshotFile { memory, ..request.file.clone() };
        let again = LayoutName::ALL[session.seed as usize % LayoutName::ALL.len()] == layout;
        let case = Case { file: &file, target, layout, before: before.as_ref(), again };
        let Some(sent) = one(world, warm, &case, seen)? else {
            seen.saw("outcome: too long");
            return require(target.max_input_tokens() < 10_000, "there is room", || target.model.name());
        };
        if let Some(before) =
            before.as_ref().filter(|before| layout == LayoutName::Strata && follows(request, before, &sent))
        {
            oracle::the_prefix_is_kept(before, &sent, seen)?;
        }
        memory = sent.memory.clone();
        before = Some(sent);
    }
    Ok(())
}

/// A request on its way through a layout.
struct Case<'a> {
    file: &'a SnapshotFile,
    target: &'a Target,
    layout: LayoutName,
    before: Option<&'a Sent>,
    /// Whether it is made a second time. This costs as much as all else, so each session is spared it in three layouts.
    again: bool,
}

/// One request; none if even the least of it is too long.
fn one(
    world: &World,
    warm: &mut Warm,
    case: &Case<'_>,
    seen: &mut Coverage,
) -> Result<Option<Sent>, Failure> {
    let Case { file, target, layout, before, again } = *case;
    let snapshot = file.clone().into_snapshot("case").expect("a snapshot");
    let memo = warm.memo(target.vocabulary());
    let assembled = match assemble(&snapshot, layout, target, &world.texts, memo) {
        Ok(assembled) => assembled,
        Err(AssembleError::TooLong { .. }) => return Ok(None),
        Err(error) => return Err(Failure { rule: "it can be made", detail: error.to_string() }),
    };
    let Assembled { prompt, measured, memory, .. } = assembled;
    let bytes = hardpan_providers::encode(&prompt, &target.wire);
    require(warm.encoder.encode(&prompt, &target.wire) == bytes, "an encoder makes the same bytes", || {
        format!("as the codec: {}", String::from_utf8_lossy(&bytes))
    })?;
    if again {
        same_again(world, case, &bytes, &memory)?;
    }
    let rules = hardpan_providers::rules(&target.wire, target.model.prefill);
    validate(&prompt, &rules)
        .map_err(|violation| Failure { rule: "the validator accepts it", detail: violation.to_string() })?;
    let body: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure { rule: "the body is JSON", detail: error.to_string() })?;
    wire::check(&body, target, prompt.breakpoints().len())?;
    let limit = target.max_input_tokens() as usize;
    require(measured.total() <= limit, "it fits the window", || format!("{} of {limit}", measured.total()))?;
    oracle::every_item_once(layout, &snapshot, &prompt, &memory, seen)?;
    oracle::breakpoints_are_right(layout, target, before, &prompt, |block| measured.through(block), seen)?;
    if layout == LayoutName::Strata {
        oracle::nothing_fleeting_is_cached(&snapshot, &prompt, seen)?;
    }
    let shortened = prompt.left_out.iter().any(|left| left.reason.starts_with("no room"));
    let sent = Sent { prompt, memory, body, shortened };
    oracle::observe(seen, layout, &snapshot, &sent);
    Ok(Some(sent))
}

/// Invariant 2: from the written form, memory included, with nothing rendered before, come the same bytes.
fn same_again(world: &World, case: &Case<'_>, bytes: &[u8], memory: &Memory) -> Verdict {
    let Case { file, target, layout, .. } = *case;
    let written = serde_json::to_string(file).expect("a snapshot can be written");
    let read = SnapshotFile::parse("case", &written).map_err(|error| Failure {
        rule: "a snapshot survives its written form",
        detail: error.to_string(),
    })?;
    let snapshot = read.into_snapshot("case").expect("a snapshot");
    let memo = Memo::new(target.vocabulary());
    let again = assemble(&snapshot, layout, target, &world.texts, &memo).map_err(|error| Failure {
        rule: "the same snapshot gives the same bytes",
        detail: error.to_string(),
    })?;
    let other = hardpan_providers::encode(&again.prompt, &target.wire);
    require(other == bytes, "the same snapshot gives the same bytes", || {
        let same = other.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        let from = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[same.saturating_sub(40)..bytes.len().min(same + 80)]).into_owned()
        };
        format!("byte {same}: {:?} and {:?}", from(bytes), from(&other))
    })?;
    let same =
        again.memory.strata == memory.strata && again.memory.panels.histories == memory.panels.histories;
    require(same, "the same snapshot gives the same memory", || format!("{memory:?}"))
}

/// Whether invariant 3 speaks of these two: what was said stayed said, each message by a name of its own, and nothing
/// had to give way.
fn follows(request: &Request, before: &Sent, after: &Sent) -> bool {
    let file = &request.file;
    let prompt = file.prompt.as_ref().map(|prompt| match prompt {
        PromptEntry::Text(_) => MessageId::from("prompt"),
        PromptEntry::WithId { id, .. } => id.clone(),
    });
    let mut ids = BTreeSet::new();
    let unique = file.messages.iter().map(|message| &message.id).chain(&prompt).all(|id| ids.insert(id));
    let whole = |sent: &Sent| !sent.shortened && images(&sent.prompt) < 100;
    // A window that is nearly full folds by itself.
    let folded = before.memory.strata.folds != after.memory.strata.folds;
    request.step == Step::Appended && !folded && unique && whole(before) && whole(after)
}

fn images(prompt: &Prompt) -> usize {
    let of = |content: &Content| match content {
        Content::Image(..) => 1,
        Content::Result(result) => {
            result.parts.iter().filter(|part| matches!(part, ResultPart::Image(_))).count()
        }
        Content::Text(_) | Content::Reasoning(_) | Content::Call(_) => 0,
    };
    prompt.blocks().map(|block| of(&block.content)).sum()
}
