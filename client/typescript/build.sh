# To be sourced. `build` builds the package and its tests in build/typescript beside TINE_BUILD, from a
# copy of the sources, so that it writes nothing into the tree. It needs Node and protoc.

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
TINE_ROOT=$PWD
TINE_BUILD=$(realpath "${TINE_BUILD:-build/release}")
TINE_PROTO=$TINE_ROOT/proto
export TINE_ROOT TINE_BUILD TINE_PROTO
if [ -x scripts/install-languages ]; then
    eval "$(scripts/install-languages --env typescript)"
fi
room=$(realpath --canonicalize-missing "$TINE_BUILD/../typescript")

# Whether the files differ from those of the last build, whose checksum is in the stamp.
is_stale() {
    local stamp=$1
    shift
    [ "$(cat "$stamp" 2>/dev/null)" != "$(cat "$@" | sha256sum)" ]
}

# Each step returns on failure, because callers test the result, which turns `set -e` off.
build() {
    local from=$TINE_ROOT/client/typescript sources
    mkdir -p "$room"
    cd "$room"
    exec 8>lock
    flock 8
    cp "$from"/{package.json,package-lock.json,.npmrc,tsconfig.json,tsconfig.test.json,biome.json,README.md} .
    if is_stale installed package-lock.json || ! [ -d node_modules ]; then
        rm -f installed
        npm ci --no-progress || return
        sha256sum <package-lock.json >installed
    fi
    mapfile -t sources < <(find "$from"/{src,tests,programs,examples} "$TINE_PROTO" README.md tsconfig*.json \
        package-lock.json -name gen -prune -o -type f -print | LC_ALL=C sort)
    if is_stale built "${sources[@]}"; then
        rm -rf src tests programs examples dist out
        cp -r "$from"/{src,tests,programs,examples} .
        rm -rf src/gen dist
        npm run --silent build || return
        # The examples of the README are compiled, and run by the tests.
        mkdir -p examples/readme
        awk '/^```ts$/ { n++; is_code = 1; next } /^```$/ { is_code = 0 }
            is_code { print > ("examples/readme/example" n ".ts") }' README.md
        node_modules/.bin/tsc --project tsconfig.test.json || return
        cat "${sources[@]}" | sha256sum >built
    fi
    exec 8>&-
}
