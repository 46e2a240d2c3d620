package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v82/github"
)

const (
	gitHubHost = "github.com"
	gitHubAPI  = "https://api.github.com/"
)

type gitHub struct {
	client      *github.Client
	owner, name string
}

func newGitHub(hc *http.Client, o Options, owner, name string) (client, error) {
	c := github.NewClient(hc).WithAuthToken(o.Token)
	if o.Remote.Hostname() != gitHubHost {
		var err error
		if c, err = c.WithEnterpriseURLs(web(o.Remote), web(o.Remote)); err != nil {
			return nil, err
		}
	}
	return &gitHub{c, owner, name}, nil
}

func (g *gitHub) find(ctx context.Context, r Request) (*PullRequest, error) {
	return search(aPage, func(page int) (found *PullRequest, listed int, err error) {
		all, response, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
			State: "open", Head: g.owner + ":" + r.Branch, Base: r.Base, ListOptions: github.ListOptions{Page: page, PerPage: aPage},
		})
		for _, p := range all {
			if p != nil && p.GetHead().GetRepo().GetID() == p.GetBase().GetRepo().GetID() { // an owner can have forks of their own
				found = &PullRequest{Number: int64(p.GetNumber()), URL: p.GetHTMLURL()}
				break
			}
		}
		return found, len(all), withStatus(gitHubStatus(response, err), err)
	})
}

func (g *gitHub) create(ctx context.Context, r Request) (*PullRequest, error) {
	made, response, err := g.client.PullRequests.Create(ctx, g.owner, g.name, &github.NewPullRequest{
		Title: &r.Title, Head: &r.Branch, Base: &r.Base, Body: &r.Body,
	})
	if err != nil {
		return nil, withStatus(gitHubStatus(response, err), err)
	}
	return &PullRequest{Number: int64(made.GetNumber()), URL: made.GetHTMLURL()}, nil
}

func (g *gitHub) update(ctx context.Context, number int64, r Request) error {
	_, response, err := g.client.PullRequests.Edit(ctx, g.owner, g.name, int(number), &github.PullRequest{Title: &r.Title, Body: &r.Body})
	return withStatus(gitHubStatus(response, err), err)
}

func (g *gitHub) exists(ctx context.Context) (bool, error) {
	_, response, err := g.client.Repositories.Get(ctx, g.owner, g.name)
	return isThere(gitHubStatus(response, err), err)
}

func (g *gitHub) make(ctx context.Context) error {
	me, response, err := g.client.Users.Get(ctx, "")
	if err != nil {
		return withStatus(gitHubStatus(response, err), err)
	}
	organization := g.owner
	if strings.EqualFold(me.GetLogin(), g.owner) {
		organization = "" // the token's own account
	}
	private := true
	_, response, err = g.client.Repositories.Create(ctx, organization, &github.Repository{Name: &g.name, Private: &private})
	return withStatus(gitHubStatus(response, err), err)
}

func (g *gitHub) released(ctx context.Context, tag string) (*Release, error) {
	there, response, err := g.client.Repositories.GetReleaseByTag(ctx, g.owner, g.name, url.PathEscape(tag))
	return absent(gitHubStatus(response, err), err, &Release{URL: there.GetHTMLURL()})
}

func (g *gitHub) release(ctx context.Context, tag, notes string) (*Release, error) {
	made, response, err := g.client.Repositories.CreateRelease(ctx, g.owner, g.name, &github.RepositoryRelease{
		TagName: &tag, Name: &tag, Body: &notes,
	})
	return &Release{URL: made.GetHTMLURL()}, withStatus(gitHubStatus(response, err), err)
}

// gitHubStatus is the HTTP status of an answer. GitHub refuses a request beyond its limits with 403 or 429, and only the text tells.
func gitHubStatus(r *github.Response, err error) int {
	_, primary := errors.AsType[*github.RateLimitError](err)
	_, secondary := errors.AsType[*github.AbuseRateLimitError](err)
	switch {
	case primary || secondary:
		return http.StatusTooManyRequests
	case r == nil || r.Response == nil:
		return 0
	}
	return r.StatusCode
}
