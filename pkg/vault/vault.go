// Package vault reads secrets from HashiCorp Vault, or from a server with the same HTTP API, such as OpenBao. It reads key-value engines,
// and engines that make a credential on request and revoke it at the end of a lease.
package vault

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// Bounds of one request: how long it may take, how much is read of the answer, and how much of an error is said: of each message, and how
// many messages.
const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 4 << 20
	maxSaid        = 500
	maxMessages    = 5
)

// Method is how to log in.
type Method string

// The methods.
const (
	MethodToken      Method = "token"
	MethodAppRole    Method = "approle"
	MethodKubernetes Method = "kubernetes"
	MethodJWT        Method = "jwt"
)

// Config of New.
type Config struct {
	// Address of the server, VAULT_ADDR: https://vault.example.com:8200. Without TLS it has to be this machine.
	Address string
	// Namespace of Vault Enterprise, or of OpenBao; "" is none.
	Namespace string
	// CA are certificate authorities (PEM) to trust besides the machine's.
	CA []byte
	// Method of the login. Mount is the path of the auth method in Vault, by default the method's name.
	Method Method
	Mount  string
	// Role to log in as, for kubernetes and jwt; Token, RoleID, SecretID and JWT are what each method takes.
	Role, Token, RoleID, SecretID, JWT string
	// ReadToken, if set, reads the token instead of Token. Somebody else, such as Vault's agent, may put a new token in the place of one
	// that ends.
	ReadToken func() (string, error)
}

// Client of one server. It logs in when it is first asked for something, and is safe for use by several goroutines.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client

	mu       sync.Mutex
	token    string
	tokenEnd *time.Time

	// shared tells that a cache such as Vault Agent's has answered: others may use the tokens and leases that it gives.
	shared atomic.Bool
}

// Secret is what was read.
type Secret struct {
	// Lease is the id of what ends; "" for what only lies there.
	Lease string
	// Until is the end of the lease, at the latest the end of the token that asked for it; nil for a secret without an end. Duration is the
	// granted duration.
	Until    *time.Time
	Duration time.Duration
	// Renewable tells that the end can be put off.
	Renewable bool

	fields map[string]json.RawMessage
}

// Error is an answer other than success. Its text is the server's.
type Error struct {
	Status int
	Said   []string
}

// Error returns the server's message, or the meaning of the status if the server sends no message.
func (e *Error) Error() string {
	if len(e.Said) == 0 {
		return fmt.Sprintf("Vault answers %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("Vault answers %d: %s", e.Status, strings.Join(e.Said, "; "))
}

// again tells that the same question may be answered later: the server is asked too often, or has not yet heard of what it should know.
func (e *Error) again() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusPreconditionFailed
}

// New checks config. It sends nothing yet.
func New(config Config) (*Client, error) {
	base, err := url.Parse(config.Address)
	switch {
	case err != nil || base.Hostname() == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, diag.Errorf("export VAULT_ADDR=https://vault.example.com:8200", "the address of Vault is no URL")
	case base.User != nil || base.RawQuery != "":
		return nil, diag.Errorf("export VAULT_ADDR with nothing but scheme, host and port",
			"the address of Vault has more than scheme, host and port")
	case base.Scheme == "http" && !sameorigin.IsLoopback(base.Hostname()):
		return nil, diag.Errorf("use https", "the token for Vault would go to %s without TLS", base.Host)
	}
	transport, found := sameorigin.NewTransport(config.CA)
	if len(config.CA) > 0 && !found {
		return nil, diag.Errorf("give VAULT_CACERT a PEM file", "the certificate authorities for Vault contain no certificate")
	}
	if config.Mount == "" {
		config.Mount = string(config.Method)
	}
	client := &http.Client{Transport: sameorigin.Bind(contact.Bound(contact.Transport(transport), maxAnswer), base), Timeout: requestTimeout}
	return &Client{config: config, base: base, http: client}, nil
}

// Server is the address, as it may be printed.
func (c *Client) Server() string { return sameorigin.Of(c.base) }

// answer is the shape of all that Vault says.
type answer struct {
	LeaseID       string          `json:"lease_id"`
	LeaseDuration int64           `json:"lease_duration"`
	Renewable     bool            `json:"renewable"`
	Data          json.RawMessage `json:"data"`
	Auth          *struct {
		ClientToken   string `json:"client_token"`
		LeaseDuration int64  `json:"lease_duration"`
	} `json:"auth"`
	WrapInfo json.RawMessage `json:"wrap_info"`
	Errors   []string        `json:"errors"`
}

// Read reads the secret at path as `vault read` takes it, and as `vault kv get` does: aws/creds/ROLE, secret/NAME. Of a key-value engine of
// version 2 it is the newest version.
func (c *Client) Read(ctx context.Context, at string) (*Secret, error) {
	if err := CheckPath(at); err != nil {
		return nil, err
	}
	asked, versioned, err := c.versioned(ctx, at)
	if err != nil {
		return nil, c.explain("read "+at+" of Vault at "+c.Server(), err)
	}
	begin := time.Now()
	var got answer
	err = c.call(ctx, http.MethodGet, asked, nil, &got)
	// Vault answers 404 with data, the metadata of the version, where the newest version is deleted.
	said, _ := errors.AsType[*Error](err)
	deleted := versioned && said != nil && said.Status == http.StatusNotFound && len(got.Data) > 0 && string(got.Data) != "null"
	if err != nil && !deleted {
		return nil, c.explain("read "+at+" of Vault at "+c.Server(), err)
	}
	content := got.Data
	if versioned {
		var inner struct {
			Data json.RawMessage `json:"data"`
		}
		if deleted || json.Unmarshal(content, &inner) != nil || len(inner.Data) == 0 || string(inner.Data) == "null" {
			return nil, diag.Errorf("write it again: vault kv put "+at+" …", "the newest version of %s in Vault is deleted", at)
		}
		content = inner.Data
	}
	secret := &Secret{}
	if json.Unmarshal(content, &secret.fields) != nil || len(secret.fields) == 0 {
		return nil, diag.Errorf("check the path with `vault read "+at+"`", "Vault has no fields at %s", at)
	}
	if got.LeaseID != "" && !c.lease(secret, &got, begin) {
		return nil, diag.Errorf("give it more time: `vault read sys/mounts/…/tune` and the role there, and the token's own time",
			"what Vault leases at %s ends at once", at)
	}
	return secret, nil
}

// seconds is a duration as Vault says it. What is longer than a century is no longer.
func seconds(n int64) time.Duration {
	const century = 100 * 365 * 24 * 60 * 60
	return time.Duration(min(n, century)) * time.Second
}

// lease enters when a secret ends: with its lease, or before with the token that asked for it. It is false where that is at once.
func (c *Client) lease(secret *Secret, got *answer, begin time.Time) bool {
	secret.Lease, secret.Renewable = got.LeaseID, got.Renewable
	secret.Duration = seconds(got.LeaseDuration)
	end := begin.Add(secret.Duration)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokenEnd != nil {
		// Vault revokes the leases of a token when the token ends, and no other token can extend them.
		secret.Renewable = false
		if c.tokenEnd.Before(end) {
			end = *c.tokenEnd
			secret.Duration = end.Sub(begin)
		}
	}
	end = end.UTC().Truncate(time.Second)
	secret.Until = &end
	return secret.Duration > 0
}

// Renew extends a lease. It returns the new end. The new end may be earlier than requested, because a lease has a maximum age.
func (c *Client) Renew(ctx context.Context, lease string, increment time.Duration) (until time.Time, renewable bool, _ error) {
	begin := time.Now()
	var got answer
	body := map[string]any{"lease_id": lease, "increment": int64(increment / time.Second)}
	if err := c.call(ctx, http.MethodPut, "sys/leases/renew", body, &got); err != nil {
		return time.Time{}, false, c.explain("renew a lease of Vault at "+c.Server(), err)
	}
	return begin.Add(seconds(got.LeaseDuration)).UTC().Truncate(time.Second), got.Renewable, nil
}

// versioned is the path to read from, and whether the path is in a key-value engine that keeps versions. If the token may not ask for this,
// the given path is taken as the path of the HTTP API.
func (c *Client) versioned(ctx context.Context, at string) (asked string, versioned bool, _ error) {
	var got answer
	if err := c.call(ctx, http.MethodGet, "sys/internal/ui/mounts/"+at, nil, &got); err != nil {
		if said, is := errors.AsType[*Error](err); is && said.Status < http.StatusInternalServerError && !said.again() {
			return at, isVersionedPath(at), nil
		}
		return "", false, err
	}
	var mount struct {
		Path    string `json:"path"`
		Type    string `json:"type"`
		Options struct {
			Version string `json:"version"`
		} `json:"options"`
	}
	read := json.Unmarshal(got.Data, &mount) == nil
	if !read || mount.Type != "kv" && mount.Type != "generic" || mount.Options.Version != "2" {
		return at, false, nil
	}
	inside, ok := strings.CutPrefix(at, mount.Path)
	if !ok {
		return at, false, nil
	}
	if strings.HasPrefix(inside, "data/") {
		return at, true, nil
	}
	return path.Join(mount.Path, "data", inside), true, nil
}

func isVersionedPath(at string) bool {
	parts := strings.Split(at, "/")
	return len(parts) > 2 && parts[1] == "data"
}

// CheckPath refuses a path that leads elsewhere than it says.
func CheckPath(at string) error {
	parts := strings.Split(at, "/")
	if len(parts) < 2 || parts[0] == "sys" || parts[0] == "auth" || parts[0] == "v1" ||
		slices.Contains(parts, "") || slices.Contains(parts, ".") || slices.Contains(parts, "..") || strings.ContainsAny(at, "?#%\\ \t\r\n") {
		return diag.Errorf("write it as `vault read` takes it: aws/creds/ROLE, secret/NAME", "%.80q is not the path of a secret in Vault", at)
	}
	return nil
}

// Field is one field of the secret, as text.
func (s *Secret) Field(name string) (string, error) {
	raw, ok := s.fields[name]
	if !ok || string(raw) == "null" {
		names := make([]string, 0, len(s.fields))
		for n := range s.fields {
			names = append(names, n)
		}
		slices.Sort(names)
		return "", diag.Errorf("there are "+strings.Join(names, ", "), "the secret has no field %s", name)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	return string(raw), nil
}

// explain is err with what to do about it. Where a login is refused or does not find its mount, the hint of the login holds.
func (c *Client) explain(op string, err error) error {
	var said *Error
	var left *sameorigin.Error
	var untrusted *tls.CertificateVerificationError
	hint, told := "", diag.Hint(err) != ""
	switch {
	case errors.As(err, &untrusted):
		hint = "VAULT_CACERT, or vault.caFile of the management cluster in fleet.yaml, names a PEM file with the authority of Vault's " +
			"certificate; VAULT_ADDR has the name in it"
	case errors.As(err, &said) && said.again():
		hint = "run the same command again in a moment"
	case errors.As(err, &said) && said.Status == http.StatusForbidden && !told:
		hint = "the token's policy has to allow it; a namespace is part of the question, too"
	case errors.As(err, &said) && said.Status == http.StatusNotFound && !told:
		hint = "check path and namespace; see `vault secrets list`"
	case errors.As(err, &said) && said.Status == http.StatusServiceUnavailable:
		hint = "vault status"
	case errors.As(err, &left):
		hint = "give VAULT_ADDR the address of the active node, or of the load balancer in front of all nodes: fleetctl sends the " +
			"token to no other server"
	}
	return diag.Wrap(op, err, hint)
}

// call asks, logged in: once, or again with a token that took the place of the refused one.
func (c *Client) call(ctx context.Context, method, at string, body any, into *answer) error {
	token, err := c.login(ctx)
	if err != nil {
		return err
	}
	err = c.send(ctx, method, at, token, body, into)
	if said, is := errors.AsType[*Error](err); !is || said.Status != http.StatusForbidden || !c.replaced(token) {
		return err
	}
	if token, err = c.login(ctx); err != nil {
		return err
	}
	*into = answer{}
	return c.send(ctx, method, at, token, body, into)
}

func (c *Client) send(ctx context.Context, method, at, token string, body any, into *answer) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath("v1", at).String(), content)
	if err != nil {
		return err
	}
	req.Header.Set("X-Vault-Request", "true")
	if token != "" {
		req.Header.Set("X-Vault-Token", token)
	}
	if c.config.Namespace != "" {
		req.Header.Set("X-Vault-Namespace", c.config.Namespace)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if resp.Header.Get("X-Cache") != "" {
		c.shared.Store(true)
	}
	// The transport bounds it.
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	err = json.Unmarshal(raw, into)
	if resp.StatusCode >= http.StatusBadRequest {
		return &Error{Status: resp.StatusCode, Said: c.said(into.Errors, token)}
	}
	if err != nil && len(raw) > 0 {
		return errors.New("the answer does not come from Vault: it is not JSON") // the answer itself may hold a secret
	}
	if len(into.WrapInfo) > 0 && string(into.WrapInfo) != "null" {
		return diag.Errorf("remove min_wrapping_ttl from the token's policy", "Vault wraps the answer for somebody else to unwrap")
	}
	return nil
}

// said is the server's message, without secrets that the server got from this client, and cut to a limit.
func (c *Client) said(texts []string, token string) []string {
	var out []string
	for i, text := range texts {
		if i == maxMessages {
			return append(out, "and "+plain.Count(len(texts)-i, "more message"))
		}
		text = sameorigin.Without(text, token, c.config.Token, c.config.SecretID, c.config.JWT)
		out = append(out, strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxSaid)], "")))
	}
	return out
}

// Namespace is the one of all questions; "" is none.
func (c *Client) Namespace() string { return c.config.Namespace }
