package validate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// accepted remembers the content, without metadata, of objects that charts made, that are valid and that refer to no other object. Most
// machine templates of a flavour are alike, so one check serves all of them. The zero value remembers no object.
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

// has tells whether a chart made the object, and whether it is certainly valid because an object with the same content is.
func (a *accepted) has(ctx context.Context, o *object, s *schemas) bool {
	if o.Template == "" {
		return false
	}
	sum, text := sumOf(o)
	a.mu.RLock()
	known := a.sums[sum]
	a.mu.RUnlock()
	if _, gone := o.gone(s); gone != "" { // the clusters of the other object may be older
		return false
	}
	var metadata map[string]any
	return known && json.Unmarshal(text, &metadata) == nil && s.AcceptsMetadata(ctx, o.gvk(), metadata)
}
