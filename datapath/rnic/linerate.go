package rnic

// SetRate changes the port's line rate, in bits a second of fabric time, from the next frame on.
func (d *Device) SetRate(rate uint64) { d.port.line.SetRate(rate) }

// Rate is the port's line rate, in bits a second of fabric time.
func (d *Device) Rate() uint64 { return d.port.line.Rate() }
