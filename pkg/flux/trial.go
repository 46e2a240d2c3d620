package flux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// trialKey is the source, and its Secret, with which a cluster tries whether it reaches a fleet repo.
var trialKey = kube.Key{Namespace: Namespace, Name: "fleetctl-trial"}

// endTime bounds the end of a trial, which comes also where the trial itself was cut off.
const endTime = 30 * time.Second

// TryFetch has the cluster's own source-controller fetch what sync would have it follow, with secret (nil for none), while it still follows what it does. It
// returns once that has succeeded. Where ctx ends before, the error has the controller's words. What it makes for that is gone afterwards.
func (s *System) TryFetch(ctx context.Context, secret *corev1.Secret, sync []byte, detail func(string)) (err error) {
	trial, err := trialOf(sync, secret)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		err = errors.Join(err, s.EndTrial(ending))
	}()
	if err := s.EndTrial(ctx); err != nil { // of a run that was killed: its source may be Ready with another Secret
		return err
	}
	if secret != nil {
		secret = secret.DeepCopy()
		secret.Namespace, secret.Name = trialKey.Namespace, trialKey.Name
		if err := s.ApplySecret(ctx, secret); err != nil {
			return err
		}
	}
	if _, err := s.client.Apply(ctx, []*unstructured.Unstructured{trial}, kube.ApplyOptions{ForceConflicts: true, Detail: detail}); err != nil {
		return err
	}
	said := ""
	err = s.client.WaitFor(ctx, gitRepositoryKind, trialKey, func(obj *unstructured.Unstructured) (bool, error) {
		if obj == nil {
			return false, errors.New("it was deleted meanwhile")
		}
		ready := findCondition(kube.Conditions(obj), "Ready")
		if ready == nil {
			return false, nil
		}
		said = ready.Message
		return ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == obj.GetGeneration(), nil
	})
	if err != nil {
		return fmt.Errorf("fetch the fleet repo from inside the cluster: %s: %w", cmp.Or(said, "its source-controller says nothing"), err)
	}
	return nil
}

// trialOf is the source of sync under the trial's name.
func trialOf(sync []byte, secret *corev1.Secret) (*unstructured.Unstructured, error) {
	objects, err := kube.ParseYAML(sync)
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		if obj.GetKind() != sourcev1.GitRepositoryKind {
			continue
		}
		trial := obj.DeepCopy()
		trial.SetNamespace(trialKey.Namespace)
		trial.SetName(trialKey.Name)
		trial.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "fleetctl"})
		unstructured.RemoveNestedField(trial.Object, "spec", "secretRef")
		if secret != nil {
			err = unstructured.SetNestedField(trial.Object, trialKey.Name, "spec", "secretRef", "name")
		}
		return trial, err
	}
	return nil, errors.New("there is no source to follow")
}

// EndTrial removes what a TryFetch that was killed has left.
func (s *System) EndTrial(ctx context.Context) error {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(gitRepositoryKind)
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	objects := []*unstructured.Unstructured{source, secret}
	for _, obj := range objects {
		obj.SetNamespace(trialKey.Namespace)
		obj.SetName(trialKey.Name)
	}
	if err := s.client.Delete(ctx, objects, kube.DeleteOptions{Wait: true}); err != nil {
		return fmt.Errorf("remove what tried the fleet repo: %w", err)
	}
	return nil
}
