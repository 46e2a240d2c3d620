package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render/internal/codec"
)

// postRender changes the rendered objects as the HelmRelease says: post renderers and common metadata.
func (j *job) postRender(all []*content) ([]*content, error) {
	for n, p := range j.spec.Spec.PostRenderers {
		if p.Kustomize == nil {
			continue
		}
		var hooks, rest []*content
		for _, c := range all {
			if j.spec.Spec.PostRenderStrategy == helmv2.PostRenderStrategyNoHooks && annotation(c, helmHook) != "" {
				hooks = append(hooks, c)
				continue
			}
			rest = append(rest, c)
		}
		j.idle = append(j.idle, j.idlePatches(n, rest)...)
		rest, err := kustomizeObjects(rest, buildSpec{Patches: p.Kustomize.Patches, Images: p.Kustomize.Images})
		if err != nil {
			return nil, err
		}
		all = slices.Concat(rest, hooks)
	}
	if m := j.spec.Spec.CommonMetadata; m != nil {
		return withMetadata(all, m.Labels, m.Annotations)
	}
	return all, nil
}

// idlePatches reports the patches of a post renderer whose target matches none of the objects that it gets. Helm gives objects without a
// namespace that of the release only afterwards.
func (j *job) idlePatches(n int, objects []*content) (out diag.Findings) {
	before := make([]*content, 0, len(objects))
	for _, c := range objects {
		copied := *c
		copied.before.namespace = c.Metadata.Namespace == ""
		before = append(before, &copied)
	}
	patches := j.spec.Spec.PostRenderers[n].Kustomize.Patches
	idle := idleTargets(patches, before)
	for i := range patches {
		if found, ok := idle[i]; ok {
			f := j.finding(diag.SeverityWarning, rulePart, fmt.Sprintf(
				"spec.postRenderers[%d].kustomize.patches[%d] changes nothing: no object of the chart is %s", n, i, found.target), found.hint)[0]
			f.Gist = j.patchName(n, i)
			out = append(out, f)
		}
		if reidentifies(patches[i].Patch) {
			break // the targets of later patches may be names that no object has yet
		}
	}
	return out
}

// patchName is the name of a patch of a post renderer for parts. HelmReleases of one base have it in common.
func (j *job) patchName(n, i int) string {
	target := describe(patchOf(j.spec.Spec.PostRenderers[n].Kustomize.Patches[i]).Target)
	return fmt.Sprintf("%s:%d [%d][%d] %s", j.object.Source.File, j.object.Source.Line, n, i, target)
}

// addRelease takes the findings about the patches of post renderers out of those of a release. A base may be used in several places, with
// values for which the chart makes other objects.
func (p *parts) addRelease(j *job, findings diag.Findings) (rest diag.Findings) {
	idle := map[string]diag.Findings{}
	for _, f := range findings {
		if f.Rule == rulePart {
			idle[f.Gist] = append(idle[f.Gist], f)
		} else {
			rest = append(rest, f)
		}
	}
	for n, renderer := range j.spec.Spec.PostRenderers {
		if renderer.Kustomize == nil {
			continue
		}
		for i, patch := range renderer.Kustomize.Patches {
			if patch.Target != nil {
				p.add(j.patchName(n, i), idle[j.patchName(n, i)])
			}
		}
	}
	return rest
}

// kustomizeObjects changes objects as a kustomization.yaml with only these fields would.
func kustomizeObjects(all []*content, spec buildSpec) (out []*content, err error) {
	k := kustypes.Kustomization{TypeMeta: kustypes.TypeMeta{APIVersion: kustypes.KustomizationVersion, Kind: kustypes.KustomizationKind}}
	disk := filesys.MakeFsInMemory()
	templates := map[string]*content{}
	for i, c := range all {
		name := fmt.Sprintf("%06d.yaml", i)
		k.Resources = append(k.Resources, "./"+name)
		templates[name] = c
		if err := disk.WriteFile("/"+name, c.json); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := spec.screen(); err != nil {
		return nil, fmt.Errorf("postRenderers: %w", err)
	}
	k.BuildMetadata = []string{kustypes.OriginAnnotations}
	spec.addTo(&k)
	own, err := sigsyaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	if err := disk.WriteFile("/kustomization.yaml", own); err != nil {
		return nil, err
	}
	resources, err := runKustomize(disk, "/", false)
	if err != nil {
		return nil, errors.New("postRenderers: " + strings.TrimSpace(err.Error()))
	}
	for _, r := range resources {
		origin, err := takeOrigin(r, false)
		if err != nil {
			return nil, err
		}
		c, err := contentOf(r)
		if err != nil {
			return nil, err
		}
		if from := templates[origin]; from != nil {
			c.template, c.source = from.template, from.source
		}
		out = append(out, c)
	}
	return out, nil
}

// withMetadata adds labels and annotations to objects, or replaces theirs.
func withMetadata(all []*content, labels, annotations map[string]string) ([]*content, error) {
	out := make([]*content, 0, len(all))
	for _, c := range all {
		changed, err := c.withMetadata(func(metadata map[string]any) {
			for field, more := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
				if len(more) == 0 {
					continue
				}
				there, _ := metadata[field].(map[string]any)
				if there == nil {
					there = map[string]any{}
				}
				for name, value := range more {
					there[name] = value
				}
				metadata[field] = there
			}
		})
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", c.Kind, c.Metadata.Name, err)
		}
		out = append(out, changed)
	}
	return out, nil
}

// withMetadata returns the content with changed metadata. Name and namespace stay. It does not read the rest of the object.
func (c *content) withMetadata(change func(metadata map[string]any)) (*content, error) {
	end := -1
	at, _, ok := codec.SpotOf(c.json, 0, "metadata")
	if ok && at > 0 {
		end = codec.SkipJSON(c.json, at)
	}
	if end < 0 {
		return c.with(func(fields map[string]any) {
			if metadata, ok := fields["metadata"].(map[string]any); ok {
				change(metadata)
			}
		})
	}
	var metadata map[string]any
	if err := utiljson.Unmarshal(c.json[at:end], &metadata); err != nil || metadata == nil {
		return c, nil //nolint:nilerr // other checks report metadata that is no mapping
	}
	change(metadata)
	text, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	changed := *c
	changed.json = slices.Concat(c.json[:at], text, c.json[end:])
	return &changed, nil
}

// clusterWide are the cluster-scoped kinds that charts of fleets use. Helm asks the cluster instead.
var clusterWide = map[string]bool{
	"APIService": true, "AWSClusterControllerIdentity": true, "AWSClusterRoleIdentity": true, "AWSClusterStaticIdentity": true,
	"CSIDriver": true, "CertificateSigningRequest": true, "ClusterIssuer": true, "ClusterRole": true, "ClusterRoleBinding": true,
	"CustomResourceDefinition": true, "FlowSchema": true, "IngressClass": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true, "MutatingWebhookConfiguration": true, "Namespace": true, "Node": true,
	"PersistentVolume": true, "PriorityClass": true, "PriorityLevelConfiguration": true, "RuntimeClass": true, "StorageClass": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "ValidatingWebhookConfiguration": true,
	"VSphereClusterIdentity": true,
}

func isClusterWide(c *content) bool { return clusterWide[c.Kind] }
