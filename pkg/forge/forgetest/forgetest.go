// Package forgetest fakes the APIs of GitHub, GitLab and Gitea, as documented, as far as pull requests, new repositories and releases need
// them. Real forges may do more.
package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// PullRequest is one as the forge keeps it.
type PullRequest struct {
	Number                  int
	Head, Base, Title, Body string
	Open                    bool
	Updated                 int
}

// User is the account of the token, and Organization is an owner for whom it may make repositories.
const (
	User         = "ada"
	Organization = "platform"
)

// Repository is one as the forge keeps it.
type Repository struct {
	Path    string // OWNER/NAME
	Private bool
}

// Forge keeps repositories, and the pull requests and releases of platform/fleet.
type Forge struct {
	token string

	mu           sync.Mutex
	all          []*PullRequest
	repositories []Repository
	releases     []Release
}

// New is a forge whose API wants the token. It has one repository, platform/fleet.
func New(token string) *Forge {
	return &Forge{token: token, repositories: []Repository{{Path: Organization + "/fleet", Private: true}}}
}

// Repositories are all that there are, in order.
func (f *Forge) Repositories() []Repository {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.repositories)
}

// PullRequests returns the pull requests in the order in which they were made.
func (f *Forge) PullRequests() []PullRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []PullRequest
	for _, p := range f.all {
		all = append(all, *p)
	}
	return all
}

// Close closes a pull request.
func (f *Forge) Close(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[number-1].Open = false
}

// ServeHTTP answers below /api/v3 as GitHub Enterprise, below /api/v4 as GitLab and below /api/v1 as Gitea.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	given := strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "token ")
	if given == "" {
		given = r.Header.Get("Private-Token")
	}
	w.Header().Set("Content-Type", "application/json")
	if given != f.token {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "401 Unauthorized"})
		return
	}
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, "/api/v3/repos/platform/fleet/pulls"):
		f.requests(w, r, strings.TrimPrefix(path, "/api/v3/repos/platform/fleet/pulls"), "html_url")
	case strings.HasPrefix(path, "/api/v1/repos/platform/fleet/pulls"):
		f.requests(w, r, strings.TrimPrefix(path, "/api/v1/repos/platform/fleet/pulls"), "html_url")
	case strings.HasPrefix(path, "/api/v4/projects/platform%2Ffleet/merge_requests"):
		f.requests(w, r, strings.TrimPrefix(path, "/api/v4/projects/platform%2Ffleet/merge_requests"), "web_url")
	default:
		f.serveRepositories(w, r, path)
	}
}

// requests lists, makes or changes pull requests.
func (f *Forge) requests(w http.ResponseWriter, r *http.Request, rest, link string) {
	var given struct {
		Title, Body, Head, Base, Description string
		SourceBranch                         string `json:"source_branch"`
		TargetBranch                         string `json:"target_branch"`
	}
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
			answer(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && rest == "":
		q := r.URL.Query()
		head := strings.TrimPrefix(q.Get("head"), "platform:") + q.Get("source_branch")
		list := []any{}
		for _, p := range f.all {
			if p.Open && (head == "" || p.Head == head) {
				list = append(list, p.shape(r, link))
			}
		}
		answer(w, http.StatusOK, list)
	case r.Method == http.MethodPost && rest == "":
		p := &PullRequest{
			Number: len(f.all) + 1, Title: given.Title, Body: given.Body + given.Description,
			Head: given.Head + given.SourceBranch, Base: given.Base + given.TargetBranch, Open: true,
		}
		for _, o := range f.all {
			if o.Open && o.Head == p.Head {
				answer(w, http.StatusConflict, map[string]any{"message": "another open pull request exists for this branch"})
				return
			}
		}
		f.all = append(f.all, p)
		answer(w, http.StatusCreated, p.shape(r, link))
	case r.Method == http.MethodPatch || r.Method == http.MethodPut:
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "/"))
		if err != nil || n < 1 || n > len(f.all) {
			answer(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
			return
		}
		p := f.all[n-1]
		p.Title, p.Body, p.Updated = given.Title, given.Body+given.Description, p.Updated+1
		answer(w, http.StatusOK, p.shape(r, link))
	default:
		answer(w, http.StatusMethodNotAllowed, map[string]any{"message": "405"})
	}
}

// shape is a pull request as JSON, in the fields that the three have.
func (p *PullRequest) shape(r *http.Request, link string) map[string]any {
	return map[string]any{
		"number": p.Number, "iid": p.Number, "id": 1000 + p.Number, "state": "open", "title": p.Title, "body": p.Body,
		link:   fmt.Sprintf("https://%s/platform/fleet/pulls/%d", r.Host, p.Number),
		"head": map[string]any{"ref": p.Head}, "base": map[string]any{"ref": p.Base},
		"source_branch": p.Head, "target_branch": p.Base,
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
}
