package forge

import (
	"context"
	"net/http"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

type gitLab struct {
	client *gitlab.Client
	path   string
}

func newGitLab(hc *http.Client, o Options, path string) (client, error) {
	c, err := gitlab.NewClient(o.Token, gitlab.WithBaseURL(web(o.Remote)), gitlab.WithHTTPClient(hc), gitlab.WithoutRetries())
	return &gitLab{c, path}, err
}

func (g *gitLab) find(ctx context.Context, r Request) (*PullRequest, error) {
	opened := "opened"
	all, response, err := g.client.MergeRequests.ListProjectMergeRequests(g.path, &gitlab.ListProjectMergeRequestsOptions{
		State: &opened, SourceBranch: &r.Branch, TargetBranch: &r.Base,
	}, gitlab.WithContext(ctx))
	if err != nil || len(all) == 0 {
		return nil, withStatus(gitLabStatus(response), err)
	}
	return &PullRequest{Number: all[0].IID, URL: all[0].WebURL}, nil
}

func (g *gitLab) create(ctx context.Context, r Request) (*PullRequest, error) {
	remove := true
	made, response, err := g.client.MergeRequests.CreateMergeRequest(g.path, &gitlab.CreateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body, SourceBranch: &r.Branch, TargetBranch: &r.Base, RemoveSourceBranch: &remove,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, withStatus(gitLabStatus(response), err)
	}
	return &PullRequest{Number: made.IID, URL: made.WebURL}, nil
}

func (g *gitLab) update(ctx context.Context, number int64, r Request) error {
	_, response, err := g.client.MergeRequests.UpdateMergeRequest(g.path, number, &gitlab.UpdateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body,
	}, gitlab.WithContext(ctx))
	return withStatus(gitLabStatus(response), err)
}

func gitLabStatus(r *gitlab.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}
