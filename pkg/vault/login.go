package vault

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// login is the token for all further questions; the first caller asks for it.
func (c *Client) login(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" {
		return c.token, nil
	}
	begin := time.Now()
	if c.config.Method == MethodToken {
		return c.withToken(ctx, begin)
	}
	body, err := c.loginBody()
	if err != nil {
		return "", err
	}
	var got answer
	if err := c.send(ctx, http.MethodPost, "auth/"+c.config.Mount+"/login", "", body, &got); err != nil {
		return "", diag.Wrap("log in to Vault by "+string(c.config.Method)+" at auth/"+c.config.Mount, err,
			"check the mount, the role and the role's bindings: `vault:` of the management cluster in fleet.yaml")
	}
	if got.Auth == nil || got.Auth.ClientToken == "" {
		return "", diag.Errorf("check the mount: `vault:` of the management cluster in fleet.yaml",
			"log in to Vault by %s: the answer has no token", c.config.Method)
	}
	c.token = got.Auth.ClientToken
	c.endsAfter(begin, seconds(got.Auth.LeaseDuration))
	return c.token, nil
}

func (c *Client) loginBody() (map[string]any, error) {
	switch c.config.Method {
	case MethodAppRole:
		if c.config.RoleID == "" || c.config.SecretID == "" {
			return nil, diag.Errorf("export VAULT_ROLE_ID=… VAULT_SECRET_ID=…", "there is no role id, or no secret id, to log in to Vault with")
		}
		return map[string]any{"role_id": c.config.RoleID, "secret_id": c.config.SecretID}, nil
	case MethodKubernetes, MethodJWT:
		if c.config.JWT == "" {
			return nil, diag.Errorf("jwtFile or jwtEnv under `vault:` in fleet.yaml says where it is",
				"there is no token of an identity provider to log in to Vault with")
		}
		return map[string]any{"role": c.config.Role, "jwt": c.config.JWT}, nil
	case MethodToken:
	}
	return nil, diag.Errorf("use token, approle, kubernetes or jwt", "%.40q is no way to log in to Vault", c.config.Method)
}

// withToken takes the token that was given, and asks when it ends.
func (c *Client) withToken(ctx context.Context, begin time.Time) (string, error) {
	token, err := c.givenToken()
	if err != nil {
		return "", err
	}
	if token == "" {
		return "", diag.Errorf("`vault login`, export VAULT_TOKEN=…, or say in `vault:` of the management cluster in fleet.yaml how to log in",
			"there is no token for Vault")
	}
	var got answer
	if err := c.send(ctx, http.MethodGet, "auth/token/lookup-self", token, nil, &got); err != nil {
		hint := ""
		if said, is := errors.AsType[*Error](err); is && !said.again() && said.Status < http.StatusInternalServerError {
			hint = "it may have expired (`vault login`), or be one that only unwraps a token (`vault unwrap`)"
		}
		return "", diag.Wrap("log in to Vault with the token", err, hint)
	}
	var about struct {
		TTL int64 `json:"ttl"`
	}
	if err := json.Unmarshal(got.Data, &about); err != nil {
		return "", diag.Errorf("check VAULT_ADDR", "log in to Vault with the token: the answer says nothing about it")
	}
	c.token, c.tokenEnd = token, nil
	c.endsAfter(begin, seconds(about.TTL))
	return c.token, nil
}

// givenToken returns the token that was given, as it is now.
func (c *Client) givenToken() (string, error) {
	if c.config.ReadToken != nil {
		return c.config.ReadToken()
	}
	return c.config.Token, nil
}

// replaced forgets the token of the login if there is another one in its place.
func (c *Client) replaced(token string) bool {
	if c.config.Method != MethodToken || c.config.ReadToken == nil {
		return false
	}
	now, err := c.config.ReadToken()
	if err != nil || now == "" || now == token {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.token = ""
	}
	return true
}

// endsAfter enters the end of the token; a duration of 0 is none.
func (c *Client) endsAfter(begin time.Time, duration time.Duration) {
	if duration > 0 {
		end := begin.Add(duration)
		c.tokenEnd = &end
	}
}
