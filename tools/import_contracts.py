"""A contract for import-linter: some modules may import only what a list allows.

The contracts that come with import-linter forbid what they name; a package that nobody thought of
would pass. This one is kept only if every package that is imported is on the list.
"""

import sys

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowListContract(Contract):
    """Packages that the source modules import must be in ``allowed_packages``."""

    type_name = "allow_list"

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed_packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """List every import of a package that is not allowed."""
        allowed = {*self.allowed_packages, *sys.stdlib_module_names}
        not_allowed = sorted(
            (importer, imported)
            for module in self.source_modules
            for importer in {module.name, *graph.find_descendants(module.name)}
            for imported in graph.find_modules_directly_imported_by(importer)
            if imported.partition(".")[0] not in allowed
        )
        return ContractCheck(kept=not not_allowed, metadata={"not_allowed": not_allowed})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports at fault."""
        for importer, imported in check.metadata["not_allowed"]:
            output.print_error(f"{importer} may not import {imported}", bold=False)
