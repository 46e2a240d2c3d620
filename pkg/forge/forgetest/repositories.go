package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// namespaces are the numbers that GitLab gives to owners.
var namespaces = map[string]int{User: 1, Organization: 2}

// serveRepositories answers requests about repositories, the user, and GitLab's namespaces.
func (f *Forge) serveRepositories(w http.ResponseWriter, r *http.Request, path string) {
	const github, gitlab, gitea = "/api/v3/", "/api/v4/", "/api/v1/"
	api, rest := path[:min(len(path), len(github))], path[min(len(path), len(github)):]
	makes := r.Method == http.MethodPost
	switch {
	case (api == github || api == gitea) && rest == "user" && !makes:
		answer(w, http.StatusOK, map[string]any{"login": User, "username": User})
	case (api == github || api == gitea) && rest == "user/repos" && makes:
		f.makeRepository(w, r, User)
	case (api == github || api == gitea) && makes && strings.HasPrefix(rest, "orgs/") && strings.HasSuffix(rest, "/repos"):
		f.makeRepository(w, r, strings.TrimSuffix(strings.TrimPrefix(rest, "orgs/"), "/repos"))
	case (api == github || api == gitea) && strings.HasPrefix(rest, "repos/"+fleetRepo+"/releases"):
		f.serveReleases(w, r, strings.TrimPrefix(strings.TrimPrefix(rest, "repos/"+fleetRepo+"/releases"), "/tags/"))
	case api == gitlab && strings.HasPrefix(rest, "projects/"+url.PathEscape(fleetRepo)+"/releases"):
		f.serveReleases(w, r, strings.TrimPrefix(strings.TrimPrefix(rest, "projects/"+url.PathEscape(fleetRepo)+"/releases"), "/"))
	case (api == github || api == gitea) && strings.HasPrefix(rest, "repos/"):
		f.showRepository(w, strings.TrimPrefix(rest, "repos/"))
	case api == gitlab && rest == "projects" && makes:
		f.makeRepository(w, r, "")
	case api == gitlab && strings.HasPrefix(rest, "projects/"):
		f.showRepository(w, unescaped(strings.TrimPrefix(rest, "projects/")))
	case api == gitlab && namespaces[unescaped(strings.TrimPrefix(rest, "namespaces/"))] > 0:
		owner := unescaped(strings.TrimPrefix(rest, "namespaces/"))
		answer(w, http.StatusOK, map[string]any{"id": namespaces[owner], "full_path": owner})
	default:
		answer(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
	}
}

func (f *Forge) showRepository(w http.ResponseWriter, path string) {
	if !slices.ContainsFunc(f.repositories, func(have Repository) bool { return have.Path == path }) {
		answer(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"id": 1, "name": path, "full_name": path})
}

// makeRepository makes a repository of the owner. On GitLab the request has the owner.
func (f *Forge) makeRepository(w http.ResponseWriter, r *http.Request, owner string) {
	var given struct {
		Name, Visibility string
		Private          bool
		NamespaceID      int `json:"namespace_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
		return
	}
	for name, id := range namespaces {
		if given.NamespaceID == id {
			owner = name
		}
	}
	made := Repository{Path: owner + "/" + given.Name, Private: given.Private || given.Visibility == "private"}
	switch {
	case namespaces[owner] == 0:
		answer(w, http.StatusForbidden, map[string]any{"message": "403 Forbidden"})
	case slices.ContainsFunc(f.repositories, func(have Repository) bool { return have.Path == made.Path }):
		answer(w, http.StatusConflict, map[string]any{"message": "the name exists already"})
	default:
		f.repositories = append(f.repositories, made)
		answer(w, http.StatusCreated, map[string]any{"id": len(f.repositories), "name": given.Name, "full_name": made.Path})
	}
}

// fleetRepo is the repository with the pull requests and the releases.
const fleetRepo = Organization + "/fleet"

// Release is one as the forge keeps it.
type Release struct{ Tag, Name, Notes string }

// Releases are all that were made, in order.
func (f *Forge) Releases() []Release {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.releases)
}

// serveReleases shows the release of a tag, or makes one.
func (f *Forge) serveReleases(w http.ResponseWriter, r *http.Request, tag string) {
	shape := func(made Release) map[string]any {
		page := fmt.Sprintf("https://%s/%s/releases/%s", r.Host, fleetRepo, made.Tag)
		return map[string]any{
			"id": 1, "tag_name": made.Tag, "name": made.Name, "body": made.Notes, "html_url": page, "_links": map[string]any{"self": page},
		}
	}
	if r.Method == http.MethodGet {
		for _, have := range f.releases {
			if have.Tag == unescaped(tag) {
				answer(w, http.StatusOK, shape(have))
				return
			}
		}
		answer(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
		return
	}
	var given struct {
		Name, Body, Description string
		TagName                 string `json:"tag_name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": err.Error()})
		return
	}
	made := Release{Tag: given.TagName, Name: given.Name, Notes: given.Body + given.Description}
	f.releases = append(f.releases, made)
	answer(w, http.StatusCreated, shape(made))
}

func unescaped(segment string) string {
	plain, err := url.PathUnescape(segment)
	if err != nil {
		return ""
	}
	return plain
}
