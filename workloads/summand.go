package workloads

// A reduction in phantom memory is one of names: the elements that a rank contributes are a stream of its own, and sums
// are streams whose name is the sum of their summands'. So what is added twice, not at all or out of place shows in
// the name, or in the offset, of what comes out.

// name is the stream of rank r's elements. It is odd or even as it comes, but never zeros' or the guards'.
func (s summand) name(r uint32) uint64 { return mix64(s.key^golden) + mix64(s.key+uint64(r+1)*golden) }

// total is the stream of the sums over all ranks.
func (s summand) total() (sum uint64) {
	for r := range s.n {
		sum += s.name(r)
	}
	return sum
}

// make fills in rank r's elements from i on.
func (s summand) make(to span, r uint32, i int) {
	if to.ph != nil {
		to.fill(Stream{s.name(r)}, uint64(i)*4)
		return
	}
	s.fill(to.b, r, i)
}

// addTo adds elements to others.
func (s summand) addTo(to, from span) {
	if to.ph != nil {
		to.ph.Add(to.at, to.n, from.ph, from.at)
		return
	}
	s.add(to.b, from.b)
}

// judge compares results from element i on: how many are wrong, and the first of them.
func (s summand) judge(got span, i int) (wrong, first int) {
	if got.ph == nil {
		return s.check(got.b, i)
	}
	total := Stream{s.total()}
	if first = got.check(total, uint64(i)*4); first < 0 {
		return 0, -1
	}
	return (got.n - int(got.right(total, uint64(i)*4)) + 3) / 4, i + first/4
}

// differ is what element i of a buffer should be and what it is; of phantom memory, the offset, and the offset or the
// stream that is there.
func (s summand) differ(buf span, i int) (want, got uint64) {
	if buf.ph == nil {
		return uint64(s.sum(i)), uint64(le32(buf.b[i*4:]))
	}
	return buf.differ(Stream{s.total()}, i*4, 0)
}
