#!/bin/sh
# Installs code-server and playwright-core into node_modules, if they are missing. Repeats the steps of code-server's
# installation script, which fails without downloads. Names missing packages, or installs them with --install-packages.
set -eu
cd "$(dirname "$0")"

fail() { printf 'dev: %s\n' "$1" >&2; exit 2; }
has() { command -v "$1" >/dev/null 2>&1; }

[ "$(node -p 'process.versions.node.split(".")[0]')" = 20 ] ||
  fail "code-server 4.100.3 needs Node 20, this is $(node --version)"

lacking() {
  [ -n "${CHROMIUM:-}" ] || has chromium || has chromium-browser || has google-chrome || printf ' chromium'
  has rg || printf ' ripgrep'
  has make && has cc && has c++ || printf ' build-essential'
  printf '#include <gssapi/gssapi.h>\n' | cc -E - >/dev/null 2>&1 || printf ' libkrb5-dev'
}
missing=$(lacking)
case " $* " in
  *" --install-packages "*)
    # shellcheck disable=SC2086 # a list
    [ -z "$missing" ] || apt-get install --yes --no-install-recommends $missing || fail "apt-get did not install$missing"
    missing=$(lacking)
    ;;
esac
[ -z "$missing" ] || fail "missing:$missing (as Debian names them; ./dev vscode --install-packages has apt-get install them)"

locked="$(cat package-lock.json set-up.sh | cksum) $(node --version)"
[ "$(cat node_modules/.locked 2>/dev/null)" != "$locked" ] || exit 0
printf '==> Making code-server ready (a minute or two)\n'

# node-gyp needs no download where Node's headers lie beside Node.
prefix=$(node -p 'require("path").resolve(process.execPath, "../..")')
[ ! -f "$prefix/include/node/node_api.h" ] || export npm_config_nodedir="$prefix"

npm ci --ignore-scripts --loglevel=error >/dev/null
npm rebuild argon2 --loglevel=error >/dev/null
cd node_modules/code-server/lib/vscode
npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
npm rebuild @vscode/spdlog native-watchdog kerberos --loglevel=error >/dev/null
# When it is built, node-pty goes on to write a file for its own developers, with a tool that it would have to download.
npm rebuild node-pty >/dev/null 2>&1 || true
for name in @vscode/spdlog native-watchdog kerberos node-pty; do
  node -e "require('$name')" || fail "code-server's native module $name was not built"
done
mkdir -p node_modules/@vscode/ripgrep/bin
cp "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg
ln -sfn node_modules node_modules.asar
cd extensions
npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
cd ../../../../..
printf '%s\n' "$locked" >node_modules/.locked
