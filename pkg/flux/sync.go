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
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		{Path: path.Join(dir, KustomizationFile), Content: systemKustomization()},
	}, nil
}

// managementArgs are what the kustomize-controller of a management cluster is started with besides: the key that decrypts what is in Git,
// in every namespace; and more hands, for while it waits for one workload cluster it must not keep the others waiting.
func managementArgs() []string {
	return []string{"--sops-age-secret=" + DecryptionSecret, "--concurrent=20"}
}

// systemKustomization ties Flux's files together. It belongs to the user once it is there.
func systemKustomization() []byte {
	var out strings.Builder
	out.WriteString(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ` + ComponentsFile + `
- ` + SyncFile + `
patches:
# The key that decrypts Secrets in Git, and more hands for many workload clusters.
- target:
    kind: Deployment
    name: ` + kustomizeController + `
  patch: |
`)
	for _, arg := range managementArgs() {
		out.WriteString("    - op: add\n      path: /spec/template/spec/containers/0/args/-\n      value: " + arg + "\n")
	}
	return []byte(out.String())
}

// withManagementArgs gives the kustomize-controller among objects the arguments that the fleet repo will patch in: else Flux would start
// it anew with its first revision.
func withManagementArgs(objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		if !isDeployment(obj) || obj.GetName() != kustomizeController {
			continue
		}
		containers, found, err := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		if err != nil || !found || len(containers) == 0 {
			return fmt.Errorf("read flux components: Deployment %s has no container", kustomizeController)
		}
		container, ok := containers[0].(map[string]any)
		if !ok {
			return fmt.Errorf("read flux components: Deployment %s has no container", kustomizeController)
		}
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return fmt.Errorf("read flux components: %w", err)
		}
		if err := unstructured.SetNestedStringSlice(container, append(args, managementArgs()...), "args"); err != nil {
			return err
		}
		if err := unstructured.SetNestedSlice(obj.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			return err
		}
	}
	return nil
}
