#!/bin/sh
# Packages the extension and runs it in VS Code. `./dev vscode` calls this when everything is set up.
set -eu
cd "$(dirname "$0")"

usage() {
  cat <<'HELP'
./dev vscode [--pictures | --situations] [--model NAME] [--install-packages] [PATTERN]

Runs the packaged extension in code-server (VS Code for browsers, from npm) in headless Chromium, with the real server: it
types, accepts, asks, explains, and checks what is shown and what is saved. The model proposes the texts of
vscode-extension/e2e/texts.json, so that every run is offered the same. Before that, VS Code's own brackets, quotes and
comments of each language are compared with the definitions, and models are chosen and removed: of an endpoint that plays
llama.cpp's server, and of a cache of the tests' own. PATTERN is a regular expression that names tests.

--pictures          takes the README's pictures anew, with the default model: vscode-extension/images/
--situations        types 28 ordinary situations with the default model in place of the tests, and writes down what is
                    offered, with a picture of each: docs/situations.md
--model NAME        has this model complete, as `fim-server models` names it, in place of those texts
--install-packages  has apt-get install what is missing of Debian's packages chromium, ripgrep, libkrb5-dev and
                    build-essential; without it they are only named
CHROMIUM            in the environment: the browser, if it is not a chromium, chromium-browser or google-chrome on the PATH

A test that fails leaves a picture of the window and the logs in vscode-extension/e2e/failures/.
HELP
}

pattern=.
script=editor.test.mjs
while [ $# -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    --model)
      export FIM_SERVER_E2E_MODEL="${1:?--model needs a name}"
      shift
      ;;
    --pictures) export FIM_SERVER_PICTURES=1 FIM_SERVER_E2E_MODEL="${FIM_SERVER_E2E_MODEL:-smollm2}" ;;
    --situations) script=situations.mjs ;;
    --install-packages) ;; # set-up.sh has seen it
    -h | --help)
      usage
      exit 0
      ;;
    -*)
      usage >&2
      exit 2
      ;;
    *) pattern=$argument ;;
  esac
done

export FIM_SERVER_VSIX="$PWD/fim-server.vsix"
rm -rf failures
(
  cd ..
  npm run --silent package -- --out "$FIM_SERVER_VSIX" >/dev/null
  node_modules/.bin/tsc --noEmit --project e2e
)
if [ "$script" = situations.mjs ]; then
  FIM_SERVER_E2E_PATTERN="$pattern" exec node "$script"
fi
node --test-reporter=spec --test-name-pattern="$pattern" languages.test.mjs
node --test-reporter=spec --test-name-pattern="$pattern" models.test.mjs
exec node --test-reporter=spec --test-name-pattern="$pattern" "$script"
