package rnic

// Tracer sees messages pass through a device's stages.
type Tracer interface{}
