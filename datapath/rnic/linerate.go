package rnic

// SetRate changes how fast the port sends, in bits a second of fabric time, from the next frame on. Pauses count in bits of
// Config.Rate, the link's speed.
func (d *Device) SetRate(rate uint64) { d.port.line.SetRate(rate) }

// Rate is the port's line rate, in bits a second of fabric time.
func (d *Device) Rate() uint64 { return d.port.line.Rate() }
