//! Assembly does work in proportion to what changed. The work is counted, not timed.

mod large_snapshot;

use hardpan_context::{LayoutName, PromptTexts, RenderCache, Target, assemble};
use hardpan_models::Catalogue;
use hardpan_prompt::Text;

#[test]
fn only_what_changed_is_rendered_hashed_and_counted_again() {
    let texts = PromptTexts::builtin().unwrap();
    let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5").unwrap();
    for layout in LayoutName::ALL {
        let render_cache = RenderCache::new(target.vocabulary());
        let mut snapshot = large_snapshot::large_snapshot();
        let first = assemble(&snapshot, layout, &target, &texts, &render_cache).unwrap();
        assert!(first.measured.total() > 140_000, "{layout}: {} tokens", first.measured.total());
        snapshot.layout_state = first.layout_state;

        let (rendered, counted) = (render_cache.rendered_count(), render_cache.counter.work());
        assemble(&snapshot, layout, &target, &texts, &render_cache).unwrap();
        assert_eq!(
            render_cache.rendered_count(),
            rendered,
            "{layout}: nothing changed, so nothing is rendered"
        );
        assert_eq!(render_cache.counter.work(), counted, "{layout}: nothing changed, so nothing is counted");

        let file = snapshot.items.iter_mut().find(|item| &*item.key == "file:src/part_7.rs").unwrap();
        file.body = Text::new(file.body.replace("step 3", "step three"));
        let changed = file.body.len() as u64;
        assemble(&snapshot, layout, &target, &texts, &render_cache).unwrap();
        let bytes = render_cache.counter.work().bytes - counted.bytes;
        assert!(
            render_cache.rendered_count() - rendered <= 2,
            "{layout}: {} texts rendered",
            render_cache.rendered_count() - rendered
        );
        assert!(bytes <= 4 * changed + 2000, "{layout}: {bytes} bytes counted for a change of {changed}");
    }
}
