// Package gitrepo is fleetctl's view of a Git repository: is the remote there, may we push to the branch, clone, commit a
// given set of files, push, and catch up with the others who push too. It is the only package that imports go-git.
//
// What it keeps to, because a user's own repository and a shared remote are at stake:
//
//   - Never force. A remote that moved is fetched, and the intent is applied again on top of what is there.
//   - A commit has the named changes, made from the commit before. Whatever else is staged or dirty in a working tree stays as it was.
//   - Content is converted as git does it: line ends here, filters and encodings by git itself. Hooks run as git runs them.
//   - A host key that is not known is an error to show, one that changed is an error, and none is ever trusted on the fly.
//   - Tokens and passphrases are in no URL, error or log.
//   - A kill at any point leaves a repository that the next call, or git itself, can work with.
package gitrepo
