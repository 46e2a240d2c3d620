package bundling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/review"
)

// readRepo finds the images and the charts of what the fleet repo has clusters run: networks, features and all else that Flux applies.
// Networks and the features that were asked for count also where nobody has them.
func (b *creation) readRepo(ctx context.Context, detail func(string)) error {
	if b.session.NewFleet {
		if len(b.opts.Features) > 0 {
			return diag.Usage("run it in the fleet repo, or name the repo with -C",
				"there is no fleet repo here, and so no feature %s", b.opts.Features[0])
		}
		return nil
	}
	found, err := review.Needs(ctx, review.NeedsOptions{Dir: b.opts.Dir, CacheDir: b.session.Deps.CacheDir, Features: b.opts.Features})
	if err != nil {
		return err
	}
	if err := found.Findings.Err(); err != nil {
		return diag.Wrap("render the fleet repo", err,
			"`fleetctl validate` lists the errors. The bundle would lack the images of everything that cannot be rendered")
	}
	b.repoImages = b.imagesIn(found.Manifests)
	if len(found.Charts) == 0 {
		return nil
	}
	if b.lock, err = v1alpha1.LoadLock(filepath.Join(b.opts.Dir, v1alpha1.LockFileName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := b.tempFolder("charts")
	if err != nil {
		return err
	}
	for i := range found.Charts {
		c := &found.Charts[i]
		detail(fmt.Sprintf("%d of %d: chart %s", i+1, len(found.Charts), c.Ref))
		if err := b.fetchChart(ctx, c, filepath.Join(dir, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	made, err := review.RenderCharts(ctx, dir, found.Charts)
	if err != nil {
		return err
	}
	if err := made.Findings.Err(); err != nil {
		return diag.Wrap("render the charts of the fleet repo", err, "their images would be missing: put the values right")
	}
	b.repoImages = append(b.repoImages, b.imagesIn(made.Manifests)...)
	return nil
}

func (b *creation) fetchChart(ctx context.Context, c *review.ChartUse, dir string) error {
	fetched, err := bundle.FetchChart(ctx, b.from, bundle.ChartRef{URL: c.Ref.URL, Name: c.Ref.Name, Version: c.Ref.Version})
	if err != nil {
		return diag.Wrap("get what "+c.Name+" consists of", err, diag.Hint(err))
	}
	address := c.Ref.URL
	if c.Ref.Name != "" {
		address = strings.TrimSuffix(address, "/") + "/" + c.Ref.Name
	}
	if err := b.lock.VerifyChart(address, c.Ref.Version, components.Digest(fetched.Archive)); err != nil {
		return err
	}
	i := slices.IndexFunc(b.repoCharts, func(have bundle.Chart) bool { return have.Path == fetched.Path })
	switch {
	case i < 0:
		b.repoCharts = append(b.repoCharts, *fetched)
	case !bytes.Equal(b.repoCharts[i].Archive, fetched.Archive):
		return diag.Errorf("give one of them another version", "two charts are called %s, and differ: the one of %s, and one before it",
			path.Base(fetched.Path), c.Name)
	}
	return fetched.Unpack(dir)
}

// imagesIn are the images that manifests name. It warns of a name that is no image, such as a variable that is filled in on the cluster.
func (b *creation) imagesIn(manifests [][]byte) []string {
	var all []string
	odd := 0
	for _, m := range manifests {
		found, err := bundle.ImagesIn(m)
		if err != nil {
			odd++
		}
		all = append(all, found...)
	}
	if odd > 0 {
		b.session.Deps.Report.Warn("The images of " + plain.Count(odd, "object") + " cannot be told from the fleet repo: give them with --image.")
	}
	slices.Sort(all)
	return slices.Compact(all)
}
