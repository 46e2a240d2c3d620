package forge

import (
	"context"
	"net/http"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// giteaPage is how many pull requests one request asks for.
const giteaPage = 50

type giteaForge struct {
	client      *gitea.Client
	owner, name string
}

func newGitea(hc *http.Client, o Options, owner, name string) (client, error) {
	// An empty version keeps the client from first asking for the server's version, which is not needed here.
	c, err := gitea.NewClient(web(o.Remote), gitea.SetToken(o.Token), gitea.SetHTTPClient(hc), gitea.SetGiteaVersion(""))
	return &giteaForge{c, owner, name}, err
}

func (g *giteaForge) find(ctx context.Context, r Request) (*PullRequest, error) {
	g.client.SetContext(ctx)
	return search(giteaPage, func(page int) (found *PullRequest, listed int, err error) {
		all, response, err := g.client.ListRepoPullRequests(g.owner, g.name, gitea.ListPullRequestsOptions{
			State: gitea.StateOpen, ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPage},
		})
		for _, p := range all {
			if p != nil && p.Head != nil && p.Base != nil && p.Head.RepoID == p.Base.RepoID && p.Head.Ref == r.Branch && p.Base.Ref == r.Base {
				found = &PullRequest{Number: p.Index, URL: p.HTMLURL}
				break
			}
		}
		return found, len(all), withStatus(giteaStatus(response), err)
	})
}

func (g *giteaForge) create(ctx context.Context, r Request) (*PullRequest, error) {
	g.client.SetContext(ctx)
	made, response, err := g.client.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{
		Head: r.Branch, Base: r.Base, Title: r.Title, Body: r.Body,
	})
	if err != nil {
		return nil, withStatus(giteaStatus(response), err)
	}
	return &PullRequest{Number: made.Index, URL: made.HTMLURL}, nil
}

func (g *giteaForge) update(ctx context.Context, number int64, r Request) error {
	g.client.SetContext(ctx)
	_, response, err := g.client.EditPullRequest(g.owner, g.name, number, gitea.EditPullRequestOption{Title: r.Title, Body: &r.Body})
	return withStatus(giteaStatus(response), err)
}

func (g *giteaForge) exists(ctx context.Context) (bool, error) {
	g.client.SetContext(ctx)
	_, response, err := g.client.GetRepo(g.owner, g.name)
	return isThere(giteaStatus(response), err)
}

func (g *giteaForge) make(ctx context.Context) error {
	g.client.SetContext(ctx)
	me, response, err := g.client.GetMyUserInfo()
	if err != nil {
		return withStatus(giteaStatus(response), err)
	}
	wanted := gitea.CreateRepoOption{Name: g.name, Private: true}
	if strings.EqualFold(me.UserName, g.owner) {
		_, response, err = g.client.CreateRepo(wanted)
	} else {
		_, response, err = g.client.CreateOrgRepo(g.owner, wanted)
	}
	return withStatus(giteaStatus(response), err)
}

func (g *giteaForge) released(ctx context.Context, tag string) (*Release, error) {
	g.client.SetContext(ctx)
	there, response, err := g.client.GetReleaseByTag(g.owner, g.name, tag)
	return absent(giteaStatus(response), err, giteaRelease(there))
}

func (g *giteaForge) release(ctx context.Context, tag, notes string) (*Release, error) {
	g.client.SetContext(ctx)
	made, response, err := g.client.CreateRelease(g.owner, g.name, gitea.CreateReleaseOption{TagName: tag, Title: tag, Note: notes})
	return giteaRelease(made), withStatus(giteaStatus(response), err)
}

func giteaRelease(r *gitea.Release) *Release {
	if r == nil { // the answer was null
		return &Release{}
	}
	return &Release{URL: r.HTMLURL}
}

func giteaStatus(r *gitea.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}
