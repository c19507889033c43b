//go:build linux

package linux

import (
	"fmt"
	"os"
	"strings"
)

// Setting reads a setting of the namespace by its name below /proc/sys/net, as "ipv4/ip_forward".
func (n *Namespace) Setting(key string) (value string, err error) {
	err = n.Do(func() error {
		b, err := os.ReadFile("/proc/sys/net/" + key)
		value = strings.TrimSpace(string(b))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: read net.%s: %w", n.node, strings.ReplaceAll(key, "/", "."), err)
	}
	return value, nil
}

// SetSetting changes a setting of the namespace.
func (n *Namespace) SetSetting(key, value string) error {
	if err := n.Do(func() error { return writeSetting("/proc/sys/net/"+key, value) }); err != nil {
		return fmt.Errorf("%s: set net.%s to %s: %w", n.node, strings.ReplaceAll(key, "/", "."), value, err)
	}
	return nil
}

// HashSeedKey is the setting that a switch's ECMP hash is seeded by, for both families.
const HashSeedKey = "ipv4/fib_multipath_hash_seed"

// HashSeed is a seed of 32 bits as the kernel takes it in HashSeedKey.
func HashSeed(seed uint32) string { return kernelSeed(seed) }

// LinkdownKeys are the settings by which a switch stops using a port whose far end went down: those of all ports, and of the ones that are named.
func LinkdownKeys(v6 bool, ports ...Link) (keys []string) {
	families := []string{"ipv4"}
	if v6 {
		families = append(families, "ipv6")
	}
	for _, family := range families {
		keys = append(keys, family+"/conf/all/ignore_routes_with_linkdown")
		for _, l := range ports {
			keys = append(keys, family+"/conf/"+l.Name+"/ignore_routes_with_linkdown")
		}
	}
	return keys
}
