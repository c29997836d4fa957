"""A browser, where there is one."""

import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# No window, no network (every name leads nowhere), what goes wrong on the page in the log.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--v=0",
)
SECONDS = 60


@pytest.fixture(scope="session")
def browse(tmp_path_factory):
    """Opens a file, and gives its document after scripts ran, and what its console said."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    profile = tmp_path_factory.mktemp("profile")

    def browse(path, *options, width=1280):
        command = [program, *OPTIONS, f"--user-data-dir={profile}", f"--window-size={width},900"]
        done = subprocess.run(
            [*command, *options, "--dump-dom", path.as_uri()],
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        log = done.stderr.decode("utf-8", "replace")
        return done.stdout.decode(), [line for line in log.splitlines() if "CONSOLE" in line]

    return browse
