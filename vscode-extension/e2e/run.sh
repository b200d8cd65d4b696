#!/bin/sh
# Packages the extension and runs it in VS Code. `./dev vscode` calls this when everything is set up.
set -eu
cd "$(dirname "$0")"

usage() {
  cat <<'HELP'
./dev vscode [--pictures | --situations | --files] [--model NAME] [--install-packages] [PATTERN]

Runs the packaged extension in code-server (VS Code for browsers, from npm) in headless Chromium with the real server:
types, accepts, requests, explains, walks through next edits, and checks the screen and the saved files. The model
suggests the texts of vscode-extension/e2e/texts.json, so that runs are equal. Also compares VS Code's brackets, quotes
and comments of each language with the definitions, and chooses and removes models of a test endpoint and a test cache.
PATTERN is a regular expression that selects tests.

--pictures          take the README's pictures again with the default model: vscode-extension/images/
--situations        instead of the tests, type 28 ordinary situations with the default model, and write
                    docs/situations.md with the suggestion and a picture of each
--files             instead of the tests, type a place in a file of each kind with the default model, and write
                    docs/files.md
--model NAME        use this model of `fim-server models` instead of those texts
--install-packages  install missing Debian packages (chromium, ripgrep, libkrb5-dev, build-essential) with apt-get;
                    otherwise only name them
CHROMIUM            environment variable with the browser, if no chromium, chromium-browser or google-chrome is on the PATH

A failing test saves a picture of the window and the logs in vscode-extension/e2e/failures/.
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
    --files) script=files.mjs ;;
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
if [ "$script" != editor.test.mjs ]; then
  FIM_SERVER_E2E_PATTERN="$pattern" exec node "$script"
fi
node --test-reporter=spec --test-name-pattern="$pattern" languages.test.mjs
node --test-reporter=spec --test-name-pattern="$pattern" models.test.mjs
node --test-reporter=spec --test-name-pattern="$pattern" quiet.test.mjs
node --test-reporter=spec --test-name-pattern="$pattern" nextEdits.test.mjs
exec node --test-reporter=spec --test-name-pattern="$pattern" "$script"
