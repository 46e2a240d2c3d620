package flux

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// FetchName is the GitRepository of a cluster that fetches the fleet repo and applies nothing of it, and the Secret that it reads with.
const FetchName = "fleetctl-standby"

func fetchKey() kube.Key { return kube.Key{Namespace: Namespace, Name: FetchName} }

// Fetch has source-controller fetch the fleet repo under a name of its own, with nothing that applies it, and waits until it has. secret is what it reads with, nil for
// nothing; sync is the content of a gotk-sync.yaml, of which only the source is taken. It returns what was fetched, as main@sha1:….
func (s *System) Fetch(ctx context.Context, secret *corev1.Secret, sync []byte) (revision string, err error) {
	if secret != nil {
		secret = secret.DeepCopy()
		secret.Name = FetchName
	}
	if err := s.ApplySecret(ctx, secret); err != nil {
		return "", err
	}
	objects, err := kube.ParseYAML(sync)
	if err != nil {
		return "", diag.Wrap("read flux sync", err, "")
	}
	for _, obj := range objects {
		if obj.GetKind() != gitRepositoryKind.Kind {
			continue
		}
		obj.SetName(FetchName)
		if secret != nil {
			if err := unstructured.SetNestedField(obj.Object, FetchName, "spec", "secretRef", "name"); err != nil {
				return "", fmt.Errorf("name the Secret of the source: %w", err)
			}
		}
		own([]*unstructured.Unstructured{obj})
		if _, err := s.client.Apply(ctx, []*unstructured.Unstructured{obj}, kube.ApplyOptions{FieldManager: fluxOwner, ForceConflicts: true}); err != nil {
			return "", fmt.Errorf("apply the source: %w", err)
		}
	}
	why := "source-controller has not looked at it yet"
	err = s.client.WaitFor(ctx, gitRepositoryKind, fetchKey(), func(obj *unstructured.Unstructured) (bool, error) {
		if obj == nil {
			return false, nil
		}
		fetched, reason, seen := fetchedBy(obj)
		if !seen {
			return false, nil
		}
		revision, why = fetched, reason
		return why == "", nil
	})
	if err != nil {
		return "", diag.Wrap("fetch the fleet repo", fmt.Errorf("%w: %s", err, why), "the cluster has to reach the fleet repo, with the credentials that it is given")
	}
	return revision, nil
}

const notReady = "it is not Ready"

// fetchedBy is what a GitRepository has fetched, and why not where it has not. seen tells that both are about the object as it is now.
func fetchedBy(obj *unstructured.Unstructured) (revision, reason string, seen bool) {
	generation, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	revision, _, _ = unstructured.NestedString(obj.Object, "status", "artifact", "revision")
	ready := findCondition(kube.Conditions(obj), "Ready")
	if ready == nil {
		return revision, notReady, false
	}
	if ready.Status != metav1.ConditionTrue {
		reason = cmp.Or(ready.Message, notReady)
	}
	return revision, reason, generation >= obj.GetGeneration()
}

// Fetched tells what Fetch's source has fetched last, and what is wrong with it now; "" where there is no such source.
func (s *System) Fetched(ctx context.Context) (revision, trouble string, err error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gitRepositoryKind)
	err = kube.Retry(ctx, func(ctx context.Context) error { return s.client.Get(ctx, fetchKey(), obj) })
	if kube.IsAbsent(err) {
		return "", "there is no source that fetches the fleet repo", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look at GitRepository %s: %w", fetchKey(), err)
	}
	revision, trouble, _ = fetchedBy(obj)
	return revision, trouble, nil
}

// EndFetch removes what Fetch made: from then on Flux follows the fleet repo itself.
func (s *System) EndFetch(ctx context.Context) error {
	source, secret := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	source.SetGroupVersionKind(gitRepositoryKind)
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, obj := range []*unstructured.Unstructured{source, secret} {
		obj.SetNamespace(Namespace)
		obj.SetName(FetchName)
	}
	return diag.Wrap("remove the source of the standby", s.client.Delete(ctx, []*unstructured.Unstructured{source, secret}, kube.DeleteOptions{}), "")
}
