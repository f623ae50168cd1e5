use super::*;
use crate::{
    CacheKind, DEFAULT_MODEL, DEFAULT_PROVIDER, ImplicitEnds, MarkerFormat, MaxTokensField, Price, Protocol,
    ProviderProfile, ReasoningField, Vocabulary,
};

fn builtin() -> &'static Catalogue {
    Catalogue::builtin()
}

fn with(json: &str) -> Catalogue {
    builtin().with_user_file("mine.json", json).unwrap()
}

fn refused(json: &str) -> String {
    builtin().with_user_file("mine.json", json).unwrap_err().to_string()
}

fn model(catalogue: &Catalogue, name: &str) -> Model {
    catalogue.model(None, name).unwrap()
}

fn profile(catalogue: &Catalogue, name: &str) -> ProviderProfile {
    let model = model(catalogue, name);
    catalogue.provider(&model.provider).unwrap().profile_for_model(&model)
}

#[test]
fn every_model_has_a_provider_and_sensible_figures() {
    assert!(builtin().models().count() > 400);
    assert_eq!(builtin().as_of(), "2026-10");
    for model in builtin().models() {
        assert!(builtin().provider(&model.provider).is_ok(), "{}", model.name());
        assert_eq!(&builtin().model(None, &model.name()).unwrap(), model);
        assert_eq!(&builtin().model(Some(&model.provider), &model.id).unwrap(), model);
        assert!(model.max_input_tokens(model.default_max_tokens()) >= model.context / 2, "{}", model.name());
        let date = model.deprecated.as_deref().unwrap_or("2026-01-01");
        assert!(date.len() == 10 && date.as_bytes()[4] == b'-', "{date}");
    }
}

#[test]
fn every_provider_can_be_spoken_to() {
    let ids: Vec<&str> = builtin().providers().map(|provider| provider.id.as_str()).collect();
    assert!(ids.is_sorted());
    for id in ["anthropic", "openai", "xai", "groq", "deepseek", "openrouter"] {
        assert!(ids.contains(&id), "{id}");
    }
    for provider in builtin().providers() {
        let ProviderProfile { base_url, key_env, message_ids, document_context, .. } = &provider.profile;
        assert!(base_url.starts_with("http") && !base_url.ends_with('/'), "{base_url}");
        assert_ne!(key_env.is_empty(), !provider.open_models, "{}", provider.id);
        assert!(!message_ids && !document_context, "{}", provider.id);
        let anthropic = provider.profile.protocol == Protocol::Anthropic;
        assert_eq!(provider.profile.tool_result_images, anthropic, "{}", provider.id);
    }
}

#[test]
fn the_default_model_is_current() {
    let model = builtin().model(Some(DEFAULT_PROVIDER), DEFAULT_MODEL).unwrap();
    assert_eq!(model, builtin().model(None, DEFAULT_MODEL).unwrap());
    assert!(model.deprecated.is_none() && !model.gone && model.tools && model.caching);
    assert_eq!(model, builtin().model(None, "sonnet").unwrap());
}

#[test]
fn the_smallest_cacheable_prefixes_are_those_documented() {
    let documented = [
        (512, "claude-opus-5 claude-fable-5 claude-sonnet-5-5 claude-opus-5-5 claude-haiku-5-5"),
        (2048, "claude-mythos-preview"),
        (1024, "claude-opus-4-8 claude-opus-4-1 claude-opus-4-20250514"),
        (1024, "claude-sonnet-5 claude-sonnet-4-6 claude-sonnet-4-5 claude-sonnet-4-20250514"),
        (2048, "claude-opus-4-7"),
        (4096, "claude-opus-4-6 claude-opus-4-5 claude-haiku-4-5"),
    ];
    for (tokens, ids) in documented {
        for id in ids.split(' ') {
            let name = format!("anthropic/{id}");
            assert_eq!(model(builtin(), &name).cache_min_tokens, Some(tokens), "{id}");
            assert_eq!(profile(builtin(), &name).cache.min_tokens, tokens, "{id}");
        }
    }
    for (tokens, id) in [(1024, "sonnet-4.5"), (1024, "opus-4.1"), (2048, "opus-4.7"), (4096, "haiku-4.5")] {
        assert_eq!(profile(builtin(), &format!("anthropic/claude-{id}")).cache.min_tokens, tokens, "{id}");
    }
}

#[test]
fn the_data_is_what_the_facts_say() {
    let opus = model(builtin(), "claude-opus-5");
    let price = Price {
        input: 5.0,
        output: 25.0,
        cache_read: Some(0.5),
        cache_write: Some(6.25),
        cache_write_1h: Some(10.0),
    };
    assert_eq!((opus.context, opus.max_output, opus.price), (1_000_000, 128_000, price));
    assert!(opus.vision && opus.tools && opus.reasoning && opus.caching && !opus.prefill);
    assert!(model(builtin(), "claude-haiku-4-5").prefill);
    assert_eq!(model(builtin(), "claude-opus-4-20250514").deprecated.as_deref(), Some("2026-05-14"));
    let chat = model(builtin(), "deepseek-chat");
    assert_eq!((chat.context, chat.max_output, chat.price.cache_read), (131_072, 8192, Some(0.028)));
    assert!(!model(builtin(), "deepseek-reasoner").tools);
    assert_eq!(model(builtin(), "grok-4-1-fast").context, 2_000_000);
}

#[test]
fn anthropic_cache_prices_are_the_documented_multiples() {
    let reads = |id: &str| match id {
        "claude-fable-5-1" | "claude-fable-5-2" | "claude-mythos-5-1" | "claude-mythos-5-2" => 0.025,
        "claude-opus-5-5" | "claude-sonnet-5-5" => 0.05,
        _ => 0.1,
    };
    for model in builtin().models().filter(|model| model.provider == "anthropic") {
        if model.id == "claude-3-haiku-20240307" {
            continue; // the one whose listed prices were rounded
        }
        let Price { input, cache_read, cache_write, cache_write_1h, .. } = model.price;
        let close =
            |price: Option<f64>, factor: f64| price.is_some_and(|p| (p - input * factor).abs() < 1e-9);
        assert!(
            close(cache_read, reads(&model.id)) && close(cache_write, 1.25) && close(cache_write_1h, 2.0),
            "{}",
            model.id
        );
    }
    // Listed without a price for the hour: the multiplier of the long price, not of the usual one.
    assert_eq!(model(builtin(), "claude-4-sonnet-20250514").prices_at(200_001).cache_write_1h, Some(12.0));
    assert_eq!(model(builtin(), "openrouter/anthropic/claude-opus-4.5").price.cache_write_1h, Some(10.0));
    let haiku = model(builtin(), "haiku");
    let step = |price: Price| [price.input, price.output, price.read(), price.write(), price.write_1h()];
    let (below, above) = (step(haiku.prices_at(100_000)), step(haiku.prices_at(100_001)));
    assert!(
        below.iter().zip(above).all(|(low, high)| (low * 5.0 - high).abs() < 1e-9),
        "{below:?} {above:?}"
    );
}

#[test]
fn openai_writes_breakpoints_from_5_6_on() {
    let later =
        with(r#"{"models": [{"provider": "openai", "id": "gpt-5.7", "price": {"input": 4, "output": 20}}]}"#);
    for id in ["gpt-5.6", "gpt-5.6-sol", "gpt-5.7"] {
        let profile = profile(&later, id);
        assert_eq!(profile.markers, MarkerFormat::PromptCacheBreakpoint, "{id}");
        assert_eq!((profile.cache.kind, profile.cache.lifetime), (CacheKind::Markers, Some(1800)), "{id}");
        assert_eq!(
            (profile.cache.min_tokens, profile.cache.look_back, profile.cache.max_markers),
            (1024, Some(1), 4),
            "{id}"
        );
        assert_eq!(profile.cache.implicit, Some(ImplicitEnds { earlier: 20, system: true }), "{id}");
        assert_eq!((profile.protocol, profile.message_phase), (Protocol::OpenaiResponses, true), "{id}");
    }
    assert_eq!(model(&later, "gpt-5.7").price.cache_write, Some(5.0));
    for (id, step) in [("gpt-5.5", 2048), ("gpt-5.1", 128), ("gpt-4o", 128), ("o3", 128)] {
        let profile = profile(&later, id);
        assert_eq!(
            (profile.markers, profile.cache.kind, profile.cache.step),
            (MarkerFormat::None, CacheKind::Automatic, step),
            "{id}"
        );
        assert_eq!(profile.max_tokens_field, MaxTokensField::MaxCompletionTokens, "{id}");
        assert_eq!(model(&later, id).price.cache_write, None, "{id}");
    }
}

#[test]
fn openais_reasoning_models_speak_responses_and_the_others_chat() {
    let protocol = |id| profile(builtin(), id).protocol;
    for id in ["gpt-5", "gpt-5.3-codex", "gpt-6-luna", "gpt-6.1-sol", "o3", "o4-mini", "codex-mini-latest"] {
        assert_eq!(protocol(id), Protocol::OpenaiResponses, "{id}");
    }
    for id in ["gpt-4o", "gpt-4.1", "gpt-3.5-turbo", "gpt-5-chat-latest", "gpt-5-search-api"] {
        assert_eq!(protocol(id), Protocol::Openai, "{id}");
    }
    let openai = builtin().provider("openai").unwrap();
    assert!(openai.speaks(Protocol::Openai) && openai.speaks(Protocol::OpenaiResponses));
    assert!(!builtin().provider("deepseek").unwrap().speaks(Protocol::OpenaiResponses));
}

#[test]
fn openrouter_passes_markers_on_to_anthropic_only() {
    let claude = profile(builtin(), "anthropic/claude-sonnet-4.5");
    assert_eq!((claude.markers, claude.cache.look_back), (MarkerFormat::CacheControl, Some(20)));
    assert!(claude.include_reasoning);
    assert_eq!(claude.reasoning_field, ReasoningField::Reasoning);
    assert_eq!(claude.web_search_plugin.as_deref(), Some("web"));
    assert_eq!(profile(builtin(), "openrouter/openai/gpt-4o").markers, MarkerFormat::None);
}

#[test]
fn vocabularies_are_known_where_they_are_public() {
    let vocabulary = |name: &str| model(builtin(), name).vocabulary;
    for id in ["gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-3.5-turbo", "openrouter/openai/gpt-4"] {
        assert_eq!(vocabulary(id), Some(Vocabulary::Cl100k), "{id}");
    }
    for id in ["gpt-4o", "gpt-4.1-mini", "o1", "o3-mini", "o4-mini", "gpt-5.6-sol", "openrouter/openai/gpt-5"]
    {
        assert_eq!(vocabulary(id), Some(Vocabulary::O200k), "{id}");
    }
    let guessed = [
        ("claude-sonnet-5", 1.62),
        ("claude-sonnet-4-6", 1.25),
        ("openrouter/anthropic/claude-sonnet-4.5", 1.25),
        ("grok-4", 1.0),
    ];
    for (id, factor) in guessed {
        assert_eq!((vocabulary(id), model(builtin(), id).token_factor), (None, factor), "{id}");
    }
}

#[test]
fn the_maker_comes_before_the_reseller() {
    assert_eq!(model(builtin(), "openai/gpt-4o").provider, "openai");
    assert_eq!(model(builtin(), "openrouter/openai/gpt-4o").provider, "openrouter");
    assert_eq!(model(builtin(), "gpt-4o").provider, "openai");
    assert_eq!(model(builtin(), "anthropic/claude-opus-4.1").provider, "openrouter");
    assert_eq!(model(builtin(), "openrouter/auto").id, "openrouter/auto");
    assert_eq!(builtin().model(Some("anthropic"), "anthropic/claude-opus-5").unwrap().id, "claude-opus-5");
}

#[test]
fn an_alias_is_the_newest_model_of_its_line() {
    let newest = [
        ("sonnet", "anthropic/claude-sonnet-5-5"),
        ("opus", "anthropic/claude-opus-5-5"),
        ("haiku", "anthropic/claude-haiku-5-5"),
        ("fable", "anthropic/claude-fable-5-2"),
        ("gpt", "openai/gpt-6.1-sol"),
        ("luna", "openai/gpt-6-luna"),
        ("gemini", "gemini/gemini-4-argon"),
        ("openai/astra", "openai/gpt-6-astra"),
        ("grok", "xai/grok-4.7"), // 4.20 came before 4.3
        ("glm", "zai/glm-5.3"),
        ("kimi", "moonshot/kimi-k3"),
    ];
    for (alias, name) in newest {
        assert_eq!(model(builtin(), alias).name(), name, "{alias}");
    }
    assert_eq!(builtin().model(Some("anthropic"), "opus").unwrap().id, "claude-opus-5-5");
    for provider in builtin().providers() {
        let default = provider.default_model.iter();
        for alias in provider.aliases.keys().chain(default.clone()) {
            let found = builtin().model(Some(&provider.id), alias).unwrap();
            assert!(found.listed && !found.gone && found.deprecated.is_none(), "{alias} is {}", found.id);
        }
        for name in default {
            let found = builtin().model(Some(&provider.id), name).unwrap();
            assert!(found.tools && found.prices_at(0).input < 20.0, "{} is a costly default", found.id);
        }
    }
    let later = with(r#"{"models": [{"provider": "anthropic", "id": "claude-sonnet-5-10"}]}"#);
    assert_eq!(model(&later, "sonnet").id, "claude-sonnet-5-10");
    let proxy =
        with(r#"{"providers": [{"id": "proxy", "like": "anthropic", "base_url": "http://127.0.0.1:1"}]}"#);
    assert_eq!(model(&proxy, "proxy/sonnet").name(), "proxy/claude-sonnet-5-5");
}

#[test]
fn a_model_that_no_file_lists_is_one_with_assumptions() {
    let next = model(builtin(), "claude-sonnet-9");
    assert_eq!((next.name().as_str(), next.listed), ("anthropic/claude-sonnet-9", false));
    assert_eq!((next.context, next.max_output, next.price.is_known()), (200_000, 32_000, false));
    assert!(!next.prefill && !next.thinking.can_be_set());
    assert_eq!(model(builtin(), "gpt-99").provider, "openai");
    assert_eq!(builtin().model(Some("xai"), "x").unwrap().name(), "xai/x");
    let similar = |provider: &str, id: &str| {
        let catalogue = builtin();
        catalogue.similar_models(&catalogue.model(Some(provider), id).unwrap())
    };
    assert_eq!(similar("anthropic", "claude-opus-4.8")[0], "claude-opus-4-8");
    assert_eq!(similar("anthropic", "gpt-5.5"), ["openai/gpt-5.5"]);
    assert_eq!(similar("openai", "gpt-5,5")[0], "gpt-5.5");
}

#[test]
fn a_name_without_a_provider_is_answered_with_the_nearest() {
    let unknown = builtin().model(None, "claud-sonnet-5").unwrap_err();
    assert_eq!(unknown.nearest[0], "claude-sonnet-5");
    let unknown = builtin().provider("antropic").unwrap_err();
    assert_eq!((unknown.what, &unknown.nearest[..]), ("provider", &["anthropic".to_owned()][..]));
    assert_eq!(builtin().model(Some("antropic"), "claude-opus-5").unwrap_err(), unknown);
}

#[test]
fn every_row_of_a_thinking_model_is_consistent() {
    for model in builtin().models() {
        let thinking = &model.thinking;
        let name = model.name();
        assert!(!thinking.can_be_set() || model.reasoning, "{name}");
        assert!(thinking.default_effort.is_none_or(|effort| thinking.efforts.contains(&effort)), "{name}");
        assert!(thinking.efforts.is_sorted(), "{name}");
        assert!(!model.message_effort || model.system_messages, "{name}");
    }
}

#[test]
fn the_users_entry_changes_only_what_it_gives() {
    let mine = with(
        r#"{"models": [{"provider": "anthropic", "id": "claude-opus-5", "context": 200000, "price": {"output": 1}}]}"#,
    );
    let known = model(builtin(), "claude-opus-5");
    let expected = Model { context: 200_000, price: Price { output: 1.0, ..known.price }, ..known };
    assert_eq!(model(&mine, "claude-opus-5"), expected);
    assert_eq!(mine.models().count(), builtin().models().count());
}

#[test]
fn the_user_has_the_last_word_on_a_provider() {
    let mine = with(
        r#"{"providers": [{"id": "openai", "base_url": "http://127.0.0.1:1/v1", "markers": "none",
            "overrides": [{"models": "gpt-5.6-sol", "cache": {"lifetime": 60}}]}]}"#,
    );
    let sol = profile(&mine, "gpt-5.6-sol");
    assert_eq!((sol.markers, sol.base_url.as_str()), (MarkerFormat::None, "http://127.0.0.1:1/v1"));
    assert_eq!((sol.cache.lifetime, sol.cache.max_markers), (Some(60), 4));
    assert_eq!(profile(&mine, "gpt-5.6").cache.lifetime, Some(1800));
    assert_eq!(mine.provider("openai").unwrap().name, "OpenAI");
}

#[test]
fn a_new_model_has_the_documented_defaults() {
    let mine = with(r#"{"models": [{"provider": "anthropic", "id": "claude-next"}]}"#);
    let next = model(&mine, "claude-next");
    assert_eq!((next.context, next.max_output, next.price), (128_000, 8192, Price::default()));
    assert!(next.tools && next.caching && next.prefill && !next.vision && !next.reasoning);
    assert_eq!(profile(&mine, "claude-next").cache.min_tokens, 1024);
    let priced = r#"{"models": [{"provider": "anthropic", "id": "claude-next", "price": {"input": 3}}]}"#;
    let price = model(&mine.with_user_file("more.json", priced).unwrap(), "claude-next").price;
    assert_eq!(
        (price.cache_read, price.cache_write, price.cache_write_1h),
        (Some(0.3), Some(3.75), Some(6.0))
    );
}

#[test]
fn a_local_server_takes_any_model() {
    let local = model(builtin(), "llamacpp/qwen/some-model");
    assert_eq!((local.provider.as_str(), local.id.as_str()), ("llamacpp", "qwen/some-model"));
    assert!(!local.price.is_known() && local.tools);
    assert_eq!(builtin().model(Some("vllm"), "x").unwrap().name(), "vllm/x");
    assert!(local.listed, "any id is usual there");
}

#[test]
fn a_provider_like_another_shares_its_models() {
    let mine =
        with(r#"{"providers": [{"id": "proxy", "like": "anthropic", "base_url": "http://127.0.0.1:1"}]}"#);
    let opus = model(&mine, "proxy/claude-opus-5");
    assert_eq!(opus, Model { provider: "proxy".into(), ..model(builtin(), "claude-opus-5") });
    let profile = profile(&mine, "proxy/claude-opus-5");
    assert_eq!(
        (profile.markers, profile.base_url.as_str()),
        (MarkerFormat::CacheControl, "http://127.0.0.1:1")
    );
    assert_eq!(model(&mine, "claude-opus-5").provider, "anthropic");
    let misspelt = mine.model(Some("proxy"), "opus-5").unwrap();
    assert_eq!(mine.similar_models(&misspelt)[0], "claude-opus-5");
}

#[test]
fn a_wrong_file_is_refused_with_the_place_and_the_remedy() {
    let message = refused("{\"models\": [\n{\"id\": \"x\", \"provider\": \"openai\", \"contxt\": 1}]}");
    assert!(message.starts_with("mine.json: unknown field `contxt`, expected one of "), "{message}");
    assert!(message.ends_with("at line 2 column 42"), "{message}");
    let message = refused(r#"{"models": [{"id": "x"}]}"#);
    assert_eq!(message, "mine.json: missing field `provider` at line 1 column 23");
    let message = refused(r#"{"models": [{"id": "x", "provider": "openai", "price": {"input": -1}}]}"#);
    assert!(message.starts_with("mine.json: invalid value: -1, expected 0 or more at line 1"), "{message}");
    let message = refused(r#"{"models": [{"id": "x", "provider": "opnai"}]}"#);
    assert!(
        message
            .starts_with("mine.json: model \"x\" names an unknown provider \"opnai\" (did you mean openai?)"),
        "{message}"
    );
    assert_eq!(
        refused(r#"{"providers": [{"name": "x"}]}"#),
        "mine.json: providers[0] has no \"id\"; add one"
    );
    assert_eq!(
        refused(r#"{"providers": [{"id": "x"}]}"#),
        "mine.json: provider \"x\" has no \"base_url\"; add one"
    );
    let message = refused(r#"{"providers": [{"id": "xai", "overrides": [{"markers": "none"}]}]}"#);
    assert_eq!(message, "mine.json: an override of provider \"xai\" has no \"models\"; add one");
    let message =
        refused(r#"{"providers": [{"id": "xai", "overrides": [{"models": "*", "gateway": true}]}]}"#);
    assert!(message.ends_with("has \"gateway\"; move it to the provider itself"), "{message}");
}

#[test]
fn the_schema_describes_the_users_file() {
    let schema = user_file_schema();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["ModelRow"]["required"], serde_json::json!(["id", "provider"]));
    assert!(schema["$defs"]["ProviderRow"]["properties"]["overrides"].is_object());
}

#[test]
fn a_base_url_may_be_given_with_or_without_its_version() {
    let complete = |model: &str, url: &str| profile(builtin(), model).complete_base_url(url);
    for url in [
        "http://127.0.0.1:8080",
        "http://127.0.0.1:8080/",
        "http://127.0.0.1:8080/v1",
        "http://127.0.0.1:8080/v1/",
    ] {
        assert_eq!(complete("claude-opus-5", url), "http://127.0.0.1:8080/v1", "{url}");
        assert_eq!(complete("gpt-4o", url), "http://127.0.0.1:8080/v1", "{url}");
    }
    assert_eq!(complete("claude-opus-5", "https://host/anthropic"), "https://host/anthropic/v1");
    assert_eq!(complete("gpt-4o", "https://host/api"), "https://host/api", "as OpenAI's own clients take it");
    assert_eq!(
        complete("deepseek-chat", "http://127.0.0.1:1"),
        "http://127.0.0.1:1",
        "its usual URL has none"
    );
}

#[test]
fn gemini_speaks_its_own_protocol_or_the_compatible_one() {
    let newer = profile(builtin(), "gemini/gemini-3.5-flash");
    assert_eq!(
        (newer.protocol, newer.signed_calls, newer.tool_result_images),
        (Protocol::Gemini, true, true)
    );
    assert_eq!((newer.cache.kind, newer.cache.min_tokens), (CacheKind::Automatic, 4096));
    let older = profile(builtin(), "gemini/gemini-2.5-flash");
    assert_eq!((older.signed_calls, older.tool_result_images, older.include_reasoning), (false, false, true));
    assert_eq!((older.cache.min_tokens, older.cache.lifetime), (2048, Some(300)));
    assert!(!profile(builtin(), "gemini/gemma-3-27b-it").include_reasoning);

    let compatible = with(
        r#"{"providers": [{"id": "gemini-compatible", "like": "gemini", "protocol": "openai", "include_reasoning": false,
            "tool_result_images": false, "base_url": "https://generativelanguage.googleapis.com/v1beta/openai"}]}"#,
    );
    let profile = profile(&compatible, "gemini-compatible/gemini-3.5-flash");
    assert_eq!((profile.protocol, profile.base_url.ends_with("/v1beta/openai")), (Protocol::Openai, true));
    assert!(!profile.include_reasoning && !profile.tool_result_images);
}

#[test]
fn the_providers_of_a_project_do_not_count_however_they_are_written() {
    let rows = r#"[{"id": "openai", "base_url": "https://evil.example"}]"#;
    let base_url = |catalogue: &Catalogue| catalogue.provider("openai").unwrap().profile.base_url.clone();
    // A list stands for the fields in their order.
    for json in [format!(r#"{{"providers": {rows}}}"#), format!("[null, null, null, [], {rows}]")] {
        assert_eq!(base_url(&with(&json)), "https://evil.example");
        let (narrowed, has_providers) = builtin().with_models_of("models.json", &json).unwrap();
        assert!(has_providers, "{json}");
        assert_eq!(base_url(&narrowed), base_url(builtin()), "{json}");
    }
}
