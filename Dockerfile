# The image of every service of Gnomon: `docker build -t gnomon .`, then `docker run gnomon proxy --config …`.
# Without the embedded ClickHouse (850 MB): a cluster has a server. docs/operations.md says how to pin the base by digest.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/gnomon
# What rarely changes first: the packages, as this release was tested with.
COPY pyproject.toml constraints.txt ./
RUN /opt/gnomon/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; e = p['optional-dependencies']; print('\n'.join(p['dependencies'] + [r for n in ('proxy', 'ingest', 'kafka', 'api') for r in e.get(n, [])]))" > requirements.txt \
 && /opt/gnomon/bin/pip install --only-binary :all: -c constraints.txt -r requirements.txt
COPY README.md LICENSE ./
COPY gnomon gnomon
COPY proxy proxy
COPY ingest ingest
COPY analytics analytics
COPY api api
RUN /opt/gnomon/bin/pip install --no-deps . \
 && /opt/gnomon/bin/gnomon --version

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="gnomon" \
      org.opencontainers.image.description="Observability and diff service for blockchain JSON-RPC providers" \
      org.opencontainers.image.licenses="Apache-2.0"
# The folder belongs to the user before it is a volume: a new volume takes its owner over.
RUN groupadd --gid 10001 gnomon \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin gnomon \
 && install -d -o gnomon -g gnomon -m 0750 /var/lib/gnomon \
 && install -d -m 0755 /etc/gnomon
COPY --from=build /opt/gnomon /opt/gnomon
ENV PATH=/opt/gnomon/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 TZ=UTC
# `gnomon` finds gnomon.yaml here without being told.
WORKDIR /etc/gnomon
USER 10001:10001
EXPOSE 4000 8080
ENTRYPOINT ["gnomon"]
CMD ["--help"]
