"""The official Anthropic and OpenAI packages talk to the simulator as they talk to the real servers."""

import os
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import anthropic
import openai

HERE = Path(__file__).parent
BINARY = os.environ["HARDPAN_BIN"]
# A model that does not think unless asked.
CLAUDE, GPT = "claude-opus-4-8", "gpt-4o"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LONG = "The simulator counts every word of this sentence. " * 200


class Simulator:
    """A running simulator; it ends with the test class that started it."""

    def __init__(self, *arguments):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BINARY, "simulator", "--port", "0", *arguments], stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        # A binary that says nothing must not hold up the test for ever.
        watchdog = threading.Timer(60, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        if not line.startswith("listening on "):
            self.errors.seek(0)
            raise RuntimeError(f"no simulator: {line!r} {self.errors.read().decode()}")
        self.url = line.removeprefix("listening on ").strip()

    def anthropic(self):
        return anthropic.Anthropic(api_key="any", base_url=self.url, max_retries=0, timeout=30)

    def openai(self):
        return openai.OpenAI(api_key="any", base_url=f"{self.url}/v1", max_retries=0, timeout=30)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()
        self.errors.close()


class WithSimulator(unittest.TestCase):
    arguments = ("--script", str(HERE / "script.yaml"))

    @classmethod
    def setUpClass(cls):
        cls.simulator = Simulator(*cls.arguments)
        cls.addClassCleanup(cls.simulator.stop)


def user(content):
    return {"role": "user", "content": content}


class Anthropic(WithSimulator):
    def setUp(self):
        self.client = self.simulator.anthropic()

    def ask(self, content, **more):
        return self.client.messages.create(
            **{"model": CLAUDE, "max_tokens": 1000, "messages": [user(content)], **more}
        )

    def test_plain(self):
        answer = self.ask("Hi")
        self.assertEqual(answer.content[0].text, "Hello from the simulator.")
        self.assertEqual((answer.role, answer.model, answer.stop_reason), ("assistant", CLAUDE, "end_turn"))
        self.assertGreater(answer.usage.output_tokens, 0)
        self.assertTrue(answer._request_id.startswith("req_"))

    def test_streamed(self):
        arguments = {"model": CLAUDE, "max_tokens": 1000, "messages": [user("Count")]}
        with self.client.messages.stream(**arguments) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertGreater(len(pieces), 2)
        self.assertEqual("".join(pieces), final.content[0].text)
        whole = self.client.messages.create(**arguments)
        self.assertEqual(final.content[0].text, whole.content[0].text)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        events = [event.type for event in self.client.messages.create(**arguments, stream=True)]
        self.assertEqual((events[0], events[-1]), ("message_start", "message_stop"))

    def test_tools(self):
        tools = [{"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}]
        for streamed in (False, True):
            arguments = {"model": CLAUDE, "max_tokens": 1000, "tools": tools}
            messages = [user("Which weather?")]
            if streamed:
                with self.client.messages.stream(**arguments, messages=messages) as stream:
                    first = stream.get_final_message()
            else:
                first = self.client.messages.create(**arguments, messages=messages)
            call = first.content[1]
            self.assertEqual((first.stop_reason, call.name, call.input), ("tool_use", "weather", {"city": "Łódź", "days": 2}))
            messages += [
                {"role": "assistant", "content": [part.to_dict() for part in first.content]},
                user([{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]),
            ]
            second = self.client.messages.create(**arguments, messages=messages)
            self.assertEqual(second.content[0].text, "It rains in Łódź.")
            del messages[2:]
            with self.assertRaises(anthropic.BadRequestError):
                self.client.messages.create(**arguments, messages=messages + [user("And?")])

    def test_thinking(self):
        thinking = {"type": "adaptive", "display": "summarized"}
        with self.client.messages.stream(
            model=CLAUDE, max_tokens=2000, thinking=thinking, messages=[user("Think first")]
        ) as stream:
            answer = stream.get_final_message()
        self.assertEqual([part.type for part in answer.content], ["thinking", "text"])
        self.assertTrue(answer.content[0].signature)
        back = [user("Think first"), {"role": "assistant", "content": [part.to_dict() for part in answer.content]}, user("Hi")]
        self.client.messages.create(model=CLAUDE, max_tokens=2000, thinking=thinking, messages=back)
        back[1]["content"][0]["signature"] = "forged"
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(model=CLAUDE, max_tokens=2000, thinking=thinking, messages=back)

    def test_images(self):
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        answer = self.ask([{"type": "image", "source": source}, {"type": "text", "text": "Hi"}])
        self.assertEqual(answer.content[0].text, "Hello from the simulator.")

    def test_max_tokens(self):
        answer = self.ask("Count", max_tokens=4)
        self.assertEqual((answer.stop_reason, answer.usage.output_tokens), ("max_tokens", 4))

    def test_count_tokens_agrees_with_the_bill(self):
        counted = self.client.messages.count_tokens(model=CLAUDE, messages=[user("Hi")], system="Be brief.")
        self.assertEqual(counted.input_tokens, self.ask("Hi", system="Be brief.").usage.input_tokens)

    def test_cache_writes_and_reads(self):
        marker = {"type": "ephemeral", "ttl": "1h"}
        system = [{"type": "text", "text": "1h " + LONG, "cache_control": marker}]
        content = [
            {"type": "text", "text": "5m " + LONG, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Hi"},
        ]
        first = self.ask(content, system=system).usage
        self.assertEqual(first.cache_read_input_tokens, 0)
        self.assertGreater(first.cache_creation.ephemeral_1h_input_tokens, 1024)
        self.assertGreater(first.cache_creation.ephemeral_5m_input_tokens, 1024)
        created = first.cache_creation.ephemeral_1h_input_tokens + first.cache_creation.ephemeral_5m_input_tokens
        self.assertEqual(first.cache_creation_input_tokens, created)
        with self.client.messages.stream(
            model=CLAUDE, max_tokens=1000, system=system, messages=[user(content)]
        ) as stream:
            second = stream.get_final_message().usage
        self.assertEqual((second.cache_read_input_tokens, second.cache_creation_input_tokens), (created, 0))
        self.assertEqual(second.input_tokens, first.input_tokens)

    def test_errors(self):
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.ask("Hi", model="claude-none")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([{"type": "text", "text": ""}])
        self.assertIn("text content blocks must be non-empty", str(caught.exception))
        with self.assertRaises(anthropic.BadRequestError):
            self.ask("Hi", extra_body={"temperature": 7})

    def test_models(self):
        self.assertIn(CLAUDE, [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve(CLAUDE).id, CLAUDE)


class OpenAI(WithSimulator):
    def setUp(self):
        self.client = self.simulator.openai()

    def ask(self, content, **more):
        return self.client.chat.completions.create(**{"model": GPT, "messages": [user(content)], **more})

    def test_plain(self):
        answer = self.ask("Hi")
        choice = answer.choices[0]
        self.assertEqual((choice.message.content, choice.finish_reason), ("Hello from the simulator.", "stop"))
        usage = answer.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertTrue(answer._request_id.startswith("req_"))

    def test_streamed(self):
        chunks = list(self.ask("Count", stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        whole = self.ask("Count")
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual((chunks[-1].choices, chunks[-1].usage), ([], whole.usage))
        self.assertTrue(all(chunk.usage is None for chunk in chunks[:-1]))
        self.assertTrue(all(chunk.usage is None for chunk in self.ask("Count", stream=True)))

    def test_tools(self):
        tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
        messages = [user("Which weather?")]
        first = self.client.chat.completions.create(model=GPT, messages=messages, tools=tools)
        call = first.choices[0].message.tool_calls[0]
        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        self.assertEqual((call.function.name, call.function.arguments), ("weather", '{"city":"Łódź","days":2}'))
        with self.client.chat.completions.stream(model=GPT, messages=messages, tools=tools) as stream:
            streamed = stream.get_final_completion()
        self.assertEqual(streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments)
        messages += [
            first.choices[0].message.to_dict(),
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        second = self.client.chat.completions.create(model=GPT, messages=messages, tools=tools)
        self.assertEqual(second.choices[0].message.content, "It rains in Łódź.")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model=GPT, messages=messages[:2] + [user("And?")], tools=tools)
        self.assertIn("must be followed by tool messages", str(caught.exception))

    def test_images(self):
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
        answer = self.ask([image, {"type": "text", "text": "Hi"}])
        self.assertEqual(answer.choices[0].message.content, "Hello from the simulator.")
        with self.assertRaises(openai.BadRequestError):
            self.ask([image], model="deepseek/deepseek-chat")

    def test_max_tokens(self):
        answer = self.ask("Count", max_completion_tokens=4)
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 4))

    def test_cache_reads(self):
        first = self.ask("openai " + LONG).usage
        second = self.ask("openai " + LONG).usage
        self.assertEqual((first.prompt_tokens_details.cached_tokens, first.prompt_tokens), (0, second.prompt_tokens))
        cached = second.prompt_tokens_details.cached_tokens
        self.assertTrue(1024 <= cached < second.prompt_tokens and cached % 128 == 0, cached)

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.ask("Hi", model="gpt-none")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError):
            self.ask("Hi", max_tokens=10_000_000)

    def test_models(self):
        self.assertIn(GPT, [model.id for model in self.client.models.list()])


class Responses(WithSimulator):
    """The official package's `responses`, with a model that reasons."""

    model = "gpt-6-luna"
    tool = {"type": "function", "name": "weather", "description": "Tells the weather.", "parameters": SCHEMA, "strict": False}

    def setUp(self):
        self.client = self.simulator.openai()

    def ask(self, content, **more):
        return self.client.responses.create(**{"model": self.model, "input": content, "store": False, **more})

    def test_plain(self):
        answer = self.ask("Hi")
        self.assertEqual((answer.output_text, answer.status), ("Hello from the simulator.", "completed"))
        usage = answer.usage
        self.assertEqual(usage.total_tokens, usage.input_tokens + usage.output_tokens)
        self.assertTrue(answer._request_id.startswith("req_"))

    def test_streamed(self):
        with self.client.responses.stream(model=self.model, input="Count", store=False) as stream:
            pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        self.assertGreater(len(pieces), 2)
        self.assertEqual("".join(pieces), final.output_text)
        events = [event.type for event in self.ask("Count", stream=True)]
        self.assertEqual((events[0], events[-1]), ("response.created", "response.completed"))

    def test_parallel_tools_and_reasoning(self):
        arguments = {"model": self.model, "tools": [self.tool], "store": False, "reasoning": {"effort": "low", "summary": "auto"}}
        for streamed in (False, True):
            items = [user("Compare the weather")]
            if streamed:
                with self.client.responses.stream(**arguments, input=items) as stream:
                    first = stream.get_final_response()
            else:
                first = self.client.responses.create(**arguments, input=items)
            self.assertEqual(
                [item.type for item in first.output], ["reasoning", "message", "function_call", "function_call"]
            )
            self.assertEqual(first.output[0].summary[0].text, "Two cities.")
            calls = first.output[2:]
            self.assertEqual([call.arguments for call in calls], ['{"city":"Łódź"}', '{"city":"Gdańsk"}'])
            items += [self.echo(item.to_dict()) for item in first.output]
            items += [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"} for call in calls]
            self.assertEqual(self.client.responses.create(**arguments, input=items).output_text, "It rains in Łódź.")
            with self.assertRaises(openai.BadRequestError) as caught:
                self.client.responses.create(**arguments, input=items[:-1])
            self.assertIn("No tool output found for function call", str(caught.exception))

    @staticmethod
    def echo(item):
        """An item as it came: the package's stream adds what it parsed."""
        content = [{key: part[key] for key in part if key != "parsed"} for part in item.get("content") or []]
        item = {key: item[key] for key in item if key != "parsed_arguments"}
        return {**item, "content": content} if content else item

    def test_stored(self):
        first = self.ask("Hi", store=True)
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, first.output_text)
        second = self.ask("Count", store=True, previous_response_id=first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)

    def test_limits_and_errors(self):
        answer = self.ask("Count", max_output_tokens=16)
        self.assertEqual((answer.status, answer.incomplete_details.reason), ("incomplete", "max_output_tokens"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask("Hi", max_output_tokens=15)
        self.assertEqual(caught.exception.code, "integer_below_min_value")

    def test_cache(self):
        first = self.ask("responses " + LONG).usage
        second = self.ask("responses " + LONG).usage
        written = first.input_tokens_details.cache_write_tokens
        self.assertGreater(written, 1024)
        self.assertEqual(second.input_tokens_details.cached_tokens, written)


class Errors(unittest.TestCase):
    """Each status raises the class that its SDK has for it."""

    cases = (
        ("status=401", "AuthenticationError", 401),
        ("status=403", "PermissionDeniedError", 403),
        ("status=429,retry-after=3", "RateLimitError", 429),
        ("status=500", "InternalServerError", 500),
        ("status=529", "APIStatusError", 529),
    )

    def test_statuses(self):
        for faults, name, status in self.cases:
            simulator = Simulator("--faults", faults)
            self.addCleanup(simulator.stop)
            for module, ask in (
                (anthropic, lambda: simulator.anthropic().messages.create(model=CLAUDE, max_tokens=9, messages=[user("Hi")])),
                (openai, lambda: simulator.openai().chat.completions.create(model=GPT, messages=[user("Hi")])),
            ):
                with self.subTest(faults=faults, sdk=module.__name__):
                    with self.assertRaises(getattr(module, name)) as caught:
                        ask()
                    self.assertEqual(caught.exception.status_code, status)
                    wait = "3" if status == 429 else None
                    self.assertEqual(caught.exception.response.headers.get("retry-after"), wait)

    def test_a_missing_key(self):
        simulator = Simulator()
        self.addCleanup(simulator.stop)
        with self.assertRaises(anthropic.AuthenticationError):
            keyless = {"Authorization": anthropic.Omit(), "x-api-key": anthropic.Omit()}
            simulator.anthropic().messages.create(
                model=CLAUDE, max_tokens=9, messages=[user("Hi")], extra_headers=keyless
            )
        with self.assertRaises(openai.AuthenticationError):
            keyless = {"Authorization": openai.Omit()}
            simulator.openai().chat.completions.create(model=GPT, messages=[user("Hi")], extra_headers=keyless)

    def test_an_error_in_a_stream_and_a_stream_that_is_cut(self):
        simulator = Simulator("--faults", "error=600,times=2; cut=600,after=2")
        self.addCleanup(simulator.stop)
        streams = (
            lambda: list(
                simulator.anthropic().messages.create(model=CLAUDE, max_tokens=99, messages=[user("Hi")], stream=True)
            ),
            lambda: list(simulator.openai().chat.completions.create(model=GPT, messages=[user("Hi")], stream=True)),
        )
        for stream, expected in zip(streams, (anthropic.APIStatusError, openai.APIError)):
            with self.assertRaises(expected):
                stream()
        # The one hands on what its HTTP library raises, the other has a class for it.
        for stream, expected in zip(streams, ("RemoteProtocolError", "APIConnectionError")):
            with self.assertRaises(Exception) as caught:
                stream()
            self.assertEqual(type(caught.exception).__name__, expected)

    def test_retries_get_over_what_passes(self):
        simulator = Simulator("--faults", "status=529,times=2")
        self.addCleanup(simulator.stop)
        client = simulator.anthropic().with_options(max_retries=2)
        answer = client.messages.create(model=CLAUDE, max_tokens=99, messages=[user("Hi")])
        self.assertIn("no language model", answer.content[0].text)


if __name__ == "__main__":
    unittest.main()
