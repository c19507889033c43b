package packet

import "encoding/binary"

// slot is a place of the hash table by Key: open addressing, at most half full.
type slot struct {
	key   Key
	entry uint32 // 0: free
}

func (k *Key) hash() uint64 {
	le := binary.LittleEndian
	h := le.Uint64(k.Addr[:]) ^ le.Uint64(k.Addr[8:])*0x9e3779b97f4a7c15 ^ uint64(k.QPN)<<17
	h = (h ^ h>>32) * 0xbf58476d1ce4e5b9
	return h ^ h>>29
}

// rehash gives the table room for n keys.
func (m *Matcher) rehash(n int) {
	old := m.slots
	m.slots = make([]slot, n)
	for _, s := range old {
		if s.entry != 0 {
			m.insert(s.key, s.entry)
		}
	}
}

func (m *Matcher) insert(k Key, entry uint32) {
	for i := k.hash(); ; i++ {
		s := &m.slots[i&uint64(len(m.slots)-1)]
		if s.entry == 0 || s.key == k {
			*s = slot{k, entry}
			return
		}
	}
}

// find is the number of the entry for a packet's connection; 0: nobody knows it.
func (m *Matcher) find(f *Facts) uint32 {
	k := Key{f.Dst, f.DestQP}
	for i := k.hash(); ; i++ {
		s := &m.slots[i&uint64(len(m.slots)-1)]
		if s.entry == 0 || s.key == k {
			return s.entry
		}
	}
}

// Flow is the number of a packet's connection and direction, as in its Verdict; 0: nobody knows it.
func (m *Matcher) Flow(f *Facts) uint32 {
	if !f.RoCE {
		return 0
	}
	return m.table.Entries[m.find(f)].Flow
}
