//! The messages of a prompt, as a layout builds them up.

use hardpan_prompt::{
    Block, Content, Kind, LeftOut, Lifetime, Origin, Place, Prompt, Role, Segment, Text, Thinking, Turn,
};

use crate::history::Said;
use crate::layout::Input;
use crate::snapshot::ContextImage;
use crate::texts::fill;

/// Messages under construction.
#[derive(Default)]
pub struct Turns(pub Vec<Turn>);

impl Turns {
    /// A message of one text block.
    pub fn say(&mut self, role: Role, place: Place, text: &Text, origin: Origin) {
        self.0.push(Turn::new(role, vec![Block::text(place, text.clone(), origin)]));
    }

    /// A message of one text block made of segments.
    pub fn say_segments(&mut self, role: Role, place: Place, segments: Vec<Segment>) {
        self.0.push(Turn::new(role, vec![Block::new(place, Content::Text(segments))]));
    }

    /// A message of the conversation.
    pub fn said(&mut self, said: &Said, place: Place, input: &Input<'_>) {
        let blocks = said.contents.iter().map(|content| Block::new(place, content.clone())).collect();
        let id = said.ids.last().filter(|_| input.target.wire.message_ids).map(|id| id.0.clone());
        self.0.push(Turn { id, ..Turn::new(said.role, blocks) });
    }

    /// The prompt, and the images that go with it.
    pub fn prompt(&mut self, input: &Input<'_>, place: Place, images: &[&ContextImage]) {
        let Some(prompt) = &input.snapshot.prompt else { return };
        let origin = Origin::message(&prompt.id);
        let mut blocks = vec![Block::text(place, prompt.text.clone(), origin.clone())];
        for image in images {
            if let Some(path) = &image.path {
                let name = fill(&input.texts.phrases.history.image_name, &[("path", path)]);
                blocks.push(Block::text(place, Text::new(name), origin.clone()));
            }
            blocks.push(Block::new(place, Content::Image(image.image.clone(), origin.clone())));
        }
        let id = input.target.wire.message_ids.then(|| prompt.id.0.clone());
        self.0.push(Turn { id, ..Turn::new(Role::User, blocks) });
    }

    /// Puts a breakpoint on the last block that can hold one, from message `start` on.
    pub fn mark_last(&mut self, start: usize, lifetime: Lifetime) {
        let blocks = self.0.iter_mut().skip(start).flat_map(|turn| &mut turn.blocks);
        if let Some(block) = blocks.rev().find(|block| block.can_hold_breakpoint()) {
            block.breakpoint = Some(lifetime);
        }
    }

    /// Makes the conversation acceptable as a whole: it begins and ends with the user, and thinking is asked for only
    /// where the round in progress began with it.
    pub fn finish(mut self, input: &Input<'_>, place: Place, mut prompt: Prompt) -> Prompt {
        let phrases = &input.texts.phrases.history;
        if self.0.first().is_none_or(|turn| turn.role == Role::Assistant) {
            let origin = Origin::rule(Kind::History, "opening");
            let place =
                self.0.first().and_then(|turn| turn.blocks.first()).map_or(place, |block| block.place);
            let turn = Turn::new(Role::User, vec![Block::text(place, phrases.opening.clone(), origin)]);
            self.0.insert(0, turn);
        }
        if self.0.last().is_some_and(|turn| turn.role == Role::Assistant) {
            self.say(Role::User, place, &phrases.go_on, Origin::rule(Kind::History, "go on"));
        }
        prompt.turns = self.0;
        input.memo.share(&mut prompt);
        list_unsent(input, &mut prompt);
        if prompt.thinking != Thinking::Off
            && input.target.is_anthropic()
            && !round_began_with_reasoning(&prompt)
        {
            prompt.thinking = Thinking::Off;
            let reason = "the round in progress was begun without it; it is on again with the next prompt";
            prompt.left_out.push(LeftOut::new("thinking", reason));
        }
        prompt
    }
}

/// Lists the images and documents that no message carries.
fn list_unsent(input: &Input<'_>, prompt: &mut Prompt) {
    let is_sent = |image: &ContextImage| {
        prompt
            .blocks()
            .any(|block| matches!(&*block.content, Content::Image(sent, _) if *sent == image.image))
    };
    let images = input.snapshot.images.iter().enumerate().filter(|(_, image)| !is_sent(image));
    let mut unsent: Vec<LeftOut> = images
        .map(|(index, image)| {
            let name =
                image.path.as_ref().map_or_else(|| format!("image:{index}"), |path| format!("image:{path}"));
            LeftOut::new(name, "images go with a prompt, and there is none")
        })
        .collect();
    let understood = input.target.wire.document_context;
    let reason = if understood {
        "no message of this request can carry it"
    } else {
        "this provider takes no document ids"
    };
    let is_attached = |id: &_| understood && prompt.turns.iter().any(|turn| turn.documents.contains(id));
    let documents = input.snapshot.documents.iter().filter(|id| !is_attached(*id));
    unsent.extend(documents.map(|id| LeftOut::new(format!("document:{id}"), reason)));
    prompt.left_out.append(&mut unsent);
}

/// In the middle of a tool round, the message that made the calls must begin with its reasoning. Consecutive messages of
/// one role count as one, as the server sees them.
fn round_began_with_reasoning(prompt: &Prompt) -> bool {
    let turns = &prompt.turns;
    let results_at = turns.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |last| last + 1);
    let holds_results =
        |turn: &Turn| turn.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)));
    if !turns[results_at..].iter().any(holds_results) {
        return true;
    }
    let first =
        turns[..results_at].iter().rposition(|turn| turn.role == Role::User).map_or(0, |user| user + 1);
    let opens_with_reasoning = |turn: &Turn| {
        turn.blocks.first().is_some_and(|block| matches!(*block.content, Content::Reasoning(_)))
    };
    turns[first..results_at].first().is_some_and(opens_with_reasoning)
}
