#!/bin/sh
# Puts the server into a folder of its own: bin/idmint, the Node that it was tested with, and the packages that the
# lockfile names, without what only developers need. The image is made of it, and the systemd unit runs it.
#
#   npx --yes pnpm@10 install --frozen-lockfile
#   deploy/assemble.sh /opt/idmint
#
# The folder must be empty or not there, and it cannot be moved afterwards.
set -eu
to=${1:?name the folder to fill, such as /opt/idmint}
case $to in /*) ;; *) echo "assemble: $to must be an absolute path" >&2 && exit 2 ;; esac
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
if [ ! -x node_modules/node/bin/node ]; then
  echo "assemble: nothing is installed yet; run 'npx --yes pnpm@10 install --frozen-lockfile' in $root" >&2
  exit 1
fi
export PATH="$root/node_modules/.bin:$root/node_modules/node/bin:$PATH"

# A test of this script has built already.
[ "${TEST_BUILT:-}" = 1 ] || node scripts/build.ts
# It makes links to files of this clone, whose next build would then change a server that runs. So they are copied.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
npx --yes pnpm@10 --filter idmint deploy --prod --prefer-offline \
  --config.inject-workspace-packages=true --config.verify-deps-before-run=false "$stage/idmint"
mkdir -p "$to"
if [ -n "$(ls -A "$to")" ]; then echo "assemble: $to is not empty" >&2 && exit 1; fi
cp -R "$stage/idmint/." "$to"
# Nobody compiles there. Types and source maps are a third of the files' size without Node.
rm -rf "$to"/node_modules/.pnpm/@types+*
find "$to" -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -exec rm -f {} +
find "$to" -xtype l -exec rm -f {} +

mkdir -p "$to/bin"
cp node_modules/node/bin/node "$to/bin/node"
cp LICENSE dist/idmint.cdx.json "$to/"
program=dist/bundle/main.js
# The first line names the program that runs the file, so that an image needs neither a shell nor env.
sed -i "1s|^#!.*|#!$to/bin/node|" "$to/$program"
chmod 0755 "$to/$program"
ln -sf "../$program" "$to/bin/idmint"
"$to/bin/idmint" version
