//go:build linux

package linux

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/ethtool.h.
const (
	ethtoolGStrings    = 0x1b
	ethtoolGSSetInfo   = 0x37
	ethtoolSFeatures   = 0x3b
	ethSSFeatures      = 4
	ethGStringLen      = 32
	maxFeatures        = 256
	featureBlockLength = 32
)

// ifreqData is struct ifreq with ifr_data.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ethtool runs one ethtool request on a link of the socket's namespace.
func (s *routeSocket) ethtool(link string, data unsafe.Pointer) error {
	var req ifreqData
	copy(req.name[:unix.IFNAMSIZ-1], link)
	req.data = data
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}

// featuresOff is what a fabric link must not do: merge or split packets, which makes other
// packets of them than were sent, and leave checksums to hardware that isn't there, which makes
// captures wrong and lets corruption pass.
func featuresOff(name string) bool {
	return strings.Contains(name, "segmentation") || strings.Contains(name, "gro") || strings.Contains(name, "gso") ||
		strings.Contains(name, "checksum") || strings.HasPrefix(name, "tx-scatter-gather") || name == "rx-lro"
}

// setFeatures is struct ethtool_sfeatures with room for every feature.
type setFeatures struct {
	cmd    uint32
	size   uint32 // in blocks
	blocks [maxFeatures / featureBlockLength]struct{ valid, requested uint32 }
}

var offRequest struct {
	sync.Mutex
	known bool
	req   setFeatures
}

// offloadRequest asks the kernel once what its features are called, which differs by version.
func (s *routeSocket) offloadRequest(link string) (setFeatures, error) {
	offRequest.Lock()
	defer offRequest.Unlock()
	if offRequest.known {
		return offRequest.req, nil
	}
	var info struct {
		cmd, reserved uint32
		mask          uint64
		count         uint32
		_             uint32
	}
	info.cmd, info.mask = ethtoolGSSetInfo, 1<<ethSSFeatures
	if err := s.ethtool(link, unsafe.Pointer(&info)); err != nil {
		return setFeatures{}, err
	}
	if info.count == 0 || info.count > maxFeatures {
		return setFeatures{}, fmt.Errorf("the kernel has %d features, expected 1 to %d", info.count, maxFeatures)
	}
	var names struct {
		cmd, set, count uint32
		text            [maxFeatures * ethGStringLen]byte
	}
	names.cmd, names.set, names.count = ethtoolGStrings, ethSSFeatures, info.count
	if err := s.ethtool(link, unsafe.Pointer(&names)); err != nil {
		return setFeatures{}, err
	}
	r := &offRequest.req
	r.cmd = ethtoolSFeatures
	r.size = (info.count + featureBlockLength - 1) / featureBlockLength
	for i := range info.count {
		name, _, _ := strings.Cut(string(names.text[i*ethGStringLen:(i+1)*ethGStringLen]), "\x00")
		if featuresOff(name) {
			r.blocks[i/featureBlockLength].valid |= 1 << (i % featureBlockLength)
		}
	}
	offRequest.known = true
	return *r, nil
}

// offloadsOff turns offloads off on all links of the namespace.
func (n *Namespace) offloadsOff() error {
	for _, l := range n.links {
		req, err := n.route.offloadRequest(l.Name)
		if err == nil {
			// What the device never had can't be changed, and needn't be.
			err = n.route.ethtool(l.Name, unsafe.Pointer(&req))
		}
		if err != nil {
			return fmt.Errorf("%s:%s: turn offloads off: %w", n.node, l.Port, err)
		}
	}
	return nil
}
