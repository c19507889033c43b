// Package incidents is a shelf of failures that the field has published, each as two scenarios: NAME.yaml, in which it happens,
// and NAME.cure.yaml, the same with the cure, where it doesn't. Both are ordinary scenarios for `rocebed run`; what they differ
// in is the cure. They lie in the binary, so that `rocebed incident` works anywhere.
//
// The package says what each of them is and where it was published, runs it by testbed.Run, and tells from the record whether
// the symptom was there: the expectations of NAME.yaml are the symptom, and they are asked of the cured run too. To add an
// incident, write the two files and its entry in catalogue.go. It must not build fabrics or judge runs by itself.
package incidents
