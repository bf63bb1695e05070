"""A folder that only this user can write to, and files in it that this user wrote.

Machine code from a file runs with all rights of the process. So a folder is used only if nobody else can
change it or the path to it, and a file only if this user owns it. Everything is done relative to one open
descriptor, so the folder that is used is the one that was checked.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from types import TracebackType

_MOST_LINKS = 40  # symbolic links in the path of the folder
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# If one of these is missing, the owner of a file cannot be determined, and no folder is used.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # do not block on a pipe
_OURS_ALONE = getattr(os, "O_CLOEXEC", 0)
_TEMPORARY = "unfinished-"


class RefusedError(Exception):
    """A folder that must not be used; the message is the reason."""


class PrivateFolder:
    """A folder by its path, open during the `with` block; it is created if it does not exist.

    Raises RefusedError if others could write to it, and OSError if it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> PrivateFolder:
        if not (hasattr(os, "geteuid") and _NO_FOLLOW and _FOLDER):
            raise RefusedError("this system does not report who can write to a folder")
        place = _resolved(self._path)
        self._descriptor = os.open(place, os.O_RDONLY | _FOLDER | _NO_FOLLOW | _OURS_ALONE)
        try:
            status = os.fstat(self._descriptor)
            _check_writers(place, status, sticky=False)
            if status.st_uid != os.geteuid():
                raise RefusedError(_foreign(place, status))
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def read(self, name: str, most: int) -> bytes | None:
        """The content of a file that we own, of at most `most` bytes; None if there is no such file."""
        flags = os.O_RDONLY | _NO_FOLLOW | _AT_ONCE | _OURS_ALONE
        try:
            descriptor = os.open(name, flags, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            ours = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE
            if not stat.S_ISREG(status.st_mode) or not ours or status.st_size > most:
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(most + 1)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return content if len(content) <= most else None

    def write(self, name: str, content: bytes, *, replace: bool = True) -> bool:
        """Write a file atomically; returns False if that fails.

        Without `replace`, an existing file stays.
        """
        temporary = _TEMPORARY + secrets.token_hex(8)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _OURS_ALONE
        try:
            descriptor = os.open(temporary, flags, 0o600, dir_fd=self._descriptor)
        except OSError:
            return False
        here = self._descriptor
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            if replace:
                os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
                return True
            os.link(temporary, name, src_dir_fd=here, dst_dir_fd=here)
        except OSError:
            pass
        with suppress(OSError):
            os.unlink(temporary, dir_fd=self._descriptor)
        return False

    def remove_unfinished(self, older_than: float) -> None:
        """Remove files older than that time, left by processes that were killed while writing."""
        with suppress(OSError), os.scandir(self._descriptor) as entries:
            for entry in entries:
                if entry.name.startswith(_TEMPORARY):
                    with suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_mtime < older_than:
                            os.unlink(entry.name, dir_fd=self._descriptor)


def _resolved(path: str) -> str:
    """A path without symbolic links. Every folder on it is checked, or created if it does not exist."""
    here = os.sep
    _check_step(here, os.lstat(here))
    parts = os.path.join(os.getcwd(), path).split(os.sep)[::-1]
    links = 0
    while parts:
        part = parts.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            here = os.path.dirname(here)
            continue
        place = os.path.join(here, part)
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was faster
                os.mkdir(place, 0o700)
            status = os.lstat(place)
        _check_step(place, status)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(place)
            here = os.sep if os.path.isabs(target) else here
            parts += target.split(os.sep)[::-1]
        elif not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
        else:
            here = place
    return here


def _check_step(place: str, status: os.stat_result) -> None:
    """Refuse a folder or link in the path that anyone but this user and root could replace."""
    if status.st_uid not in (os.geteuid(), 0):
        raise RefusedError(_foreign(place, status))
    if not stat.S_ISLNK(status.st_mode):
        _check_writers(place, status, sticky=True)


def _check_writers(place: str, status: os.stat_result, sticky: bool) -> None:
    """Refuse a folder that others can write to. In a sticky one, such as /tmp, they can only add."""
    mode = status.st_mode
    if mode & _OTHERS_WRITE and not (sticky and mode & stat.S_ISVTX):
        raise RefusedError(
            f"other users can write to {place} (its mode is {stat.S_IMODE(mode):04o}; "
            f"chmod go-w {place} would change that)"
        )


def _foreign(place: str, status: os.stat_result) -> str:
    return f"{place} belongs to another user (number {status.st_uid}, and this is {os.geteuid()})"
