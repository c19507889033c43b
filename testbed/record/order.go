package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// orderEvents rewrites events.jsonl in order of time; events of one time stay as they came.
func orderEvents(data string) error {
	b, err := os.ReadFile(filepath.Join(data, EventsFile))
	if err != nil {
		return err
	}
	type dated struct {
		at   time.Duration
		line []byte
	}
	var events []dated
	for line := range bytes.Lines(b) {
		var e struct {
			At time.Duration `json:"t"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: %w", EventsFile, len(events)+1, err)
		}
		events = append(events, dated{e.At, line})
	}
	slices.SortStableFunc(events, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	out := make([]byte, 0, len(b))
	for _, e := range events {
		out = append(out, e.line...)
	}
	return writeWhole(data, EventsFile, out)
}
