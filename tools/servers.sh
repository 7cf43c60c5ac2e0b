#!/bin/sh
# Servers that the tests run against and that do not come from PyPI.
#   tools/servers.sh npm   Azurite, into .servers/ (needs npm)
#   tools/servers.sh apt   pgbouncer and Ceph's S3 gateway (needs apt-get, and root)
# What cannot be had is said here, and its tests are skipped with the reason.
set -u
cd "$(dirname "$0")/.."

case "${1:?npm or apt}" in
npm)
    test -x .servers/azurite/node_modules/.bin/azurite-blob && exit 0
    if ! command -v npm >/dev/null; then
        echo "no npm: the tests against Azure's blob storage are skipped"
        exit 0
    fi
    echo "installing Azurite into .servers …"
    mkdir -p .servers/azurite
    npm install --prefix .servers/azurite --no-audit --no-fund --omit=optional --loglevel=error \
        azurite@3.35.0 >.servers/npm.log 2>&1 ||
        echo "npm could not install Azurite (.servers/npm.log): its tests are skipped"
    ;;
apt)
    if command -v radosgw >/dev/null && command -v ceph-mon >/dev/null &&
        command -v ceph-osd >/dev/null && test -x /usr/sbin/pgbouncer; then
        exit 0
    fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not root, or no apt-get: the tests with pgbouncer and Ceph are skipped"
        exit 0
    fi
    echo "installing pgbouncer and Ceph's gateway …"
    mkdir -p .servers
    export DEBIAN_FRONTEND=noninteractive
    {
        timeout 120 apt-get update && timeout 300 apt-get install --yes --no-install-recommends \
            pgbouncer radosgw ceph-mon ceph-osd ceph-common
    } >.servers/apt.log 2>&1 ||
        echo "apt-get could not install them (.servers/apt.log): their tests are skipped"
    ;;
esac
