use hardpan_prompt::Thinking;

use super::*;

const SECTIONS: [Section; 3] = [Section::Tools, Section::System, Section::Messages];

/// Two blocks of 2000 tokens in every section, the second of each marked.
fn base() -> CacheRequest {
    let of = |(index, section): (usize, &Section)| {
        let block = |name| CacheBlock { section: *section, ..block(name, 2000) };
        [block(10 * index), block(10 * index + 1).with_marker(SHORT)]
    };
    let blocks = SECTIONS.iter().enumerate().flat_map(of).collect();
    CacheRequest {
        at: seconds(0),
        model: "m".into(),
        blocks,
        settings: CacheSettings::default(),
        explicit_only: false,
    }
}

/// Which sections can still be read after a change: each is asked for by itself, with all that
/// comes before it.
fn kept(rules: &CacheRules, change: impl Fn(&mut CacheRequest)) -> [bool; 3] {
    let mut cache = CacheModel::new();
    send(&mut cache, rules, &base());
    let mut changed = CacheRequest { at: seconds(10), ..base() };
    change(&mut changed);
    SECTIONS.map(|section| {
        let blocks = changed.blocks.iter().filter(|block| block.section <= section).copied().collect();
        let request = CacheRequest { blocks, ..changed.clone() };
        let read = cache.plan(rules, &request).hit.map(|hit| request.blocks[hit.block].section);
        read == Some(section)
    })
}

type Change = fn(&mut CacheRequest);

const EVERYTHING: [(&str, Change); 5] = [
    ("model", |request| request.model = "n".into()),
    ("a tool added", |request| {
        request.blocks.insert(2, CacheBlock { section: Section::Tools, ..block(99, 9) });
    }),
    ("a tool removed", |request| request.blocks.retain(|block| block.hash != base().blocks[0].hash)),
    ("a tool changed", |request| request.blocks[0].hash = Hash::of(b"other")),
    ("tools reordered", |request| {
        let (first, second) = (request.blocks[0].hash, request.blocks[1].hash);
        (request.blocks[0].hash, request.blocks[1].hash) = (second, first);
    }),
];

const FROM_SYSTEM: [(&str, Change); 3] = [
    ("system text", |request| request.blocks[2].hash = Hash::of(b"other")),
    ("web search", |request| request.settings.web_search = true),
    ("citations", |request| request.settings.citations = true),
];

const MESSAGES: [(&str, Change); 6] = [
    ("tool_choice", |request| request.settings.tool_choice = Some("any".into())),
    ("disable_parallel_tool_use", |request| request.settings.parallel_tools_off = true),
    ("images", |request| request.settings.images = true),
    ("thinking on", |request| request.settings.thinking = Thinking::Budget(2000)),
    ("effort", |request| request.settings.effort = Some("high".into())),
    ("a message changed", |request| request.blocks[4].hash = Hash::of(b"other")),
];

#[test]
fn a_change_loses_what_the_table_says() {
    let rules = anthropic();
    assert_eq!(kept(&rules, |_| {}), [true; 3]);
    let rows = EVERYTHING.iter().map(|change| (change, [false, false, false]));
    let rows = rows.chain(FROM_SYSTEM.iter().map(|change| (change, [true, false, false])));
    for ((name, change), expected) in rows.chain(MESSAGES.iter().map(|change| (change, [true, true, false])))
    {
        assert_eq!(kept(&rules, change), expected, "{name}");
    }
}

#[test]
fn settings_count_even_without_a_system_prompt() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &talk(0, 10, &[(10, SHORT)]));
    let mut searching = talk(5, 10, &[(10, SHORT)]);
    searching.settings.web_search = true;
    assert_eq!(cache.plan(&rules, &searching).amounts.cache_read, 0);
}

#[test]
fn openai_from_5_6_on_loses_everything_or_nothing() {
    let rules = rules("openai", "gpt-5.6");
    let own: [(&str, Change); 2] = [
        ("prompt_cache_key", |request| request.settings.cache_key = Some("other".into())),
        ("verbosity", |request| request.settings.output = Some("low".into())),
    ];
    let lost = ["web search", "disable_parallel_tool_use", "effort", "prompt_cache_key", "verbosity"];
    for (name, change) in FROM_SYSTEM[1..].iter().chain(&MESSAGES[..5]).chain(&own) {
        assert_eq!(kept(&rules, change), [!lost.contains(name); 3], "{name}");
    }
}

#[test]
fn settings_do_not_count_where_no_document_says_so() {
    let (mut cache, rules) = (CacheModel::new(), rules("openai", "gpt-5.4"));
    send(&mut cache, &rules, &base());
    for (name, change) in FROM_SYSTEM[1..].iter().chain(&MESSAGES[..5]) {
        let mut changed = CacheRequest { at: seconds(10), ..base() };
        change(&mut changed);
        assert!(cache.plan(&rules, &changed).amounts.cache_read > 11_000, "{name}");
    }
}

#[test]
fn a_block_that_moves_to_another_section_is_another_prefix() {
    let rules = anthropic();
    let moved = |request: &mut CacheRequest| request.blocks[3].section = Section::Messages;
    assert!(!kept(&rules, moved)[2]);
}

#[test]
fn a_change_and_its_undoing_find_the_old_entries() {
    let (mut cache, rules) = (CacheModel::new(), anthropic());
    send(&mut cache, &rules, &base());
    let mut thinking = CacheRequest { at: seconds(10), ..base() };
    thinking.settings.thinking = Thinking::Budget(2000);
    assert_eq!(send(&mut cache, &rules, &thinking).amounts, amounts(8000, 4000, 0, 0));
    let mut more = CacheRequest { at: seconds(15), ..thinking.clone() };
    more.settings.thinking = Thinking::Budget(4000);
    assert_eq!(cache.plan(&rules, &more).amounts, amounts(8000, 4000, 0, 0));
    let back = CacheRequest { at: seconds(20), ..base() };
    assert_eq!(cache.plan(&rules, &back).amounts, amounts(12_000, 0, 0, 0));
}

#[test]
fn every_model_has_its_smallest_prefix() {
    for (model, minimum) in [
        ("claude-opus-5", 512),
        ("claude-fable-5", 512),
        ("claude-opus-4-8", 1024),
        ("claude-opus-4-1", 1024),
        ("claude-opus-4-20250514", 1024),
        ("claude-sonnet-5", 1024),
        ("claude-sonnet-4-6", 1024),
        ("claude-sonnet-4-5", 1024),
        ("claude-sonnet-4-20250514", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-opus-4-6", 4096),
        ("claude-opus-4-5", 4096),
        ("claude-haiku-4-5", 4096),
    ] {
        let rules = rules("anthropic", model);
        let sized = |tokens: usize| {
            let blocks = vec![block(1, tokens).with_marker(SHORT), block(2, 10)];
            CacheRequest {
                at: seconds(0),
                model: model.into(),
                blocks,
                settings: CacheSettings::default(),
                explicit_only: false,
            }
        };
        let mut cache = CacheModel::new();
        let small = send(&mut cache, &rules, &sized(minimum - 1));
        assert_eq!(small.amounts, amounts(0, 0, 0, minimum + 9), "{model}");
        assert_eq!(
            small.lookups[0].outcome,
            LookupOutcome::BelowMinimum { tokens: minimum - 1, minimum },
            "{model}"
        );
        assert!(cache.is_empty(), "{model}");
        assert_eq!(send(&mut cache, &rules, &sized(minimum)).amounts, amounts(0, minimum, 0, 10), "{model}");
        let again = CacheRequest { at: seconds(5), ..sized(minimum) };
        assert_eq!(cache.plan(&rules, &again).amounts, amounts(minimum, 0, 0, 10), "{model}");
    }
}
