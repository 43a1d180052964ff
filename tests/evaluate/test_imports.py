import subprocess
import sys
from pathlib import Path

import tabweave.evaluate

PROGRAM = """
import sys
import numpy
before = set(sys.modules)
import tabweave.evaluate
new = {name.split(".")[0] for name in set(sys.modules) - before}
assert not new & {"scipy", "sklearn", "pandas", "matplotlib"}, new
rooms = {name for name in sys.modules if name.startswith("tabweave.")}
assert all(name.startswith("tabweave.evaluate") for name in rooms), rooms
"""


def test_only_numpy_is_loaded_and_no_other_room():
    # tabweave/__init__ is emptied so that its own imports do not count against evaluate.
    path = str(Path(tabweave.evaluate.__file__).parent)
    stub = f"import sys, types; m = types.ModuleType('tabweave'); m.__path__ = [{path!r}]; "
    code = stub + "sys.modules['tabweave'] = m\n" + PROGRAM
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_all_names_exist_and_are_documented():
    for name in tabweave.evaluate.__all__:
        doc = getattr(tabweave.evaluate, name).__doc__
        assert doc
        if name[0].islower():
            assert ">>> " in doc and "References" in doc, name
