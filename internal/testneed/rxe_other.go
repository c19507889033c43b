//go:build !linux

package testneed

func rxe() string { return "not Linux" }
