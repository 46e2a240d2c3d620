package components

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Charts keeps the archives of features' charts by their digests, so that they are fetched once. The zero value keeps nothing.
type Charts struct{ Dir string }

// ChartsIn returns the archives that are kept below a folder of caches; "" keeps nothing.
func ChartsIn(cacheDir string) Charts {
	if cacheDir == "" {
		return Charts{}
	}
	return Charts{Dir: filepath.Join(cacheDir, "charts")}
}

// Kept returns the archive with a digest, or nil if there is none. It looks at the content, because the cache may be damaged.
func (c Charts) Kept(sha256 string) []byte {
	if raw, err := hex.DecodeString(sha256); c.Dir == "" || err != nil || len(raw) == 0 { // it becomes the name of a file
		return nil
	}
	content, err := within.ReadFile(c.Dir, sha256+".tgz", bundle.MaxChart)
	if err != nil || Digest(content) != sha256 {
		return nil
	}
	return content
}

// Keep keeps an archive. A cache that cannot be written is no reason to fail: the archive is fetched again the next time.
func (c Charts) Keep(archive []byte) {
	sha256 := Digest(archive)
	if c.Dir == "" || c.Kept(sha256) != nil || os.MkdirAll(c.Dir, 0o755) != nil {
		return
	}
	_ = atomicfile.WriteVolatile(c.file(sha256), archive, 0o644)
}

func (c Charts) file(sha256 string) string { return filepath.Join(c.Dir, sha256+".tgz") }

// BundledChart returns the archive of a feature's chart from the bundle. The error matches bundle.ErrNotFound if the bundle lacks it, or if
// there is no bundle, and has a *v1alpha1.ChartDigestError if the lock has another digest.
func (r *Reader) BundledChart(f v1alpha1.LockedFeature, lock *v1alpha1.Lock) ([]byte, error) {
	if r.bundle == nil {
		return nil, bundle.ErrNotFound
	}
	url, name := f.Source()
	found, err := r.bundle.Chart(bundle.ChartRef{URL: url, Name: name, Version: f.Version})
	if err != nil {
		return nil, err
	}
	return found.Archive, lock.VerifyChart(f.Chart, f.Version, Digest(found.Archive))
}

// FetchChart fetches the archive of a feature's chart over the network. The error has a *v1alpha1.ChartDigestError if the lock has another
// digest.
func FetchChart(ctx context.Context, f v1alpha1.LockedFeature, lock *v1alpha1.Lock) ([]byte, error) {
	url, name := f.Source()
	fetched, err := bundle.FetchChart(ctx, nil, bundle.ChartRef{URL: url, Name: name, Version: f.Version})
	if err != nil {
		return nil, err
	}
	return fetched.Archive, lock.VerifyChart(f.Chart, f.Version, Digest(fetched.Archive))
}
