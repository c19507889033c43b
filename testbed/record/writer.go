package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
)

// The files of data/.
const (
	ScenarioFile  = "scenario.yaml"
	RunFile       = "run.json" // what the command line may have said instead of the scenario: backend, seed and dilation
	TopologyFile  = "topology.json"
	PlanFile      = "plan.json"
	EventsFile    = "events.jsonl"
	MetricsFile   = "metrics.jsonl"
	WorkloadsFile = "workloads.json"
	FaultsFile    = "faults.json"
	VerdictsFile  = "verdicts.json"
	CapturesDir   = "captures"
)

// ManifestFile and SummaryFile lie beside data/.
const (
	ManifestFile = "manifest.json"
	SummaryFile  = "summary.json" // what `run --json` prints
)

const dataDir = "data"

// ErrExists says that a record can't be written where something is already.
var ErrExists = errors.New("the folder is there already and is not empty: choose another --out, or remove it")

// Writer writes a record. Its methods may be called from any goroutine. The first error
// sticks: later calls return it, so that a full disk is reported once and in full.
type Writer struct {
	dir string

	mu      sync.Mutex
	err     error
	events  *os.File
	metrics *os.File
	latest  time.Duration      // of the events so far
	mixed   bool               // an event came after a later one
	last    map[string]float64 // the values of the last reading, by key
	streams map[string]*os.File
	closed  bool
	hash    string // once sealed
}

// Vacant says whether a record may be written in dir: it must be empty or not exist yet.
func Vacant(dir string) error {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("record %s: %w", dir, ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("record %s: %w (choose another --out)", dir, err)
	}
	return nil
}

// Create begins a record in dir, which must be empty or not exist yet.
func Create(dir string, m Manifest) (*Writer, error) {
	if err := Vacant(dir); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, latest: math.MinInt64, last: map[string]float64{}, streams: map[string]*os.File{}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("record %s: %w", dir, err)
	}
	switch err := os.Mkdir(filepath.Join(dir, dataDir), 0o755); {
	case errors.Is(err, fs.ErrExist): // another was faster
		return nil, fmt.Errorf("record %s: %w", dir, ErrExists)
	case err != nil:
		return nil, fmt.Errorf("record %s: %w", dir, err)
	}
	m.Format, m.Complete, m.Hash, m.Verdict = Format, false, "", ""
	if err := w.putManifest(m); err != nil {
		return nil, err
	}
	var err error
	if w.events, err = w.open(EventsFile); err != nil {
		return nil, err
	}
	if w.metrics, err = w.open(MetricsFile); err != nil {
		w.events.Close()
		return nil, err
	}
	return w, nil
}

// Dir is where the record is.
func (w *Writer) Dir() string { return w.dir }

// Err is the first error that writing met.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Put writes one file of data/ whole.
func (w *Writer) Put(name string, content []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keep(writeWhole(filepath.Join(w.dir, dataDir), name, content))
}

// PutJSON writes one file of data/ as indented JSON.
func (w *Writer) PutJSON(name string, v any) error {
	b, err := encode(v, "  ")
	if err != nil {
		return fmt.Errorf("record %s: %s: %w", w.dir, name, err)
	}
	return w.Put(name, b)
}

// PutBeside writes a file beside data/, which the hash doesn't cover: a report.
func (w *Writer) PutBeside(name string, content []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keep(writeWhole(w.dir, name, content))
}

// Event appends to events.jsonl. The line is handed to the kernel before Event returns. Loops
// tell of what happened a little after one another; Seal puts the lines in order of time.
func (w *Writer) Event(e Event) error {
	w.mu.Lock()
	w.mixed = w.mixed || e.At < w.latest
	w.latest = max(w.latest, e.At)
	w.mu.Unlock()
	return w.appendLine(w.events, e)
}

// reading is a line of metrics.jsonl. Values are by series key.
type reading struct {
	At     int64              `json:"t"` // ns of fabric time
	Phase  metrics.Phase      `json:"phase"`
	Values map[string]float64 `json:"values"`
}

// Reading appends to metrics.jsonl: everything before and after, what changed during.
func (w *Writer) Reading(reg *metrics.Registry, r metrics.Reading) error {
	line := reading{At: int64(r.At), Phase: r.Phase, Values: map[string]float64{}}
	w.mu.Lock()
	for _, s := range r.Samples {
		k := reg.Key(s)
		if old, had := w.last[k]; had && old == s.Value && r.Phase == metrics.During {
			continue
		}
		w.last[k] = s.Value
		line.Values[k] = s.Value
	}
	w.mu.Unlock()
	return w.appendLine(w.metrics, line)
}

// Stream opens a file of data/ to be written piece by piece (a capture). Finish closes it if
// its writer hasn't.
func (w *Writer) Stream(name string) (io.WriteCloser, error) {
	f, err := w.open(name)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.streams[name] = f
	w.mu.Unlock()
	return &stream{w: w, f: f, name: name}, nil
}

// Seal closes data/, puts its events in order and hashes it: nothing is written there any more, reports still are beside it.
func (w *Writer) Seal() (hash string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeFiles()
	if w.err != nil {
		return "", w.err
	}
	if w.hash == "" {
		if w.mixed {
			if err := orderEvents(filepath.Join(w.dir, dataDir)); err != nil {
				return "", w.keep(err)
			}
		}
		if w.hash, err = Hash(filepath.Join(w.dir, dataDir)); err != nil {
			return "", w.keep(err)
		}
	}
	return w.hash, nil
}

// Finish seals the record if that wasn't done and writes the manifest as complete. m's Hash,
// Complete and Format are set here. On an error the record stays, marked incomplete.
func (w *Writer) Finish(m Manifest) (hash string, err error) {
	if hash, err = w.Seal(); err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.Format, m.Complete, m.Hash = Format, true, hash
	return hash, w.putManifest(m)
}

// Abandon closes the record as incomplete. After Finish it does nothing.
func (w *Writer) Abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeFiles()
}

func (w *Writer) closeFiles() {
	if w.closed {
		return
	}
	w.closed = true
	files := []*os.File{w.events, w.metrics}
	for _, f := range w.streams {
		files = append(files, f)
	}
	for _, f := range files {
		if f == nil {
			continue
		}
		w.keep(f.Sync())
		w.keep(f.Close())
	}
}

func (w *Writer) appendLine(f *os.File, v any) error {
	b, err := encode(v, "")
	if err != nil {
		return fmt.Errorf("record %s: %w", w.dir, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	_, err = f.Write(b)
	return w.keep(err)
}

func (w *Writer) open(name string) (*os.File, error) {
	path := filepath.Join(w.dir, dataDir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("record %s: %w", w.dir, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", w.dir, err)
	}
	return f, nil
}

// keep remembers the first error and dresses it. The lock is held.
func (w *Writer) keep(err error) error {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("record %s is incomplete: %w", w.dir, err)
	}
	if err != nil {
		return w.err
	}
	return nil
}

func (w *Writer) putManifest(m Manifest) error {
	b, err := encode(m, "  ")
	if err != nil {
		return err
	}
	return w.keep(writeWhole(w.dir, ManifestFile, b))
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// writeWhole writes a file beside its name, syncs it and renames it into place.
func writeWhole(dir, name string, content []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if strings.Contains(name, "..") {
		return fmt.Errorf("%s: not a name in the record", name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename last through a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // some file systems have nothing to sync in a folder
	}
	return errors.Join(err, d.Close())
}

type stream struct {
	w    *Writer
	f    *os.File
	name string
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.f.Write(b)
	if err != nil {
		s.w.mu.Lock()
		err = s.w.keep(err)
		s.w.mu.Unlock()
	}
	return n, err
}

func (s *stream) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.streams[s.name] == nil {
		return nil
	}
	delete(s.w.streams, s.name)
	return s.w.keep(errors.Join(s.f.Sync(), s.f.Close()))
}
