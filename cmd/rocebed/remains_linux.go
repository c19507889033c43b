package main

import "github.com/rocebed/rocebed/testbed/linux"

// remains are the testbeds whose holders are dead, and why they can't be seen.
func remains() (all []remain, unseen string) {
	dead, err := linux.DeadTestbeds()
	if err != nil {
		return []remain{}, err.Error()
	}
	all = []remain{}
	for _, d := range dead {
		all = append(all, remain{Testbed: d.Testbed, Left: d.Left, Get: "rocebed clean " + d.Testbed})
	}
	return all, ""
}
