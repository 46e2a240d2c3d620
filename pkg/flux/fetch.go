package flux

import (
	"cmp"
	"context"
	"fmt"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// FetchName is the name of the GitRepository of a standby, which only fetches the fleet repo, and of the Secret with its credentials.
const FetchName = "fleetctl-standby"

func fetchKey() kube.Key { return kube.Key{Namespace: Namespace, Name: FetchName} }

// Fetch makes the GitRepository FetchName, which fetches the fleet repo but applies nothing, and waits until it has fetched. secret has its
// credentials; nil means none. sync is the content of a gotk-sync.yaml, of which Fetch uses only the source. revision is like main@sha1:….
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
		if _, err := s.client.Apply(ctx, []*unstructured.Unstructured{obj},
			kube.ApplyOptions{FieldManager: fluxOwner, ForceConflicts: true}); err != nil {
			return "", fmt.Errorf("apply the source: %w", err)
		}
	}
	why := "source-controller has not reconciled it yet"
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
		return "", diag.Wrap("fetch the fleet repo", fmt.Errorf("%w: %s", err, why),
			"check that the cluster reaches the fleet repo, and that its credentials for the repo are right")
	}
	return revision, nil
}

const notReady = "it is not Ready"

// fetchedBy returns the revision that a GitRepository has fetched, or the reason why it has not. seen says whether its status is about
// its newest generation.
func fetchedBy(obj *unstructured.Unstructured) (revision, reason string, seen bool) {
	generation, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	revision, _, _ = unstructured.NestedString(obj.Object, "status", "artifact", "revision")
	ready := apimeta.FindStatusCondition(kube.Conditions(obj), fluxmeta.ReadyCondition)
	if ready == nil {
		return revision, notReady, false
	}
	if ready.Status != metav1.ConditionTrue {
		reason = cmp.Or(ready.Message, notReady)
	}
	return revision, reason, generation >= obj.GetGeneration()
}

// Fetched returns the revision that the GitRepository FetchName has last fetched, and what is wrong with it now; trouble is "" if nothing
// is. Without such a GitRepository revision is "".
func (s *System) Fetched(ctx context.Context) (revision, trouble string, err error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gitRepositoryKind)
	err = kube.Retry(ctx, func(ctx context.Context) error { return s.client.Get(ctx, fetchKey(), obj) })
	if kube.IsAbsent(err) {
		return "", "no source fetches the fleet repo", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look at GitRepository %s: %w", fetchKey(), err)
	}
	revision, trouble, _ = fetchedBy(obj)
	return revision, trouble, nil
}

// EndFetch removes the GitRepository and the Secret of Fetch.
func (s *System) EndFetch(ctx context.Context) error {
	source, secret := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	source.SetGroupVersionKind(gitRepositoryKind)
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, obj := range []*unstructured.Unstructured{source, secret} {
		obj.SetNamespace(Namespace)
		obj.SetName(FetchName)
	}
	return diag.Wrap("remove the source of the standby",
		s.client.Delete(ctx, []*unstructured.Unstructured{source, secret}, kube.DeleteOptions{}), "")
}
