package runner

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectRef names an object that a Deployment needs.
type objectRef struct{ Kind, Namespace, Name string }

// missingError means that an object does not exist yet. The runner waits for it. For example, a certificate is issued after its Deployment
// was made.
type missingError struct {
	ref objectRef
	key string
}

// Error names the object, and the key if only the key is missing.
func (e *missingError) Error() string {
	text := fmt.Sprintf("%s %s/%s", e.ref.Kind, e.ref.Namespace, e.ref.Name)
	if e.key != "" {
		return fmt.Sprintf("%s has no key %q", text, e.key)
	}
	return text + " does not exist yet"
}

// sources reads the Secrets and ConfigMaps of one Deployment, each once, from the API server. The runner's cache has only their metadata,
// to notice changes.
type sources struct {
	reader client.Reader
	data   map[objectRef]map[string][]byte
}

func newSources(reader client.Reader) *sources {
	return &sources{reader: reader, data: map[objectRef]map[string][]byte{}}
}

// get returns the data of an object. It returns nil and no error if the object is optional and missing.
func (s *sources) get(ctx context.Context, ref objectRef, optional bool) (map[string][]byte, error) {
	if data, ok := s.data[ref]; ok {
		return data, nil
	}
	data, err := s.read(ctx, ref)
	switch {
	case apierrors.IsNotFound(err) && optional:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, &missingError{ref: ref}
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	s.data[ref] = data
	return data, nil
}

func (s *sources) read(ctx context.Context, ref objectRef) (map[string][]byte, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	data := map[string][]byte{}
	if ref.Kind == "Secret" {
		secret := &corev1.Secret{}
		if err := s.reader.Get(ctx, key, secret); err != nil {
			return nil, err
		}
		maps.Copy(data, secret.Data)
		return data, nil
	}
	config := &corev1.ConfigMap{}
	if err := s.reader.Get(ctx, key, config); err != nil {
		return nil, err
	}
	for k, v := range config.Data {
		data[k] = []byte(v)
	}
	maps.Copy(data, config.BinaryData)
	return data, nil
}

// value returns the value of one key. ok is false if the key is optional and missing.
func (s *sources) value(ctx context.Context, ref objectRef, key string, optional bool) (value string, ok bool, err error) {
	data, err := s.get(ctx, ref, optional)
	if err != nil {
		return "", false, err
	}
	raw, ok := data[key]
	if !ok && !optional {
		return "", false, &missingError{ref, key}
	}
	return string(raw), ok, nil
}

func (s *sources) envFrom(
	ctx context.Context,
	namespace string,
	c *corev1.Container,
	from corev1.EnvFromSource,
) (map[string]string, error) {
	var ref objectRef
	var optional bool
	switch {
	case from.SecretRef != nil:
		ref, optional = objectRef{"Secret", namespace, from.SecretRef.Name}, isTrue(from.SecretRef.Optional)
	case from.ConfigMapRef != nil:
		ref, optional = objectRef{"ConfigMap", namespace, from.ConfigMapRef.Name}, isTrue(from.ConfigMapRef.Optional)
	default:
		return nil, refuse(containerField(c)+".envFrom", "only secretRef and configMapRef are known")
	}
	data, err := s.get(ctx, ref, optional)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for k, v := range data {
		values[k] = string(v)
	}
	return values, nil
}

// needs lists the Secrets, ConfigMaps and ServiceAccount that a pod uses.
func needs(namespace string, pod *corev1.PodSpec) []objectRef {
	refs := []objectRef{{"ServiceAccount", namespace, accountOf(pod)}}
	secret := func(name string) { refs = append(refs, objectRef{"Secret", namespace, name}) }
	config := func(name string) { refs = append(refs, objectRef{"ConfigMap", namespace, name}) }
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil:
			secret(v.Secret.SecretName)
		case v.ConfigMap != nil:
			config(v.ConfigMap.Name)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.Secret != nil {
					secret(s.Secret.Name)
				}
				if s.ConfigMap != nil {
					config(s.ConfigMap.Name)
				}
			}
		}
	}
	for _, c := range pod.Containers {
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				secret(e.SecretRef.Name)
			}
			if e.ConfigMapRef != nil {
				config(e.ConfigMapRef.Name)
			}
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				secret(e.ValueFrom.SecretKeyRef.Name)
			}
			if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
				config(e.ValueFrom.ConfigMapKeyRef.Name)
			}
		}
	}
	for _, s := range pod.ImagePullSecrets {
		secret(s.Name)
	}
	return refs
}

// accountOf is the ServiceAccount that a pod runs as.
func accountOf(pod *corev1.PodSpec) string {
	if pod.ServiceAccountName != "" {
		return pod.ServiceAccountName
	}
	return "default"
}
