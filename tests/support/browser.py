"""A real browser for tests, if there is one: a page is loaded, acts on itself, and is read back."""

import json
import re
import shutil
import subprocess
from urllib.parse import unquote

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    # No name is ever looked up: a page that needs the network does not work here.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=5000",
    "--dump-dom",
)


def run_in_page(page, script, folder):
    """Load a page, run a script that returns something, and give back what it returned."""
    act = f"""
    <script>
    window.addEventListener("load", () => {{
      const run = () => {{ {script} }};
      let found;
      try {{ found = run(); }} catch (error) {{ found = "error: " + error.stack; }}
      const out = document.createElement("pre");
      out.id = "found";
      out.textContent = encodeURIComponent(JSON.stringify(found));
      document.body.append(out);
    }});
    </script>"""
    path = folder / "page.html"
    path.write_text(page + act, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert match, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(unquote(match.group(1)))
    assert not (isinstance(found, str) and found.startswith("error: ")), found
    return found
