package programs

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Where the projects release their programs.
const (
	KubernetesReleases = "https://dl.k8s.io"
	EtcdReleases       = "https://github.com/etcd-io/etcd/releases/download"
)

// Releases say where programs are released, in the layout of KubernetesReleases and of EtcdReleases.
type Releases struct{ Kubernetes, Etcd string }

// Limits for downloads of a release. A program has about 130 MB.
const (
	maxProgram   = 512 << 20
	maxChecksums = 1 << 20
)

// Download puts released programs into dir, each in its version, for Linux on that architecture. It compares each program with the checksum
// of its release.
func Download(ctx context.Context, dir, architecture string, from Releases, wanted []Wanted, detail func(string)) ([]Found, error) {
	found := make([]Found, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	for i, w := range wanted {
		found[i] = Found{Name: w.Name, Version: w.Version, File: filepath.Join(dir, w.Name)}
		group.Go(func() error {
			detail(w.Name + " " + w.Version)
			get, site := kubernetes, from.Kubernetes
			if w.Name == etcd {
				get, site = archived, from.Etcd
			}
			return diag.Wrap(fmt.Sprintf("download %s %s for %s", w.Name, w.Version, architecture), get(ctx, found[i], site, architecture),
				"check the version, the network and the proxy; or give --programs a folder with the programs, or --from a bundle that has them")
		})
	}
	return found, group.Wait()
}

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// kubernetes downloads a program of Kubernetes: <site>/v1.36.3/bin/linux/amd64/kube-apiserver, with its checksum beside it.
func kubernetes(ctx context.Context, f Found, site, architecture string) error {
	url := strings.TrimSuffix(site, "/") + "/" + path.Join(f.Version, "bin", "linux", architecture, f.Name)
	text, err := fetchText(ctx, url+".sha256")
	if err != nil {
		return err
	}
	sum, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return download(ctx, url, sum, f.File, func(r io.Reader, to io.Writer) error { return copyProgram(to, r) })
}

// archived downloads etcd: <site>/v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz, with the checksums of the release beside it.
func archived(ctx context.Context, f Found, site, architecture string) error {
	site = strings.TrimSuffix(site, "/") + "/" + f.Version
	folder := fmt.Sprintf("etcd-%s-linux-%s", f.Version, architecture)
	text, err := fetchText(ctx, site+"/SHA256SUMS")
	if err != nil {
		return err
	}
	sum := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == folder+".tar.gz" {
			sum = fields[0]
		}
	}
	if sum == "" {
		return fmt.Errorf("%s/SHA256SUMS does not name %s.tar.gz", sameorigin.Display(site), folder)
	}
	return download(ctx, site+"/"+folder+".tar.gz", sum, f.File,
		func(r io.Reader, to io.Writer) error { return extract(r, folder+"/"+f.Name, to) })
}

// download downloads from url, unpacks with unpack, and writes the result to file. Until the whole download has the checksum, the file has
// another name.
func download(ctx context.Context, url, sum, file string, unpack func(r io.Reader, to io.Writer) error) error {
	if !checksum.MatchString(sum) {
		return fmt.Errorf("%.80q is no checksum", sum)
	}
	body, err := fetch(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()
	partial, err := atomicfile.New(file, 0o755)
	if err != nil {
		return err
	}
	defer partial.Discard()
	hash := sha256.New()
	all := io.TeeReader(io.LimitReader(body, maxProgram+1), hash)
	err = unpack(all, partial)
	_, restErr := io.Copy(io.Discard, all) // what follows behind the program in its archive counts as well
	got := hex.EncodeToString(hash.Sum(nil))
	switch {
	case restErr != nil:
		return restErr
	case got != sum: // which is why it could not be unpacked, where that was so
		return fmt.Errorf("%s has the checksum %s, and its release says %s", sameorigin.Display(url), got, sum)
	case err != nil:
		return err
	}
	return partial.Commit()
}

// extract writes one file of a .tar.gz.
func extract(r io.Reader, name string, to io.Writer) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	in := tar.NewReader(io.LimitReader(z, maxProgram))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("there is no %s in the archive", name)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if path.Clean(h.Name) == name && h.Typeflag == tar.TypeReg {
			return copyProgram(to, in)
		}
	}
}

func copyProgram(to io.Writer, from io.Reader) error {
	n, err := io.Copy(to, io.LimitReader(from, maxProgram+1))
	if err == nil && n > maxProgram {
		err = fmt.Errorf("it is larger than %d bytes", maxProgram)
	}
	return err
}

func fetchText(ctx context.Context, url string) (string, error) {
	body, err := fetch(ctx, url)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := within.All(body, sameorigin.Display(url), maxChecksums)
	return string(text), err
}

func fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: sameorigin.Download(contact.Transport(nil))}).Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", sameorigin.Display(url), resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}
