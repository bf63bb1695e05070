"""Progress bars for long work, by tqdm, which is needed only where one is asked for."""

from __future__ import annotations

from typing import Any

from functrans.core.errors import MissingPackageError


class _NoBar:
    """Stands for a bar where none was asked for."""

    def update(self, count: int = 1) -> None:
        pass

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


_NO_BAR = _NoBar()


def progress_bar(progress: bool | str, total: int, title: str) -> Any:
    """A context that shows how far a work of `total` parts is; `update(n)` says that n more are done.

    A string in place of True is a title of its own.
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
