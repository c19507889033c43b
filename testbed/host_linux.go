package testbed

import "golang.org/x/sys/unix"

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return "Linux " + unix.ByteSliceToString(u.Release[:])
}
