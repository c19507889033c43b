//go:build linux

package linux

// Dead is a testbed whose holder, a keeper or a run, has died without taking it down.
type Dead struct {
	Testbed string
	Left    int // things that it had made and not removed, by its journal
}

// DeadTestbeds are those on this machine, by name. Clean removes them.
func DeadTestbeds() ([]Dead, error) {
	names, err := Testbeds()
	if err != nil {
		return nil, err
	}
	var all []Dead
	for _, name := range names {
		entries, _, _ := readJournal(StateDir(name)) // one that can't be read Clean speaks of
		if _, living := Living(name); !living {
			all = append(all, Dead{Testbed: name, Left: len(entries)})
		}
	}
	return all, nil
}
