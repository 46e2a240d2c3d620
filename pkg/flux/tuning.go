package flux

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Additional flags of the kustomize-controller of a management cluster: the key to decrypt files in Git, for every namespace; more
// workers, so that waiting for one workload cluster does not delay the others; and a shorter wait than Flux's 30 seconds until it looks
// again whether the steps that a new cluster's next step waits for are done. With much less, a hundred clusters that come up at once would
// keep it busy with looking.
const (
	decryptionArg   = "--sops-age-secret=" + DecryptionSecret
	dependencyArg   = "--requeue-dependency=10s"
	concurrentFlag  = "concurrent"
	managementHands = 20
)

// managementTuning returns the tuning asked for, with the additional flags.
func managementTuning(asked []kube.Tuning) []kube.Tuning {
	all := slices.Clone(asked)
	i := slices.IndexFunc(all, func(t kube.Tuning) bool { return t.Manager == kustomizeController })
	if i < 0 {
		all = append(all, kube.Tuning{Manager: kustomizeController})
		i = len(all) - 1
	}
	flags := map[string]int{concurrentFlag: managementHands}
	maps.Copy(flags, all[i].Flags)
	all[i].Flags = flags
	return all
}

// tune applies the tuning of a management cluster to the Deployments among objects, in place. It returns the changed Deployments.
func tune(objects []*unstructured.Unstructured, asked []kube.Tuning) ([]*unstructured.Unstructured, error) {
	var tuned []*unstructured.Unstructured
	for _, t := range managementTuning(asked) {
		i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return isDeployment(obj) && obj.GetName() == t.Manager })
		if i < 0 {
			continue
		}
		if t.Manager == kustomizeController {
			if err := kube.EditManager(objects[i], forFleets); err != nil {
				return nil, fmt.Errorf("tune flux: %w", err)
			}
		}
		if err := kube.Tune(objects[i], t); err != nil {
			return nil, fmt.Errorf("tune flux: %w", err)
		}
		tuned = append(tuned, objects[i])
	}
	return tuned, nil
}

// forFleets adds the arguments that the kustomize-controller of every management cluster has.
func forFleets(container map[string]any) error {
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(container, append(args, decryptionArg, dependencyArg), "args")
}

// tuningPatches returns the content of gotk-tuning.yaml. It has a patch for each tuned controller, with all its arguments, because a
// patch can only replace a whole list, and its resources.
func tuningPatches(components *Components) ([]byte, error) {
	objects, err := kube.ParseYAML(components.Content)
	if err != nil {
		return nil, diag.Wrap("read flux components", err, "")
	}
	tuned, err := tune(objects, components.Tuning)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("# What `fleetctl init` starts these controllers with, from the tuning in fleet.yaml. It is written anew: change it " +
		"there.\n")
	for _, deployment := range tuned {
		patch, err := patchOf(deployment)
		if err != nil {
			return nil, err
		}
		content, err := yaml.Marshal(patch)
		if err != nil {
			return nil, fmt.Errorf("write the tuning of %s: %w", deployment.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(content)
	}
	return out.Bytes(), nil
}

// patchOf returns the patch with those fields of a tuned Deployment that tuning can change.
func patchOf(deployment *unstructured.Unstructured) (map[string]any, error) {
	patched := map[string]any{}
	err := kube.EditManager(deployment, func(container map[string]any) error {
		for _, field := range []string{"name", "args", "resources"} {
			if value, ok := container[field]; ok {
				patched[field] = value
			}
		}
		return nil
	})
	return map[string]any{
		"apiVersion": deployment.GetAPIVersion(), "kind": deployment.GetKind(),
		"metadata": map[string]any{"name": deployment.GetName(), "namespace": deployment.GetNamespace()},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{patched}}}},
	}, err
}

// UsesTuning tells whether a kustomization.yaml has gotk-tuning.yaml among its patches.
func UsesTuning(kustomization []byte) (bool, error) {
	var k struct {
		Patches []struct {
			Path string `json:"path"`
		} `json:"patches"`
	}
	if err := yaml.Unmarshal(kustomization, &k); err != nil {
		return false, err
	}
	for _, p := range k.Patches {
		if path.Clean(p.Path) == TuningFile {
			return true, nil
		}
	}
	return false, nil
}

// Managers are the names of the Deployments of Flux.
func (c *Components) Managers() ([]string, error) {
	objects, err := kube.ParseYAML(c.Content)
	if err != nil {
		return nil, diag.Wrap("read flux components", err, "")
	}
	var names []string
	for _, key := range deploymentsOf(objects) {
		names = append(names, key.Name)
	}
	return names, nil
}

// systemKustomization is the first version of KustomizationFile.
func systemKustomization() []byte {
	return []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ` + ComponentsFile + `
- ` + SyncFile + `
patches:
# What fleetctl starts the controllers of a management cluster with, and the tuning in fleet.yaml. Patches below it win.
- path: ` + TuningFile + `
`)
}
