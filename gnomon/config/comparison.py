"""Whether the masks and tolerances of a file can be read, told by the compilers that the comparison uses."""

import importlib
from collections.abc import Mapping

from gnomon.config.findings import Findings
from gnomon.config.model import ANY_METHOD
from gnomon.config.source import join

MASKS, TOLERANCES = "gnomon.compare.masks", "gnomon.compare.tolerances"
"""Imported by name and late: a service that only proxies must not load the comparison (design: import directions)."""


def check_masks(masks_by_method: Mapping[str, tuple[str, ...]], path: str, findings: Findings) -> None:
    """Note each mask that does not compile, and each method name that can match nothing."""
    _check(MASKS, masks_by_method, path, findings)


def check_tolerances(by_method: Mapping[str, tuple[str, ...]], path: str, findings: Findings) -> None:
    """Note each tolerance that does not compile, and each method name that can match nothing."""
    _check(TOLERANCES, by_method, path, findings)


def _check(compiler: str, by_method: Mapping[str, tuple[str, ...]], path: str, findings: Findings) -> None:
    if not by_method:
        return
    compile_texts = importlib.import_module(compiler).compile
    for method, texts in by_method.items():
        here = path if method == ANY_METHOD else join(path, method)
        if not method or any(character.isspace() for character in method):
            findings.problem(here, "is not the name of a method")
        for index, text in enumerate(texts):
            try:
                compile_texts([text])
            except ValueError as error:  # MaskError is one; its further lines point into the text
                findings.problem(f"{here}[{index}]", str(error).splitlines()[0])
