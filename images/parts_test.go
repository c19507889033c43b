package images

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheMirrorIsReadFromEitherKindOfSources(t *testing.T) {
	stanzas := `# a comment: with a colon
Types: deb
URIs: http://security.example/
Suites: trixie-security

Types: deb-src
URIs: http://source.example/

Enabled: no
Types: deb
URIs: http://disabled.example/
Suites: trixie

Types: deb deb-src
# http://commented.example/
URIs: http://right.example/debian http://second.example/
Suites: trixie trixie-updates
`
	if m := mirrorOfStanzas([]byte(stanzas)); m != "http://right.example/debian" {
		t.Errorf("stanzas: %q", m)
	}
	lines := `# deb http://commented.example/ trixie main
deb-src http://source.example/ trixie main
deb cdrom:[Debian]/ trixie main
deb [signed-by=/k arch=amd64] http://security.example/ trixie-security main
deb [signed-by=/k arch=amd64] http://right.example/debian trixie main
`
	if m := mirrorOfLines([]byte(lines)); m != "http://right.example/debian" {
		t.Errorf("lines: %q", m)
	}
}

func TestTheMachinesOwnKernelIsTakenOnlyWhereItWillDo(t *testing.T) {
	root := t.TempDir()
	install := func(release, module string, image bool) {
		write(t, filepath.Join(root, "lib/modules", release, "kernel/drivers/infiniband/sw/rxe", module), "")
		if image {
			write(t, filepath.Join(root, "boot/vmlinuz-"+release), "")
		}
	}
	install("6.18.4", "rdma_rxe.ko", true)    // too old
	install("7.9.0", "rdma_rxe.ko.xz", false) // no image to boot
	install("7.4.0", "other.ko", true)        // no rxe
	if k := machineKernel(root); k != nil {
		t.Fatalf("%s was taken", k.release)
	}
	install("7.2.10+deb13-amd64", "rdma_rxe.ko.xz", true)
	install("7.2.9", "rdma_rxe.ko.zst", true)
	if k := machineKernel(root); k == nil || k.release != "7.2.10+deb13-amd64" {
		t.Fatalf("taken: %+v", k)
	}
}

func TestModulesComeWithWhatTheyNeed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "modules.dep"), `kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/drivers/infiniband/core/ib_uverbs.ko.xz kernel/net/udp_tunnel.ko.xz
kernel/drivers/infiniband/core/ib_uverbs.ko.xz:
kernel/net/udp_tunnel.ko.xz:
kernel/net/sched/sch_red.ko.xz:
kernel/net/sched/sch-plug.ko.xz:
kernel/net/other.ko.xz:
`)
	write(t, filepath.Join(dir, "modules.builtin"), "kernel/drivers/net/veth.ko\n")
	s, err := readModules(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.pick([]string{"rdma_rxe", "kernel/net/sched/*"}, []string{"rdma_rxe", "veth", "sch_plug"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kernel/drivers/infiniband/core/ib_uverbs.ko.xz", "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz",
		"kernel/net/sched/sch-plug.ko.xz", "kernel/net/sched/sch_red.ko.xz", "kernel/net/udp_tunnel.ko.xz",
	}
	if fmt.Sprint(files) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", files, want)
	}
	if _, err := s.pick(nil, []string{"sch_netem"}); err == nil || !strings.Contains(err.Error(), "sch_netem") {
		t.Errorf("a kernel without a module that is required: %v", err)
	}
}

func TestTheKernelIsTakenOutOfItsCompressedImage(t *testing.T) {
	kernel := bytes.Repeat([]byte("kernel text "), 1000)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(kernel)
	z.Close()
	payload := binary.LittleEndian.AppendUint32(packed.Bytes(), uint32(len(kernel)))
	img := make([]byte, 3*512+100)
	img[0x1f1] = 2 // two sectors of setup after the first
	copy(img[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(img[0x248:], 100)
	binary.LittleEndian.PutUint32(img[0x24c:], uint32(len(payload)))
	img = append(img, payload...)
	got, err := uncompressed(img)
	if err != nil || !bytes.Equal(got, kernel) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for cut := 0; cut < len(img); cut += 97 {
		if _, err := uncompressed(img[:cut]); err == nil {
			t.Fatalf("an image cut to %d bytes was taken", cut)
		}
	}
	if hasPVH(kernel) {
		t.Error("text was taken for a kernel with a PVH note")
	}
}

func TestLibrariesAreWhatTheLoaderFinds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh := lookProgram("bash")
	libs, err := Libraries(t.Context(), sh)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(libs, " "); !strings.Contains(all, "/libc.so") || !strings.Contains(all, "/ld-") {
		t.Errorf("%s loads %s", sh, all)
	}
	text := filepath.Join(t.TempDir(), "text")
	write(t, text, "no program")
	if libs, err := Libraries(t.Context(), text); err != nil || libs != nil {
		t.Errorf("a text file: %v, %v", libs, err)
	}
	if _, err := Libraries(t.Context(), self+".none"); err == nil {
		t.Error("a missing file has libraries")
	}
}

func TestGuestPathsAreMergedIntoUsr(t *testing.T) {
	for from, want := range map[string]string{
		"/lib64/ld-linux-x86-64.so.2": "/usr/lib64/ld-linux-x86-64.so.2", "/bin/bash": "/usr/bin/bash",
		"/usr/bin/ip": "/usr/bin/ip", "/opt/x": "/opt/x", "/library/x": "/library/x",
	} {
		if got := GuestPath(from); got != want {
			t.Errorf("%s → %s, want %s", from, got, want)
		}
	}
}
