package flux

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/fluxcd/flux2/v2/pkg/manifestgen"
	"github.com/fluxcd/flux2/v2/pkg/manifestgen/sync"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	content, err := adapt([]byte(m.Content), opts)
	if err != nil {
		return nil, fmt.Errorf("generate flux sync: %w", err)
	}
	return content, nil
}

// adapt drops the reference to a secret without a name, which the generator always writes and the API refuses, and lets the Kustomization
// decrypt what is encrypted in Git.
func adapt(content []byte, opts SyncOptions) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(manifestgen.GenWarning + "\n")
	err := eachDocument(content, func(doc []byte) error {
		var object metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return err
		}
		var err error
		switch object.Kind {
		case "": // the comment before the first document
			return nil
		case sourcev1.GitRepositoryKind:
			doc, err = rewrite(doc, func(repo *sourcev1.GitRepository) {
				if opts.SecretName == "" {
					repo.Spec.SecretRef = nil
				}
			})
		case kustomizev1.KustomizationKind:
			doc, err = rewrite(doc, func(k *kustomizev1.Kustomization) { k.Spec.Decryption = decryption() })
		}
		out.WriteString("---\n")
		out.Write(doc)
		return err
	})
	return out.Bytes(), err
}

// rewrite changes an object in its YAML.
func rewrite[T any](doc []byte, change func(*T)) ([]byte, error) {
	var object T
	if err := yaml.Unmarshal(doc, &object); err != nil {
		return nil, err
	}
	change(&object)
	doc, err := yaml.Marshal(object)
	return bytes.Replace(doc, []byte("status: {}\n"), nil, 1), err
}

// decryption is with the keys of DecryptionSecret, which the controller is told of once, for all namespaces.
func decryption() *kustomizev1.Decryption {
	return &kustomizev1.Decryption{Provider: "sops"}
}

// SystemFiles are the files of <opts.Path>/flux-system, ready to commit. Components, sync and tuning are fleetctl's to update;
// kustomization.yaml is only the first version of a file that belongs to the user.
func SystemFiles(components *Components, opts SyncOptions) ([]manifest.File, error) {
	syncContent, err := GenerateSync(opts)
	if err != nil {
		return nil, err
	}
	dir := path.Join(opts.Path, Namespace)
	tuning, err := tuningPatches(components)
	if err != nil {
		return nil, err
	}
	return []manifest.File{
		{Path: path.Join(dir, ComponentsFile), Content: components.Content},
		{Path: path.Join(dir, SyncFile), Content: syncContent},
		{Path: path.Join(dir, TuningFile), Content: tuning},
		{Path: path.Join(dir, KustomizationFile), Content: systemKustomization()},
	}, nil
}
