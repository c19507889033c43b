package crosstraffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/rocebed/rocebed/testbed/linux"
)

// bound says whether a socket of a protocol is bound to a port in a namespace, as /proc/net has it. A TCP connection that is over
// and waits for stray segments alone (TIME_WAIT) is no socket any more.
func bound(ns *linux.Namespace, proto string, port uint16) (found bool, err error) {
	const timeWait = "06"
	suffix := fmt.Sprintf(":%04X", port)
	err = ns.Do(func() error {
		for _, file := range []string{proto, proto + "6"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + file)
			if errors.Is(err, fs.ErrNotExist) { // no IPv6
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", ns.Node(), err)
			}
			lines := bufio.NewScanner(bytes.NewReader(b))
			lines.Scan() // the heading
			for lines.Scan() {
				if f := strings.Fields(lines.Text()); len(f) > 3 && strings.HasSuffix(f[1], suffix) && (proto != "tcp" || f[3] != timeWait) {
					found = true
				}
			}
		}
		return nil
	})
	return found, err
}
