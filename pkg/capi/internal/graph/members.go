// Package graph finds all objects that belong to the Clusters of a management cluster, and moves them to another one: it copies, compares,
// pauses, marks, repairs and removes them. It installs nothing, and knows providers only by the kinds of their objects.
package graph

import "github.com/fleetctl/fleetctl/pkg/kube"

// Members reads and writes the objects of one management cluster that may belong to Clusters. It is safe for concurrent use.
type Members struct {
	kube  *kube.Client
	kinds *kindCache
}

// NewMembers returns the Members of the cluster that client talks to. It sends no request.
func NewMembers(client *kube.Client) *Members {
	return &Members{kube: client, kinds: &kindCache{}}
}

// As returns Members that use another client of the same cluster. They share the kinds that m has read.
func (m *Members) As(client *kube.Client) *Members {
	return &Members{kube: client, kinds: m.kinds}
}

// Forget drops the cached kinds of the cluster. The next call reads them again.
func (m *Members) Forget() {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	m.kinds.kinds = nil
}
