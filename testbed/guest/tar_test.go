package guest

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tarOf(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = "content"
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestNothingIsUnpackedOutsideItsFolder(t *testing.T) {
	for what, headers := range map[string][]tar.Header{
		"a name that climbs":            {{Name: "../evil", Typeflag: tar.TypeReg, Mode: 0o644}},
		"a name that climbs in between": {{Name: "a/../../evil", Typeflag: tar.TypeReg, Mode: 0o644}},
		"an absolute name":              {{Name: "/evil", Typeflag: tar.TypeReg, Mode: 0o644}},
		"a folder that climbs":          {{Name: "../evil/", Typeflag: tar.TypeDir, Mode: 0o755}},
		"a link":                        {{Name: "l", Linkname: "..", Typeflag: tar.TypeSymlink}},
		"a hard link":                   {{Name: "l", Linkname: "../secret", Typeflag: tar.TypeLink}},
		"a device":                      {{Name: "d", Typeflag: tar.TypeChar, Mode: 0o666}},
		"a file through a link that lies there": {
			{Name: "planted/evil", Typeflag: tar.TypeReg, Mode: 0o644}},
		"a file onto a link that lies there": {
			{Name: "planted", Typeflag: tar.TypeReg, Mode: 0o644}},
	} {
		top := t.TempDir()
		write := func(name string) {
			if err := os.WriteFile(filepath.Join(top, name), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("secret")
		dir := filepath.Join(top, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		target := "../outside"
		if strings.Contains(what, "onto") {
			target = "../secret"
		}
		if err := os.Symlink(target, filepath.Join(dir, "planted")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(top, "outside"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := unpack(tarOf(t, headers...), dir)
		if err == nil && !strings.Contains(what, "onto") { // onto a link: the link is replaced
			t.Errorf("%s: taken", what)
		}
		if raw, err := os.ReadFile(filepath.Join(top, "secret")); err != nil || string(raw) != "secret" {
			t.Errorf("%s: a file outside was touched: %q, %v", what, raw, err)
		}
		if left, _ := filepath.Glob(filepath.Join(top, "*")); len(left) != 3 {
			t.Errorf("%s: outside lies %v", what, left)
		}
		if in, _ := filepath.Glob(filepath.Join(top, "outside/*")); in != nil {
			t.Errorf("%s: through a link came %v", what, in)
		}
	}
}

func TestWhatIsPackedIsUnpackedAlike(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "made/by/unpack")
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	for name, content := range map[string][]byte{"manifest.json": []byte("{}"), "data/deep/er/big": big, "empty": nil} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("manifest.json", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time over what is there
		var stream bytes.Buffer
		if err := pack(&stream, from); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&stream, to); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(to, "data/deep/er/big"))
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	st, err := os.Lstat(filepath.Join(to, "link"))
	if err != nil || !st.Mode().IsRegular() {
		t.Errorf("a link is packed as the file it names: %v, %v", st, err)
	}
	if st, err := os.Stat(filepath.Join(to, "void")); err != nil || !st.IsDir() {
		t.Errorf("an empty folder: %v", err)
	}
	if st, err := os.Stat(filepath.Join(to, "manifest.json")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("permissions: %v, %v", st, err)
	}
}

func TestAnEndlessTreeOfLinksIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(".", filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if err := pack(&bytes.Buffer{}, dir); err == nil {
		t.Error("a folder within itself was packed")
	}
}
