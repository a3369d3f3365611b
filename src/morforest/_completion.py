"""Completion of the command line, for shells to load."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

BASH = """\
_morforest() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words
    case ${{COMP_WORDS[1]}} in
{cases}
        *) words="{names}" ;;
    esac
    [ "$COMP_CWORD" = 1 ] && words="{names}"
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ $word == -* || $COMP_CWORD == 1 ]] || COMPREPLY+=($(compgen -f -- "$word"))
}}
complete -o filenames -F _morforest morforest"""

ZSH = """\
#compdef morforest
autoload -U +X bashcompinit && bashcompinit
{bash}"""


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return a script that a shell reads; it names the commands and options of a parser."""
    commands = _commands(parser)
    if shell == "fish":
        return "\n".join(_fish(commands))
    cases = "\n".join(
        f'        {name}) words="{" ".join(words)}" ;;' for name, words in commands.items()
    )
    bash = BASH.format(cases=cases, names=" ".join(commands))
    return ZSH.format(bash=bash) if shell == "zsh" else bash


def _commands(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return what may follow each command: its options, and the words that they choose from."""
    (some,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    found = {}
    for name, command in some.choices.items():
        options = [word for action in command._actions for word in action.option_strings]
        choices = [str(word) for action in command._actions for word in action.choices or ()]
        found[name] = sorted(options) + choices
    return found


def _fish(commands: dict[str, list[str]]) -> list[str]:
    lines = [f'complete -c morforest -n __fish_use_subcommand -f -a "{" ".join(commands)}"']
    for name, words in commands.items():
        on = f'complete -c morforest -n "__fish_seen_subcommand_from {name}"'
        for word in words:
            kind = "-l" if word.startswith("--") else "-s" if word.startswith("-") else "-a"
            lines.append(f"{on} {kind} {word.lstrip('-')}")
    return lines
