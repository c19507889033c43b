//go:build !linux

package main

func rootless([]string) {}
