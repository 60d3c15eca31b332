# To be sourced. `build` creates the virtual environment $environment in build/python, with the built
# package and the tools of requirements.txt. It does nothing if that is up to date.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
TINE_BUILD=${TINE_BUILD:-$root/build/release}
export TINE_BUILD
out=$(dirname "$TINE_BUILD")/python
environment=$out/environment
! [ -x "$root/scripts/install-languages" ] ||
    eval "$("$root/scripts/install-languages" --env python)"

inputs() {
    (cd "$root" && find client/python/src client/python/pyproject.toml client/python/setup.py \
        client/python/README.md client/python/requirements.txt proto/tine -type f \
        -not -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
    python3 -VV
}

# Each step returns on failure, because callers test the result, which turns `set -e` off.
build() {
    mkdir -p "$out"
    exec 8>"$out/lock"
    flock 8
    if ! inputs | cmp --silent - "$out/inputs"; then
        rm -f "$out/inputs"
        [ -x "$environment/bin/python" ] &&
            [ "$("$environment/bin/python" -VV)" = "$(python3 -VV)" ] ||
            python3 -m venv --clear "$environment" || return
        "$environment/bin/pip" install --quiet --disable-pip-version-check \
            --requirement "$here/requirements.txt" || return
        # From a copy, like a source distribution: setuptools writes into the source directory.
        rm -rf "$out/source" "$out/wheel"
        mkdir -p "$out/source"
        cp -r "$here/src" "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$out/source"
        cp -r "$root/proto" "$out/source/proto"
        "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
            --wheel-dir "$out/wheel" "$out/source" || return
        "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps \
            --force-reinstall "$out"/wheel/*.whl || return
        inputs >"$out/inputs"
    fi
    exec 8>&-
}
