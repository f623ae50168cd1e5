"""Runs scripts/refresh-models.py as a person does, on a wheel made here and a catalogue made here."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
LIST = "litellm/model_prices_and_context_window_backup.json"


def entry(price=3e-06, window=200_000, **others):
    """A row of the price list: a chat model of Anthropic."""
    return {
        "litellm_provider": "anthropic",
        "mode": "chat",
        "input_cost_per_token": price,
        "output_cost_per_token": price * 5,
        "max_input_tokens": window,
        "max_output_tokens": 64_000,
        "supports_function_calling": True,
        **others,
    }


class RefreshModels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.data = self.root / "crates/models/data/models.json"
        self.data.parent.mkdir(parents=True)
        (self.root / "scripts").mkdir()
        shutil.copy(SCRIPTS / "refresh-models.py", self.root / "scripts")
        self.write_facts([])
        self.data.write_text(json.dumps({"models": []}))

    def write_facts(self, models):
        facts = {"as_of": "2026-11", "models": models}
        (self.root / "scripts/model-facts.json").write_text(json.dumps(facts))

    def refresh(self, listed, *arguments, date=(2026, 10, 5, 0, 0, 0)):
        """Runs the script on a wheel with this list; returns its exit code and its words."""
        wheel = self.root / "litellm-9.8.7-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(zipfile.ZipInfo(LIST, date), json.dumps(listed))
        script = self.root / "scripts/refresh-models.py"
        command = [sys.executable, script, "--wheel", wheel, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=self.root, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def accept(self, listed, *arguments):
        """Runs the script, which must write."""
        code, words = self.refresh(listed, *arguments)
        self.assertEqual(code, 0, words)

    def written(self):
        return json.loads(self.data.read_text())

    def rows(self):
        return {row["id"]: row for row in self.written()["models"]}

    def test_a_row_has_the_list_s_figures_per_million_tokens(self):
        long = {"input_cost_per_token_above_200k_tokens": 6e-06, "supports_vision": True}
        self.accept({"claude-a": entry(**long), "claude-audio": entry(mode="audio_transcription")})
        expected = {
            "provider": "anthropic",
            "id": "claude-a",
            "context": 200_000,
            "max_output": 64_000,
            "price": {
                "input": 3.0,
                "output": 15.0,
                "cache_read": 0.3,
                "cache_write": 3.75,
                "cache_write_1h": 6.0,
            },
            "price_above": [{"tokens": 200_000, "input": 6.0}],
            "vision": True,
            "tools": True,
        }
        self.assertEqual(self.rows(), {"claude-a": expected})
        self.assertEqual(self.written()["as_of"], "2026-10")
        self.assertIn("LiteLLM package 9.8.7", self.written()["about"])

    def test_a_wheel_without_a_date_takes_the_facts_date(self):
        code, words = self.refresh({"claude-a": entry()}, date=(1980, 1, 1, 0, 0, 0))
        self.assertEqual(code, 0, words)
        self.assertEqual(self.written()["as_of"], "2026-11")

    def test_other_providers_and_other_uses_stay_out(self):
        listed = {
            "claude-a": entry(),
            "claude-realtime-a": entry(),
            "other-a": entry(litellm_provider="other"),
            "openrouter/anthropic/claude-a": entry(litellm_provider="openrouter"),
        }
        self.accept(listed)
        names = {(row["provider"], row["id"]) for row in self.written()["models"]}
        self.assertEqual(names, {("anthropic", "claude-a"), ("openrouter", "anthropic/claude-a")})

    def surprise(self, before, after, words):
        """`after` must be refused with these words, and written with --accept."""
        self.accept(before)
        kept = self.data.read_bytes()
        for arguments in [[], ["--check"]]:
            code, told = self.refresh(after, *arguments)
            self.assertEqual((code, self.data.read_bytes()), (1, kept), told)
            self.assertIn(f"surprise: {words}\n", told)
        self.accept(after, "--accept")
        self.assertNotEqual(self.data.read_bytes(), kept)

    def test_a_price_that_moves_by_a_factor_of_ten_is_a_surprise(self):
        before, after = {"claude-a": entry(3e-06)}, {"claude-a": entry(3e-05)}
        self.surprise(before, after, "anthropic/claude-a: input moved from 3.0 to 30.0")

    def test_a_price_that_falls_to_a_tenth_is_a_surprise(self):
        before, after = {"claude-a": entry(3e-05)}, {"claude-a": entry(3e-06)}
        self.surprise(before, after, "anthropic/claude-a: input moved from 30.0 to 3.0")

    def test_a_window_that_shrinks_by_half_is_a_surprise(self):
        before, after = {"claude-a": entry()}, {"claude-a": entry(window=100_000)}
        self.surprise(before, after, "anthropic/claude-a: the window shrank from 200000 to 100000")

    def test_a_model_that_vanishes_is_a_surprise_and_stays_as_gone(self):
        before, after = {"claude-a": entry(), "claude-b": entry()}, {"claude-b": entry()}
        self.surprise(before, after, "anthropic/claude-a vanished from the list")
        self.assertTrue(self.rows()["claude-a"]["gone"])
        self.assertEqual(self.rows()["claude-a"]["price"]["input"], 3.0)
        self.accept(after)  # it is known to be gone, so it surprises no more
        self.assertTrue(self.rows()["claude-a"]["gone"])
        self.accept(before)  # and it may come back
        self.assertNotIn("gone", self.rows()["claude-a"])

    def test_a_model_that_was_announced_to_end_vanishes_without_a_word(self):
        self.accept({"claude-a": entry(deprecation_date="2026-12-01"), "claude-b": entry()})
        self.assertEqual(self.rows()["claude-a"]["deprecated"], "2026-12-01")
        self.accept({"claude-b": entry()})
        self.assertTrue(self.rows()["claude-a"]["gone"])

    def test_usual_changes_are_no_surprise(self):
        self.accept({"claude-a": entry()})
        self.accept({"claude-a": entry(9e-06, window=120_000), "claude-b": entry()})
        self.assertEqual(self.rows()["claude-a"]["context"], 120_000)

    def test_facts_are_applied_in_order_and_add_what_the_list_lacks(self):
        self.write_facts([
            {"provider": "anthropic", "models": "claude-new", "add": {"context": 1_000_000}},
            {"provider": "anthropic", "models": "claude-a* | claude-new", "set": {"token_factor": 1.3}},
            {"provider": "anthropic", "models": "claude-new", "set": {"token_factor": 1.6}},
        ])
        self.accept({"claude-a-1": entry(), "claude-b": entry()})
        factors = {name: row.get("token_factor") for name, row in self.rows().items()}
        self.assertEqual(factors, {"claude-a-1": 1.3, "claude-b": None, "claude-new": 1.6})
        self.assertEqual(self.rows()["claude-new"]["context"], 1_000_000)

    def test_a_model_that_the_list_has_by_now_is_not_added_again(self):
        self.write_facts([{"provider": "anthropic", "models": "claude-a", "add": {"context": 5}}])
        self.accept({"claude-a": entry()})
        self.assertEqual(self.rows()["claude-a"]["context"], 200_000)

    def test_facts_about_no_model_are_a_mistake(self):
        self.write_facts([{"provider": "anthropic", "models": "claude-z*", "set": {"tools": False}}])
        code, words = self.refresh({"claude-a": entry()})
        self.assertEqual(code, 1)
        self.assertIn("model-facts.json: no model of anthropic matches claude-z*", words)
        self.assertEqual(self.rows(), {})

    def test_a_list_in_another_form_writes_nothing(self):
        code, words = self.refresh({"claude-a": entry(mode="another")})
        self.assertEqual((code, self.rows()), (1, {}), words)
        self.assertIn("no model that we know how to read", words)

    def test_the_catalogue_of_the_repository_is_as_the_script_writes_it(self):
        text = (SCRIPTS.parent / "crates/models/data/models.json").read_text()
        models = json.loads(text)["models"]
        lines = [json.dumps(row, separators=(",", ":")) for row in models]
        self.assertEqual(text.split('"models": [\n')[1], ",\n".join(lines) + "\n]\n}\n")
        keys = [(row["provider"], row["id"]) for row in models]
        self.assertEqual(keys, sorted(set(keys)))


if __name__ == "__main__":
    unittest.main()
