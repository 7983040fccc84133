# SPDX-License-Identifier: Apache-2.0
"""Write build/coverage.md, which lists the tests of each rule of the service.

    python -m tools.coverage_page            write the page
    python -m tools.coverage_page --check    list mistakes, and exit with 1 if there are any

The rules are the anchors `<a id="...">` of sandbox/docs/service.md, and its headings are sections. A test names the
rules that it covers with `@pytest.mark.rule("search-query", ...)`. `--check` reports rules without a test, and marks
and citations of unknown rules.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVICE = ROOT / "sandbox/docs/service.md"
PAGE = ROOT / "build/coverage.md"
TESTS = ("tests", "sandbox/tests")
CITING = (
    "airflow_provider_webdata",
    "sandbox",
    "tests",
    "tools",
    "demo",
    "benchmarks",
    "example_dags",
    "docs",
)

HEAD = """\
# Coverage

The tests of each rule of [the service](../sandbox/docs/service.md), by mark, `@pytest.mark.rule("search-query")`.
Tests of the sandbox check the emulator, all other tests check the provider.
"""


@dataclass
class Section:
    """A heading of sandbox/docs/service.md and the rules below it."""

    title: str
    level: int
    rules: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """A test that covers a rule; `path` is relative to the repository."""

    rule: str
    path: str
    test: str


def sections(text: str) -> list[Section]:
    """Return the sections of sandbox/docs/service.md, in order."""
    found: list[Section] = []
    for line in text.splitlines():
        if heading := re.match(r"(#+) (.*)", line):
            found.append(Section(heading[2], len(heading[1])))
        elif found:
            found[-1].rules += re.findall(r'<a id="([^"]+)"></a>', line)
    return found


def slug(title: str) -> str:
    """Return the anchor of a heading on GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def claims(root: Path = ROOT) -> dict[str, list[Claim]]:
    """Return the claims of all tests, by rule.

    :param root: the repository.
    """
    found: dict[str, list[Claim]] = {}
    for path in (path for folder in TESTS for path in sorted((root / folder).rglob("test_*.py"))):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for claim in _claims_of(module, path.relative_to(root).as_posix(), _rules_of_module(module), ""):
            found.setdefault(claim.rule, []).append(claim)
    return found


def _claims_of(
    body: ast.Module | ast.ClassDef, path: str, inherited: list[str], prefix: str
) -> Iterator[Claim]:
    for node in body.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            rules = [*inherited, *_rules_in(node.decorator_list)]
            yield from _claims_of(node, path, rules, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            for rule in dict.fromkeys([*inherited, *_rules_in(node.decorator_list)]):
                yield Claim(rule, path, f"{prefix}{node.name}")


def _rules_of_module(module: ast.Module) -> list[str]:
    """Return the rules of `pytestmark`."""
    return _rules_in(
        node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
    )


def _rules_in(expressions: Iterable[ast.expr]) -> list[str]:
    return [
        str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule"
        for argument in node.args
    ]


def page(of_service: list[Section], claimed: dict[str, list[Claim]]) -> str:
    """Return the text of the coverage page."""
    lines = [HEAD]
    for position, section in enumerate(of_service):
        below = of_service[position + 1] if position + 1 < len(of_service) else None
        if not section.rules and not (section.level == 2 and below and below.level > 2):
            continue
        lines += [f"{'#' * section.level} {section.title}", ""]
        if section.rules:
            lines += ["| Rule | Tests of the provider | Tests of the sandbox |", "|---|---|---|"]
            lines += [_row(rule, claimed.get(rule, [])) for rule in section.rules]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(rule: str, of_rule: list[Claim]) -> str:
    of_sandbox = [claim for claim in of_rule if claim.path.startswith("sandbox/")]
    of_provider = [claim for claim in of_rule if claim not in of_sandbox]
    return f"| [{rule}](../sandbox/docs/service.md#{rule}) |{_tests(of_provider)} |{_tests(of_sandbox)} |"


def _tests(of_rule: list[Claim]) -> str:
    by_path: dict[str, list[str]] = {}
    for claim in of_rule:
        by_path.setdefault(claim.path, []).append(f"`{claim.test}`")
    return "<br>".join(f" {path}: {', '.join(tests)}" for path, tests in by_path.items())


def dead_citations(anchors: set[str]) -> Iterator[str]:
    """Yield a message for each citation of an unknown anchor of sandbox/docs/service.md."""
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".md") or path == SERVICE:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for cited in re.findall(r"service\.md(#[a-z0-9-]+(?:, #[a-z0-9-]+)*)", line):
                    for anchor in cited.replace("#", "").split(", "):
                        if anchor not in anchors:
                            yield f"{path.relative_to(ROOT)}:{number}: sandbox/docs/service.md has no #{anchor}"


def problems(of_service: list[Section], claimed: dict[str, list[Claim]]) -> Iterator[str]:
    """Yield a message for each mistake in rules, marks, and citations."""
    rules = [rule for section in of_service for rule in section.rules]
    headings = {slug(section.title) for section in of_service}
    for rule in sorted({rule for rule in rules if rules.count(rule) > 1 or rule in headings}):
        yield f"sandbox/docs/service.md: two anchors are named {rule}; rename one"
    for rule in rules:
        if rule not in claimed:
            yield f'sandbox/docs/service.md: no test covers {rule}; mark one with @pytest.mark.rule("{rule}")'
    for rule in sorted(set(claimed) - set(rules)):
        near = difflib.get_close_matches(rule, rules, 1)
        for claim in claimed[rule]:
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"{claim.path}: {claim.test} claims {rule}, which is not a rule of sandbox/docs/service.md{hint}"
    yield from dead_citations({*rules, *headings})


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    of_service = sections(SERVICE.read_text(encoding="utf-8"))
    claimed = claims()
    if not check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(of_service, claimed), encoding="utf-8")
        print(PAGE)
    elif found := list(problems(of_service, claimed)):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
