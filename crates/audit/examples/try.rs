use hardpan_audit::*;
fn main() {
    for file in std::env::args().skip(1) {
        let recording = Recording::open(file.as_ref()).unwrap();
        println!(
            "{} {:?} entries {} requests {} problems {}",
            file,
            recording.agent,
            recording.entries.len(),
            recording.requests.len(),
            recording.problems.len()
        );
        let replay = Replay::new(&recording, hardpan_models::Catalogue::builtin());
        let billed = replay.billed();
        println!("billed {:?}", billed);
        let floor = replay.floor();
        println!("floor {:.0} {:.4}", floor, floor / billed.cost);
        let best = replay.clairvoyant();
        println!("clairvoyant {:.0} {:.4}", best, best / billed.cost);
        for policy in Policy::ALL {
            let r = replay.run(policy);
            println!(
                "{:8} {:.4} of floor {:.4} of clairvoyant {:.4} {:?}",
                policy.name(),
                r.cost / billed.cost,
                r.cost / floor,
                r.cost / best,
                r
            );
        }
    }
}
