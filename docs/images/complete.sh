#!/bin/sh
# Draws docs/images/complete.svg: records the command in a terminal (asciinema) and converts the recording to a picture
# (svg-term-cli). Needs `./dev build`, Node, and the network for both tools.
set -eu
cd "$(dirname "$0")/../.."
work=.work/images
command='fim-server complete examples/largest.py 8:13 --diff'

mkdir -p $work
[ -x $work/venv/bin/asciinema ] || .venv/bin/python -m venv $work/venv
$work/venv/bin/python -m pip install --quiet asciinema==2.4.0

# The picture repeats; the last pause is for reading.
cat >$work/shown.sh <<SHOWN
printf '\033[1;32m$\033[0m %s\n' '$command'
$command
printf '\033[1;32m$\033[0m '
sleep 6
printf ' '
SHOWN
PATH="$(pwd)/.venv/bin:$PATH" $work/venv/bin/asciinema rec --quiet --overwrite --cols 100 --rows 12 \
  --command "sh $work/shown.sh" $work/complete.cast
npx --yes svg-term-cli@2.1.1 --in $work/complete.cast --out docs/images/complete.svg --no-cursor --padding 12
