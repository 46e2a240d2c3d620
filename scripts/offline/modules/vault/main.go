// Program vault is a real Vault for tests: its core and its HTTP API on a free port of this machine, with storage in memory.
//
// The first line on standard output is JSON: where it answers, and its root token. It ends when its standard input does, so that it never
// outlives the test that started it, however that ends.
//
// Vault is under the Business Source License. Its use in tests is allowed. This program is in no bundle and no release, and must not be put
// there.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/hashicorp/go-hclog"
	jwt "github.com/hashicorp/vault-plugin-auth-jwt"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/aws"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// builtin are the plugins that are a part of this program, which Vault looks for when it mounts one.
type builtin map[consts.PluginType]map[string]logical.Factory

func (b builtin) Contains(name string, kind consts.PluginType) bool { return b[kind][name] != nil }

func (b builtin) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := b[kind][name]
	return func() (any, error) { return factory, nil }, ok
}

func (b builtin) Keys(kind consts.PluginType) []string { return slices.Sorted(maps.Keys(b[kind])) }

func (b builtin) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}

func (b builtin) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func run(ctx context.Context) error {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	engines := map[string]logical.Factory{"kv": kv.Factory, "aws": aws.Factory}
	logins := map[string]logical.Factory{"approle": approle.Factory, "jwt": jwt.Factory}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, Logger: logger, DisableMlock: true, LogicalBackends: engines, CredentialBackends: logins,
		BuiltinRegistry: builtin{consts.PluginTypeSecrets: engines, consts.PluginTypeCredential: logins},
	})
	if err != nil {
		return err
	}
	keys, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}})
	if err != nil {
		return err
	}
	if _, err := core.Unseal(keys.SecretShares[0]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
		Core: core, ListenerConfig: &configutil.Listener{Address: listener.Addr().String()},
	})}
	go func() { _ = server.Serve(listener) }() // until the program ends
	about, err := json.Marshal(map[string]string{"address": "http://" + listener.Addr().String(), "token": keys.RootToken})
	if err != nil {
		return err
	}
	fmt.Println(string(about))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
