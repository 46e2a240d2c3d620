package management

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// IssuerExport says what ExportIssuer wrote.
type IssuerExport struct {
	FormatVersion string `json:"formatVersion"`
	Cluster       string `json:"cluster"`
	// Issuer in the tokens. Files have to be published below this URL.
	Issuer string `json:"issuer"`
	Dir    string `json:"dir"`
	// Files below Dir, as paths below the issuer's address.
	Files []string `json:"files"`
	// Keys counts the public keys.
	Keys int `json:"keys"`
}

// discoveryFile is where OpenID looks for the discovery document, below the issuer's address.
const discoveryFile = ".well-known/openid-configuration"

// publicFields are the fields of a public key in a JSON web key set. Other fields of a key are not exported.
var publicFields = []string{"use", "kty", "kid", "alg", "n", "e", "crv", "x", "y"}

// ExportIssuer writes, below dir, what clouds have to read of who issues the management cluster's service account tokens: the discovery
// document and the public keys. An issuer that no cloud could read is an error.
func ExportIssuer(ctx context.Context, t *Target, dir string) (*IssuerExport, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	discovery, keys, err := client.IssuerDocuments(ctx)
	if err != nil {
		return nil, err
	}
	export, err := issuerFiles(discovery, keys, t.Name)
	if err != nil {
		return nil, err
	}
	export.result.Dir = dir
	if err := export.write(dir); err != nil {
		return nil, diag.Wrap("write what is to be published", err,
			"give --dir a folder that you can write, without symbolic links that lead out of it")
	}
	return export.result, nil
}

// write writes the files below dir, and nothing outside of it: the folder may be a clone in which somebody else put symbolic links.
func (e *issuerContent) write(dir string) error {
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range e.result.Files {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Replace(root, filepath.FromSlash(name), e.content[name], 0o644, true); err != nil {
			return err
		}
	}
	return nil
}

type issuerContent struct {
	result  *IssuerExport
	content map[string][]byte
}

// issuerFiles are the files for what an API server says, with public keys alone.
func issuerFiles(discovery, keys []byte, cluster string) (*issuerContent, error) {
	var about struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"` //nolint:tagliatelle // OpenID's name
	}
	if err := json.Unmarshal(discovery, &about); err != nil {
		return nil, fmt.Errorf("read the discovery document of management cluster %s: %w", cluster, err)
	}
	issuer, err := url.Parse(about.Issuer)
	if err != nil || issuer.Scheme != "https" || strings.HasSuffix(issuer.Hostname(), ".svc") || strings.Contains(issuer.Hostname(), ".svc.") {
		return nil, diag.Errorf(
			"write `serviceAccountIssuer: https://…` under `embedded:` of its host in fleet.yaml, then `fleetctl host stop` and `fleetctl "+
				"init`",
			"no cloud can read who issues the tokens of management cluster %s: %s", cluster, about.Issuer)
	}
	file, ok := strings.CutPrefix(about.JWKSURI, strings.TrimSuffix(about.Issuer, "/")+"/")
	if !ok || !filepath.IsLocal(filepath.FromSlash(file)) {
		return nil, diag.Errorf("publish the keys at that address yourself: `kubectl get --raw /openid/v1/jwks`",
			"the keys of management cluster %s are looked for at %s, which is not below %s", cluster, about.JWKSURI, about.Issuer)
	}
	var set struct {
		Keys []map[string]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(keys, &set); err != nil || len(set.Keys) == 0 {
		return nil, diag.Errorf("see what it shows: `kubectl get --raw /openid/v1/jwks`", "management cluster %s shows no public keys",
			cluster)
	}
	for i, key := range set.Keys {
		public := map[string]json.RawMessage{}
		for _, field := range publicFields {
			if value, ok := key[field]; ok {
				public[field] = value
			}
		}
		set.Keys[i] = public
	}
	written, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	if err := json.Indent(&document, discovery, "", "  "); err != nil {
		return nil, err
	}
	return &issuerContent{
		result: &IssuerExport{
			FormatVersion: "1", Cluster: cluster, Issuer: about.Issuer,
			Files: []string{discoveryFile, file}, Keys: len(set.Keys),
		},
		content: map[string][]byte{discoveryFile: append(document.Bytes(), '\n'), file: append(written, '\n')},
	}, nil
}
