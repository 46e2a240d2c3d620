package kube

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ConfigMap reads a ConfigMap, or returns nil if it does not exist. It takes a single request: unlike Get, it does not first ask the API
// server which kinds it has.
func (c *Client) ConfigMap(ctx context.Context, key Key) (*corev1.ConfigMap, error) {
	answer := c.discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", key.Namespace, "configmaps", key.Name).
		SetHeader("Accept", "application/json").Do(ctx)
	body, err := answer.Raw()
	if err != nil {
		if err = answer.Error(); IsObjectAbsent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get ConfigMap %s of %s: %w", key, c.Host(), err)
	}
	object := &corev1.ConfigMap{}
	if err := json.Unmarshal(body, object); err != nil || object.Kind != "ConfigMap" || object.Name != key.Name {
		return nil, fmt.Errorf("get ConfigMap %s of %s: this is not the answer of an API server", key, c.Host())
	}
	return object, nil
}
