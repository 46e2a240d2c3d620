package kube

import (
	"context"
	"fmt"
)

// IssuerDocuments returns two documents of the API server about the issuer of service account tokens: the OpenID discovery document, and
// the public keys (JWKS).
func (c *Client) IssuerDocuments(ctx context.Context) (discovery, keys []byte, err error) {
	for _, d := range []struct {
		path string
		into *[]byte
	}{{"/.well-known/openid-configuration", &discovery}, {"/openid/v1/jwks", &keys}} {
		*d.into, err = c.discovery.RESTClient().Get().AbsPath(d.path).SetHeader("Accept", "application/json, application/jwk-set+json").DoRaw(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s of the API server: %w", d.path, err)
		}
	}
	return discovery, keys, nil
}
