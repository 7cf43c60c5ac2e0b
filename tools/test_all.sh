#!/bin/sh
# Run the tests on every interpreter from 3.11 to 3.14 that is found, also under pyenv.
# The last line says how many passed; an interpreter that is not found is named, not skipped in silence.
set -u
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 missing=""
for version in 3.11 3.12 3.13 3.14; do
    python=""
    # pyenv's shims answer for every version and fail for most: ask each candidate what it is.
    for candidate in "$(command -v "python$version" 2>/dev/null)" \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/"python$version"; do
        [ -x "$candidate" ] || continue
        found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        [ "$found" = "$version" ] && python=$candidate && break
    done
    if [ -z "$python" ]; then
        missing="$missing $version"
        continue
    fi
    echo "== Python $version ($("$python" --version))"
    venv=.venv-$version
    if { [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"; } &&
        "$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input install --upgrade 'pip>=25.1' &&
        "$venv/bin/python" -m pip --quiet --disable-pip-version-check --no-input install \
            --constraint constraints.txt --group test --editable . &&
        "$venv/bin/python" -m pytest -q -n "${WORKERS:-2}" "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "== Python $version: FAILED"
    fi
done
[ -z "$missing" ] || echo "== not found:$missing"
echo "== interpreters: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
