package rnic

// PCIe is a switch that devices of one host share.
type PCIe struct{}
