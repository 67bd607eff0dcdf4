# `docker build -t srearena .` and `docker run --rm srearena` run the README's first command.
# With kubectl inside: `docker build --target with-kubectl -t srearena .`
# With extras: `docker build --build-arg EXTRAS='[zero]' -t srearena .`
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY . /source
RUN python -m pip install --quiet build
RUN python -m build --outdir /dist /source
RUN python -m venv /opt/srearena
RUN /opt/srearena/bin/pip install --quiet "$(echo /dist/*.whl)${EXTRAS}"

FROM python:${PYTHON}-slim AS runtime
RUN useradd --create-home --uid 10001 srearena && install --directory --owner srearena /data
COPY --from=build /opt/srearena /opt/srearena
ENV PATH=/opt/srearena/bin:$PATH SREARENA_RESULTS=/data/results
WORKDIR /home/srearena
USER srearena
VOLUME /data
ENTRYPOINT ["srearena"]
CMD ["run", "--agent", "rules", "--seed", "0", "--fixed", "--parallel", "2", "scale_pod_zero_social_net", "wrong_service_selector_hotel_reservation", "network_policy_block", "pod_failure", "revoke_auth_mongodb-1"]

FROM runtime AS with-kubectl
COPY --from=registry.k8s.io/kubectl:v1.34.1 /bin/kubectl /usr/local/bin/kubectl

# The default: the image without kubectl.
FROM runtime
