//! Random answers, encoded in all the ways that servers use, decode to the same events however they
//! are cut.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::*;
use crate::ReportedUsage;

/// A part of a generated answer, in the pieces in which it is sent.
#[derive(Clone, Debug)]
enum GeneratedPart {
    Text(Vec<String>),
    Reasoning(Vec<String>),
    Call(Vec<String>),
}

/// How a server marks which call a fragment belongs to.
#[derive(Clone, Copy, Debug)]
enum CallStyle {
    Indexed,
    WithoutIndex,
    IdRepeated,
    AllZero,
    Whole,
}

/// How a server formats everything else.
#[derive(Clone, Debug)]
struct ServerStyle {
    line_end: &'static str,
    pretty: bool,
    names: bool,
    noise: &'static str,
    bom: bool,
    last_blank: bool,
    done: bool,
    calls: CallStyle,
    reasoning: &'static str,
    usage_apart: bool,
}

fn words() -> impl Strategy<Value = Vec<String>> {
    let word = select(vec!["a", "b ", "é", "\n", "\"", "\\", "🦀", "data:", "\u{2028}", "[DONE]", "x\r\ny"]);
    vec(word, 1..5).prop_map(|words| words.into_iter().map(Into::into).collect())
}

fn piece() -> impl Strategy<Value = GeneratedPart> {
    let json = words().prop_flat_map(|words| {
        let whole = json!({"a": words.concat(), "b": {"c": [1, 2.5]}}).to_string();
        let cuts = vec(any::<Index>(), 0..4);
        cuts.prop_map(move |cuts| cut(&whole, &cuts).into_iter().map(Into::into).collect())
    });
    prop_oneof![
        words().prop_map(GeneratedPart::Text),
        words().prop_map(GeneratedPart::Reasoning),
        json.prop_map(GeneratedPart::Call)
    ]
}

fn style() -> impl Strategy<Value = ServerStyle> {
    let framing = (
        select(vec!["\n", "\r\n", "\r"]),
        any::<[bool; 6]>(),
        select(vec!["", ": ping\n", "event: ping\ndata:\n\n"]),
    );
    let calls = [
        CallStyle::Indexed,
        CallStyle::WithoutIndex,
        CallStyle::IdRepeated,
        CallStyle::AllZero,
        CallStyle::Whole,
    ];
    let reasoning = select(vec!["reasoning", "reasoning_content"]);
    (framing, select(calls.to_vec()), reasoning).prop_map(|((line_end, flags, noise), calls, reasoning)| {
        let [pretty, names, bom, last_blank, done, usage_apart] = flags;
        ServerStyle { line_end, pretty, names, noise, bom, last_blank, done, calls, reasoning, usage_apart }
    })
}

/// Cuts a text at character boundaries.
fn cut<'t>(text: &'t str, cuts: &[Index]) -> Vec<&'t str> {
    let bounds: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&bounds)).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn frame(payloads: &[Value], style: &ServerStyle) -> Vec<u8> {
    let mut stream = String::new();
    for payload in payloads {
        stream.push_str(style.noise);
        if let Some(name) = payload["type"].as_str().filter(|_| style.names) {
            stream.push_str(&format!("event: {name}\n"));
        }
        let data = if style.pretty { format!("{payload:#}") } else { payload.to_string() };
        data.lines().for_each(|line| stream.push_str(&format!("data: {line}\n")));
        stream.push('\n');
    }
    if !style.last_blank {
        stream.truncate(stream.trim_end().len());
    }
    let stream = stream.replace('\n', style.line_end);
    if style.bom { format!("\u{FEFF}{stream}").into_bytes() } else { stream.into_bytes() }
}

fn anthropic(pieces: &[GeneratedPart], style: &ServerStyle) -> Vec<u8> {
    let mut payloads =
        vec![json!({"type": "message_start", "message": {"id": "m", "model": "x", "content": []}})];
    let mut calls = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let (block, kind, field, deltas) = match piece {
            GeneratedPart::Text(words) => (json!({"type": "text", "text": ""}), "text_delta", "text", words),
            GeneratedPart::Reasoning(words) => {
                (json!({"type": "thinking", "thinking": ""}), "thinking_delta", "thinking", words)
            }
            GeneratedPart::Call(json) => {
                let block = json!({"type": "tool_use", "id": format!("c{calls}"), "name": "f", "input": {}});
                calls += 1;
                (block, "input_json_delta", "partial_json", json)
            }
        };
        payloads.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            payloads.push(
                json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: delta}}),
            );
        }
        if let GeneratedPart::Reasoning(_) = piece {
            let delta = json!({"type": "signature_delta", "signature": "s"});
            payloads.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        payloads.push(json!({"type": "content_block_stop", "index": index}));
    }
    let usage = json!({"input_tokens": 3, "output_tokens": 5});
    payloads.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}));
    if style.done {
        payloads.push(json!({"type": "message_stop"}));
    }
    frame(&payloads, style)
}

fn openai(pieces: &[GeneratedPart], style: &ServerStyle) -> Vec<u8> {
    let chunk = |delta: Value| json!({"id": "m", "model": "x", "choices": [{"index": 0, "delta": delta}]});
    let mut payloads = vec![chunk(json!({"role": "assistant", "content": ""}))];
    let mut calls = 0;
    for piece in pieces {
        match piece {
            GeneratedPart::Text(words) => {
                payloads.extend(words.iter().map(|word| chunk(json!({"content": word}))));
            }
            GeneratedPart::Reasoning(words) => {
                payloads.extend(words.iter().map(|word| chunk(json!({style.reasoning: word}))));
            }
            GeneratedPart::Call(json) => {
                payloads.extend(
                    wire_calls(calls, json, style.calls)
                        .into_iter()
                        .map(|call| chunk(json!({"tool_calls": [call]}))),
                );
                calls += 1;
            }
        }
    }
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8});
    let mut last = chunk(json!({}));
    last["choices"][0]["finish_reason"] = "tool_calls".into();
    if !style.usage_apart {
        last["usage"] = usage.clone();
    }
    payloads.push(last);
    if style.usage_apart {
        payloads.push(json!({"id": "m", "choices": [], "usage": usage}));
    }
    let mut stream =
        frame(&payloads, &ServerStyle { last_blank: style.last_blank || style.done, ..style.clone() });
    if style.done {
        stream.extend_from_slice(b"data: [DONE]");
    }
    stream
}

/// Events of the Responses API; `names` leaves out those that only announce, `done` adds a marker
/// that its server does not send.
fn responses(pieces: &[GeneratedPart], style: &ServerStyle) -> Vec<u8> {
    let mut payloads =
        vec![json!({"type": "response.created", "response": {"id": "m", "model": "x", "output": []}})];
    let mut calls = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let id = format!("item_{index}");
        let place = json!({"output_index": index, "item_id": id, "content_index": 0, "summary_index": 0});
        let (item, kind, deltas) = match piece {
            GeneratedPart::Text(words) => {
                let content = json!([{"type": "output_text", "text": words.concat()}]);
                (json!({"type": "message", "content": content}), "output_text", words)
            }
            GeneratedPart::Reasoning(words) => {
                let summary = json!([{"type": "summary_text", "text": words.concat()}]);
                (
                    json!({"type": "reasoning", "summary": summary, "encrypted_content": "s"}),
                    "reasoning_summary_text",
                    words,
                )
            }
            GeneratedPart::Call(json) => {
                calls += 1;
                let call_id = format!("c{}", calls - 1);
                let call = json!({"type": "function_call", "call_id": call_id, "name": "f", "arguments": json.concat()});
                (call, "function_call_arguments", json)
            }
        };
        let mut item = item;
        item["id"] = id.into();
        if !style.pretty {
            let mut shell = item.clone();
            for (key, empty) in [
                ("content", json!([])),
                ("summary", json!([])),
                ("arguments", json!("")),
                ("encrypted_content", json!("half")),
            ] {
                if shell.get(key).is_some() {
                    shell[key] = empty;
                }
            }
            payloads
                .push(json!({"type": "response.output_item.added", "output_index": index, "item": shell}));
            for delta in deltas {
                let mut event = place.clone();
                (event["type"], event["delta"]) =
                    (format!("response.{kind}.delta").into(), delta.as_str().into());
                payloads.push(event);
            }
        }
        payloads.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let usage = json!({"input_tokens": 3, "output_tokens": 5, "total_tokens": 8});
    payloads.push(
        json!({"type": "response.completed", "response": {"id": "m", "status": "completed", "usage": usage}}),
    );
    frame(&payloads, style)
}

fn wire_calls(number: usize, json: &[String], style: CallStyle) -> Vec<Value> {
    let id = format!("c{number}");
    if let CallStyle::Whole = style {
        return vec![
            json!({"id": id, "type": "function", "function": {"name": "f", "arguments": json.concat()}}),
        ];
    }
    let call = |(position, fragment): (usize, &String)| {
        let mut call = json!({"function": {"arguments": fragment}});
        if position == 0 {
            call["function"]["name"] = "f".into();
        }
        if position == 0 || matches!(style, CallStyle::IdRepeated) {
            call["id"] = id.as_str().into();
        }
        match style {
            CallStyle::Indexed | CallStyle::IdRepeated => call["index"] = number.into(),
            CallStyle::AllZero => call["index"] = 0.into(),
            CallStyle::WithoutIndex | CallStyle::Whole => {}
        }
        call
    };
    json.iter().enumerate().map(call).collect()
}

/// Whole chunks, one part in each; a signature goes with every call.
fn gemini(pieces: &[GeneratedPart], style: &ServerStyle) -> Vec<u8> {
    let chunk = |part: Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "responseId": "m", "modelVersion": "x"});
    let mut payloads = Vec::new();
    let mut calls = 0;
    for piece in pieces {
        match piece {
            GeneratedPart::Text(words) => {
                payloads.extend(words.iter().map(|word| chunk(json!({"text": word}))));
            }
            GeneratedPart::Reasoning(words) => {
                payloads.extend(words.iter().map(|word| chunk(json!({"text": word, "thought": true}))));
            }
            GeneratedPart::Call(json) => {
                let args: Value = serde_json::from_str(&json.concat()).unwrap();
                let call = json!({"id": format!("c{calls}"), "name": "f", "args": args});
                payloads.push(chunk(json!({"functionCall": call, "thoughtSignature": "s"})));
                calls += 1;
            }
        }
    }
    let mut last = chunk(json!({"text": ""}));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8});
    payloads.push(last);
    // Calls come whole, so that their arguments are what the server wrote, white space included.
    frame(&payloads, &ServerStyle { pretty: false, ..style.clone() })
}

/// The events that all protocols must give.
fn expected(protocol: Protocol, pieces: &[GeneratedPart]) -> Vec<AnswerEvent> {
    let mut events = vec![start("m", "x")];
    let mut calls = 0;
    // Where calls end by themselves.
    let has_ends = protocol != Protocol::Openai;
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            GeneratedPart::Text(words) => {
                let before = index.checked_sub(1).map(|before| &pieces[before]);
                let follows =
                    protocol == Protocol::OpenaiResponses && matches!(before, Some(GeneratedPart::Text(_)));
                let separator = if follows { "\n\n" } else { "" };
                events.push(AnswerEvent::Text(format!("{separator}{}", words.concat())));
            }
            GeneratedPart::Reasoning(words) => {
                events.push(AnswerEvent::Reasoning(words.concat()));
                if has_ends && protocol != Protocol::Gemini {
                    events.push(AnswerEvent::Signature("s".into()));
                }
            }
            GeneratedPart::Call(json) => {
                if protocol == Protocol::Gemini {
                    events.push(AnswerEvent::Signature("s".into()));
                }
                events.extend([call(calls, &format!("c{calls}"), "f"), delta(calls, &json.concat())]);
                if has_ends {
                    events.push(AnswerEvent::CallEnd { index: calls });
                }
                calls += 1;
            }
        }
    }
    events.push(AnswerEvent::Usage(ReportedUsage {
        searches: None,
        reports_cache: protocol == Protocol::Gemini,
        ..TokenUsage { input: 3, output: 5, ..TokenUsage::default() }.into()
    }));
    if !has_ends {
        events.extend((0..calls).map(|index| AnswerEvent::CallEnd { index }));
    }
    events.push(stop(stop_reason(protocol, calls)));
    AnswerEvent::merge(events)
}

/// Some have one word for both ends: the answer itself tells whether it waits for results.
fn stop_reason(protocol: Protocol, calls: usize) -> StopReason {
    let has_one_word = matches!(protocol, Protocol::OpenaiResponses | Protocol::Gemini);
    if has_one_word && calls == 0 { StopReason::End } else { StopReason::ToolUse }
}

/// Flips, drops, inserts and repeats bytes.
fn mutate(stream: &mut Vec<u8>, mutations: &[(Index, u8, u8)]) {
    for (at, kind, byte) in mutations {
        let at = at.index(stream.len().max(1)).min(stream.len());
        let until = (at + usize::from(*byte)).min(stream.len());
        match kind % 5 {
            0 if at < stream.len() => stream[at] ^= byte,
            1 => drop(stream.drain(at..until)),
            2 => stream.insert(at, b"\n\r:{}[]\",\\ 0"[usize::from(*byte) % 12]),
            3 => {
                let again = stream[at..until].to_vec();
                stream.splice(at..at, again);
            }
            _ => stream.truncate(stream.len() - usize::from(*byte).min(stream.len()) / 8),
        }
    }
}

fn protocols() -> impl Strategy<Value = Protocol> {
    select(Protocol::ALL.to_vec())
}

fn render(protocol: Protocol, pieces: &[GeneratedPart], style: &ServerStyle) -> Vec<u8> {
    match protocol {
        Protocol::Anthropic => anthropic(pieces, style),
        Protocol::Openai => openai(pieces, style),
        Protocol::Gemini => gemini(pieces, style),
        Protocol::OpenaiResponses => responses(pieces, style),
    }
}

fn in_cuts(protocol: Protocol, tags: ThinkTags, stream: &[u8], cuts: &[Index]) -> Vec<AnswerEvent> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| cut.index(stream.len() + 1)).chain([0, stream.len()]).collect();
    cuts.sort_unstable();
    decode_chunks(protocol, tags, cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]))
}

proptest! {
    #[test]
    fn an_answer_is_read_back_however_it_is_written_and_cut(
        protocol in protocols(),
        answer in vec(piece(), 0..6),
        style in style(),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let stream = render(protocol, &answer, &style);
        let events = decode_stream(protocol, ThinkTags::Leading, &stream);
        prop_assert_eq!(&events, &expected(protocol, &answer));
        prop_assert_eq!(&in_cuts(protocol, ThinkTags::Leading, &stream, &cuts), &events);
        let answer: Answer = events.into_iter().collect();
        prop_assert!(answer.calls().iter().all(|call| call.runnable.is_ok()));
    }

    #[test]
    fn garbage_is_read_the_same_however_it_is_cut(
        protocol in protocols(),
        answer in vec(piece(), 0..6),
        style in style(),
        mutations in vec(any::<(Index, u8, u8)>(), 1..8),
        cuts in vec(any::<Index>(), 0..8),
        tags in select(vec![ThinkTags::Never, ThinkTags::Leading, ThinkTags::Anywhere, ThinkTags::Opened]),
    ) {
        let mut stream = render(protocol, &answer, &style);
        mutate(&mut stream, &mutations);
        let events = decode_stream(protocol, tags, &stream);
        prop_assert_eq!(&in_cuts(protocol, tags, &stream, &cuts), &events);
        let answer: Answer = events.into_iter().collect();
        prop_assert_eq!(answer.calls().len(), answer.parts().iter().filter(|part| matches!(part, hardpan_prompt::MessagePart::ToolCall(_))).count());
        assert_ordered(&decode_answer_body_with_tags(protocol, tags, &stream));
    }

    #[test]
    fn an_answer_cut_short_runs_no_call_before_its_reason(
        protocol in protocols(),
        answer in vec(piece(), 0..6),
        style in style(),
        end in any::<Index>(),
    ) {
        let mut stream = render(protocol, &answer, &style);
        stream.truncate(end.index(stream.len()));
        let answer: Answer = decode_stream(protocol, ThinkTags::Leading, &stream).into_iter().collect();
        let clean = answer.stop.as_ref().is_some_and(StopReason::is_clean);
        prop_assert!(clean || answer.stop == Some(StopReason::Cut));
        prop_assert!(answer.calls().iter().all(|call| call.runnable.is_ok() == clean));
    }
}
