//go:build linux

package linux

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rocebed/rocebed/topo"
)

// setting is a value under /proc/sys of the namespace that the writing thread is in.
type setting struct {
	key   string // below /proc/sys/net
	value string
	needs string // the kernel that has it; empty: one that lacks it lacks what it sets, too
}

// layer4Fields are source and destination address, protocol, source and destination port
// (Documentation/networking/ip-sysctl.rst, fib_multipath_hash_fields).
const layer4Fields = "55" // 0x37

// settingsOf are set before a namespace has links, so that links inherit them and none costs a
// call of its own.
func settingsOf(node *topo.Node, bare, v6, steer bool) []setting {
	s := []setting{
		// The initial namespace's value is inherited; distributions set it to strict.
		{"ipv4/conf/all/rp_filter", "0", ""},
		{"ipv4/conf/default/rp_filter", "0", ""},
	}
	if steer {
		// One flow stays on one CPU, or veth's per-CPU backlogs reorder packets.
		s = append(s, setting{"core/rps_default_mask", allCPUs(), "6.3"})
	}
	if v6 && !bare {
		s = append(s,
			// Duplicate address detection keeps an address unusable for two seconds.
			setting{"ipv6/conf/all/accept_dad", "0", ""},
			setting{"ipv6/conf/default/accept_dad", "0", ""},
			setting{"ipv6/conf/default/dad_transmits", "0", ""},
			setting{"ipv6/conf/default/accept_ra", "0", ""},
			// A link that is set down and up again keeps its addresses, as it does with IPv4.
			setting{"ipv6/conf/all/keep_addr_on_down", "1", ""})
	} else {
		// Router solicitations and multicast reports would be packets that nobody sent.
		s = append(s, setting{"ipv6/conf/all/disable_ipv6", "1", ""}, setting{"ipv6/conf/default/disable_ipv6", "1", ""})
	}
	if node.Role != topo.Switch || bare {
		return s
	}
	s = append(s,
		setting{"ipv4/ip_forward", "1", ""},
		setting{"ipv4/conf/all/send_redirects", "0", ""},
		setting{"ipv4/conf/default/send_redirects", "0", ""},
		// Layer 4: RoCE's entropy is its UDP source port. Policy 1 would hash these fields too, but
		// it takes a packet's hash where it has one already, and here every packet does: its sender's
		// socket or RPS at the port before gave it one, the same for all switches whatever their
		// seeds (fib_multipath_hash, net/ipv4/route.c). Policy 3 looks at the packet.
		setting{"ipv4/fib_multipath_hash_policy", "3", "5.14"},
		setting{"ipv4/fib_multipath_hash_fields", layer4Fields, "5.14"},
		// Equal seeds on successive tiers polarise: every leaf's choice would be every spine's.
		setting{"ipv4/fib_multipath_hash_seed", kernelSeed(node.HashSeed), "6.11"},
		// A switch stops using a port whose far end went down, not only one that was set down.
		setting{"ipv4/conf/all/ignore_routes_with_linkdown", "1", ""},
		setting{"ipv4/conf/default/ignore_routes_with_linkdown", "1", ""})
	if v6 {
		s = append(s,
			setting{"ipv6/conf/all/forwarding", "1", ""},
			setting{"ipv6/fib_multipath_hash_policy", "3", "5.14"},
			setting{"ipv6/fib_multipath_hash_fields", layer4Fields, "5.14"},
			setting{"ipv6/conf/all/ignore_routes_with_linkdown", "1", ""},
			setting{"ipv6/conf/default/ignore_routes_with_linkdown", "1", ""})
	}
	return s
}

// kernelSeed is a seed as the kernel takes it: to the kernel, 0 means a random one.
func kernelSeed(seed uint32) string {
	if seed == 0 {
		return "2654435769"
	}
	return strconv.FormatUint(uint64(seed), 10)
}

// applySettings writes them in the calling thread's namespace.
func applySettings(node string, settings []setting) error {
	for _, s := range settings {
		path := "/proc/sys/net/" + s.key
		err := writeSetting(path, s.value)
		if err == nil || err == unix.ENOENT && s.needs == "" {
			continue
		}
		hint := ""
		if err == unix.ENOENT {
			hint = " (needs Linux " + s.needs + ")"
		}
		return fmt.Errorf("%s: set %s to %s: %w%s", node, strings.ReplaceAll(strings.TrimPrefix(path, "/proc/sys/"), "/", "."), s.value, err, hint)
	}
	return nil
}

func writeSetting(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(value))
	unix.Close(fd)
	return err
}

// allCPUs is a mask of every CPU, in groups of 32 bits.
var allCPUs = sync.OnceValue(func() string {
	n := runtime.NumCPU()
	var groups []string
	if rest := n % 32; rest > 0 {
		groups = append(groups, strconv.FormatUint(1<<rest-1, 16))
	}
	for range n / 32 {
		groups = append(groups, "ffffffff")
	}
	return strings.Join(groups, ",")
})
