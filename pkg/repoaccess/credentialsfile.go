package repoaccess

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// managedAnnotation marks credentials that init keeps up to date. Who takes it off keeps their own.
const managedAnnotation = "fleetctl.dev/managed"

// CredentialsFile is the encrypted file with what the workload clusters of an environment read the fleet repo with.
type CredentialsFile struct {
	Name string
	// raw is what stands there, plain what it says in clear. Both are nil where there is none, or one that nobody here can read: the key was
	// lost.
	raw, Plain []byte
}

// ReadCredentialsFile reads and decrypts the file of the repo with the credentials of workload clusters. One that is not there, or that
// nobody here can read, has no content.
func ReadCredentialsFile(root, name string, keys secret.Keys) (*CredentialsFile, error) {
	raw, err := within.ReadFile(root, name, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &CredentialsFile{Name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := secret.Decrypt(raw, keys)
	if errors.Is(err, secret.ErrNoKey) {
		return &CredentialsFile{Name: name}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &CredentialsFile{Name: name, raw: raw, Plain: plain}, nil
}

// managed tells whether init keeps it up to date. Somebody's own is left alone.
func (f *CredentialsFile) managed() bool { return bytes.Contains(f.Plain, []byte(managedAnnotation)) }

// secret is the Secret in it. No error quotes it.
func (f *CredentialsFile) secret() (*corev1.Secret, error) {
	object := &corev1.Secret{}
	if err := yaml.Unmarshal(f.Plain, object); err != nil {
		return nil, diag.Errorf("`"+diag.ShellCommand("fleetctl", "secret", "edit", f.Name)+"` corrects it", "%s does not hold a Secret", f.Name)
	}
	return object, nil
}

// Renewed returns the encrypted file with the credentials. It returns nil if the present file has the same credentials, or if fleetctl does
// not manage it.
func (f *CredentialsFile) Renewed(credentials []byte, rule secret.Rule, keys secret.Keys) ([]byte, error) {
	switch {
	case f.Plain == nil:
		return secret.Encrypt(credentials, rule)
	case bytes.Equal(f.Plain, credentials) || !f.managed():
		return nil, nil
	}
	return secret.Update(f.raw, credentials, keys)
}

// WorkloadCredentials returns the Secret, in clear, with which the workload clusters of an environment read the fleet repo; nil if they get
// none. Flux's own token in the file wins over kept, the token that is kept elsewhere.
func (a *Access) WorkloadCredentials(file *CredentialsFile, kept *Token) ([]byte, error) {
	there, err := TokenInFile(a.Session, file)
	if err != nil {
		return nil, err
	}
	if there != nil && there.Own {
		kept = there
	}
	credentials, err := a.workloadSecret(kept)
	if err != nil || credentials == nil {
		return nil, err
	}
	if credentials.Annotations == nil {
		credentials.Annotations = map[string]string{}
	}
	credentials.Annotations[managedAnnotation] = "true"
	credentials.Annotations["kustomize.toolkit.fluxcd.io/substitute"] = "disabled" // nothing in it is a variable of Flux
	content, err := yaml.Marshal(credentials)
	if err != nil {
		return nil, errors.New("the credentials of the fleet repo cannot be encoded")
	}
	return content, nil
}
