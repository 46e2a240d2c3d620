package validate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// accepted remembers objects of charts that are valid and refer to no other object, by their content without metadata. Most machine
// templates of a flavour are alike, so one check serves them all. The zero value remembers no object.
type accepted struct {
	mu   sync.RWMutex
	sums map[[sha256.Size]byte]bool
}

func sumOf(o *object) (sum [sha256.Size]byte, metadata []byte) {
	before, metadata, behind := o.Metadata()
	if metadata == nil {
		return sum, nil
	}
	h := sha256.New()
	h.Write(before)
	h.Write(behind)
	h.Sum(sum[:0])
	return sum, metadata
}

func (a *accepted) add(o *object) {
	sum, metadata := sumOf(o)
	if metadata == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sums == nil {
		a.sums = map[[sha256.Size]byte]bool{}
	}
	a.sums[sum] = true
}

// has tells of an object of a chart whether nothing is wrong with it, for what is known of others.
func (a *accepted) has(ctx context.Context, o *object, s *schemas) bool {
	if o.Template == "" {
		return false
	}
	sum, text := sumOf(o)
	a.mu.RLock()
	known := a.sums[sum]
	a.mu.RUnlock()
	var metadata map[string]any
	return known && json.Unmarshal(text, &metadata) == nil && s.AcceptsMetadata(ctx, o.gvk(), metadata)
}
