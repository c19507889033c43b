//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// linkGroup marks the interfaces that this room makes, so that all of a namespace's can be
// deleted by one request: the kernel then waits once, not once an interface.
const linkGroup = 0x0ce_bed

// spaces opens the namespaces that journal entries name and that are still what they were. A
// testbed that lives has them open already.
func (t *Testbed) spaces(ids [][]string) (spaces map[string]*Namespace, opened bool, err error) {
	t.mu.Lock()
	live := len(t.namespaces) > 0
	spaces = make(map[string]*Namespace, len(ids))
	for node, n := range t.namespaces {
		spaces[node] = n
	}
	t.mu.Unlock()
	if live || len(ids) == 0 {
		return spaces, false, nil
	}
	err = t.home.away(func() error {
		for _, id := range ids {
			n, err := reopen(t.home, id)
			if err != nil {
				return err
			}
			if n != nil {
				spaces[n.node] = n
			} else if onNSFS(namespacePath(id[0])) {
				t.log.Warn("a network namespace has a name of ours and isn't ours: left alone", "path", namespacePath(id[0]))
			}
		}
		return nil
	})
	return spaces, true, err
}

// reopen opens a namespace by its journal entry and returns nil when the name is gone or belongs
// to another namespace now. It leaves the calling thread in the namespace.
func reopen(home home, id []string) (*Namespace, error) {
	if len(id) != 4 {
		return nil, fmt.Errorf("journal entry %s %q is malformed", KindNamespace, id)
	}
	path := namespacePath(id[0])
	if !onNSFS(path) {
		return nil, nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	n := &Namespace{node: id[3], name: id[0], fd: fd, home: home}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		n.close()
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	n.inode = st.Ino
	if strconv.FormatUint(n.inode, 10) != id[1] {
		n.close()
		return nil, nil
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		n.close()
		if errors.Is(err, unix.EINVAL) {
			return nil, nil // another type of namespace
		}
		return nil, fmt.Errorf("enter %s: %w", path, err)
	}
	if n.route, err = openRouteSocket(); err == nil {
		n.cookie, err = n.route.cookie()
	}
	if err != nil {
		n.close()
		return nil, err
	}
	if strconv.FormatUint(n.cookie, 10) != id[2] {
		n.close()
		return nil, nil
	}
	return n, nil
}

// removeNamespaces deletes every link of the namespaces, and then their names. The kernel takes back a namespace without a name once the last
// process and descriptor have left it, a while later.
func removeNamespaces(ctx context.Context, s *Scene, ids [][]string) error {
	var spaces []*Namespace
	for _, id := range ids {
		if n, ok := s.spaces[nodeOf(id)]; ok {
			spaces = append(spaces, n)
		}
	}
	if err := inParallel(ctx, deleters, len(spaces), here, func(i int) error { return spaces[i].deleteLinks() }); err != nil {
		return err
	}
	for _, id := range ids {
		path := namespacePath(id[0])
		if n, ok := s.spaces[nodeOf(id)]; ok {
			if !bound(path, n) {
				continue // renamed or unbound by someone else meanwhile
			}
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("%s: unbind %s: %w", n.node, path, err)
			}
		} else if !emptyName(path) {
			continue // gone, or another's
		}
		if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	// The kernel keeps a namespace as long as somebody has it open.
	for node := range s.spaces {
		s.letGo(node)
	}
	return nil
}

// deleters is how many requests to delete links are under way at once. Each mostly waits for the
// kernel to be sure that nobody looks at the links any more (two RCU grace periods, 20 ms), and
// requests wait at the same time.
const deleters = 32

// deleteLinks deletes every link that this room made in the namespace, and with them their other
// ends, in one request. The kernel has done it when it answers.
func (n *Namespace) deleteLinks() error {
	var b batch
	b.begin(unix.RTM_DELLINK, 0, func() string { return n.node + ": delete links" })
	b.link(0, 0, 0)
	b.attrU32(unix.IFLA_GROUP, linkGroup)
	b.end()
	// ENODEV: no link of ours is in there, for instance because the other ends went first.
	return n.route.send(&b, unix.ENODEV)
}

func nodeOf(id []string) string {
	if len(id) != 4 {
		return ""
	}
	return id[3]
}

// bound says whether path still is n's name.
func bound(path string, n *Namespace) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Ino == n.inode && onNSFS(path)
}
