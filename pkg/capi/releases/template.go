package releases

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

const (
	// maxTemplate bounds a cluster template; the largest that a provider releases has 60 KiB.
	maxTemplate = 1 << 20
	// templateTimeout bounds its download where the context does not.
	templateTimeout = time.Minute
)

// DownloadTemplate reads a cluster template from an https address. Errors: another scheme, an address with a credential in it, a server
// that cannot be reached or answers otherwise, and more than a template has.
func DownloadTemplate(ctx context.Context, address string) ([]byte, error) {
	return downloadTemplate(ctx, nil, address)
}

func downloadTemplate(ctx context.Context, transport http.RoundTripper, address string) ([]byte, error) {
	const op = "download the cluster template"
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, diag.Usage("give https://host/path/cluster-template.yaml, a file, or - for standard input", "%s: this is no address", op)
	case u.Scheme != "https":
		return nil, diag.Usage("give an https address, or download it yourself and give the file",
			"%s: %s is not encrypted, or nothing that can be downloaded", op, u.Scheme)
	case u.User != nil:
		return nil, diag.Usage("download it yourself and give the file", "%s: the address has a credential in it", op)
	}
	ctx, cancel := context.WithTimeout(ctx, templateTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	client := &http.Client{Transport: contact.Bound(sameorigin.Download(contact.Transport(transport)), maxTemplate)}
	resp, err := client.Do(req)
	if err != nil {
		return nil, diag.Wrap(op, err, "check the network or the proxy, or give a file")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, diag.Wrap(op, fmt.Errorf("%s: %s", sameorigin.Display(address), resp.Status), "check the address")
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, diag.Wrap(op, err, "")
	}
	return content, nil
}
