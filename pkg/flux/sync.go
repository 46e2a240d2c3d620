package flux

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen"
	"github.com/fluxcd/flux2/v2/pkg/manifestgen/sync"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// SyncOptions say what Flux pulls and applies.
type SyncOptions struct {
	// URL of the fleet repo as the cluster reaches it: https://…, http://… or ssh://….
	URL string
	// Branch to follow.
	Branch string
	// Path of the management cluster's folder in the repo: providers/<cloud>/<generation>/mgmt.
	Path string
	// Interval at which the source is looked at. Default: 1m.
	Interval time.Duration
	// SecretName of the credentials in flux-system. Empty: none are needed.
	SecretName string
}

// GenerateSync builds gotk-sync.yaml: the GitRepository and the Kustomization flux-system, as `flux bootstrap` makes them.
func GenerateSync(opts SyncOptions) ([]byte, error) {
	if opts.URL == "" || opts.Branch == "" || opts.Path == "" {
		return nil, errors.New("generate flux sync: url, branch and path are required")
	}
	o := sync.MakeDefaultOptions()
	o.URL = opts.URL
	o.Branch = opts.Branch
	o.TargetPath = path.Clean(opts.Path)
	o.Secret = opts.SecretName
	if opts.Interval > 0 {
		o.Interval = opts.Interval
	}
	m, err := sync.Generate(o)
	if err != nil {
		return nil, fmt.Errorf("generate flux sync: %w", err)
	}
	content := []byte(m.Content)
	if opts.SecretName == "" {
		if content, err = withoutSecret(content); err != nil {
			return nil, fmt.Errorf("generate flux sync: %w", err)
		}
	}
	return content, nil
}

// withoutSecret drops the reference to a secret without a name, which the generator always writes and the API refuses.
func withoutSecret(content []byte) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(manifestgen.GenWarning + "\n")
	err := eachDocument(content, func(doc []byte) error {
		var repo sourcev1.GitRepository
		if err := yaml.Unmarshal(doc, &repo); err != nil {
			return err
		}
		if repo.Kind == "" { // the comment before the first document
			return nil
		}
		if repo.Kind == sourcev1.GitRepositoryKind {
			repo.Spec.SecretRef = nil
			var err error
			if doc, err = yaml.Marshal(repo); err != nil {
				return err
			}
			doc = bytes.Replace(doc, []byte("status: {}\n"), nil, 1)
		}
		out.WriteString("---\n")
		out.Write(doc)
		return nil
	})
	return out.Bytes(), err
}

// SystemFiles are the three files of <opts.Path>/flux-system, ready to commit. Components and sync are fleetctl's to update;
// kustomization.yaml is only the first version of a file that belongs to the user.
func SystemFiles(components *Components, opts SyncOptions) ([]manifest.File, error) {
	syncContent, err := GenerateSync(opts)
	if err != nil {
		return nil, err
	}
	dir := path.Join(opts.Path, Namespace)
	return []manifest.File{
		{Path: path.Join(dir, ComponentsFile), Content: components.Content},
		{Path: path.Join(dir, SyncFile), Content: syncContent},
		{Path: path.Join(dir, KustomizationFile), Content: []byte(strings.Join([]string{
			"apiVersion: kustomize.config.k8s.io/v1beta1",
			"kind: Kustomization",
			"resources:",
			"- " + ComponentsFile,
			"- " + SyncFile,
			"",
		}, "\n"))},
	}, nil
}
