"""A table with an experiment that takes no time, in a folder of its own."""

import textwrap

import pytest

from reproduce.experiments import Outcome

TABLE = """
title = "Coins"
source = "Somebody 1900, Table 1"
notes = ["Coins are fair."]

[[metrics]]
name = "error"
title = "error, %"

[defaults.settings]
random_state = 0

[quick]
units = 1
settings = { rounds = 1 }

[[rows]]
name = "old"
title = "Old way"
published = { error = [9.5, 0.5] }
note = "open, comes later."

[[rows]]
name = "new"
title = "New way"
published = { error = 4.0 }
experiment = "coins"
units = [0, 1, 2]
settings = { rounds = 10, edges = "none" }
data = { start = 3.0 }

[[plots]]
name = "curve"
title = "Down"
y = "error"
lines = [{ row = "new", curve = "error", label = "new" }]

[[bars]]
name = "ways"
title = "Ways"
metric = "error"
series = ["old", "new"]

[[bars.panels]]
title = "Fair"
groups = [
    { label = "by hand", rows = ["old", "new"] },
    { label = "by foot", rows = ["old", ""] },
]

[[bars.panels]]
title = "Loaded"
groups = [{ label = "by hand", rows = ["old", ""] }]
"""


@pytest.fixture
def table_file(tmp_path):
    """The file of the table, where a checkout would have it."""
    path = tmp_path / "reports" / "tables" / "coins.toml"
    path.parent.mkdir(parents=True)
    path.write_text(textwrap.dedent(TABLE), encoding="utf-8")
    return path


@pytest.fixture
def coins():
    """An experiment that notes what it was asked: error = start + unit."""

    def run(task):
        run.asked.append((task.row, task.unit))
        error = task.data["start"] + int(task.unit)
        return Outcome({"error": error}, {"error": [9.0, error]})

    run.asked = []
    return run
