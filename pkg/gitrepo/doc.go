// Package gitrepo works with a Git repository and its remote. It finds out whether the remote exists and whether a push would be accepted.
// It clones, commits given changes, pushes, and merges the commits that others have pushed. It is the only package that imports go-git.
//
// It works in users' repositories and on shared remotes, so it keeps these rules:
//
//   - It never forces a push. If the remote has moved, it fetches, and the caller makes the change again from there.
//   - A commit has only the given changes. Everything else that is staged or edited in the working tree stays as it was.
//   - It converts content as git does: line ends in this package, filters and encodings by the git program. Hooks run as git runs them.
//   - It trusts no SSH host key by itself. An unknown key and a changed key are two different errors.
//   - No URL, error or log contains a token or a passphrase.
//   - After a kill at any point, the next call, or git itself, can work with the repository.
package gitrepo
