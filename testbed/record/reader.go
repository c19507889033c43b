package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/rocebed/rocebed/testbed/metrics"
)

// Reader reads a record, complete or cut short.
type Reader struct {
	dir      string
	manifest Manifest
}

// Open reads a record's manifest.
func Open(dir string) (*Reader, error) {
	b, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return nil, fmt.Errorf("%s is not a record: %w", dir, err)
	}
	r := &Reader{dir: dir}
	if err := json.Unmarshal(b, &r.manifest); err != nil {
		return nil, fmt.Errorf("record %s: manifest.json: %w", dir, err)
	}
	if r.manifest.Format != Format {
		return nil, fmt.Errorf("record %s has format %d, this rocebed reads %d", dir, r.manifest.Format, Format)
	}
	return r, nil
}

// Dir is where the record is.
func (r *Reader) Dir() string { return r.dir }

// Manifest is the record's manifest as it was when Open read it.
func (r *Reader) Manifest() Manifest { return r.manifest }

// Verify hashes data/ again and compares.
func (r *Reader) Verify() error {
	if !r.manifest.Complete {
		return r.incomplete()
	}
	got, err := Hash(filepath.Join(r.dir, dataDir))
	if err != nil {
		return err
	}
	if got != r.manifest.Hash {
		return fmt.Errorf("record %s: data/ hashes to %s, the manifest says %s: it was changed after the run", r.dir, got, r.manifest.Hash)
	}
	return nil
}

// File is one file of data/.
func (r *Reader) File(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.dir, dataDir, filepath.FromSlash(name)))
}

// JSON decodes one file of data/.
func (r *Reader) JSON(name string, v any) error {
	b, err := r.File(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("record %s: %s: %w", r.dir, name, err)
	}
	return nil
}

// Summary is what the run came to, as `run --json` printed it. What only the manifest knows (where the record is now, the
// verdict of the machine around a guest) is the manifest's. A record that was cut short has none.
func (r *Reader) Summary() (*Summary, error) {
	if !r.manifest.Complete {
		return nil, r.incomplete()
	}
	b, err := os.ReadFile(filepath.Join(r.dir, SummaryFile))
	if err != nil {
		return nil, fmt.Errorf("record %s holds no summary: %w", r.dir, err)
	}
	var s Summary
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("record %s: %s: %w", r.dir, SummaryFile, err)
	}
	m := &r.manifest
	s.Record, s.Hash, s.Verdict, s.Guest, s.Wall, s.Problems = r.dir, m.Hash, m.Verdict, m.Guest, m.Wall, append([]string{}, m.Problems...)
	return &s, nil
}

func (r *Reader) incomplete() error {
	return fmt.Errorf("record %s is incomplete: the run was cut short or is still going on", r.dir)
}

// Events are all events in order of time, those of one time as they were written. A last line
// that a crash cut short is left out.
func (r *Reader) Events() ([]Event, error) {
	var out []Event
	err := r.lines(EventsFile, func(line []byte) error {
		var e Event
		err := json.Unmarshal(line, &e)
		out = append(out, e)
		return err
	})
	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return out, err
}

// Readings are all readings, each with every series seen so far: what a line leaves out
// because it did not change is carried forward.
func (r *Reader) Readings(each func(metrics.Reading) error) error {
	now := map[string]float64{}
	return r.lines(MetricsFile, func(line []byte) error {
		var l reading
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		for k, v := range l.Values {
			now[k] = v
		}
		keys := make([]string, 0, len(now))
		for k := range now {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		out := metrics.Reading{Phase: l.Phase, At: time.Duration(l.At)}
		for _, k := range keys {
			s, err := metrics.ParseKey(k)
			if err != nil {
				return err
			}
			s.Value = now[k]
			out.Samples = append(out.Samples, s)
		}
		return each(out)
	})
}

// Table gathers all readings.
func (r *Reader) Table(reg *metrics.Registry) (*metrics.Table, error) {
	t := metrics.NewTable(reg)
	err := r.Readings(func(x metrics.Reading) error { t.Add(x); return nil })
	return t, err
}

func (r *Reader) lines(name string, each func([]byte) error) error {
	f, err := os.Open(filepath.Join(r.dir, dataDir, name))
	if err != nil {
		return fmt.Errorf("record %s: %w", r.dir, err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what has no newline was cut short
		}
		if err != nil {
			return fmt.Errorf("record %s: %s: %w", r.dir, name, err)
		}
		if err := each(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return fmt.Errorf("record %s: %s:%d: %w", r.dir, name, n, err)
		}
	}
}
