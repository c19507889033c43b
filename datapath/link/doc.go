// Package link is what lies between the ports of the emulated silicon, and what every port
// has: frames in hand, the wire that takes them, a line's serialisation, pause state.
//
// The software RNIC and the software switch speak to the world through it alone, so they
// are the same in virtual time, where a frame is a struct and a wire an event, and in real
// time, where a frame is bytes and a wire a socket. It knows loop and roce, and no device.
package link
