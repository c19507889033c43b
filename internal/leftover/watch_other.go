//go:build !linux

package main

func watch(string) func() []string { return func() []string { return nil } }
