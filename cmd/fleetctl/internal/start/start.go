// Package start keeps the garbage collector out of the program's start. The variables of the libraries that fleetctl links take some 15 MB
// and stay until the end, so a collection in between frees next to nothing, and takes time.
package start

import "runtime"

// room makes Go's heap look large, so that the next collection is due at twice its size. It takes no memory, because nobody writes to it.
// Go initializes packages in the order of their import paths, as soon as all that they import is initialized
// (https://go.dev/ref/spec#Program_initialization). This one imports next to nothing, and its path comes before those of the large
// libraries, so it is among the first.
var room = make([]byte, 32<<20)

// Done lets the garbage collector work as usual from now on.
func Done() {
	runtime.KeepAlive(room)
	room = nil
}
