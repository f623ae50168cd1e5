use CacheOutcome::{Hit, Loss};

use super::*;

/// Two requests that cached 20,000 and 30,000 tokens.
fn cached_session() -> PiSession {
    PiSession::new().ask().call([5, 0, 20_000]).result().answer([5, 20_000, 10_000]).wait(MINUTE)
}

#[test]
fn a_conversation_that_only_grows_loses_nothing() {
    let audit = cached_session().ask().answer([5, 30_000, 500]).audit();
    assert_eq!(audit.losses, []);
    assert_eq!(outcomes(&audit), [(Hit, Hit); 3]);
    assert_eq!(audit.predicted, audit.billed);
    assert_eq!(audit.stable_prefix_cost, audit.billed.cost);
    let turns: Vec<RequestTrigger> = audit.requests.iter().map(|request| request.trigger).collect();
    assert_eq!(turns, [RequestTrigger::Person, RequestTrigger::Tools, RequestTrigger::Person]);
}

#[test]
fn silence_longer_than_the_lifetime_is_foretold_and_is_the_persons() {
    let audit = cached_session().wait(11 * MINUTE).ask().answer([5, 0, 30_500]).audit();
    let words = "the cache expired after 5 minutes (12 minutes unused)".to_owned();
    assert_eq!(losses(&audit), [(2, 30_000, words)]);
    assert_eq!(outcomes(&audit)[2], (Loss, Loss));
    assert!(!audit.losses[0].is_avoidable);
    // Written at 1.25 in place of read at 0.1, three dollars per million.
    assert!((audit.losses[0].cost - 30_000.0 * 1.15).abs() < 1e-6);
    assert!(audit.losses[0].dollars.is_some_and(|dollars| (dollars - 0.1035).abs() < 1e-9));
    // A stable prefix expires all the same.
    assert_eq!(audit.stable_prefix_cost, audit.billed.cost);
}

#[test]
fn a_tool_that_outlives_the_cache_is_the_agents() {
    let audit =
        PiSession::new().ask().call([5, 0, 20_000]).wait(6 * MINUTE).result().answer([5, 0, 20_400]).audit();
    assert_eq!(outcomes(&audit)[1], (Loss, Loss));
    assert!(audit.losses[0].is_avoidable);
}

#[test]
fn lifetimes_count_from_the_start_of_the_request() {
    // Read 4 s before the end of its answer: 4:57 after the start, 4:53 after the end.
    let warm =
        PiSession::new().ask().answer([5, 0, 20_000]).wait(293_000).ask().answer([5, 20_000, 400]).audit();
    assert_eq!(outcomes(&warm)[1], (Hit, Hit));
}

#[test]
fn what_nothing_recorded_explains_is_called_so() {
    let audit = cached_session().ask().answer([3, 0, 30_600]).audit();
    let words = "the whole prefix was lost while warm: the system prompt or the tools changed".to_owned();
    assert_eq!(losses(&audit), [(2, 30_000, words)]);
    assert_eq!(outcomes(&audit)[2], (Hit, Loss));
    assert!(audit.losses[0].is_avoidable);
    let stable = audit.billed.cost - 30_000.0 * 1.15;
    assert!((audit.stable_prefix_cost - stable).abs() < 1e-6);
    let part = cached_session().ask().answer([3, 20_000, 10_600]).audit();
    let words =
        "all but the first 20,000 tokens were lost while warm: something after them changed".to_owned();
    assert_eq!(losses(&part), [(2, 10_000, words)]);
}

#[test]
fn a_little_less_than_was_cached_is_no_loss() {
    assert_eq!(cached_session().ask().answer([3, 29_000, 1500]).audit().losses, []);
}

#[test]
fn a_grown_conversation_that_is_smaller_cannot_begin_with_what_was_cached() {
    let audit = cached_session().ask().answer([3, 0, 29_800]).audit();
    assert_eq!(outcomes(&audit)[2], (Loss, Loss));
    assert_eq!(audit.losses[0].cause, LossCause::Unrecorded(UnexplainedLoss::WholePrefix));
    // Reasoning of earlier turns is left out by providers, so there it says nothing.
    let thought = json!([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "So."}]);
    let talk = PiSession::new().ask().answer_with([5, 0, 30_000], "stop", &thought).ask();
    assert_eq!(outcomes(&talk.answer([3, 28_500, 1000]).audit())[1], (Hit, Hit));
}

#[test]
fn the_thinking_level_counts_from_the_next_prompt_on() {
    let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
    let talk = PiSession::new().line(level("off")).ask().call([5, 0, 2000]).line(level("high")).result();
    // Tools and system prompt stay cached.
    let talk = talk.answer([5, 2000, 18_000]).wait(MINUTE).ask().answer([5, 1900, 18_700]);
    let audit = talk.audit();
    assert_eq!(outcomes(&audit), [(Hit, Hit), (Hit, Hit), (Loss, Loss)]);
    assert_eq!(losses(&audit)[0].2, "the thinking setting changed");
    assert!(!audit.losses[0].is_avoidable);
}

#[test]
fn another_model_has_a_cache_of_its_own_and_the_old_one_keeps_its() {
    let talk = cached_session().model("claude-opus-4-1").ask().answer([5, 0, 30_400]);
    let audit = talk.model("claude-sonnet-4-5").ask().answer([5, 30_000, 900]).audit();
    assert_eq!(outcomes(&audit)[2..], [(Loss, Loss), (Hit, Hit)]);
    assert_eq!(losses(&audit)[0].2, "the model changed from claude-sonnet-4-5 to claude-opus-4-1");
}

#[test]
fn compaction_is_a_loss_of_what_is_still_there() {
    let compaction = json!({"type": "compaction", "timestamp": START, "summary": "They asked why.", "tokensBefore": 30_000});
    let audit = cached_session().line(compaction).ask().answer([5, 0, 6000]).audit();
    assert_eq!(losses(&audit), [(2, 6002, "the conversation was compacted".to_owned())]);
    assert_eq!(outcomes(&audit)[2].1, Loss);
}

#[test]
fn the_first_image_is_foretold_to_lose_the_messages() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    let shown = json!({"type": "message", "timestamp": START + MINUTE, "message": {"role": "user", "content": [image]}});
    let audit = cached_session().line(shown).answer([5, 0, 31_500]).audit();
    assert_eq!(outcomes(&audit)[2], (Loss, Loss));
    assert_eq!(losses(&audit)[0].2, "an image was added to a conversation without images");
}

#[test]
fn a_stopped_request_keeps_the_cache_warm_once_it_lived_long_enough() {
    let stopped = |lived: i64| {
        let talk = cached_session().wait(4 * MINUTE).ask();
        let (started, ended) = (talk.now, talk.now + lived);
        let message = json!({
            "role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "aborted",
            "content": [], "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "timestamp": started,
        });
        talk.line(json!({"type": "message", "timestamp": ended, "message": message})).wait(3 * MINUTE).ask()
    };
    assert_eq!(outcomes(&stopped(3000).answer([5, 30_000, 600]).audit())[2], (Hit, Hit));
    assert_eq!(outcomes(&stopped(900).answer([5, 0, 30_600]).audit())[2], (Loss, Loss));
}

#[test]
fn a_prefix_under_the_minimum_is_never_kept() {
    let talk =
        PiSession::new().model("claude-haiku-4-5").ask().call([3000, 0, 0]).result().answer([3400, 0, 0]);
    let audit = talk.result().answer([6, 0, 4500]).audit();
    assert_eq!(outcomes(&audit)[1], (Loss, Loss));
    assert_eq!(losses(&audit)[0].2, "a prefix of 3,000 tokens is under the 4,096 that the provider keeps");
    assert!(!audit.losses[0].is_avoidable);
}

#[test]
fn an_agent_that_marks_nothing_pays_for_all_of_it_every_time() {
    let audit = PiSession::new().ask().call([20_000, 0, 0]).result().answer([20_400, 0, 0]).audit();
    assert_eq!(
        losses(&audit),
        [(1, 20_000, "no breakpoint was set from which a cached prefix is found".to_owned())]
    );
    assert_eq!(outcomes(&audit)[1], (Loss, Loss));
    assert!(audit.losses[0].is_avoidable && audit.stable_prefix_cost < audit.billed.cost * 0.8);
}

#[test]
fn more_new_blocks_than_the_provider_looks_back_are_named() {
    let texts: Vec<Value> = (0..25).map(|n| json!({"type": "text", "text": format!("Part {n}.")})).collect();
    let told = json!({"type": "message", "timestamp": START + MINUTE, "message": {"role": "user", "content": texts}});
    let audit = PiSession::new().ask().answer([5, 0, 20_000]).line(told).answer([5, 0, 24_000]).audit();
    assert_eq!(losses(&audit)[0].2, "26 new blocks came at once, and the provider looks back 20");
    // How an agent turns its parts into blocks is not recorded, so it is not foretold.
    assert_eq!(outcomes(&audit)[1], (Hit, Loss));
}

#[test]
fn a_run_of_calls_is_one_block_to_look_back_over_and_so_is_a_run_of_results() {
    let calls: Vec<Value> = (0..25)
        .map(|n| json!({"type": "toolCall", "id": format!("c{n}"), "name": "read", "arguments": {}}))
        .collect();
    let talk = PiSession::new().ask().answer_with([5, 0, 20_000], "toolUse", &Value::Array(calls));
    let audit = (0..25).fold(talk, |talk, _| talk.result()).answer([5, 0, 24_000]).audit();
    assert_eq!(audit.losses[0].cause, LossCause::Unrecorded(UnexplainedLoss::WholePrefix));
}

#[test]
fn something_read_after_a_longer_silence_proves_a_longer_lifetime() {
    let talk = cached_session().wait(20 * MINUTE).ask().answer([5, 30_000, 400]);
    let talk = talk.wait(10 * MINUTE).ask().answer([5, 30_400, 400]);
    let audit = talk.wait(90 * MINUTE).ask().answer([5, 0, 31_200]).audit();
    assert_eq!(outcomes(&audit)[2..], [(Hit, Hit), (Hit, Hit), (Loss, Loss)]);
}

#[test]
fn a_provider_that_reports_no_cache_is_not_judged() {
    let mut text = String::new();
    for line in cached_session().ask().answer([31_000, 0, 0]).text().lines() {
        text += &line
            .replace("\"anthropic\"", "\"mistral\"")
            .replace("claude-sonnet-4-5", "mistral-large-latest");
        text.push('\n');
    }
    let text = text
        .replace("\"cacheRead\":20000", "\"cacheRead\":0")
        .replace("\"cacheWrite\":20000", "\"cacheWrite\":0");
    let audit = audit("s.jsonl", &text.replace("\"cacheWrite\":10000", "\"cacheWrite\":0"));
    assert_eq!((audit.losses.len(), audit.correct_predictions()), (0, 3));
}

#[test]
fn levels_that_may_be_one_to_the_model_are_no_alarm_but_a_cause() {
    let level = |level: &str| json!({"type": "thinking_level_change", "thinkingLevel": level});
    let talk =
        || PiSession::new().line(level("minimal")).ask().answer([5, 0, 2000]).ask().answer([5, 2000, 18_000]);
    let kept = talk().line(level("low")).ask().answer([5, 20_000, 300]).audit();
    assert_eq!(outcomes(&kept)[2], (Hit, Hit));
    let lost = talk().line(level("low")).ask().answer([5, 1900, 18_700]).audit();
    assert_eq!((outcomes(&lost)[2], &*losses(&lost)[0].2), ((Hit, Loss), "the thinking setting changed"));
}

#[test]
fn a_request_sent_before_the_last_was_answered_could_not_read_what_that_wrote() {
    // Two prompts of one conversation at once: the second is sent 2 s into the first one's answer.
    let talk = cached_session().ask().answer([5, 30_000, 8000]).wait(-2000).ask();
    let audit = talk.answer([5, 30_000, 8400]).audit();
    let words =
        "the request before it was still unanswered, so what that wrote could not be read yet".to_owned();
    assert_eq!(losses(&audit), [(3, 8000, words)]);
}

#[test]
fn a_branch_finds_what_its_way_had_left() {
    let lines = cached_session().ask().answer([5, 30_000, 8000]).text();
    // Ids and parents, as later versions have them; the last prompt goes back to after the second answer.
    let mut text = String::new();
    for (at, line) in lines.lines().enumerate() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if at > 0 {
            line["id"] = json!(format!("e{at}"));
            line["parentId"] = if at == 1 { Value::Null } else { json!(format!("e{}", at - 1)) };
        }
        text += &format!("{line}\n");
    }
    let end = cached_session().ask().answer([5, 0, 0]).now;
    let asked = json!({"type": "message", "id": "b1", "parentId": "e4", "timestamp": end, "message": {"role": "user", "content": "Or?"}});
    let usage = json!({"input": 5, "output": 9, "cacheRead": 30_000, "cacheWrite": 300});
    let answer = json!({"role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop",
        "content": [{"type": "text", "text": "So."}], "usage": usage, "timestamp": end});
    let answered =
        json!({"type": "message", "id": "b2", "parentId": "b1", "timestamp": end + 4000, "message": answer});
    let audit = audit("s.jsonl", &format!("{text}{asked}\n{answered}\n"));
    assert_eq!((audit.losses.len(), outcomes(&audit)), (0, vec![(Hit, Hit); 4]));
    assert_eq!(audit.requests[3].expected, 30_000);
}
