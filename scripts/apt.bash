# Packages of Debian and its relatives, for the scripts that install what is missing. Sourced.

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "root's rights are needed for: $*; run this script as root, or install sudo"
    fi
}

install() {
    echo "installing: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes \
        --no-install-recommends --option Dpkg::Use-Pty=0 "$@" >/dev/null
}

# The first of these packages that there is.
first_available() {
    local package
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            echo "$package"
            return
        fi
    done
    fail "this system has no package of these: $*"
}
