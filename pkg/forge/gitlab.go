package forge

import (
	"context"
	"net/http"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

type gitLab struct {
	client *gitlab.Client
	path   string // of the group, or user, and the project
}

func newGitLab(hc *http.Client, o Options, owner, name string) (client, error) {
	path := owner + "/" + name
	c, err := gitlab.NewClient(o.Token, gitlab.WithBaseURL(web(o.Remote)), gitlab.WithHTTPClient(hc), gitlab.WithoutRetries())
	return &gitLab{c, path}, err
}

// listedRequest is a merge request in a list. The client's own decoder of lists panics at a null entry.
type listedRequest struct {
	IID             int64  `json:"iid"`
	WebURL          string `json:"web_url"`
	SourceProjectID int64  `json:"source_project_id"`
	TargetProjectID int64  `json:"target_project_id"`
}

func (g *gitLab) find(ctx context.Context, r Request) (*PullRequest, error) {
	opened := "opened"
	return search(aPage, func(page int) (found *PullRequest, listed int, err error) {
		req, err := g.client.NewRequest(http.MethodGet, "projects/"+gitlab.PathEscape(g.path)+"/merge_requests",
			&gitlab.ListProjectMergeRequestsOptions{
				State: &opened, SourceBranch: &r.Branch, TargetBranch: &r.Base, ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: aPage},
			}, []gitlab.RequestOptionFunc{gitlab.WithContext(ctx)})
		if err != nil {
			return nil, 0, err
		}
		var all []*listedRequest
		response, err := g.client.Do(req, &all)
		for _, m := range all {
			if m != nil && m.SourceProjectID == m.TargetProjectID {
				found = &PullRequest{Number: m.IID, URL: m.WebURL}
				break
			}
		}
		return found, len(all), withStatus(gitLabStatus(response), err)
	})
}

func (g *gitLab) create(ctx context.Context, r Request) (*PullRequest, error) {
	remove := true
	made, response, err := g.client.MergeRequests.CreateMergeRequest(g.path, &gitlab.CreateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body, SourceBranch: &r.Branch, TargetBranch: &r.Base, RemoveSourceBranch: &remove,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, withStatus(gitLabStatus(response), err)
	}
	if made == nil { // the answer was null
		return &PullRequest{}, nil
	}
	return &PullRequest{Number: made.IID, URL: made.WebURL}, nil
}

func (g *gitLab) update(ctx context.Context, number int64, r Request) error {
	_, response, err := g.client.MergeRequests.UpdateMergeRequest(g.path, number, &gitlab.UpdateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body,
	}, gitlab.WithContext(ctx))
	return withStatus(gitLabStatus(response), err)
}

func (g *gitLab) exists(ctx context.Context) (bool, error) {
	_, response, err := g.client.Projects.GetProject(g.path, nil, gitlab.WithContext(ctx))
	return isThere(gitLabStatus(response), err)
}

func (g *gitLab) make(ctx context.Context) error {
	owner, name, _ := cutLast(g.path)
	namespace, response, err := g.client.Namespaces.GetNamespace(owner, gitlab.WithContext(ctx))
	if err != nil {
		return withStatus(gitLabStatus(response), err)
	}
	private := gitlab.PrivateVisibility
	wanted := &gitlab.CreateProjectOptions{Name: &name, Path: &name, Visibility: &private}
	if namespace != nil { // the answer was not null
		wanted.NamespaceID = &namespace.ID
	}
	_, response, err = g.client.Projects.CreateProject(wanted, gitlab.WithContext(ctx))
	return withStatus(gitLabStatus(response), err)
}

func (g *gitLab) released(ctx context.Context, tag string) (*Release, error) {
	there, response, err := g.client.Releases.GetRelease(g.path, tag, gitlab.WithContext(ctx))
	return absent(gitLabStatus(response), err, gitLabRelease(there))
}

func (g *gitLab) release(ctx context.Context, tag, notes string) (*Release, error) {
	made, response, err := g.client.Releases.CreateRelease(g.path, &gitlab.CreateReleaseOptions{
		Name: &tag, TagName: &tag, Description: &notes,
	}, gitlab.WithContext(ctx))
	return gitLabRelease(made), withStatus(gitLabStatus(response), err)
}

func gitLabRelease(r *gitlab.Release) *Release {
	if r == nil { // the answer was null
		return &Release{}
	}
	return &Release{URL: r.Links.Self}
}

func gitLabStatus(r *gitlab.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}
