package rnic

import (
	"slices"
	"sort"

	"github.com/rocebed/rocebed/datapath/link"
)

// extents is what phantom memory holds instead of bytes: which part of which stream would be where. It is a
// list of runs that covers all of the memory; runs that continue each other are one.
type extents struct {
	size uint64
	runs []run // by address; the first begins at 0
	last int   // the run touched last: what arrives in order is found at once
}

// run is what stands from an address on, up to the next run.
type run struct {
	at     uint64
	stream uint64 // 0: zeros
	shift  uint64 // offset in the stream less address, modulo 2^64
}

func (r *run) follows(p *run) bool {
	return r.stream == p.stream && (r.stream == 0 || r.shift == p.shift)
}

// newExtents makes memory of zeros.
func newExtents(size int) *extents { return &extents{size: uint64(size), runs: []run{{}}} }

// end is where a run ends.
func (e *extents) end(i int) uint64 {
	if i+1 < len(e.runs) {
		return e.runs[i+1].at
	}
	return e.size
}

// find is the run that holds an address.
func (e *extents) find(at uint64) int {
	if i := e.last; i < len(e.runs) && e.runs[i].at <= at {
		if at < e.end(i) {
			return i
		}
		if i+1 < len(e.runs) && at < e.end(i+1) {
			return i + 1
		}
	}
	return sort.Search(len(e.runs), func(i int) bool { return e.runs[i].at > at }) - 1
}

// put makes n bytes from an address on, which lie in the memory, those of a stream from an offset on.
func (e *extents) put(at, n, stream, off uint64) {
	if n == 0 {
		return
	}
	in := run{at: at, stream: stream, shift: off - at}
	end := at + n
	i := e.find(at)
	r := &e.runs[i]
	switch {
	case r.follows(&in) && end <= e.end(i): // it is there already
		e.last = i
		return
	case r.at == at && i > 0 && in.follows(&e.runs[i-1]) && end < e.end(i): // the run before grows at this one's cost
		r.at = end
		e.last = i - 1
		return
	}
	// Runs from..to-1 go, but for what of them lies before and behind.
	from, to := i, i+1
	for to < len(e.runs) && e.runs[to].at < end {
		to++
	}
	var fresh [3]run
	k := 0
	if r.at < at {
		fresh[k] = *r
		k++
	} else if i > 0 {
		from-- // it may be continued
		fresh[k] = e.runs[from]
		k++
	}
	if k == 0 || !in.follows(&fresh[k-1]) {
		fresh[k] = in
		k++
	}
	mine := k - 1
	behind := e.runs[to-1]
	if e.end(to-1) > end {
		behind.at = end
	} else if to < len(e.runs) {
		behind = e.runs[to]
		to++
	} else {
		behind.at = e.size
	}
	if behind.at < e.size && !behind.follows(&fresh[k-1]) {
		fresh[k] = behind
		k++
	}
	e.runs = slices.Replace(e.runs, from, to, fresh[:k]...)
	e.last = from + mine
}

// get appends what n bytes from an address on are, to what begins them.
func (e *extents) get(to []link.Extent, at, n uint64) []link.Extent {
	for i := e.find(at); n > 0; i++ {
		r := &e.runs[i]
		e.last = i
		m := min(e.end(i)-at, n)
		x := link.Extent{Stream: r.stream, Len: int(m)}
		if r.stream != 0 {
			x.Off = at + r.shift
		}
		to = join(to, x)
		at, n = at+m, n-m
	}
	return to
}

// join appends an extent, to the last one where it continues that.
func join(to []link.Extent, x link.Extent) []link.Extent {
	if k := len(to) - 1; k >= 0 {
		if p := &to[k]; p.Stream == x.Stream && (x.Stream == 0 || p.Off+uint64(p.Len) == x.Off) {
			p.Len += x.Len
			return to
		}
	}
	return append(to, x)
}

// differs is the index of the first of n bytes from an address on that isn't the stream's from an offset on, or -1.
func (e *extents) differs(at, n, stream, off uint64) int {
	in := run{stream: stream, shift: off - at}
	for i, from := e.find(at), at; from < at+n; i++ {
		e.last = i
		if !e.runs[i].follows(&in) {
			return int(from - at)
		}
		from = e.end(i)
	}
	return -1
}

// add makes n bytes from an address on the sums of what they are and of what others are, which are elements of
// one order in both: the stream of the sums is the sum of the streams. Where the two are of different offsets the
// result is a stream that nobody expects.
func (e *extents) add(at, n uint64, other *extents, from uint64) {
	var a, b []link.Extent
	a, b = e.get(nil, at, n), other.get(nil, from, n)
	for len(a) > 0 && len(b) > 0 {
		x, y := &a[0], &b[0]
		m := min(x.Len, y.Len)
		switch {
		case y.Stream == 0: // adding zeros
		case x.Stream == 0:
			e.put(at, uint64(m), y.Stream, y.Off)
		case x.Off == y.Off:
			e.put(at, uint64(m), x.Stream+y.Stream, x.Off)
		default:
			e.put(at, uint64(m), mix64(x.Stream^mix64(y.Stream^(x.Off-y.Off))), x.Off)
		}
		at += uint64(m)
		a, b = cut(a, m), cut(b, m)
	}
}

// cut drops the first n bytes of some extents; the first of these has at least as many.
func cut(x []link.Extent, n int) []link.Extent {
	if x[0].Len == n {
		return x[1:]
	}
	x[0].Len -= n
	x[0].Off += uint64(n)
	return x
}
