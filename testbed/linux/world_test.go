//go:build linux

package linux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rocebed/rocebed/internal/testneed"
)

// userEnv makes this test binary a user's process: what it does is the variable's value.
const userEnv = "ROCEBED_TEST_USER"

// nobody is a user who may do nothing.
const nobody = 65534

// asUser is what this binary does as a user who isn't root.
func asUser(what string) (err error) {
	verb, name, _ := strings.Cut(what, " ")
	create := verb != "look"
	if os.Geteuid() != 0 {
		if verb == "why" {
			fmt.Println(UserNamespaces())
			return nil
		}
		return EnterWorld(create)
	}
	switch verb {
	case "make", "leave":
		spec := spineLeafSpec(1, 2, 2)
		topology, err := spec.Build()
		if err != nil {
			return err
		}
		p, err := topology.Plan(spec.PlanOptions())
		if err != nil {
			return err
		}
		bed, err := Acquire(context.Background(), name)
		if err != nil {
			return err
		}
		if _, err := bed.Wire(context.Background(), p, WireOptions{}); err != nil {
			return errors.Join(err, bed.Close(context.Background()))
		}
		names, _ := os.ReadDir(netnsDir)
		fmt.Printf("made %d namespaces, rootless %v\n", len(names), Rootless())
		if verb == "leave" {
			bed.Abandon()
			if _, err := os.Stdin.Read(make([]byte, 1)); err != nil && err != io.EOF {
				return err
			}
			return nil
		}
		return bed.Close(context.Background())
	case "look":
		beds, err := Testbeds()
		fmt.Println("testbeds", beds)
		return err
	case "clean":
		cleaned, err := Clean(context.Background(), CleanOptions{})
		fmt.Printf("cleaned %v\n", cleaned)
		return err
	case "hobble":
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
		cmd := userCommand(os.Args[0], "", "why")
		cmd.Stdout = os.Stdout
		return cmd.Run()
	}
	return fmt.Errorf("asked to %q", what)
}

func userCommand(binary, home, what string) *exec.Cmd {
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), userEnv+"="+what, "XDG_RUNTIME_DIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Stderr = os.Stderr
	return cmd
}

// userBinary is a copy of this binary, and a folder, that a user can use.
func userBinary(t *testing.T) (binary, home string) {
	t.Helper()
	testneed.Root(t)
	dir, err := os.MkdirTemp("", "rocebed-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	home = filepath.Join(dir, "home")
	if err = errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(home, 0o755), os.Chown(home, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return binary, home
}

func runAsUser(t *testing.T, binary, home, what string) string {
	t.Helper()
	out, err := userCommand(binary, home, what).Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, out)
	}
	return string(out)
}

func TestAUserMakesTestbedsInAWorldOfTheirOwn(t *testing.T) {
	binary, home := userBinary(t)
	before, _ := os.ReadDir(netnsDir)
	out := runAsUser(t, binary, home, "make "+testName("user"))
	if !strings.Contains(out, "made 7 namespaces, rootless true") {
		t.Errorf("the user's process says %q", out)
	}
	if after, _ := os.ReadDir(netnsDir); len(after) > len(before) {
		t.Errorf("the machine has namespaces %v, had %v", after, before)
	}
}

func TestAUsersProcessesShareAWorldAndFindWhatOneLeftThere(t *testing.T) {
	binary, home := userBinary(t)
	name := testName("left")
	leaver := userCommand(binary, home, "leave "+name)
	stdin, err := leaver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := leaver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leaver.Start(); err != nil {
		t.Fatal(err)
	}
	made := make([]byte, 100)
	if n, err := stdout.Read(made); err != nil || !bytes.HasPrefix(made, []byte("made 7")) {
		t.Fatalf("%q, %v", made[:n], err)
	}
	if out := runAsUser(t, binary, home, "look"); !strings.Contains(out, name) {
		t.Errorf("another process of the user sees %q", out)
	}
	if out := runAsUser(t, binary, home, "clean"); !strings.Contains(out, name) {
		t.Errorf("clean says %q", out)
	}
	stdin.Close()
	if err := leaver.Wait(); err != nil {
		t.Error(err)
	}
	// The world ends with the last process in it.
	out, err := userCommand(binary, home, "look").CombinedOutput()
	if err == nil {
		// Its anchor may not have noticed yet; then the world is empty.
		if strings.Contains(string(out), name) {
			t.Errorf("%q is still there", out)
		}
		return
	}
}

func TestWhoMayNotHaveUserNamespacesHearsWhy(t *testing.T) {
	binary, home := userBinary(t)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), userEnv+"=hobble", "XDG_RUNTIME_DIR="+home)
	all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "user.max_user_namespaces is 0") {
		t.Errorf("%v: %q", err, out)
	}
}
