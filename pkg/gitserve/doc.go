// Package gitserve is for a fleet without a Git remote. It serves a folder of this machine to Flux, read-only, over Git's smart HTTP
// protocol. A `git commit` in the folder then changes the fleet.
//
// Each request runs git's own upload-pack, in an environment without the user's and the system's configuration. This package adds what a
// web server adds: one repository, credentials, limits, and the end of the git process with the request. Ensure keeps such a server
// running in the background, on the same port and with the same password.
package gitserve
