"""Write docs/contributing/coverage.md, which lists the tests that hold each rule of the service.

    python -m tools.coverage_page            write the page
    python -m tools.coverage_page --check    name what is wrong, and exit with 1

The rules are the anchors `<a id="...">` of docs/service.md, and its headings are sections. A test claims the rules
that it holds with `@pytest.mark.rule("search-query", ...)`, which is read from its source. `--check` names rules
without a test, marks and citations of unknown rules, and a page that has drifted.
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
SERVICE = ROOT / "docs/service.md"
PAGE = ROOT / "docs/contributing/coverage.md"
CITING = ("airflow_provider_webdata", "tests", "tools", "demo", "benchmarks", "example_dags", "docs")

HEAD = """\
# Coverage

Which tests hold each rule of [the service](../service.md). Written by `python -m tools.coverage_page` from the marks on
the tests, `@pytest.mark.rule("search-query")`; `make lint` fails for a rule that no test claims. Paths are relative to
`tests/`. Tests of the sandbox hold the emulator to the rule, all others the provider.
"""


@dataclass
class Section:
    """A heading of docs/service.md and the rules below it."""

    title: str
    level: int
    rules: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """A test that claims a rule; `path` is relative to `tests/`."""

    rule: str
    path: str
    test: str


def sections(text: str) -> list[Section]:
    """Return the sections of docs/service.md, in order."""
    found: list[Section] = []
    for line in text.splitlines():
        if heading := re.match(r"(#+) (.*)", line):
            found.append(Section(heading[2], len(heading[1])))
        elif found:
            found[-1].rules += re.findall(r'<a id="([^"]+)"></a>', line)
    return found


def slug(title: str) -> str:
    """Return the anchor that a heading has on GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def claims(folder: Path) -> Iterator[Claim]:
    """Return the claims of the tests below a folder."""
    for path in sorted(folder.rglob("test_*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        yield from _claims_of(module, path.relative_to(folder).as_posix(), _rules_of_module(module), "")


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
    of_sandbox = [claim for claim in of_rule if "sandbox" in claim.path.split("/")]
    of_provider = [claim for claim in of_rule if claim not in of_sandbox]
    return f"| [{rule}](../service.md#{rule}) |{_tests(of_provider)} |{_tests(of_sandbox)} |"


def _tests(of_rule: list[Claim]) -> str:
    by_path: dict[str, list[str]] = {}
    for claim in of_rule:
        by_path.setdefault(claim.path, []).append(f"`{claim.test}`")
    return "<br>".join(f" {path}: {', '.join(tests)}" for path, tests in by_path.items())


def dead_citations(anchors: set[str]) -> Iterator[str]:
    """Yield the citations of unknown anchors of docs/service.md."""
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".md") or path in (SERVICE, PAGE):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for cited in re.findall(r"service\.md(#[a-z0-9-]+(?:, #[a-z0-9-]+)*)", line):
                    for anchor in cited.replace("#", "").split(", "):
                        if anchor not in anchors:
                            yield f"{path.relative_to(ROOT)}:{number}: docs/service.md has no #{anchor}"


def problems(of_service: list[Section], claimed: dict[str, list[Claim]]) -> Iterator[str]:
    """Yield a message for each mistake in rules, marks, and citations."""
    rules = [rule for section in of_service for rule in section.rules]
    headings = {slug(section.title) for section in of_service}
    for rule in sorted({rule for rule in rules if rules.count(rule) > 1 or rule in headings}):
        yield f"docs/service.md: two anchors are named {rule}; rename one"
    for rule in rules:
        if rule not in claimed:
            yield f'docs/service.md: no test claims {rule}; mark one with @pytest.mark.rule("{rule}")'
    for rule in sorted(set(claimed) - set(rules)):
        near = difflib.get_close_matches(rule, rules, 1)
        for claim in claimed[rule]:
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"tests/{claim.path}: {claim.test} claims {rule}, which is no rule of docs/service.md{hint}"
    yield from dead_citations({*rules, *headings})


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    of_service = sections(SERVICE.read_text(encoding="utf-8"))
    claimed: dict[str, list[Claim]] = {}
    for claim in claims(ROOT / "tests"):
        claimed.setdefault(claim.rule, []).append(claim)
    text = page(of_service, claimed)
    if not check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return
    found = list(problems(of_service, claimed))
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        found.append(f"{PAGE.relative_to(ROOT)} differs from the marks; run python -m tools.coverage_page")
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
