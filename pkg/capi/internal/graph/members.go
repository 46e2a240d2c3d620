// Package graph finds all that belongs to the Clusters of a management cluster, and carries it to another one: it copies, compares, pauses,
// marks, repairs and removes the objects. It installs nothing, and knows no providers but by the kinds of their objects.
package graph

import "github.com/fleetctl/fleetctl/pkg/kube"

// Members reads and writes the objects of one management cluster that may belong to Clusters. It is safe for use by several goroutines.
type Members struct {
	kube  *kube.Client
	kinds *kindCache
}

// NewMembers returns the Members of the cluster that client talks to. It sends no request.
func NewMembers(client *kube.Client) *Members {
	return &Members{kube: client, kinds: &kindCache{}}
}

// As is the Members through another client of the same cluster. It knows the kinds that m knows.
func (m *Members) As(client *kube.Client) *Members {
	return &Members{kube: client, kinds: m.kinds}
}

// Forget has the kinds of the cluster looked up anew the next time that they are needed.
func (m *Members) Forget() {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	m.kinds.kinds = nil
}
