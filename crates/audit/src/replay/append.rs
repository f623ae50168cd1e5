//! Plain append-only: a marker on the system prompt and one that moves along, five minutes.

use hardpan_prompt::Lifetime;

use super::Replayed;
use super::log::Log;
use super::meter::Meter;
use super::work::Thread;

pub(super) fn run(thread: &Thread) -> Replayed {
    let (mut log, mut meter) = (Log::new(thread), Meter::default());
    for step in &thread.steps {
        log.advance(step);
        let mut blocks: Vec<_> = log.elements.iter().map(|element| log.block(*element)).collect();
        let last = blocks.len() - 1;
        for marked in [0, last] {
            blocks[marked].marker = Some(Lifetime::FiveMinutes);
        }
        meter.send(step, &Meter::request(step, blocks));
    }
    meter.replayed
}
