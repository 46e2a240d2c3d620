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

// SyncOptions describe the source that Flux follows, and the path that it applies.
type SyncOptions struct {
	// URL at which the cluster reaches the fleet repo: https://…, http://… or ssh://….
	URL string
	// Branch to follow.
	Branch string
	// Path of the management cluster's folder in the repo: providers/<cloud>/<generation>/mgmt.
	Path string
	// Interval between two fetches of the source. Default: 1m.
	Interval time.Duration
	// SecretName of the credentials in flux-system. Empty means that none are needed.
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

// adapt changes the generator's output. It removes a secretRef without a name, which the API refuses, and lets the Kustomization decrypt
// files in Git.
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

// rewrite decodes an object, calls change, and encodes it again.
func rewrite[T any](doc []byte, change func(*T)) ([]byte, error) {
	var object T
	if err := yaml.Unmarshal(doc, &object); err != nil {
		return nil, err
	}
	change(&object)
	doc, err := yaml.Marshal(object)
	return bytes.Replace(doc, []byte("status: {}\n"), nil, 1), err
}

// decryption configures SOPS without a Secret: kustomize-controller gets DecryptionSecret by a flag, for all namespaces.
func decryption() *kustomizev1.Decryption {
	return &kustomizev1.Decryption{Provider: "sops"}
}

// SystemFiles returns the files of <opts.Path>/flux-system to commit. fleetctl updates components, sync and tuning later.
// kustomization.yaml is only a first version: after that the file belongs to the user.
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
