"""What is new in Anthropic Messages, as the official package sends and reads it."""

import unittest

import anthropic

from test_sdk import SCHEMA, Simulator, WithSimulator, user

OPUS = "claude-opus-5-5"
WEATHER = {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA}


def assistant(answer):
    return {"role": "assistant", "content": [part.to_dict() for part in answer.content]}


class Anthropic(WithSimulator):
    def setUp(self):
        self.client = self.simulator.anthropic()

    def ask(self, messages, create=None, **more):
        arguments = {"model": OPUS, "max_tokens": 2000, "messages": messages, **more}
        return (create or self.client.messages.create)(**arguments)

    def test_adaptive_thinking_and_its_display(self):
        hidden = self.ask([user("Think first")])
        self.assertEqual([part.type for part in hidden.content], ["thinking", "text"])
        self.assertEqual(hidden.content[0].thinking, "")
        shown = self.ask([user("Think first")], thinking={"type": "adaptive", "display": "summarized"})
        self.assertEqual(shown.content[0].thinking, "Seven times six is forty-two.")
        self.assertGreater(shown.usage.output_tokens_details.thinking_tokens, 0)
        again = self.ask([user("Think first"), assistant(hidden), user("Hi")])
        self.assertEqual(again.content[-1].text, "Hello from the simulator.")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([user("Think last"), assistant(hidden), user("Hi")])
        self.assertIn("bound to a different conversation", str(caught.exception))

    def test_streamed_thinking(self):
        for display, pieces in (("omitted", 0), ("summarized", 1)):
            events = []
            with self.client.messages.stream(
                model=OPUS,
                max_tokens=2000,
                messages=[user("Think first")],
                thinking={"type": "adaptive", "display": display},
            ) as stream:
                events = [event for event in stream if event.type == "content_block_delta"]
                final = stream.get_final_message()
            kinds = [event.delta.type for event in events]
            self.assertEqual(min(kinds.count("thinking_delta"), 1), pieces)
            self.assertEqual(kinds.count("signature_delta"), 1)
            self.assertTrue(final.content[0].signature)
            self.assertEqual(final.stop_reason, "end_turn")

    def test_refused_thinking(self):
        for model, thinking in (
            (OPUS, {"type": "disabled"}),
            (OPUS, {"type": "enabled", "budget_tokens": 1024}),
            ("claude-sonnet-5-5", {"type": "disabled"}),
            ("claude-haiku-4-5", {"type": "adaptive"}),
        ):
            with self.subTest(model=model, thinking=thinking), self.assertRaises(anthropic.BadRequestError):
                self.ask([user("Hi")], model=model, thinking=thinking)

    def test_effort(self):
        def tokens(effort):
            answer = self.ask([user("Hi")], output_config={"effort": effort})
            return answer.usage.output_tokens_details.thinking_tokens

        self.assertLess(tokens("low"), tokens("max"))
        with self.assertRaises(anthropic.BadRequestError):
            self.ask([user("Hi")], model="claude-haiku-4-5", output_config={"effort": "low"})

    def test_diagnostics(self):
        first = self.ask([user("Hi")], diagnostics={"previous_message_id": None}, system="Be brief.")
        self.assertIsNone(first.diagnostics)
        chain = {"previous_message_id": first.id}
        messages = [user("Hi"), assistant(first), user("And?")]
        second = self.ask(messages, diagnostics=chain, system="Be brief.")
        self.assertIsNone(second.diagnostics)
        changed = self.ask([user("Hi")], diagnostics=chain, system="Be long.")
        reason = changed.diagnostics.cache_miss_reason
        self.assertEqual(reason.type, "system_changed")
        self.assertGreater(reason.cache_missed_input_tokens, 0)

    def test_forced_diagnostics(self):
        simulator = Simulator("--diagnostics", "pending")
        self.addCleanup(simulator.stop)
        answer = simulator.anthropic().messages.create(
            model=OPUS, max_tokens=900, messages=[user("Hi")], diagnostics={"previous_message_id": "msg_1"}
        )
        self.assertIsNone(answer.diagnostics.cache_miss_reason)

    def test_system_messages(self):
        system = {"role": "system", "content": "Tests must pass before you finish."}
        answer = self.ask([user("Hi"), system])
        self.assertEqual(answer.content[-1].text, "Hello from the simulator.")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([system, user("Hi")])
        self.assertIn("use the top-level 'system' parameter", str(caught.exception))
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([user("Hi"), system], model="claude-sonnet-5")
        self.assertIn("role 'system' is not supported on this model", str(caught.exception))
        effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
        beta = self.client.beta.messages.create
        self.ask([user("Hi"), effort], create=beta, betas=["mid-conversation-output-config-2026-07-01"])
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.ask([user("Hi"), effort], create=beta)
        self.assertIn("messages.1.output_config: Extra inputs are not permitted", str(caught.exception))

    def test_tool_search(self):
        search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
        tools = [search, {**WEATHER, "defer_loading": True}]
        found = [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "weather"}},
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": "weather"}],
                },
            },
            {"type": "text", "text": "I found it."},
        ]
        messages = [user("Hi"), {"role": "assistant", "content": found}, user("Which weather?")]
        answer = self.ask(messages, tools=tools)
        self.assertEqual((answer.stop_reason, answer.content[-1].name), ("tool_use", "weather"))
        plain = self.ask([user("Hi")], tools=[search]).usage.input_tokens
        self.assertEqual(self.ask([user("Hi")], tools=tools).usage.input_tokens, plain)
        with self.assertRaises(anthropic.BadRequestError):
            self.ask([user("Hi")], tools=[{**WEATHER, "defer_loading": True}])

    def test_context_editing(self):
        answer = self.ask(
            [user("Hi")],
            create=self.client.beta.messages.create,
            betas=["context-management-2025-06-27"],
            context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        )
        self.assertEqual(answer.context_management.applied_edits, [])

    def test_compaction_on_demand(self):
        beta, betas = self.client.beta.messages.create, ["compact-2026-09-04"]
        compacted = self.ask(
            [user("Hi"), {"role": "assistant", "content": "Hello."}, user("And?")],
            create=beta,
            betas=betas,
            compaction={"type": "summarize"},
        )
        self.assertEqual((compacted.stop_reason, compacted.content[0].type), ("compaction", "compaction"))
        self.assertEqual(compacted.usage.input_tokens, 0)
        self.assertEqual(compacted.usage.iterations[0].type, "compaction")
        self.ask([assistant(compacted), user("Go on")], create=beta, betas=betas)

    def test_capabilities(self):
        model = self.client.models.retrieve("claude-sonnet-5-5")
        types = model.capabilities.thinking.types
        self.assertTrue(types.adaptive.supported and types.between_tools.supported)
        self.assertFalse(types.disabled.supported or types.enabled.supported)
        self.assertTrue(model.capabilities.effort.xhigh.supported)
        self.assertEqual(model.max_input_tokens, 1_000_000)


if __name__ == "__main__":
    unittest.main()
