"""How PD, TiKV and TiDB are started in their containers: shell scripts that the operator puts into ConfigMaps."""

from __future__ import annotations

PD = """#!/bin/sh
# Starts a PD member. One without data asks the discovery service whether to found the cluster or to join it.
POD_NAME=${POD_NAME:-$HOSTNAME}
domain=$POD_NAME.$PEER_SERVICE_NAME.$NAMESPACE.svc
discovery=${SET_NAME%-pd}-discovery.$NAMESPACE.svc:10261

tries=0
until getent hosts "$domain" > /dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -ge 60 ]; then
    echo "waiting for domain $domain to be resolvable timed out" >&2
    exit 1
  fi
  sleep 1
done

ARGS="--data-dir=/var/lib/pd --name=$POD_NAME \\
--peer-urls=http://0.0.0.0:2380 --advertise-peer-urls=http://$domain:2380 \\
--client-urls=http://0.0.0.0:2379 --advertise-client-urls=http://$domain:2379 \\
--config=/etc/pd/pd.toml"

if [ -f /var/lib/pd/join ]; then
  ARGS="$ARGS --join=$(cat /var/lib/pd/join)"
elif [ ! -d /var/lib/pd/member ]; then
  asked=$(printf %s "$domain:2380" | base64 | tr -d '\\n')
  until result=$(wget -qO- -T 3 "http://$discovery/new/$asked" 2> /dev/null); do
    echo "waiting for discovery service to return start args ..."
    sleep 2
  done
  ARGS="$ARGS $result"
fi

echo "starting pd-server ..."
echo "/pd-server $ARGS"
exec /pd-server $ARGS
"""

TIKV = """#!/bin/sh
# Starts a TiKV store.
POD_NAME=${POD_NAME:-$HOSTNAME}
ARGS="--pd=http://$CLUSTER_NAME-pd:2379 \\
--advertise-addr=$POD_NAME.$HEADLESS_SERVICE_NAME.$NAMESPACE.svc:20160 \\
--addr=0.0.0.0:20160 --status-addr=0.0.0.0:20180 \\
--data-dir=/var/lib/tikv --capacity=$CAPACITY --config=/etc/tikv/tikv.toml"

echo "starting tikv-server ..."
echo "/tikv-server $ARGS"
exec /tikv-server $ARGS
"""

TIDB = """#!/bin/sh
# Starts a TiDB server.
POD_NAME=${POD_NAME:-$HOSTNAME}
ARGS="--store=tikv --host=0.0.0.0 \\
--advertise-address=$POD_NAME.$HEADLESS_SERVICE_NAME.$NAMESPACE.svc \\
--path=$CLUSTER_NAME-pd:2379 --config=/etc/tidb/tidb.toml"
if [ -n "$SLOW_LOG_FILE" ]; then
  ARGS="$ARGS --log-slow-query=$SLOW_LOG_FILE"
fi

echo "start tidb-server ..."
echo "/tidb-server $ARGS"
exec /tidb-server $ARGS
"""
