#!/usr/bin/env python3
"""Starts a real agent so that it asks its model through a witness: through.py PROGRAM TOLD -- AGENT ARGUMENT…

Where the model is says the agent's environment, or Codex's configuration; that becomes the witness's upstream.
"""
import os
import pathlib
import re
import subprocess
import sys


def codex_upstream():
    """What the user has set, in the agent's own configuration."""
    path = pathlib.Path(os.environ["HOME"], ".codex", "config.toml")
    found = re.search(r'base_url = "([^"]+)"', path.read_text()) if path.exists() else None
    return found and found[1]


def main():
    program, told, _, *agent = sys.argv[1:]
    anthropic = os.environ.get("ANTHROPIC_BASE_URL")
    gemini, codex = os.environ.get("GOOGLE_GEMINI_BASE_URL"), codex_upstream()
    routes = [f"{name},/{name},{url}" for name, url in (("anthropic", anthropic), ("gemini", gemini), ("openai", codex))
              if url]
    witness = subprocess.Popen([program, told, *routes], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    own = f"http://127.0.0.1:{int(witness.stdout.readline())}"
    if anthropic:
        os.environ["ANTHROPIC_BASE_URL"] = f"{own}/anthropic"
    if gemini:
        os.environ["GOOGLE_GEMINI_BASE_URL"] = f"{own}/gemini"
    if codex:
        agent[2:2] = ["-c", f'model_providers.fake.base_url="{own}/openai"']
    status = subprocess.run(agent, check=False).returncode
    witness.stdin.close()
    ended = witness.wait()
    return status or ended


if __name__ == "__main__":
    sys.exit(main())
