//! The log of requests: one line each, with the bill or the refusal, and without keys.

use std::time::Duration;

use hardpan_models::Protocol;
use hardpan_providers::{HttpMethod, HttpRequest, HttpTransport, Transport};
use hardpan_simulator::{Engine, RequestLog, ServerConfig, serve};
use serde_json::{Value, json};

use crate::providers::{path, scripted};

#[tokio::test]
async fn every_request_is_a_line_with_its_bill_or_its_refusal() {
    let folder = std::env::temp_dir().join(format!("hardpan-request-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("requests.jsonl");
    let settings = scripted("turns: [{text: Good morning.}]");
    let log = Some(RequestLog::create(&file).unwrap());
    let server = serve(ServerConfig { log, ..ServerConfig::new(Engine::new(settings)) }).await.unwrap();
    let transport = HttpTransport::new(None).unwrap();
    let good = json!({
        "model": "claude-sonnet-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hello!\nTwo lines."}],
    });
    for body in [serde_json::to_vec_pretty(&good).unwrap(), b"{}".to_vec(), b"no json".to_vec()] {
        let request = HttpRequest {
            method: HttpMethod::Post,
            url: format!("{}/v1{}?key=secret", server.url(), path(Protocol::Anthropic)),
            headers: vec![
                ("x-api-key".into(), "secret".into()),
                ("anthropic-version".into(), "2023-06-01".into()),
            ],
            body: body.into(),
        };
        transport.send(request).await.unwrap();
    }
    server.stop(Duration::from_secs(1)).await.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<&Value> = lines.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [200, 400, 400]);
    let bill = &lines[0]["bill"];
    let input = bill["usage"]["input"].as_f64().unwrap();
    assert!(input > 0.0, "{bill}");
    assert_eq!((&bill["model"], &bill["input_units"]), (&json!("claude-sonnet-5"), &json!(input)));
    let output = bill["usage"]["output"].as_f64().unwrap();
    let dollars = bill["dollars"].as_f64().unwrap();
    assert!((dollars - (input * 2.0 + output * 10.0) / 1e6).abs() < 1e-12, "{bill}");
    assert_eq!((&lines[0]["path"], &lines[0]["body"]), (&json!("/v1/messages"), &good));
    assert_eq!((lines[1].get("bill"), &lines[1]["error"]["type"]), (None, &json!("error")));
    assert_eq!(lines[2]["body"], "no json");
}
