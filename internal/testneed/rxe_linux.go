package testneed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// rxe says why rdma_rxe can't be used inside namespaces here, or "" when it can.
func rxe() string {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	if !atLeast(b.String(), 7, 1) {
		return "this kernel is " + b.String() + ", 7.1 is needed"
	}
	if _, err := os.Stat("/sys/module/rdma_rxe"); err != nil {
		return "the module rdma_rxe is not loaded"
	}
	return ""
}

func atLeast(release string, major, minor int) bool {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	digits := strings.IndexFunc(parts[1]+"-", func(r rune) bool { return r < '0' || r > '9' })
	b, err2 := strconv.Atoi(parts[1][:digits])
	if err1 != nil || err2 != nil {
		panic(fmt.Sprintf("kernel release %q has no version", release))
	}
	return a > major || (a == major && b >= minor)
}
