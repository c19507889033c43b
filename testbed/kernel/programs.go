//go:build linux

package kernel

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rocebed/rocebed/testbed/linux"
)

// shim holds qp.c, and qp.so where the Makefile has built it: so the library travels with the
// binary, into guests too.
//
//go:embed shim
var shim embed.FS

const (
	shimFile = "shim/qp.so"
	// exponentEnv tells the library log2 of the dilation.
	exponentEnv = "ROCEBED_DILATION_EXPONENT"
)

// ProgramEnv is what a program on a node needs in its environment for its queue pairs' timeouts
// to fit the fabric's time, and what its user should know. TCP's timeouts are in the routes.
func (f *Fabric) ProgramEnv(node string) (env, notes []string, err error) {
	exponent := f.cfg.Dilation.Exponent()
	if exponent == 0 || f.nodes[node] == nil || f.Host(node) == nil {
		return nil, nil, nil
	}
	path, err := f.layShim()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", node, err)
	}
	if path == "" {
		return nil, []string{fmt.Sprintf("this rocebed was built without the library that raises programs' QP timeouts (make build makes it, with libibverbs' headers): "+
			"give them yourself, a local ACK timeout %d higher, as in ib_write_bw -u %d", exponent, min(14+exponent, 31))}, nil
	}
	return []string{"LD_PRELOAD=" + path, exponentEnv + "=" + strconv.Itoa(exponent)}, nil, nil
}

// layShim writes the library into the testbed's folder and says where it is; empty: there is none.
func (f *Fabric) layShim() (string, error) {
	content, err := shim.ReadFile(shimFile)
	if err != nil {
		return "", nil
	}
	path := filepath.Join(f.cfg.Testbed.Dir(), "qp.so")
	if have, err := os.Stat(path); err == nil && have.Size() == int64(len(content)) {
		return path, nil
	}
	if err := f.cfg.Testbed.Own(linux.KindFile, path); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, content, 0o755); err != nil {
		return "", fmt.Errorf("lay the library for programs' QP timeouts: %w", err)
	}
	return path, nil
}
