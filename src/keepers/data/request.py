"""What the caller asked of a file: which columns are no features, and how large it may be."""

from dataclasses import dataclass, field

from keepers.data.limits import SizeLimit


@dataclass(frozen=True)
class ReadRequest:
    """Roles of columns (or of the arrays of an archive), and the limit on size."""

    labels: str | None = None
    identifier: str | None = None
    drop: tuple[str, ...] = ()
    limit: SizeLimit = field(default_factory=lambda: SizeLimit.of(None))
    dataset: str | None = None
    """Which array of an HDF5 file holds the values."""
    header: bool | None = None
    """Whether the first line of a text table holds names; None: told by what it holds."""
    whole: bool = False
    """Whether all rows will be collected: what has no rows to seek may then be one block."""
