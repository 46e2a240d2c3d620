package gitrepo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// ErrNotHere says that a commit names a file or folder whose content the repository does not hold.
var ErrNotHere = errors.New("this clone does not have its content")

// here adds a hint to the error about a missing object.
func here(err error) error {
	if !errors.Is(err, plumbing.ErrObjectNotFound) {
		return err
	}
	return diag.Errorf("a partial clone (git clone --filter) leaves contents out: git fetch --refetch --no-filter brings them; in a damaged "+
		"clone, clone anew", "%w: %w", ErrNotHere, err)
}

// The kinds of errors about a remote. Errors of this package match their kind with errors.Is.
var (
	// ErrAuth: the server does not accept the credentials.
	ErrAuth = errors.New("authentication failed")
	// ErrNotFound: there is no such repository, or the credentials may not see it (most servers do not tell which).
	ErrNotFound = errors.New("repository not found")
	// ErrNetwork: the server does not answer.
	ErrNetwork = errors.New("server not reachable")
	// ErrUnavailable: the server answers that it cannot serve the request because of a problem of the server (an HTTP status from 500 on).
	ErrUnavailable = errors.New("the server has a problem")
	// ErrTooManyRequests: the server takes no more requests from here for now.
	ErrTooManyRequests = errors.New("the server takes no more requests for now")
	// ErrHostKey: the SSH host key is unknown (*HostKeyError) or has changed (*HostKeyChangedError).
	ErrHostKey = errors.New("host key verification failed")
	// ErrTLS: the server's certificate is not trusted.
	ErrTLS = errors.New("certificate verification failed")
	// ErrNoPushRight: the credentials may read but not write.
	ErrNoPushRight = errors.New("no right to push")
	// ErrProtectedBranch: the credentials may write, but the server refuses this update of the branch.
	ErrProtectedBranch = errors.New("the server refuses pushes to the branch")
	// ErrNonFastForward: the remote branch has commits that the local one lacks.
	ErrNonFastForward = errors.New("the remote branch has moved")
	// ErrRedirect: the server redirects clients to another server, to which fleetctl sends no credentials.
	ErrRedirect = errors.New("redirected to another server")
	// ErrURL: the repository URL cannot be used.
	ErrURL = errors.New("invalid repository URL")
)

// The kinds of errors about a working tree.
var (
	// ErrNotARepository: there is no repository in that folder.
	ErrNotARepository = errors.New("not a git repository")
	// ErrDiverged: the local and the remote branch both have commits that the other lacks.
	ErrDiverged = errors.New("the local and the remote branch have diverged")
	// ErrMoved: the local branch is no longer at the commit that a change was made from.
	ErrMoved = errors.New("the branch has moved on")
	// ErrBusy: another program works in the repository, or a merge or rebase is under way.
	ErrBusy = errors.New("the repository is in use")
	// ErrDetached: HEAD is no branch.
	ErrDetached = errors.New("HEAD is detached")
	// ErrNoWorkTree: the repository's files are not in that folder.
	ErrNoWorkTree = errors.New("not the working tree of the git repository")
	// ErrPath: a path cannot be written in this repository.
	ErrPath = errors.New("unusable path")
)

// DirtyError says that bringing a working tree up to date would overwrite changes that are in no commit.
type DirtyError struct {
	// Paths in question, relative to the top of the repository, sorted.
	Paths []string
}

// Error names up to ten of the paths.
func (e *DirtyError) Error() string {
	return "files with changes that are not committed: " + plain.Names(e.Paths, 10)
}

// dirtyError returns a *DirtyError with a hint, or nil for no paths.
func dirtyError(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	return diag.Wrap("", &DirtyError{Paths: slices.Compact(paths)}, "commit them, or move them away, then run the command again")
}

// hints has the hint for each kind of error about a remote.
var hints = []struct {
	kind error
	hint string
}{
	{ErrAuth, "check the user name and that the token or key is valid and may access the repository"},
	{ErrNotFound, "check the URL, that the repository exists, and that the credentials may see it"},
	{ErrTLS, "give the certificate authority of the server (spec.git.caFile in fleet.yaml; --git-ca-file for a new fleet)"},
	{ErrRedirect, "if you trust that server, give its address as the URL of the repository (spec.git.url in fleet.yaml)"},
	{ErrNetwork, "check the address, your connection and the proxy settings (HTTPS_PROXY, NO_PROXY)"},
	{ErrUnavailable, "run the same command again in a moment; if the server, or a proxy before it, still answers so, ask its operator"},
	{ErrTooManyRequests, "wait some minutes, and run the same command again; servers accept more requests with a token: --git-token-file"},
	{ErrNoPushRight, "give credentials with write access to the repository"},
	{ErrProtectedBranch, "allow this account to push to the branch, or choose another branch (spec.git.branch in fleet.yaml)"},
	{ErrNonFastForward, "run the command again"},
}

// remoteError wraps an error of a request to the remote, so that it matches its kind, names op and has a hint. It removes secrets from the
// text of the server.
func remoteError(op string, err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	kind, err := classify(err), ofServer(err)
	var host *HostKeyError
	var changed *HostKeyChangedError
	switch {
	case errors.As(err, &host):
		return diag.Wrap(op, host,
			"compare the fingerprint with the one that the server's operator publishes, then add this line to spec.git.knownHosts in fleet.yaml, "+
				"to ~/.ssh/known_hosts, or to the file of --ssh-known-hosts: "+host.Line)
	case errors.As(err, &changed):
		return diag.Wrap(op, changed,
			"somebody may be intercepting the connection; if the operator confirms the new key, replace the old line in spec.git.knownHosts or "+
				"~/.ssh/known_hosts")
	case errors.Is(err, contact.ErrTooLarge):
		return diag.Wrap(op, redact(err, secrets...), "check the address: no repository of a fleet is that large")
	case kind == nil:
		return diag.Wrap(op, redact(err, secrets...), "")
	}
	if status, ok := err.(*statusError); ok && status.hint() != "" { //nolint:errorlint // as ofServer made it
		return diag.Wrap(op, &kindError{kind: kind, cause: redact(err, secrets...)}, status.hint())
	}
	for _, h := range hints {
		if h.kind == kind { //nolint:errorlint // classify returns the sentinel itself
			return diag.Wrap(op, &kindError{kind: kind, cause: redact(err, secrets...)}, h.hint)
		}
	}
	return diag.Wrap(op, &kindError{kind: kind, cause: redact(err, secrets...)}, "")
}

// kindError is "kind: cause" and matches both, without repeating a kind that the cause already begins with.
type kindError struct{ kind, cause error }

func (e *kindError) Error() string {
	cause := e.cause.Error()
	if strings.HasPrefix(cause, e.kind.Error()) {
		return cause
	}
	return e.kind.Error() + ": " + cause
}

func (e *kindError) Unwrap() []error { return []error{e.kind, e.cause} }

// classify returns the sentinel that err stands for, or nil. It looks at types only.
func classify(err error) error {
	for _, kind := range []error{
		ErrAuth, ErrNotFound, ErrHostKey, ErrTLS, ErrNoPushRight, ErrProtectedBranch,
		ErrNonFastForward, ErrURL, ErrNetwork, ErrUnavailable, ErrTooManyRequests,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	err = ofServer(err)
	if _, ok := errors.AsType[*sameorigin.Error](err); ok {
		return ErrRedirect
	}
	if _, ok := errors.AsType[*sameorigin.PageError](err); ok {
		return nil // the server was reached, and its error says what to do
	}
	var status *statusError
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return ErrAuth
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return ErrNotFound
	case errors.As(err, &status):
		return status.kind()
	case isTLS(err):
		return ErrTLS
	case isNetwork(err):
		return ErrNetwork
	}
	return nil
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &record) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch)
}

func isNetwork(err error) bool {
	var network net.Error
	var dns *net.DNSError
	var negotiation *ssh.AlgorithmNegotiationError
	return errors.As(err, &network) || errors.As(err, &dns) || errors.As(err, &negotiation) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded)
}

// redacted is err with its text made safe to print; it still matches what err matches.
type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

// redact removes the secrets from err's text, in every spelling, and shortens it to one line of at most 300 bytes, because servers answer
// with whole HTML pages.
func redact(err error, secrets ...string) error {
	const most = 300
	text := err.Error()
	clean := sameorigin.Without(text, secrets...)
	for _, s := range secrets { // also those that are too short to be searched for elsewhere
		if s != "" {
			clean = strings.ReplaceAll(clean, s, "***")
		}
	}
	clean = strings.Join(strings.FieldsFunc(clean, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(clean) > most {
		clean = strings.ToValidUTF8(clean[:most], "") + "…"
	}
	if clean == text {
		return err
	}
	return &redacted{text: clean, err: err}
}

// SameBranch returns an error if the branch that is checked out now is not the one that was checked out before. So a command that begins
// anew after ErrMoved does not commit to another branch.
func SameBranch(before, now string) error {
	if before == now {
		return nil
	}
	return diag.Errorf("switch to the branch that is meant, and run the command again",
		"somebody has switched from the branch %s to %s in the meantime", before, now)
}
