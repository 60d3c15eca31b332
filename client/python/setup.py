"""Generates messages and stubs from the contract while the package is built.

The contract is in ../../proto of the repository, or in proto/ of a source distribution.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
PROTOS = ["tine/v1/records.proto", "tine/v1/store.proto", "tine/v1/rpc.proto"]


def contract() -> Path:
    for place in (HERE / "proto", HERE.parents[1] / "proto"):
        if (place / PROTOS[0]).exists():
            return place
    raise SystemExit("tine-client: the contract, proto/tine/v1, is missing")


def generate(out: Path) -> None:
    """Writes tine/v1: messages, stubs, and their types."""
    from grpc_tools import protoc  # from the build requirements

    out.mkdir(parents=True, exist_ok=True)
    arguments = ["protoc", f"--proto_path={contract()}"]
    arguments += [f"--{kind}_out={out}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    if protoc.main(arguments + PROTOS) != 0:
        raise SystemExit("tine-client: the contract cannot be generated")
    for name in ("records", "rpc"):  # they have no services, so these files are empty
        for ending in ("py", "pyi"):
            (out / f"tine/v1/{name}_pb2_grpc.{ending}").unlink(missing_ok=True)
    (out / "tine/v1/__init__.py").write_text('"""The contract: records, calls and stubs."""\n')


class BuildWithCalls(build_py):
    def run(self) -> None:
        generate(Path(self.build_lib))
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        # tine.v1 is generated into the build directory.
        return [] if package == "tine.v1" else super().find_package_modules(package, package_dir)

    def check_package(self, package: str, package_dir: str) -> str | None:
        return None if package == "tine.v1" else super().check_package(package, package_dir)


class SdistWithContract(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for proto in PROTOS:
            target = Path(base_dir) / "proto" / proto
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(contract() / proto, target)


setup(cmdclass={"build_py": BuildWithCalls, "sdist": SdistWithContract})
