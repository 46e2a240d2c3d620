package flux

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/fluxcd/pkg/tar"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

const (
	// downloadTimeout bounds one download. The archive has about 100 kB.
	downloadTimeout = 2 * time.Minute
	// maxManifests bounds the unpacked bytes of an archive. A release has less than 2 MB.
	maxManifests = 8 << 20

	airGapHint = "check the network or the proxy, or use an offline bundle: --bundle PATH, see docs/tasks/offline.md"
)

// Address is the URL that the manifests of o.Version are downloaded from; "" if they come from a folder.
func (o ComponentsOptions) Address() string {
	if o.ManifestsBase != "" {
		return ""
	}
	o = o.withDefaults()
	return address(o.ReleasesURL, o.Version)
}

func address(releasesURL, version string) string {
	return fmt.Sprintf("%s/download/%s/manifests.tar.gz", releasesURL, version)
}

// download unpacks the manifests of a Flux release into the new folder dir.
func download(ctx context.Context, dir, releasesURL, version string) error {
	url := address(releasesURL, version)
	op := "download flux manifests " + version
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	resp, err := (&http.Client{Transport: sameorigin.Download(contact.Transport(nil))}).Do(req)
	if err != nil {
		return diag.Wrap(op, err, airGapHint)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return diag.Wrap(op, fmt.Errorf("%s: no such release", sameorigin.Display(url)), "check spec.flux.version in fleet.yaml")
	default:
		return diag.Wrap(op, fmt.Errorf("%s: %s", sameorigin.Display(url), resp.Status), airGapHint)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return diag.Wrap(op, err, "")
	}
	body := io.LimitReader(resp.Body, maxManifests)
	if err := tar.Untar(body, dir, tar.WithMaxUntarSize(maxManifests), tar.WithSkipSymlinks()); err != nil {
		return diag.Wrap(op, fmt.Errorf("unpack %s: %w", sameorigin.Display(url), err), airGapHint)
	}
	return nil
}
