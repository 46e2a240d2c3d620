package scaffold

import (
	"path"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// AppSource is the Git repository of an application.
type AppSource struct {
	// URL of the repository: https or ssh, also as user@host:path.
	URL string
	// Branch, Tag or SemVer (a range of versions) is the revision that Flux applies. If all are empty, Flux applies the branch main.
	Branch, Tag, SemVer string
	// Path is the folder in the repository; "" is the top.
	Path string
	// Secret in the tenant's namespace with the repository's credentials; "" if it needs none.
	Secret string
}

// AppOptions declare an application of a tenant in one environment.
type AppOptions struct {
	AppSource
	// Name of the application, and the Tenant that owns it.
	Name, Tenant string
	// Layout and Environment say where its files go.
	Layout      layout.Layout
	Environment string
}

// AppFile returns the path of the file of an application in a tenant's folder.
func AppFile(l layout.Layout, environment, tenant, app string) string {
	return path.Join(l.Tenant(environment, tenant), AppPrefix+app+".yaml")
}

// AppPrefix begins the names of the files that AppFile names.
const AppPrefix = "app-"

// App makes the file with the GitRepository of an application and the Kustomization that applies it, with the tenant's account and in the
// tenant's namespace. Errors: bad names, a URL that Flux cannot use, several revisions at once.
func App(o AppOptions) (manifest.File, error) {
	tenant := TenantOptions{Name: o.Tenant, Layout: o.Layout, Environment: o.Environment}
	if err := tenant.check(); err != nil {
		return manifest.File{}, err
	}
	if err := CheckName("application", o.Name, 50); err != nil {
		return manifest.File{}, err
	}
	address, err := o.check()
	if err != nil {
		return manifest.File{}, err
	}
	data := struct{ App, Tenant, Environment, URL, RefKind, Ref, Secret, Path string }{
		App: o.Name, Tenant: o.Tenant, Environment: o.Environment, URL: strconv.Quote(address), RefKind: "branch", Ref: "main", Secret: o.Secret,
	}
	data.Path = strconv.Quote("./" + strings.TrimPrefix(path.Clean("/"+o.Path), "/"))
	for kind, ref := range map[string]string{"branch": o.Branch, "tag": o.Tag, "semver": o.SemVer} {
		if ref != "" {
			data.RefKind, data.Ref = kind, ref
		}
	}
	data.Ref = strconv.Quote(data.Ref)
	content, err := execute("tenant/app.yaml", data)
	return manifest.File{Path: AppFile(o.Layout, o.Environment, o.Tenant, o.Name), Content: content}, err
}

// check returns the URL in the form that Flux takes: its GitRepository accepts only URLs with a scheme, and so not user@host:path.
func (s AppSource) check() (address string, _ error) {
	if s.URL == "" {
		return "", diag.Usage("give --source https://host/path or ssh://user@host/path", "the URL of the application's repository is missing")
	}
	u, err := v1alpha1.Git{URL: s.URL}.ParseURL()
	if err != nil {
		return "", diag.Usage("give https://host/path or ssh://user@host/path; name a Secret of the tenant's namespace with the credentials: "+
			"--secret", "the repository: %w", err)
	}
	if u.Scheme == "ssh" && s.Secret == "" {
		return "", diag.Usage("give --secret, a Secret of the tenant's namespace with identity and known_hosts",
			"a repository over ssh needs a key")
	}
	if out := path.Clean(s.Path); out == ".." || strings.HasPrefix(out, "../") {
		return "", diag.Usage("name a folder of the application's repository, such as deploy", "--path %.80q leads out of the repository", s.Path)
	}
	if s.Secret != "" {
		if err := CheckName("secret", s.Secret, 253); err != nil {
			return "", err
		}
	}
	return u.String(), s.checkRevision()
}

func (s AppSource) checkRevision() error {
	given := 0
	for _, ref := range []string{s.Branch, s.Tag, s.SemVer} {
		if ref != "" {
			given++
		}
	}
	switch {
	case given > 1:
		return diag.Usage("give only one of --branch, --tag and --semver", "an application follows one revision")
	case strings.Contains(s.Branch+s.Tag, "${"): // Git accepts it, but Flux would substitute it
		return diag.Usage("give a branch or a tag without ${", "%.80q cannot be a revision: Flux would replace ${", s.Branch+s.Tag)
	case s.Branch != "" && !v1alpha1.IsBranch(s.Branch):
		return diag.Usage("give one such as main, or --semver with a range of versions", "--branch %.80q cannot be a branch", s.Branch)
	case s.Tag != "" && !v1alpha1.IsBranch(s.Tag):
		return diag.Usage("give one such as v1.2.3, or --semver with a range of versions", "--tag %.80q cannot be a tag", s.Tag)
	case s.SemVer != "":
		if _, err := semver.NewConstraint(s.SemVer); err != nil { // Flux uses the same library
			return diag.Usage("give one such as '>=1.0.0 <2.0.0', or --branch or --tag", "--semver %.80q is no range of versions", s.SemVer)
		}
	}
	return nil
}
