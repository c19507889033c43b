package testleak

import (
	"os"
	"syscall"
)

// inode is a file's inode number, 0 when it can't be told.
func inode(file string) uint64 {
	st, err := os.Stat(file)
	if err != nil {
		return 0
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
