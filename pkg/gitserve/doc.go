// Package gitserve is for a fleet without a Git remote: it serves a folder of this machine to Flux, read-only, over Git's smart
// HTTP protocol, so that `git commit` in the folder is all it takes to change the fleet.
//
// The protocol itself is git's own upload-pack, run for each request with an environment that ignores the user's and the system's
// configuration. This package does what a web server does for it: one repository, credentials, limits, and the end of the program
// with the request. Ensure keeps such a server running in the background, on the same port and with the same password.
package gitserve
