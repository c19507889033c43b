package guest

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// pathKeys are the static keys of the kernel's packet path that testbeds, faults and captures
// would switch. With pins for all but tcx, no other key of the path was seen to change while the tests of
// testbed and testbed/kernel ran in a guest.
var pathKeys = []string{
	"ingress_needed_key", "egress_needed_key", "tcf_sw_enabled_key", // qdiscs and filters
	"tcx_needed_key",       // programs
	"rps_needed",           // steering
	"netstamp_needed_key",  // captures
	"udp_encap_needed_key", // rxe's tunnels
	"udpv6_encap_needed_key",
}

func TestWhatSwitchesThePacketPathIsOnFromTheStart(t *testing.T) {
	g := boot(t, Config{})
	var out strings.Builder
	code, err := g.Run(t.Context(), Cmd{Argv: []string{BinaryPath}, Env: []string{helperEnv + "=keys"}, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 {
		t.Fatalf("%d, %v: %s", code, err, out.String())
	}
	users := map[string]int{}
	for line := range strings.Lines(out.String()) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		users[name], _ = strconv.Atoi(n)
	}
	for _, key := range pathKeys {
		if n, known := users[key]; n == 0 {
			t.Errorf("%s: off (in this kernel: %v)", key, known)
		}
	}
}

// printKeys writes how many users each of pathKeys has in the running kernel.
func printKeys() error {
	symbols, err := os.Open("/proc/kallsyms")
	if err != nil {
		return err
	}
	defer symbols.Close()
	at := map[string]uint64{}
	for lines := bufio.NewScanner(symbols); lines.Scan(); {
		w := strings.Fields(lines.Text()) // address, type, name
		at[w[2]], _ = strconv.ParseUint(w[0], 16, 64)
	}
	memory, err := elf.Open("/proc/kcore")
	if err != nil {
		return err
	}
	defer memory.Close()
	for _, key := range pathKeys {
		for _, p := range memory.Progs {
			if a := at[key]; p.Type == elf.PT_LOAD && a >= p.Vaddr && a < p.Vaddr+p.Memsz {
				var users [4]byte // struct static_key begins with atomic_t enabled
				if _, err := p.ReadAt(users[:], int64(a-p.Vaddr)); err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				fmt.Println(key, int32(binary.LittleEndian.Uint32(users[:])))
				break
			}
		}
	}
	return nil
}
