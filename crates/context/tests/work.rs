//! Work in proportion to what changed: counted, not timed.

mod large;

use hardpan_context::{LayoutName, Memo, Target, Texts, assemble};
use hardpan_models::Catalogue;
use hardpan_prompt::Text;

#[test]
fn only_what_changed_is_rendered_hashed_and_counted_again() {
    let texts = Texts::builtin().unwrap();
    let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5").unwrap();
    for layout in LayoutName::ALL {
        let memo = Memo::new(target.vocabulary());
        let mut snapshot = large::snapshot();
        let first = assemble(&snapshot, layout, &target, &texts, &memo).unwrap();
        assert!(first.measured.total() > 140_000, "{layout}: {} tokens", first.measured.total());
        snapshot.memory = first.memory;

        let (rendered, counted) = (memo.rendered(), memo.counter.work());
        assemble(&snapshot, layout, &target, &texts, &memo).unwrap();
        assert_eq!(memo.rendered(), rendered, "{layout}: nothing changed, so nothing is rendered");
        assert_eq!(memo.counter.work(), counted, "{layout}: nothing changed, so nothing is counted");

        let file = snapshot.items.iter_mut().find(|item| &*item.key == "file:src/part_7.rs").unwrap();
        file.body = Text::new(file.body.replace("step 3", "step three"));
        let changed = file.body.len() as u64;
        assemble(&snapshot, layout, &target, &texts, &memo).unwrap();
        let bytes = memo.counter.work().bytes - counted.bytes;
        assert!(memo.rendered() - rendered <= 2, "{layout}: {} texts rendered", memo.rendered() - rendered);
        assert!(bytes <= 4 * changed + 2000, "{layout}: {bytes} bytes counted for a change of {changed}");
    }
}
