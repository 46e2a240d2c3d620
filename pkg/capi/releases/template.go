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
	// maxTemplate bounds the size of a cluster template, in bytes. The largest template of a provider has 60 KiB.
	maxTemplate = 1 << 20
	// templateTimeout bounds the download if the context does not.
	templateTimeout = time.Minute
)

// DownloadTemplate downloads a cluster template from an https URL. It returns an error for another scheme, for a URL with a credential, if
// the server cannot be reached or does not answer with 200, and if the file is larger than a template can be.
func DownloadTemplate(ctx context.Context, address string) ([]byte, error) {
	return downloadTemplate(ctx, nil, address)
}

func downloadTemplate(ctx context.Context, transport http.RoundTripper, address string) ([]byte, error) {
	const op = "download the cluster template"
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, diag.Usage("give https://host/path/cluster-template.yaml, a file, or - for standard input", "%s: this is not a URL", op)
	case u.Scheme != "https":
		return nil, diag.Usage("give an https address, or download it yourself and give the file",
			"%s: the scheme %s is not encrypted, or not for downloads", op, u.Scheme)
	case u.User != nil:
		return nil, diag.Usage("download it yourself and give the file", "%s: the address contains a credential", op)
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
	content, err := io.ReadAll(resp.Body) // the transport bounds it
	if err != nil {
		return nil, diag.Wrap(op, err, "check the address, or download it yourself and give the file")
	}
	return content, nil
}
