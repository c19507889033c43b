package images

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// readArchive is an independent reader of the format: name → mode and content.
func readArchive(t *testing.T, raw []byte) (order []string, content map[string]string, mode map[string]uint64) {
	t.Helper()
	content, mode = map[string]string{}, map[string]uint64{}
	at := 0
	field := func(i int) uint64 {
		v, err := strconv.ParseUint(string(raw[at+6+8*i:at+14+8*i]), 16, 32)
		if err != nil {
			t.Fatalf("entry at %d, field %d: %v", at, i, err)
		}
		return v
	}
	for {
		if at%4 != 0 || string(raw[at:at+6]) != "070701" {
			t.Fatalf("no entry at %d: %q", at, raw[at:at+6])
		}
		size, nameLen := int(field(6)), int(field(11))
		name := string(raw[at+110 : at+110+nameLen-1])
		if raw[at+110+nameLen-1] != 0 {
			t.Fatalf("%s: its name does not end in NUL", name)
		}
		start := (at + 110 + nameLen + 3) &^ 3
		if name == "TRAILER!!!" {
			if rest := raw[start:]; len(bytes.Trim(rest, "\x00")) != 0 || len(raw)%512 != 0 {
				t.Fatalf("after the trailer: %d bytes of %d", len(rest), len(raw))
			}
			return order, content, mode
		}
		if _, twice := content[name]; twice {
			t.Fatalf("%s is there twice", name)
		}
		order = append(order, name)
		mode[name] = field(1)
		content[name] = string(raw[start : start+size])
		at = (start + size + 3) &^ 3
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	var out bytes.Buffer
	a := NewArchiveWriter(&out)
	// Every length around the padding to 4 bytes, of names and of contents.
	for n := range 9 {
		if err := a.Bytes("/d/"+strings.Repeat("n", n+1), 0o640, []byte(strings.Repeat("c", n))); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Symlink("/bin", "usr/bin"); err != nil {
		t.Fatal(err)
	}
	if err := a.CharDev("/dev/console", 0o600, 5, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	_, content, mode := readArchive(t, out.Bytes())
	for n := range 9 {
		name := "d/" + strings.Repeat("n", n+1)
		if content[name] != strings.Repeat("c", n) || mode[name] != 0o100640 {
			t.Errorf("%s: %q, mode %o", name, content[name], mode[name])
		}
	}
	if content["bin"] != "usr/bin" || mode["bin"] != 0o120777 || mode["dev/console"] != 0o020600 || mode["d"] != 0o040755 {
		t.Errorf("link %q mode %o, device mode %o, folder mode %o", content["bin"], mode["bin"], mode["dev/console"], mode["d"])
	}
}

func TestAFolderComesBeforeWhatIsInIt(t *testing.T) {
	var out bytes.Buffer
	a := NewArchiveWriter(&out)
	if err := a.Bytes("/a/b/c/file", 0o644, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Dir("/a/b", 0o700); err != nil { // it is there already
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	order, _, _ := readArchive(t, out.Bytes())
	if got := fmt.Sprint(order); got != "[a a/b a/b/c a/b/c/file]" {
		t.Errorf("order %s", got)
	}
}

func TestEntriesThatCannotBeAreRefused(t *testing.T) {
	for what, add := range map[string]func(*ArchiveWriter) error{
		"a name that climbs out": func(a *ArchiveWriter) error { return a.Bytes("../etc/passwd", 0o644, nil) },
		"a name with a NUL":      func(a *ArchiveWriter) error { return a.Bytes("a\x00b", 0o644, nil) },
		"no name":                func(a *ArchiveWriter) error { return a.Bytes("/", 0o644, nil) },
		"too big a file":         func(a *ArchiveWriter) error { return a.File("big", 0o644, 1<<32, strings.NewReader("")) },
		"a file that is shorter than promised": func(a *ArchiveWriter) error {
			return a.File("short", 0o644, 5, strings.NewReader("1234"))
		},
		"a name used twice": func(a *ArchiveWriter) error {
			if err := a.Bytes("x", 0o644, nil); err != nil {
				return nil
			}
			return a.Bytes("/x", 0o644, nil)
		},
	} {
		if err := add(NewArchiveWriter(io.Discard)); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func TestEqualContentGivesEqualArchives(t *testing.T) {
	write := func() []byte {
		var out bytes.Buffer
		a := NewArchiveWriter(&out)
		if err := a.Bytes("/etc/x", 0o644, []byte("y")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if !bytes.Equal(write(), write()) {
		t.Error("two archives of the same content differ")
	}
}
