//go:build linux

package kernel

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rocebed/rocebed/testbed/linux"
	"github.com/rocebed/rocebed/topo"
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
	// devicesEnv tells it the node's own RDMA devices, with commas between.
	devicesEnv = "ROCEBED_DEVICES"
)

// ProgramEnv is what a program on a node needs in its environment for its queue pairs' timeouts
// to fit the fabric's time and for it to see the node's own RDMA devices alone, and what its user
// should know. TCP's timeouts are in the routes.
func (f *Fabric) ProgramEnv(node string) (env, notes []string, err error) {
	exponent := f.cfg.Dilation.Exponent()
	if f.nodes[node] == nil || f.Host(node) == nil {
		return nil, nil, nil
	}
	var devices []string
	for i := range f.Topology().Nodes {
		if n := &f.Topology().Nodes[i]; n.Name == node {
			for _, p := range n.Ports {
				devices = append(devices, f.DeviceName(topo.PortRef{Node: node, Port: p.Name}))
			}
		}
	}
	path, err := f.layShim()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", node, err)
	}
	if path == "" {
		return nil, []string{fmt.Sprintf("this rocebed was built without the library that raises programs' QP timeouts and hides other nodes' devices (make build makes it, with libibverbs' headers): "+
			"name the device and give timeouts yourself, a local ACK timeout %d higher, as in ib_write_bw -d %s -u %d", exponent, strings.Join(devices, " or "), min(14+exponent, 31))}, nil
	}
	return []string{"LD_PRELOAD=" + path, exponentEnv + "=" + strconv.Itoa(exponent), devicesEnv + "=" + strings.Join(devices, ",")}, nil, nil
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
