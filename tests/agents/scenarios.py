"""What the agents are told to do, and the settings that each scenario needs."""

import collections
import json
import pathlib
import shutil

from outcome import Skip

HERE = pathlib.Path(__file__).resolve().parent / "scenarios"
SERVER = "_modelcontextprotocol_server-filesystem/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"

# settings: what it is run with here, but not where its pace is measured. Codex records the shell's own settings when it
# starts, and what it runs depends on whether that is done: the model takes its time to answer.
Agent = collections.namedtuple("Agent", "name program settings", defaults=({},))
AGENTS = (
    Agent("claude", "_anthropic-ai_claude-code/node_modules/@anthropic-ai/claude-code/bin/claude.exe"),
    Agent("codex", "_openai_codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
          {"FAKE_OPTS": "--delay 1000"}),
    Agent("gemini", "_google_gemini-cli/node_modules/@google/gemini-cli/bundle/gemini.js"),
)
# ordered: its tools run one after the other. refused: files that the sandbox must not let into being.
Scenario = collections.namedtuple("Scenario", "name path settings ordered refused", defaults=({}, True, ()))
Variant = collections.namedtuple("Variant", "name options", defaults=((),))

BASIC_VARIANTS = (Variant("results verify", ("--results", "verify")), Variant("lens changes", ("--lens", "changes")),
                  Variant("lens all", ("--lens", "all")), Variant("wait main", ("--wait", "main")))
OUTSIDE = "/var/tmp/assure-agents-outside.txt"
CODEX_SANDBOX = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true"


def needed(*paths):
    for path in paths:
        if not path.exists():
            raise Skip(f"there is no {path.name}")


def programs(*names):
    for name in names:
        if not shutil.which(name):
            raise Skip(f"there is no {name}")


def basic(agent, bench):
    path = bench.scripts / "scenarios" / f"{agent.name}-basic.json"
    needed(bench.scripts / f"run-{agent.name}.sh", path, bench.top / "home" / "npm" / agent.program)
    return Scenario("basic", path)


def plain(name, ordered=True):
    return lambda agent, bench: Scenario(name, HERE / f"{agent.name}-{name}.json", {}, ordered)


def gemini_tools(bench, server):
    """A program that the agent is started by, which adds a tool server to the settings that its script wrote."""
    settings = json.dumps({"mcpServers": {"fs": {"command": "node", "args": [str(server), "WORK"], "trust": True}}})
    program = bench.top / "gemini-tools"
    program.write_text(f"#!/bin/sh\nsed -i 's#^{{#{settings[:-1]},#; s#\"WORK\"#\"'\"$PWD\"'\"#' "
                       "\"$HOME/.gemini/settings.json\"\nexec \"$@\"\n")
    program.chmod(0o755)
    return {"GEMINI_ENV": str(program)}


def tools(agent, bench):
    """A tool server, and hooks where the agent runs them unasked."""
    server = bench.top / "home" / "npm" / SERVER
    needed(server)
    settings = {
        "claude": lambda: {"SETTINGS": str(bench.scripts / "settings-hooks.json"),
                           "MCPCONF": str(bench.scripts / "mcp.json")},
        "codex": lambda: {"CODEX_TOML": f'[mcp_servers.fs]\nstartup_timeout_sec = 60\ncommand = "node"\n'
                                        f'args = ["{server}", "@RUN@/work"]'},
        "gemini": lambda: gemini_tools(bench, server),
    }
    return Scenario("tools", HERE / f"{agent.name}-mcp.json", settings[agent.name](), agent.name == "claude")


def claude_sandbox(_, __):
    programs("bwrap", "socat")
    return Scenario("sandbox", HERE / "claude-sandbox.json", {"SETTINGS": str(HERE / "claude-sandbox-settings.json")},
                    refused=(OUTSIDE,))


def codex_sandbox(mode, refused):
    # The one in the package is taken where there is none in PATH.
    return lambda _, __: Scenario(f"sandbox {mode}", HERE / f"codex-{mode}.json",
                                  {"CODEX_PERM": f"-s {mode}", "CODEX_TOML": CODEX_SANDBOX}, refused=refused)


EVERYONE = (basic, plain("parallel", ordered=False), plain("background"), plain("detached"), tools)
MORE = {
    "claude": (claude_sandbox,),
    "codex": (codex_sandbox("workspace-write", (OUTSIDE,)),
              codex_sandbox("read-only", ("work/refused.txt", "work/refused"))),
    "gemini": (),
}


def scenarios_of(agent):
    """Functions that make its scenarios, or raise Skip. Without the first one there is nothing to test."""
    return EVERYONE + MORE[agent.name]
