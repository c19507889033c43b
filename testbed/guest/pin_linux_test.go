package guest

import "testing"

// Without the pins such a guest panics (two of two under TCG on two processors).
func TestThePacketPathMayBeSwitchedBesideTraffic(t *testing.T) {
	g := boot(t, Config{})
	code, out, errOut := sh(t, g, `set -e
ip netns add a; ip netns add b; ip netns add c
ip link add v0 netns a type veth peer name v0 netns b
ip -n a addr add 10.0.0.1/24 dev v0; ip -n b addr add 10.0.0.2/24 dev v0
for n in a b; do ip -n $n link set v0 up; done
ip -n c link add w0 type veth peer name w1
ip netns exec b iperf3 -s -1 >/dev/null & server=$!
until ip netns exec b ss -ltn | grep -q 5201; do :; done
ip netns exec a iperf3 -c 10.0.0.2 -u -b 0 -l 200 -n 10M >/dev/null & client=$!
for i in $(seq 1000); do echo "qdisc add dev w0 clsact"; echo "qdisc del dev w0 clsact"; done > /tmp/batch
rounds=0
while kill -0 $client 2>/dev/null; do ip netns exec c tc -batch /tmp/batch; rounds=$((rounds+1000)); done
wait $client $server
echo $rounds rounds`)
	if code != 0 {
		t.Fatalf("%d: %s%s", code, out, errOut)
	}
	t.Logf("%s", out)
}
