//! Providers in the form of the newer releases: made of parts by `createProvider`.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::extension_providers::{HELPERS, Person, fine_server, home_with, open_as, seen};
use super::subagents::prompt;

/// An extension that registers `createProvider` with these fields; `large` is a model without an address.
fn provider(fields: &str) -> String {
    format!(
        "{HELPERS}import {{ collapseSystemMessages, getCurrentSystemPrompt, getCurrentTools, createProvider, envApiKeyAuth, lazyOAuth, openAICompletionsApi, anthropicMessagesApi }} from '@earendil-works/pi-ai/compat';\n\
        import extra from './models.json' with {{ type: 'json' }};\n\
        const large = {{ ...models[0], api: 'openai-completions', provider: 'nest' }};\n\
        export default (pi) => {{ pi.registerProvider(createProvider({{ id: 'nest', name: 'Nest', {fields} }})); pi.registerCommand('seen', {{ handler: async (args, ctx) => ctx.ui.notify(JSON.stringify(seen)) }}); }}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hardpan_sends_the_requests_of_its_protocols_with_the_first_variable_that_is_set() {
    let server = fine_server();
    let fields = format!(
        "baseUrl: '{}/v1', auth: {{ apiKey: envApiKeyAuth('Nest key', ['NEST_KEY_THAT_IS_NOT_SET', 'HOME']) }}, models: Object.values(extra), api: {{ 'openai-completions': openAICompletionsApi(), 'anthropic-messages': anthropicMessagesApi() }}",
        server.url()
    );
    let (home, extensions) = home_with(&provider(&fields)).await;
    let models = r#"{ "large": { "id": "large", "api": "openai-completions", "provider": "nest", "contextWindow": 64000, "maxTokens": 800 } }"#;
    home.home.write("extensions/models.json", models);
    let person = Arc::new(Person::default());
    let test = open_as(home, extensions, Some("nest/large"), person.clone()).await;
    prompt(&test.app, "hello").await;
    assert_eq!(test.lines().last().unwrap(), "assistant: Fine.");
    assert_eq!(person.asked.lock().unwrap()[0].args["keys"], json!(["$HOME"]));
    let [request] = &server.received()[..] else { panic!("one request is sent") };
    let bearer = format!("Bearer {}", std::env::var("HOME").unwrap());
    assert_eq!((&*request.path, request.header("authorization")), ("/v1/chat/completions", Some(&*bearer)));
    assert_eq!(test.app.agent.target().model.context, 64_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_key_gets_none_and_its_models_are_fetched_before_they_are_needed() {
    let server = fine_server();
    let fields = format!(
        "baseUrl: '{}/v1', auth: {{ apiKey: {{ name: 'none', resolve: async () => ({{ auth: {{}} }}) }} }}, models: [], fetchModels: async (context) => {{ await new Promise((resolve) => setTimeout(resolve, 50)); return context.allowNetwork ? [{{ ...large, id: 'fetched' }}] : []; }}, api: openAICompletionsApi()",
        server.url()
    );
    let (home, extensions) = home_with(&provider(&fields)).await;
    home.home.write("extensions/models.json", "{}");
    let person = Arc::new(Person::default());
    let test = open_as(home, extensions, Some("nest/fetched"), person.clone()).await;
    prompt(&test.app, "hello").await;
    assert_eq!(test.lines().last().unwrap(), "assistant: Fine.");
    assert!(person.asked.lock().unwrap().is_empty(), "a server of this machine without a key needs no word");
    assert_eq!(server.received()[0].header("authorization"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_its_own_read_a_transcript_and_get_the_key_that_is_resolved() {
    let streams = "{ streamSimple: answer, stream: answer }";
    let fields = format!(
        "auth: {{ apiKey: {{ name: 'key', resolve: async ({{ ctx, signal }}) => ({{ auth: {{ apiKey: `made-${{signal.aborted}}-${{await ctx.fileExists('/no/such')}}`, headers: {{ 'x-nest': '1' }} }} }}) }} }}, models: [{{ ...large, api: 'twigs' }}], api: {streams}"
    );
    let answer = "const answer = (model, context, options) => { const stream = createAssistantMessageEventStream(); const output = begin(model); seen.push([context.messages.map((it) => it.role), context.messages[0].content.length > 0, context.messages[0].toolsAdded.some((it) => it.name === 'read'), options.apiKey, options.headers]); say(stream, output, 'Twigs.'); end(stream, output); return stream; };\n";
    let source = provider(&fields).replace("export default", &format!("{answer}export default"));
    let (home, extensions) = home_with(&source).await;
    home.home.write("extensions/models.json", "{}");
    let mut test = open_as(home, extensions, Some("nest/large"), Arc::default()).await;
    prompt(&test.app, "hello").await;
    assert_eq!(test.lines().last().unwrap(), "assistant: Twigs.");
    let expected = json!([[["system", "user"], true, true, "made-false-false", { "x-nest": "1" }]]);
    assert_eq!(seen(&mut test).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_log_in_with_the_parts_of_a_login() {
    let server = fine_server();
    let login = "lazyOAuth({ name: 'Nest', load: async () => ({ login: async ({ prompt, notify }) => { notify({ type: 'auth_url', url: 'https://nest.test/login' }); const code = await prompt({ type: 'text', message: 'Code?' }); return { type: 'oauth', access: 'access-of-' + code, refresh: 'r', expires: Date.now() + 3600e3 }; }, refresh: async (old) => old, toAuth: async (credential) => ({ apiKey: credential.type + '-' + credential.access }) }) })";
    let fields = format!(
        "baseUrl: '{}/v1', auth: {{ oauth: {login} }}, models: [large], api: openAICompletionsApi()",
        server.url()
    );
    let (home, extensions) = home_with(&provider(&fields)).await;
    home.home.write("extensions/models.json", "{}");
    let person = Arc::new(Person { texts: Mutex::new(vec!["four"]), ..Person::default() });
    let mut test = open_as(home, extensions, Some("nest/large"), person).await;
    test.say("/login nest").await;
    assert!(test.notes().contains(&"Open this address to log in: https://nest.test/login".to_owned()));
    prompt(&test.app, "hello").await;
    assert_eq!(server.received()[0].header("authorization"), Some("Bearer oauth-access-of-four"));
}

#[tokio::test(flavor = "multi_thread")]
async fn later_system_messages_change_the_prompt_and_the_tools() {
    let body = "const messages = [\
        { role: 'system', content: 'Be brief.', sections: { date: '<date>1</date>', place: 'Here.' }, toolsAdded: [{ name: 'read' }, { name: 'edit' }], timestamp: 1 },\
        { role: 'user', content: 'hello', timestamp: 2 },\
        { role: 'system', content: [{ type: 'text', text: 'Be kind.' }], sections: { date: '<date>2</date>', place: null }, toolsAdded: [{ name: 'read', is: 'new' }], toolsRemoved: [{ name: 'edit' }], timestamp: 3 }];\
        seen.push(getCurrentSystemPrompt(messages), getCurrentTools(messages), collapseSystemMessages({ messages }).messages, getCurrentSystemPrompt([]));";
    let source = provider("auth: {}, models: [large], api: openAICompletionsApi()");
    let source = source.replace("export default (pi) => {", &format!("export default (pi) => {{ {body}"));
    let (home, extensions) = home_with(&source).await;
    home.home.write("extensions/models.json", "{}");
    let mut test = open_as(home, extensions, None, Arc::default()).await;
    let (prompt, tools) = ("Be brief.\n\nBe kind.", json!([{ "name": "read", "is": "new" }]));
    let system = json!({ "role": "system", "content": prompt, "timestamp": 1, "sections": { "date": "<date>2</date>" }, "toolsAdded": tools });
    let user = json!({ "role": "user", "content": "hello", "timestamp": 2 });
    let expected = json!([format!("{prompt}\n\n<date>2</date>"), tools, [system, user], ""]);
    assert_eq!(seen(&mut test).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_supported_is_said_when_it_is_loaded() {
    let changed = "apiKey: { name: 'key', resolve: async ({ ctx }) => ({ auth: { apiKey: 'pre-' + await ctx.env('HOME') } }) }";
    for (fields, told) in [
        (format!("auth: {{ {changed} }}, models: [large], api: openAICompletionsApi()"), "changes the key that it reads"),
        ("auth: {}, models: [large], api: (await import('@earendil-works/pi-ai')).azureOpenAIResponsesApi()".to_owned(), "azure-openai-responses"),
    ] {
        let source = provider(&fields).replace("export default (pi)", "export default async (pi)");
        let (home, extensions) = home_with(&source).await;
        home.home.write("extensions/models.json", "{}");
        let test = open_as(home, extensions, None, Arc::default()).await;
        let notices = test.notices();
        assert!(notices.iter().any(|notice| notice.contains(told)), "{notices:?}");
    }
}
