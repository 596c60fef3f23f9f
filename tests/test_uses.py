"""Where somebody's sources do what a changed case does: planted uses are found, decoys of the same name are not."""

from __future__ import annotations

import os
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cases import catalogue
from reports.cells import Target
from reports.native import Native
from reports.uses import Sources
from reports.verbs import ProblemError

ROLES = {
    "torch": {"host": "torch.device('cpu')", "accelerator": "torch.device('cuda:0')", "alias": "torch.device('cuda')"},
    "jax": {"host": "jax.devices('cpu')[0]", "accelerator": "jax.devices('gpu')[0]"},
    "numpy": {"host": "'cpu'"},
}


@cache
def native(framework: str) -> Native:
    """Return the code of a framework that need not be here."""
    roles = {name: {"name": name, "expression": text, "evidence": "measured"} for name, text in ROLES[framework].items()}
    device = {"torch": "cuda", "jax": "gpu", "numpy": "cpu"}[framework]
    said: dict[str, Any] = {
        "available": True, "framework": framework, "device": device, "version": "99.0", "roles": roles, "build": {}, "machine": {},
        "environment": {}, "operations": [], "dtypes": [], "environments": [],
    }  # fmt: skip
    return Native(Target.from_json(f"{framework}:{device}", said))


def found(folder: Path, framework: str, case: str, code: str) -> tuple[list[str], list[str]]:
    """Return the lines that surely do what a case does, and those that perhaps do."""
    (folder / "code.py").write_text(textwrap.dedent(code), "utf-8")
    uses = Sources([folder / "code.py"]).uses(native(framework).pattern(catalogue()[case]))
    assert all(use.text in code for use in uses)
    return [use.text for use in uses if use.sure], [use.text for use in uses if not use.sure]


#: Case, framework, a file with a use, and which line that is.
PLANTED = [
    ("placement/matmul/host-accelerator", "torch", "import torch\na = torch.zeros(3)\ny = a @ a  # HERE\n"),
    ("placement/matmul/host-accelerator", "torch", "import torch as th\ndef f(x: th.Tensor, w): return x @ w  # HERE\n"),
    ("placement/matmul/host-accelerator", "torch", "from torch import Tensor as T\ndef f(x: 'T | None', w):\n    x @= w  # HERE\n"),
    ("placement/add/host-accelerator", "torch", "import torch\nx = torch.ones(2).float()[0]\nz = 2 * (x - 1)\nprint(z + x)  # HERE\n"),
    ("placement/less/host-accelerator", "torch", "import torch\nm = [t < t for t in torch.ones(2)]  # HERE\n"),
    ("placement/add/host-accelerator", "torch", """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                self.layer = torch.nn.Linear(3, 3)
            def forward(self, x):
                return x + self.layer(x)  # HERE
        """),
    ("placement/add/host-accelerator", "jax", "import jax.numpy as jnp\nwith open('x') as f:\n    y = jnp.ones(3)\n    y += y  # HERE\n"),
    ("placement/add/host-accelerator", "jax", "import jax\ndef f(x: jax.Array, y: jax.Array):\n    return x + y  # HERE\n"),
    ("scalars/python-float/mul/left", "torch", "import torch\na = torch.ones(3)\nb = 0.5 * a  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "import torch\ny = torch.cat(parts)  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "import torch as th\ny = th.cat(parts, dim=1)  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import cat as join\ny = join(parts)  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import *\ny = cat(parts)  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "def f(parts):\n    import torch\n    return torch.cat(parts)  # HERE\n"),
    ("placement/embedding/host-accelerator", "torch", "import torch.nn.functional as F\ny = F.embedding(i, w)  # HERE\n"),
    ("placement/embedding/host-accelerator", "torch", "from torch.nn import functional\ny = functional.embedding(i, w)  # HERE\n"),
    ("placement/where-condition/host-accelerator", "jax", "from jax import numpy as np\ny = np.where(c, a, b)  # HERE\n"),
    ("placement/cat/host-accelerator", "numpy", "import numpy\ny = numpy.concatenate([a, b])  # HERE\n"),
    ("moving/read/numpy/accelerator", "jax", "import jax.numpy as jnp, numpy as np\ny = np.asarray(jnp.ones(3))  # HERE\n"),
    ("placement/add-in-place/host-accelerator", "torch", "import torch\na = torch.ones(3)\na.add_(b, alpha=2)  # HERE\n"),
    ("moving/to-accelerator/object", "torch", "import torch\na = torch.ones(3).to(dev, non_blocking=True)  # HERE\n"),
    ("moving/to-accelerator/copy", "torch", "import torch\na = torch.ones(3)\nb = a.to('cuda', copy=True)  # HERE\n"),
    ("placement/set-tail/host-accelerator", "torch", "import torch\na = torch.ones(3)\na[1:] = b  # HERE\n"),
    ("placement/set-tail/host-accelerator", "jax", "import jax.numpy as jnp\na = jnp.ones(3)\nb = a.at[1:].set(c)  # HERE\n"),
    ("placement/index/host-accelerator", "torch", "import torch\na = torch.ones(3)\nb = a[torch.tensor([1])]  # HERE\n"),
    ("moving/ordinal/handle-accelerator", "torch", "import torch\nd = torch.device('cuda')\nprint(d.index)  # HERE\n"),
    ("moving/equality/value-accelerator", "torch", "import torch\na = torch.ones(3)\nif a.device != torch.device('cuda'): pass  # HERE\n"),
    ("moving/read/item/accelerator", "torch", "import torch\nloss = torch.ones(3).sum()\nlog(loss.item())  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import cat\nclass A:\n    def cat(self): return cat(self.x)  # HERE\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import cat\nclass A:\n    cat = 3\ny = cat(x)  # HERE\n"),
    ("placement/add/host-accelerator", "torch", f"import torch\na = {' + '.join(['torch.ones(3)'] * 2000)}  # HERE\n"),
    ("moving/no-device/zeros", "torch", "import torch\na = torch.zeros(3)  # HERE\n"),
    ("moving/to-accelerator/object", "jax", "import jax\ny = jax.device_put(x, d)  # HERE\n"),
    ("moving/scoped/device-device/left", "torch", "import torch\nwith torch.device('cuda'):\n    a = torch.ones(3)\nb = a + a  # HERE\n"),
    ("moving/pinned/host-accelerator/left", "torch", "import torch\na = torch.ones(3).pin_memory()\nb = a + a  # HERE\n"),
    ("dtypes/float16/cast-to", "torch", "import torch\na = torch.ones(3)\nb = a.to(torch.float16)  # HERE\n"),
    ("dtypes/int4/add", "jax", "import jax.numpy as jnp\na = jnp.ones(3, 'int4')\nb = a + a  # HERE\n"),
    ("time/loop/matmul", "torch", "import torch\na = torch.ones(3, 3)\nfor _ in range(9): a = a @ a  # HERE\n"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "framework", "code"), PLANTED)
def test_a_planted_use_is_found_for_sure(tmp_path: Path, case: str, framework: str, code: str) -> None:
    sure, _ = found(tmp_path, framework, case, code)
    assert [line.strip() for line in code.splitlines() if "# HERE" in line] == [line for line in sure if "# HERE" in line]


#: Case, framework, a file that does something that looks alike.
DECOYS = [
    ("placement/matmul/host-accelerator", "torch", "import numpy as np\na = np.ones(3)\ny = a @ a\n"),
    ("placement/matmul/host-accelerator", "torch", "import torch, numpy as np\na = np.ones(3)\ny = a @ a\n"),
    ("placement/add/host-accelerator", "torch", "import torch\nn = 1 + 2\nfor i in range(3): print(i + n, 'a' + 'b', len('x') + i)\n"),
    ("placement/add/host-accelerator", "torch", "import torch\ndef f(step, name: str): return step + 1, name + name, [1] + [2]\n"),
    ("placement/add/host-accelerator", "torch", "import torch\na = torch.ones(3)\nn = a.shape[0] + a.ndim\nm = a + 1\n"),
    ("placement/add/host-accelerator", "torch", "import torch\na = torch.ones(3)\na = 3\nb = a + a\n"),
    ("placement/add/host-accelerator", "torch", "# import torch\ns = 'import torch; a + b'\n"),
    ("placement/cat/host-accelerator", "torch", "import torch, numpy as np\ny = np.concatenate([a])\nz = np.cat([a])\n"),
    ("placement/cat/host-accelerator", "torch", "import torch\nfrom toolz import cat\ny = cat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "import torch\ndef cat(parts): return parts\ny = cat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import cat\ndef f(cat): return cat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "from torch import cat\ncat = print\ncat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "import torchvision as torch\ny = torch.cat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "from .torch import cat\ny = cat(parts)\n"),
    ("placement/cat/host-accelerator", "torch", "import torch\nclass Animal:\n    def cat(self): return self.cat()\nAnimal().cat()\n"),
    ("placement/where-condition/host-accelerator", "jax", "import jax, numpy as np\ny = np.where(c, a, b)\n"),
    ("moving/to-accelerator/object", "torch", "import torch, pint\nq = pint.Quantity(3)\nq.to('cm')\n"),
    ("moving/to-accelerator/object", "torch", "import torch\nm = torch.nn.Linear(3, 3)\nm.to('cuda')\n"),
    ("moving/to-accelerator/object", "torch", "import torch\na = torch.ones(3)\na.to(torch.float16)\n"),
    ("moving/to-accelerator/copy", "torch", "import torch\na = torch.ones(3)\nb = a.to('cuda')\n"),
    ("moving/read/item/accelerator", "torch", "import torch\nfor item in {}.items(): pass\nx = 'abc'.item()\n"),
    ("moving/read/numpy/accelerator", "jax", "import jax, numpy as np\ny = np.asarray([1, 2])\n"),
    ("placement/set-tail/host-accelerator", "torch", "import torch\na = [1, 2]\na[1:] = [3]\nb = torch.ones(3)\nb[0] = 1\n"),
    ("placement/index/host-accelerator", "torch", "import torch\na = torch.ones(3)\nb = a[0], a[1:], [1][0], a.shape[0]\n"),
    ("moving/ordinal/handle-accelerator", "torch", "import torch\nx = [1].index\ny = thing.index\n"),
    ("moving/equality/value-accelerator", "torch", "import torch\na = torch.ones(3)\nif a.shape == (3,) or 1 == 2: pass\n"),
    ("moving/no-device/zeros", "torch", "import torch\na = torch.zeros(3, device='cuda')\n"),
    ("dtypes/literal/float", "torch", "import torch\na = torch.tensor([2.5], device='cuda', dtype=torch.float64)\n"),
    ("dtypes/float16/cast-to", "torch", "import torch\na = torch.ones(3)\nb = a.to(torch.float32)\n"),
    ("dtypes/float16/cast-to", "torch", "import torch\na = torch.ones(3)\nb, c = a.to(torch.bfloat16), torch.float16\n"),
    ("dtypes/int4/add", "jax", "import jax.numpy as jnp\na = jnp.ones(3)\nb = a + a\n"),
    ("scalars/python-float/mul/left", "torch", "import torch\na = torch.ones(3)\nb = 2 * a\nc = 0.5 * 3\n"),
    ("time/loop/matmul", "torch", "import torch, numpy as np\na = np.ones((3, 3))\nfor _ in range(9): a = a @ a\n"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "framework", "code"), DECOYS)
def test_a_decoy_is_not_taken_for_a_use(tmp_path: Path, case: str, framework: str, code: str) -> None:
    assert found(tmp_path, framework, case, code) == ([], [])


def test_what_nothing_is_known_of_is_perhaps_a_use(tmp_path: Path) -> None:
    code = "import torch\ndef f(x, y):\n    a = x @ y\n    b = x.add_(y)\n    return a, b, x.to(y)\n"
    assert found(tmp_path, "torch", "placement/matmul/host-accelerator", code) == ([], ["a = x @ y"])
    assert found(tmp_path, "torch", "placement/add-in-place/host-accelerator", code) == ([], ["b = x.add_(y)"])
    assert found(tmp_path, "torch", "moving/to-accelerator/object", code) == ([], ["return a, b, x.to(y)"])
    # What the question needs beside it stands nowhere in the file.
    code = "import torch\na = torch.ones(3)\nb = a + a\n"
    assert found(tmp_path, "torch", "moving/scoped/device-device/left", code) == ([], ["b = a + a"])


def test_every_case_of_every_framework_makes_a_pattern_that_finds_its_own_code(tmp_path: Path) -> None:
    for framework in ROLES:
        lost = []
        for case in catalogue().values():
            code = native(framework)
            pattern = code.pattern(case)
            if not pattern.asked:
                continue
            lines, _ = code.script(case)
            if any(line.startswith("#") for line in lines):
                continue  # the target can't be asked that
            (tmp_path / "own.py").write_text("\n".join([f"import {pattern.root}", *imports(framework), *lines]), "utf-8")
            uses = Sources([tmp_path / "own.py"]).uses(pattern)
            if not any(use.sure for use in uses):
                lost.append(case.id)
        assert not lost, f"{framework}: {lost}"


def imports(framework: str) -> list[str]:
    return {
        "torch": ["import torch"],
        "jax": ["import jax", "import jax.numpy as jnp", "import numpy as np"],
        "numpy": ["import numpy as np"],
    }[framework]


def test_a_folder_is_gone_through_and_what_isn_t_the_user_s_is_left_out(tmp_path: Path) -> None:
    for name in ("a.py", "deep/b.py", ".venv/c.py", "__pycache__/d.py", "lib/site-packages/e.py", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\ny = torch.cat(x)\n", "utf-8")
    uses = Sources([tmp_path]).uses(native("torch").pattern(catalogue()["placement/cat/host-accelerator"]))
    assert [use.path.relative_to(tmp_path).as_posix() for use in uses] == ["a.py", "deep/b.py"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.py", b"def f(:\n", "can't be read as Python (invalid syntax"), ("a.py", b"\xff\xfe", "can't be read as Python"),
        ("a.py", b"x = 1\x00", "can't be read as Python"), ("a.txt", b"", "there is no Python source in it"),
        ("a.py", b"x = " + b"(" * 5000, "can't be read as Python"),
    ],
)  # fmt: skip
def test_a_source_that_can_t_be_read_is_one_sentence(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ProblemError) as raised:
        Sources([tmp_path])
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
def test_a_pipe_is_no_source_and_isn_t_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(ProblemError, match="no Python source"):
        Sources([tmp_path])


def test_what_a_linter_would_warn_of_is_not_our_business(tmp_path: Path) -> None:
    assert found(tmp_path, "torch", "placement/cat/host-accelerator", "import torch\ny = torch.cat(x), '\\d' is 'd'\n")[0]


def test_sources_are_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "a.py").write_text(f"import torch\nopen({str(mark)!r}, 'w')\n", "utf-8")
    Sources([tmp_path / "a.py"]).uses(native("torch").pattern(catalogue()["placement/cat/host-accelerator"]))
    assert not mark.exists()
