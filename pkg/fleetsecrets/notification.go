package fleetsecrets

import (
	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddNotification returns the edit that adds a notification. With a value, the same commit has the notification's encrypted Secret, for
// each management cluster that sends the notification: under address for messages, under token for the status of commits.
func AddNotification(dir string, n v1alpha1.Notification, value []byte) (func(r *fleetrepo.Repo) (*fleetrepo.Edit, error), error) {
	if value == nil {
		return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.AddNotification(n) }, nil
	}
	n.Secret = scaffold.NotificationSecret(n.Name)
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		return nil, err
	}
	if _, err := repo.AddNotification(n); err != nil {
		return nil, err
	}
	files, err := repo.NotificationSecretFiles(&n)
	if err != nil {
		return nil, err
	}
	key := "address"
	if n.Type.IsCommitStatus() {
		key = "token"
	}
	made := &New{Name: n.Secret, Namespace: "flux-system", Type: "Opaque", Data: map[string][]byte{key: value}}
	secrets := map[string]func(r *fleetrepo.Repo) (*fleetrepo.Edit, error){}
	for _, file := range files {
		if secrets[file], err = Encrypt(Options{Dir: repo.Dir, File: file}, made); err != nil {
			return nil, err
		}
	}
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		e, err := r.AddNotification(n)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			encrypted, err := secrets[file](r)
			if err != nil {
				return nil, err
			}
			e.Changes.Write(encrypted.Changes.Files()...) // encrypted: anybody may read the difference
			if err := r.EnlistNotificationSecret(e, file); err != nil {
				return nil, err
			}
		}
		return e, nil
	}, nil
}
