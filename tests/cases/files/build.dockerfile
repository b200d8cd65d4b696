# syntax=docker/dockerfile:1
FROM debian:12 AS build
ARG VERSION="1.0"
ENV PATH=${PATH}:/opt/tool/bin
RUN apt-get update && \
    apt-get install -y --no-install-recommends build-essential && \
    rm -rf /var/lib/apt/lists/*
COPY ["src/", "/src/"]
RUN <<EOF
set -e
make -C /src all
EOF
HEALTHCHECK CMD test "$(cat /run/state)" = 'ready'
CMD ["/src/tool", "--listen", "0.0.0.0"]
