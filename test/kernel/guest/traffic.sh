#!/bin/bash
# Real RoCE traffic between two devices of this machine, $1 at interface $2 and $3 at interface $4, over the pair of interfaces and not
# through the machine's own loopback: packets to either address leave by the other's interface.
set -eu
ip addr add 10.9.0.1/32 dev "$2"
ip addr add 10.9.0.2/32 dev "$4"
for interface in all "$2" "$4"; do
  echo 1 > "/proc/sys/net/ipv4/conf/$interface/accept_local"
  echo 0 > "/proc/sys/net/ipv4/conf/$interface/rp_filter"
done
ip rule add pref 1 iif "$2" lookup local
ip rule add pref 1 iif "$4" lookup local
ip rule add pref 2 to 10.9.0.0/24 lookup 100
ip rule add pref 3 lookup local
ip rule del pref 0
ip route add 10.9.0.2/32 dev "$2" src 10.9.0.1 table 100
ip route add 10.9.0.1/32 dev "$4" src 10.9.0.2 table 100
gid() { grep -l 'ffff:0a09' /sys/class/infiniband/"$1"/ports/1/gids/* | head -1 | xargs basename; }
ibv_rc_pingpong -d "$1" -g "$(gid "$1")" -n 200 > /run/server.log 2>&1 &
for _ in $(seq 50); do grep -q 'local address' /run/server.log && break; sleep 0.1; done
sleep 0.5
timeout 60 ibv_rc_pingpong -d "$3" -g "$(gid "$3")" -n 200 127.0.0.1
wait
cat /run/server.log
