package testbed

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/rocebed/rocebed/testbed/record"
)

// Version is what rocebed calls itself. The build sets it (-ldflags -X); else the module's
// version or the commit stands for it.
var Version string

// versions are what a record says of the software that made it.
func versions() map[string]string {
	v := map[string]string{"rocebed": Version, "go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v["rocebed"] == "" {
			v["rocebed"] = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v["commit"] = s.Value
			case "vcs.modified":
				v["modified"] = s.Value
			}
		}
	}
	return v
}

// Versions are the versions of this rocebed and of what it was built with.
func Versions() map[string]string { return versions() }

// thisHost says what machine this is, as far as results depend on it.
func thisHost() record.Host {
	return record.Host{Kernel: kernelRelease(), Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Memory: memory()}
}

// memory is the machine's memory in bytes, or 0 where it can't be told.
func memory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var kib uint64
		if strings.HasPrefix(in.Text(), "MemTotal:") {
			if _, err := fmt.Sscanf(in.Text(), "MemTotal: %d kB", &kib); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
