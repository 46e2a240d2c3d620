package fromvault

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/variables"
	"github.com/fleetctl/fleetctl/pkg/vault"
)

// giveBackTimeout bounds how long a command waits at its end for Vault to take everything back.
const giveBackTimeout = 30 * time.Second

// Reader reads values from Vault for one run of a command that uses the values only itself. It reads each secret once, and GiveBack
// returns what is leased. One goroutine at a time may use it.
type Reader struct {
	dir       string
	lookupEnv func(string) (string, bool)
	logins    []*login
}

// login is what was read with one way to log in.
type login struct {
	how     v1alpha1.Vault
	client  *vault.Client
	secrets map[string]*vault.Secret
}

// NewReader returns a Reader for the fleet repo in dir. It finds the server and the secrets of the login with lookupEnv. It asks nothing
// yet.
func NewReader(dir string, lookupEnv func(string) (string, bool)) *Reader {
	return &Reader{dir: dir, lookupEnv: lookupEnv}
}

// Value reads the value of v, a variable of Vault, as the provider's components want it. how says how to log in. leased tells that Vault
// has made the secret for this command alone. An error never contains a value.
func (r *Reader) Value(ctx context.Context, how v1alpha1.Vault, v v1alpha1.Variable) (value string, leased bool, _ error) {
	l, err := r.login(how)
	if err != nil {
		return "", false, err
	}
	secret := l.secrets[v.Vault.Path]
	if secret == nil {
		if secret, err = l.client.Read(ctx, v.Vault.Path); err != nil {
			return "", false, err
		}
		l.secrets[v.Vault.Path] = secret
	}
	if value, err = valueOf(secret, v.Vault); err == nil {
		err = variables.Check(v, value)
	}
	if err != nil {
		return "", false, err
	}
	return variables.Encoded(v, value), secret.Lease != "", nil
}

func (r *Reader) login(how v1alpha1.Vault) (*login, error) {
	i := slices.IndexFunc(r.logins, func(l *login) bool { return l.how == how })
	if i >= 0 {
		return r.logins[i], nil
	}
	client, err := connect(how, r.dir, r.lookupEnv)
	if err != nil {
		return nil, err
	}
	l := &login{how: how, client: client, secrets: map[string]*vault.Secret{}}
	r.logins = append(r.logins, l)
	return l, nil
}

// GiveBack revokes the leases of all that was read, and the tokens of the logins. It works after the end of ctx, too: an interrupted
// command must not leave a credential behind. An error tells that something ends only with its own time.
func (r *Reader) GiveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	var problems []error
	for _, l := range r.logins {
		var leases []string
		for _, secret := range l.secrets {
			if secret.Lease != "" {
				leases = append(leases, secret.Lease)
			}
		}
		slices.Sort(leases)
		problems = append(problems, l.client.GiveBack(ctx, leases...))
	}
	r.logins = nil
	return diag.Wrap("", errors.Join(problems...), "")
}
