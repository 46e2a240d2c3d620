// Package forge opens pull requests (GitLab calls them merge requests) and makes repositories and releases on GitHub, GitLab and Gitea,
// through each forge's own Go client. It is the only package that imports those.
package forge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// ErrUnknownForge means that neither the configuration nor the host's name tells which forge has the repository.
var ErrUnknownForge = errors.New("not known to be GitHub, GitLab or Gitea")

// timeout bounds one request to a forge. A busy forge takes long to make a pull request.
const timeout = time.Minute

// whole bounds all requests of one call, because a list may have many pages.
const whole = 4 * time.Minute

// maxAnswer bounds an answer, in bytes. A page of pull requests has some hundred KiB.
const maxAnswer = 16 << 20

// maxError bounds the text of an error, because a forge may answer with a whole page.
const maxError = 2000

// A search reads at most mostPages pages of this many pull requests. Strangers can open any number of pull requests, and a forge may
// return pages for ever.
const (
	aPage     = 100
	mostPages = 100
)

// Options name a repository of a forge, and the credentials.
type Options struct {
	// Type of the forge. Empty means the type that the host's name tells, see v1alpha1.ForgeOf.
	Type v1alpha1.ForgeType
	// Remote is the URL of the repository, with its https or ssh scheme.
	Remote *url.URL
	// Token of an account that may open pull requests. It is never in a file, log or error.
	Token string
	// CA are PEM certificates of authorities that are trusted in addition to the system's.
	CA []byte
}

// Request describes the wanted pull request, of branch into base.
type Request struct {
	Branch, Base, Title, Body string
}

// PullRequest is an open pull request.
type PullRequest struct {
	Number int64  `json:"number"`
	URL    string `json:"url"`
	// Created means that the branch had no open pull request before.
	Created bool `json:"created"`
}

// client is the API of one kind of forge.
type client interface {
	// find returns the open pull request of the branch into the base, nil if there is none.
	find(ctx context.Context, r Request) (*PullRequest, error)
	create(ctx context.Context, r Request) (*PullRequest, error)
	update(ctx context.Context, number int64, r Request) error
	// exists tells whether the repository exists. Forges give the same answer for one that the token may not see.
	exists(ctx context.Context) (bool, error)
	// make makes the repository: private, and without a first commit.
	make(ctx context.Context) error
	// released returns the release of a tag, nil if there is none. release makes it.
	released(ctx context.Context, tag string) (*Release, error)
	release(ctx context.Context, tag, notes string) (*Release, error)
}

// Check checks o without asking the forge. The error matches ErrUnknownForge, or says that the token is missing.
func Check(o Options) error {
	_, err := newClient(o, openPullRequests)
	return err
}

// Find returns the open pull request of the branch into the base, nil if there is none. Success proves that the forge accepts the token,
// that the token may read the repository, and that the repository has pull requests. It has the same errors as Open.
func Find(ctx context.Context, o Options, r Request) (*PullRequest, error) {
	c, err := newClient(o, openPullRequests)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	there, err := c.find(ctx, r)
	return there.linked(o.Remote), explain("look for pull requests on "+o.Remote.Hostname(), err, o.Token, pullRequestHints)
}

// Open opens a pull request. If the branch already has an open one, Open sets its title and text. Errors name the forge and the reason of
// its refusal.
func Open(ctx context.Context, o Options, r Request) (*PullRequest, error) {
	c, err := newClient(o, openPullRequests)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	op := "open a pull request on " + o.Remote.Hostname()
	there, err := c.find(ctx, r)
	if err != nil {
		return nil, explain(op, err, o.Token, pullRequestHints)
	}
	if there.linked(o.Remote) != nil {
		return there, explain("change pull request "+there.URL, c.update(ctx, there.Number, r), o.Token, pullRequestHints)
	}
	made, err := c.create(ctx, r)
	if err != nil {
		// A run beside this one may have opened it since. Then the forge refuses a second one for the branch.
		if there, again := c.find(ctx, r); again == nil && there.linked(o.Remote) != nil {
			return there, explain("change pull request "+there.URL, c.update(ctx, there.Number, r), o.Token, pullRequestHints)
		}
		return nil, explain(op, err, o.Token, pullRequestHints)
	}
	if made.Number < 1 {
		return nil, explain(op, errors.New("the forge's answer has no pull request"), o.Token, pullRequestHints)
	}
	made.Created = true
	return made.linked(o.Remote), nil
}

// linked is p with the address that pageAt returns.
func (p *PullRequest) linked(remote *url.URL) *PullRequest {
	if p != nil {
		p.URL = pageAt(remote, p.URL)
	}
	return p
}

// pageAt returns an address that can be shown, opened and put into a command. The forge may give any text; what is no address of a page
// becomes the repository's.
func pageAt(remote *url.URL, address string) string {
	const most = 2000
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(address) > most {
		return web(remote) + strings.TrimSuffix(remote.EscapedPath(), ".git")
	}
	return u.String()
}

// search reads pages of a list, each with size entries, until page finds the pull request. It returns nil if no page has it. page must
// ignore pull requests from forks: a fork's owner can give a branch any name, and its pull request would be taken for ours.
func search(size int, page func(n int) (found *PullRequest, listed int, err error)) (*PullRequest, error) {
	for n := 1; n <= mostPages; n++ {
		found, listed, err := page(n)
		if found != nil || err != nil || listed < size {
			return found, err
		}
	}
	return nil, fmt.Errorf("there are more than %d open pull requests", mostPages*size)
}

// clients has the constructor of the client for each of v1alpha1.ForgeTypes. On a forge with groups, owner may contain slashes.
var clients = map[v1alpha1.ForgeType]func(hc *http.Client, o Options, owner, name string) (client, error){
	v1alpha1.ForgeGitHub: newGitHub,
	v1alpha1.ForgeGitLab: newGitLab,
	v1alpha1.ForgeGitea:  newGitea,
}

// purpose is what a client is for, in errors.
type purpose struct {
	// verb is what the token is needed for, and right what it has to allow.
	verb, right string
}

var (
	openPullRequests = purpose{"open a pull request on", "to write pull requests"}
	makeRepository   = purpose{"make a repository on", "to make repositories"}
	makeRelease      = purpose{"make a release on", "to write releases"}
)

func newClient(o Options, to purpose) (client, error) {
	if o.Type == "" {
		o.Type = v1alpha1.ForgeOf(o.Remote.Hostname())
	}
	if o.Type == "" {
		return nil, diag.Errorf("say which it is with spec.git.forge in "+v1alpha1.FileName+", or --forge", "%s is %w",
			o.Remote.Hostname(), ErrUnknownForge)
	}
	if o.Token == "" {
		return nil, diag.Errorf("give it with --git-token-file or FLEETCTL_GIT_TOKEN; it needs the right "+to.right,
			"a token is needed to %s %s", to.verb, o.Remote.Hostname())
	}
	path := strings.TrimSuffix(strings.Trim(o.Remote.Path, "/"), ".git")
	owner, name, ok := cutLast(path)
	if !ok {
		return nil, diag.Errorf("give a URL whose path has an owner and a name", "%s is not a repository of a forge", o.Remote.Redacted())
	}
	home, err := api(o)
	if err != nil {
		return nil, err
	}
	hc := httpClient(o.CA, home)
	connect, known := clients[o.Type]
	if !known {
		return nil, diag.Usage("one of "+v1alpha1.ForgeNames(", "), "unknown forge %q", o.Type)
	}
	return connect(hc, o, owner, name)
}

// web is the forge's URL: the remote's host, without the port of ssh.
func web(remote *url.URL) string {
	if remote.Scheme == "ssh" {
		return "https://" + remote.Hostname()
	}
	return remote.Scheme + "://" + remote.Host
}

// api is the URL of the forge's API. github.com has another host for it.
func api(o Options) (*url.URL, error) {
	if o.Type == v1alpha1.ForgeGitHub && o.Remote.Hostname() == gitHubHost {
		return url.Parse(gitHubAPI)
	}
	return url.Parse(web(o.Remote))
}

func cutLast(path string) (owner, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 || i == len(path)-1 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// httpClient sends requests only to the API at home. Neither a redirect nor a link in an answer can take the token to another server.
func httpClient(ca []byte, home *url.URL) *http.Client {
	rt, _ := sameorigin.NewTransport(ca) // without an error: the push has already parsed the CA
	return &http.Client{Transport: contact.Bound(sameorigin.Bind(contact.Transport(rt), home), maxAnswer), Timeout: timeout}
}

// statusError is the error of a forge with its HTTP status.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// withStatus adds the HTTP status to an error, because each client has it in another place.
func withStatus(status int, err error) error {
	if err == nil || status == 0 {
		return err
	}
	return &statusError{status, err}
}

// pullRequestHints are the hints for refusals of pull requests, by HTTP status.
var pullRequestHints = map[int]string{
	http.StatusUnauthorized:        "the token needs the right to write pull requests of this repository",
	http.StatusForbidden:           "the token needs the right to write pull requests of this repository",
	http.StatusNotFound:            "check the URL, that the token may see the repository, and that the repository takes pull requests",
	http.StatusConflict:            refusedRequest,
	http.StatusUnprocessableEntity: refusedRequest,
}

// refusedRequest is the hint for a forge that takes the token, and not the pull request.
const refusedRequest = "the forge says why: its rules for branches and pull requests are in the settings of the repository; " +
	"then run the same command again"

// explain wraps a forge's error and adds a hint, by its HTTP status. It removes the token from the text.
func explain(op string, err error, token string, hints map[int]string) error {
	if err == nil {
		return nil
	}
	hint := ""
	if status, ok := errors.AsType[*statusError](err); ok {
		switch {
		case hints[status.status] != "":
			hint = hints[status.status]
		case status.status == http.StatusTooManyRequests:
			hint = "the forge takes no more requests for now: run the same command again in some minutes"
		case status.status >= http.StatusInternalServerError:
			hint = "the forge, or a proxy before it, has a problem: run the same command again in a moment; what was pushed stays"
		}
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		hint = "the forge, or a proxy before it, did not answer in time: run the same command again in a moment; what was pushed stays"
	}
	if refused, ok := errors.AsType[*sameorigin.Error](err); ok {
		hint = "if you trust " + refused.To + ", give its address as the URL of the repository (spec.git.url in " + v1alpha1.FileName + ")"
	}
	if token != "" && strings.Contains(err.Error(), token) {
		err = errors.New(strings.ReplaceAll(err.Error(), token, "***"))
	}
	return diag.Wrap(op, diag.Short(err, maxError), hint)
}
