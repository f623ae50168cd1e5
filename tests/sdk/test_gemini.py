"""Google's official package talks to the simulator as it talks to the real server."""

import base64

from google import genai
from google.genai import errors, types

from test_sdk import LONG, PNG, WithSimulator

FLASH, OLDER = "gemini-3.5-flash", "gemini-2.5-flash"
SKIP = b"skip_thought_signature_validator"
WEATHER = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="weather",
            description="The weather of a city.",
            parameters_json_schema={
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        )
    ]
)


def user(*parts):
    return types.Content(role="user", parts=[types.Part(text=part) if isinstance(part, str) else part for part in parts])


class Gemini(WithSimulator):
    def setUp(self):
        options = types.HttpOptions(base_url=self.simulator.url, timeout=30_000)
        self.client = genai.Client(api_key="any", http_options=options)
        self.models = self.client.models

    def test_text(self):
        answer = self.models.generate_content(model=FLASH, contents="Hi")
        self.assertEqual(answer.text, "Hello from the simulator.")
        self.assertEqual(answer.candidates[0].finish_reason, types.FinishReason.STOP)
        self.assertGreater(answer.usage_metadata.prompt_token_count, 0)
        self.assertEqual(answer.model_version, FLASH)

    def test_stream(self):
        chunks = list(self.models.generate_content_stream(model=FLASH, contents="Count"))
        self.assertGreater(len(chunks), 2)
        self.assertTrue("".join(chunk.text or "" for chunk in chunks).endswith("nine, ten."))
        self.assertEqual(chunks[-1].candidates[0].finish_reason, types.FinishReason.STOP)
        counts = [chunk.usage_metadata.total_token_count for chunk in chunks]
        self.assertEqual(counts, sorted(counts))

    def test_thoughts(self):
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_level="low")
        config = types.GenerateContentConfig(thinking_config=thinking)
        answer = self.models.generate_content(model=FLASH, contents="Think first", config=config)
        thought, text = answer.candidates[0].content.parts
        self.assertTrue(thought.thought)
        self.assertEqual((text.text, answer.text), ("42", "42"))
        self.assertTrue(text.thought_signature)
        self.assertGreater(answer.usage_metadata.thoughts_token_count, 0)
        without = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=0))
        answer = self.models.generate_content(model=OLDER, contents="Think first", config=without)
        self.assertIsNone(answer.usage_metadata.thoughts_token_count)

    def test_calls(self):
        config = types.GenerateContentConfig(tools=[WEATHER])
        question = user("Which weather?")
        for stream in (False, True):
            if stream:
                chunks = self.models.generate_content_stream(model=FLASH, contents=[question], config=config)
                parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
            else:
                answer = self.models.generate_content(model=FLASH, contents=[question], config=config)
                parts = answer.candidates[0].content.parts
            call = next(part for part in parts if part.function_call)
            self.assertEqual(call.function_call.args, {"city": "Łódź", "days": 2})
            self.assertTrue(call.thought_signature and call.function_call.id)
            self.answer_call(question, call, config)

    def answer_call(self, question, call, config):
        response = types.FunctionResponse(id=call.function_call.id, name="weather", response={"output": "rain"})
        result = types.Content(role="user", parts=[types.Part(function_response=response)])
        contents = [question, types.Content(role="model", parts=[call]), result]
        answer = self.models.generate_content(model=FLASH, contents=contents, config=config)
        self.assertEqual(answer.text, "It rains in Łódź.")
        unsigned = types.Part(function_call=call.function_call)
        contents[1] = types.Content(role="model", parts=[unsigned])
        self.refuse(400, "missing a thought_signature", contents=contents, config=config)
        unsigned.thought_signature = SKIP
        self.assertTrue(self.models.generate_content(model=FLASH, contents=contents, config=config).text)
        unsigned.thought_signature = base64.b64decode("AAAA")
        self.refuse(400, "thought signature", contents=contents, config=config)
        self.refuse(400, "number of function response parts", contents=contents[:2], config=config)

    def test_automatic_calls(self):
        asked = []

        def weather(city: str, days: int) -> str:
            """The weather of a city."""
            asked.append((city, days))
            return "rain"

        chat = self.client.chats.create(model=FLASH, config=types.GenerateContentConfig(tools=[weather]))
        self.assertEqual(chat.send_message("Which weather?").text, "It rains in Łódź.")
        self.assertEqual(asked, [("Łódź", 2)])
        self.assertEqual(chat.send_message("Count").text[:8], "One, two")

    def test_images_and_system_instruction(self):
        image = types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")
        config = types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.5, max_output_tokens=100)
        answer = self.models.generate_content(model=FLASH, contents=[user("Look", image)], config=config)
        self.assertTrue(answer.text)

    def test_counts_and_models(self):
        count = self.models.count_tokens(model=FLASH, contents=LONG)
        self.assertGreater(count.total_tokens, 1000)
        self.assertIn(f"models/{FLASH}", [model.name for model in self.models.list()])
        self.assertGreater(self.models.get(model=FLASH).input_token_limit, 100_000)
        self.refuse(404, "is not found", model="no-such-model", contents="Hi")

    def test_implicit_cache(self):
        contents = [user(LONG * 4), types.Content(role="model", parts=[types.Part(text="Yes.")]), user("Hi")]
        first = self.models.generate_content(model=FLASH, contents=contents)
        second = self.models.generate_content(model=FLASH, contents=contents)
        self.assertIsNone(first.usage_metadata.cached_content_token_count)
        self.assertGreater(second.usage_metadata.cached_content_token_count, 4096)

    def test_cached_contents(self):
        caches = self.client.caches
        config = types.CreateCachedContentConfig(
            contents=[user(LONG)], system_instruction="Be brief.", display_name="long", ttl="600s"
        )
        cache = caches.create(model=FLASH, config=config)
        self.assertGreater(cache.usage_metadata.total_token_count, 1024)
        self.assertEqual(caches.get(name=cache.name).display_name, "long")
        self.assertIn(cache.name, [other.name for other in caches.list()])
        use = types.GenerateContentConfig(cached_content=cache.name)
        answer = self.models.generate_content(model=FLASH, contents="Hi", config=use)
        usage = answer.usage_metadata
        self.assertEqual(usage.cached_content_token_count, cache.usage_metadata.total_token_count)
        self.assertTrue(usage.cache_tokens_details)
        self.refuse(400, "has to be the same", model=OLDER, contents="Hi", config=use)
        both = types.GenerateContentConfig(cached_content=cache.name, system_instruction="No.")
        self.refuse(400, "CachedContent can not be used", contents="Hi", config=both)
        later = caches.update(name=cache.name, config=types.UpdateCachedContentConfig(ttl="7200s"))
        self.assertGreater(later.expire_time, cache.expire_time)
        caches.delete(name=cache.name)
        self.refuse(403, "CachedContent not found", contents="Hi", config=use)
        with self.assertRaisesRegex(errors.ClientError, "min_total_token_count=1024"):
            caches.create(model=FLASH, config=types.CreateCachedContentConfig(contents=[user("short")]))

    def test_refusals(self):
        both = types.ThinkingConfig(thinking_level="low", thinking_budget=100)
        self.refuse(400, "only set only one", contents="Hi", config=types.GenerateContentConfig(thinking_config=both))
        forbidden = genai.Client(api_key=" ", http_options=types.HttpOptions(base_url=self.simulator.url))
        with self.assertRaises(errors.ClientError) as refused:
            forbidden.models.generate_content(model=FLASH, contents="Hi")
        self.assertEqual((refused.exception.code, refused.exception.status), (403, "PERMISSION_DENIED"))

    def refuse(self, code, words, model=FLASH, **request):
        with self.assertRaises(errors.ClientError) as refused:
            self.models.generate_content(model=model, **request)
        self.assertEqual(refused.exception.code, code)
        self.assertIn(words, refused.exception.message)
