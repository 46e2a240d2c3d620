package render

import (
	"encoding/binary"

	"github.com/fleetctl/fleetctl/pkg/render/internal/store"
)

// cacheFormat changes with the content of entries, and with the code that makes the content. Entries of another format are not found.
const cacheFormat = "render-5 helm-v4.2.4 kustomize-v0.21.1"

// key is the name of a cache entry.
type key = store.Key

// digest hashes parts, each with its length, so that no two lists of parts are the same text.
func digest(parts ...[]byte) key { return store.Digest(parts...) }

// CacheFor is the folder below dir that caches the rendered content of the fleet repo in a folder. It is "" if dir is "", or if there can
// be no such folder. Each repo has its own cache: rendering a repo writes there, and an entry that a hostile repo has forged must not reach
// another repo.
func CacheFor(dir, repo string) string { return store.FolderFor(dir, repo) }

// cache keeps lists of objects by a digest of all their inputs.
type cache struct{ kept *store.Store }

func newCache(dir string) cache { return cache{store.New(dir)} }

// use opens the cache for a run. The returned function ends the run, and makes its results available to other runs.
func (c cache) use() (done func()) { return c.kept.Use() }

func (c cache) get(k key) ([]*content, bool) {
	body, ok := c.kept.Get(k)
	if !ok {
		return nil, false
	}
	return decodeContents(body)
}

func (c cache) put(k key, all []*content) {
	if c.kept != nil {
		c.kept.Put(k, encodeContents(all))
	}
}

// encodeContents encodes a list of objects: the parts of each object, each part after its length. The encoding of an empty list is empty
// but not nil, because nil means that the cache has no entry.
func encodeContents(all []*content) []byte {
	dst := []byte{}
	for _, c := range all {
		for _, part := range []string{c.APIVersion, c.Kind, c.Metadata.Namespace, c.Metadata.Name, c.source.File, c.template} {
			dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
		}
		dst = binary.AppendUvarint(dst, uint64(c.source.Line)) //nolint:gosec // lines count from 1
		dst = append(binary.AppendUvarint(dst, uint64(len(c.json))), c.json...)
	}
	return dst
}

// decodeContents decodes the output of encodeContents. It returns false for any other text. The objects share the text.
func decodeContents(text []byte) ([]*content, bool) {
	if text == nil {
		return nil, false
	}
	ok := true
	number := func() uint64 {
		n, size := binary.Uvarint(text)
		if size <= 0 {
			ok, text = false, nil
			return 0
		}
		text = text[size:]
		return n
	}
	part := func() []byte {
		n := number()
		if n > uint64(len(text)) {
			ok, text = false, nil
			return nil
		}
		out := text[:n:n]
		text = text[n:]
		return out
	}
	all := []*content{}
	for len(text) > 0 {
		c := &content{}
		for _, into := range []*string{&c.APIVersion, &c.Kind, &c.Metadata.Namespace, &c.Metadata.Name, &c.source.File, &c.template} {
			*into = string(part())
		}
		c.source.Line = int(number()) //nolint:gosec // the digest proves that the number is right
		c.json = part()
		all = append(all, c)
	}
	return all, ok
}
