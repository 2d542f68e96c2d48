"""Contracts for import-linter: a package imports nothing but what its rule names, only modules that
are named import an external package, and no module imports itself by way of others.

import-linter has layers and forbidden modules; the table of the architecture (which package may
import what) is a list of what is allowed. A new dependency is then a change of the rule, not
something that nobody had thought of forbidding. The standard library is always allowed, and so are
the modules of the package itself. Only direct imports count: what an allowed package imports is
the business of its own rule. The root package stands for itself alone: the public API.

A cycle is one of imports that run, inside functions too; two modules may name each other's types.
"""

from __future__ import annotations

import sys

import grimp
from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = "penstock"
"""The public API: to be allowed to import it says nothing about what is below it."""


class OnlyImports(Contract):
    """``package`` imports only ``allowed`` (packages, each with all that is below it)."""

    type_name = "only_imports"

    package = fields.StringField()
    allowed = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        package = str(self.package)
        allowed = {package, *(str(name) for name in self.allowed)}  # type: ignore[attr-defined]
        importers = {package, *graph.find_descendants(package)} if package in graph.modules else ()
        broken = sorted(
            (importer, imported)
            for importer in importers
            for imported in graph.find_modules_directly_imported_by(importer)
            if not _is_allowed(imported, allowed)
        )
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["broken"]:
            output.print_error(f"{importer} imports {imported}", bold=False)
        names = ", ".join(sorted(str(name) for name in self.allowed))  # type: ignore[attr-defined]
        output.print_error(f"{self.package} may import: {names or 'nothing'}")


class OnlyImporters(Contract):
    """Of the modules of ``package`` only ``importers`` import the external package ``imported``."""

    type_name = "only_importers"

    package = fields.StringField()
    imported = fields.StringField()
    importers = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        allowed = {str(name) for name in self.importers}  # type: ignore[attr-defined]
        modules = graph.find_descendants(str(self.package))
        found = modules & graph.find_modules_that_directly_import(str(self.imported))
        return ContractCheck(kept=found <= allowed, metadata={"broken": sorted(found - allowed)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer in check.metadata["broken"]:
            output.print_error(f"{importer} imports {self.imported}", bold=False)


class NoCycles(Contract):
    """No module of ``packages`` imports itself by way of others."""

    type_name = "no_cycles"

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        names = [str(name) for name in self.packages]  # type: ignore[attr-defined]
        running = grimp.build_graph(*names, exclude_type_checking_imports=True)
        left = {name: running.find_modules_directly_imported_by(name) for name in running.modules}
        # Whatever imports nothing that is left is in no cycle; then the same from the other end.
        for edges in (left, _reversed(left)):
            while free := {name for name in left if not (edges[name] & left.keys())}:
                left = {name: each for name, each in left.items() if name not in free}
        return ContractCheck(kept=not left, metadata={"cycles": sorted(left)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for name in check.metadata["cycles"]:
            output.print_error(f"{name} imports itself by way of others", bold=False)


def _reversed(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    turned: dict[str, set[str]] = {name: set() for name in edges}
    for name, others in edges.items():
        for other in others:
            turned[other].add(name)
    return turned


def _is_allowed(imported: str, allowed: set[str]) -> bool:
    if imported.partition(".")[0] in sys.stdlib_module_names:
        return True
    return imported in allowed or any(
        imported.startswith(f"{name}.") for name in allowed if name != ROOT
    )
