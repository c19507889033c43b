//go:build linux

package linux

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"
)

// maxLinkName is the longest interface name that the kernel takes (IFNAMSIZ less the NUL).
const maxLinkName = 15

// maxNamespaceName is the longest namespace name we make; a file name may have 255 bytes, but
// tools print these in columns.
const maxNamespaceName = 63

// A testbed's name holds no dot: the first dot in a namespace's name ends the testbed's, so
// that no two testbeds and nodes can spell the same name.
var testbedName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// CheckName says whether a testbed may be called that: 1 to 63 letters, digits, '-' and '_',
// the first a letter or a digit.
func CheckName(testbed string) error {
	if !testbedName.MatchString(testbed) {
		return fmt.Errorf("testbed name %q: use 1 to 63 letters, digits, '-' or '_', beginning with a letter or a digit", testbed)
	}
	return nil
}

// NamespaceName is how a node's namespace is called under /run/netns: "rb-TESTBED.NODE".
func NamespaceName(testbed, node string) string {
	return shorten(maxNamespaceName, "rb-"+testbed+"."+clean(node, "/\x00"))
}

// LinkName is the interface name of a port: the port's own name where the kernel takes it,
// else as much of it as fits and a hash. Names of links live in their namespace, so they need
// no testbed in them.
func LinkName(port string) string {
	return shorten(maxLinkName, clean(port, "/:%\x00"))
}

// ShortName joins parts with '-' into a name of at most limit bytes that is the same every time
// and differs for different parts: whole where it fits, else cut and ended with a hash. It is for
// names that are unique on the whole machine, such as RDMA devices.
func ShortName(limit int, parts ...string) string {
	return shorten(limit, strings.Join(parts, "-"))
}

func shorten(limit int, name string) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
	return name[:limit-len(tail)] + tail
}

// clean escapes the characters that a kind of name can't hold, and white space. A name that had
// any gets a hash of the original, so that two names can't become one.
func clean(name, bad string) string {
	mapped := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(bad, r) {
			return '_'
		}
		return r
	}, name)
	if mapped == name && name != "." && name != ".." && name != "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return mapped + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}
