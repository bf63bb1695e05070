"""Progress bars for long computations, with tqdm, which is imported only when a bar is requested."""

from __future__ import annotations

from typing import Any

from functrans.core.errors import MissingPackageError


class _NoBar:
    """Stands in for a bar if none was requested."""

    def update(self, count: int = 1) -> None:
        pass

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


_NO_BAR = _NoBar()


def progress_bar(progress: bool | str, total: int, title: str) -> Any:
    """A context that shows the progress of `total` parts; `update(n)` says that n more are done.

    A string instead of True sets the title.
    """
    if not progress:
        return _NO_BAR
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise MissingPackageError(
            "progress=True needs tqdm, which is not installed. Install it with "
            '`pip install "functrans[progress]"`, or leave progress out.'
        ) from None
    return tqdm(total=total, desc=progress if isinstance(progress, str) else title)
