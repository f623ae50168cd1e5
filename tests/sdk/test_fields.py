"""The fields that the simulator knows are those of the official packages' types, record by record.

A field that either side gains or loses fails here until the tables below say why the two differ.
"""

import json
import subprocess
import typing
import unittest

from anthropic.types import beta
from anthropic.types.beta import message_create_params
from openai.types import responses, shared_params
from openai.types.responses import response_create_params
from openai.types.shared_params import custom_tool_input_format

from test_sdk import BINARY

ANTHROPIC = {
    "request": message_create_params.MessageCreateParams,
    "cache_control": beta.BetaCacheControlEphemeralParam,
    "thinking.adaptive": beta.BetaThinkingConfigAdaptiveParam,
    "thinking.between_tools": beta.BetaThinkingConfigBetweenToolsParam,
    "thinking.disabled": beta.BetaThinkingConfigDisabledParam,
    "thinking.enabled": beta.BetaThinkingConfigEnabledParam,
    "thinking.block_binding": beta.BetaThinkingBlockBindingParam,
    "output_config": beta.BetaOutputConfigParam,
    "diagnostics": beta.BetaDiagnosticsParam,
    "context_management": beta.BetaContextManagementConfigParam,
    "compaction": beta.BetaCompactionConfigParam,
    "thread.create": beta.BetaThreadCreateParams,
    "thread.continue": beta.BetaThreadContinueParams,
    "fallbacks": beta.BetaFallbackParam,
    "tools.custom": beta.BetaToolParam,
    "tool_choice.auto": typing.Union[beta.BetaToolChoiceAutoParam, beta.BetaToolChoiceAnyParam],
    "tool_choice.none": beta.BetaToolChoiceNoneParam,
    "tool_choice.tool": beta.BetaToolChoiceToolParam,
    "message": beta.BetaMessageParam,
    "message.system": beta.BetaSystemMessageParam,
    "message.system.output_config": beta.BetaSystemMessageOutputConfigParam,
    "block.tool_addition": typing.Union[
        beta.BetaRequestToolAdditionBlockParam, beta.BetaRequestToolRemovalBlockParam
    ],
    "block.text": beta.BetaTextBlockParam,
    "block.image": beta.BetaImageBlockParam,
    "block.thinking": beta.BetaThinkingBlockParam,
    "block.redacted_thinking": beta.BetaRedactedThinkingBlockParam,
    "block.tool_use": beta.BetaToolUseBlockParam,
    "block.tool_result": beta.BetaToolResultBlockParam,
    "source.url": beta.BetaURLImageSourceParam,
    "source.base64": beta.BetaBase64ImageSourceParam,
}
RESPONSES = {
    "request": response_create_params.ResponseCreateParams,
    "prompt_cache_options": response_create_params.PromptCacheOptions,
    "reasoning": shared_params.Reasoning,
    "text": responses.ResponseTextConfigParam,
    "text.format.json_schema": responses.ResponseFormatTextJSONSchemaConfigParam,
    "text.format.text": typing.Union[shared_params.ResponseFormatText, shared_params.ResponseFormatJSONObject],
    "stream_options": response_create_params.StreamOptions,
    "context_management": response_create_params.ContextManagement,
    "tools.namespace": responses.NamespaceToolParam,
    "tools.function": responses.FunctionToolParam,
    "tools.custom": responses.CustomToolParam,
    "tools.custom.format": custom_tool_input_format.Grammar,
    "tool_choice": typing.Union[
        responses.ToolChoiceFunctionParam,
        responses.ToolChoiceCustomParam,
        responses.ToolChoiceAllowedParam,
        responses.ToolChoiceMcpParam,
    ],
}
# In the package's types, but no field of a body.
HEADERS = {"request": {"betas", "user_profile_id", "workspace_id"}}
# Fields that the simulator does not know yet: it refuses them, though the real server takes them.
ANTHROPIC_GAPS = {
    "request": {"fallback_credit_token"},
    "message": {"clear_at", "output_config"},  # the type is that of all roles; these are for the system
    "block.image": {"transformations"},
    "block.tool_use": {"toolset_name"},
    "block.tool_result": {"toolset_name"},
}
RESPONSES_GAPS = {}
# Fields that the simulator takes though the types lack them, and why.
ANTHROPIC_EXTRA = {
    # API version 2023-06-01 has them; the package is written for 2026-10-21.
    "request": {"temperature", "top_p", "top_k", "output_format"},
}
RESPONSES_EXTRA = {
    "request": {"client_metadata"},  # Codex sends it to every server
    "stream_options": {"reasoning_summary_delivery"},  # Codex, too
}


def fields_of(kind):
    """The names of a typed dictionary's fields, or of all members of a union of them."""
    return {name for member in typing.get_args(kind) or (kind,) for name in member.__annotations__}


class Fields(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.known = json.loads(subprocess.check_output([BINARY, "simulator", "--fields"], timeout=60))

    def compare(self, protocol, types, headers, gaps, extra):
        known = self.known[protocol]
        self.assertEqual(sorted(known), sorted(types))
        for record, kind in types.items():
            ours, theirs = set(known[record]), fields_of(kind) - headers.get(record, set())
            with self.subTest(protocol=protocol, record=record):
                self.assertEqual(len(known[record]), len(ours), "a field is listed twice")
                self.assertEqual(theirs - ours, gaps.get(record, set()), "missing in the simulator")
                self.assertEqual(ours - theirs, extra.get(record, set()), "missing in the package")

    def test_anthropic_messages(self):
        self.compare("anthropic", ANTHROPIC, HEADERS, ANTHROPIC_GAPS, ANTHROPIC_EXTRA)

    def test_openai_responses(self):
        self.compare("openai_responses", RESPONSES, {}, RESPONSES_GAPS, RESPONSES_EXTRA)
