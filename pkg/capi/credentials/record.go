// Package credentials records which values the providers of a management cluster were given for their variables: where each value came
// from, when it expires, and a fingerprint of it. The record is a Secret on the management cluster. It never contains a value.
package credentials

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Key is the Secret with the record of a management cluster.
var Key = kube.Key{Namespace: "fleetctl-system", Name: "fleetctl-credentials"}

const (
	recordField = "record"
	keyField    = "key"
	// maxConflicts bounds the attempts to write a record that somebody else changes at the same time.
	maxConflicts = 5
)

// Origin is the source of a variable's value. It never contains the value.
type Origin struct {
	// Source describes the source for people: "environment variable AWS_B64ENCODED_CREDENTIALS".
	Source string `json:"source,omitempty"`
	// Until is the time at which the value expires; nil if no expiry is known.
	Until *time.Time `json:"until,omitempty"`
	// Lease is Vault's ID of the value's lease. Asked is the duration that fleetctl requested. Renewable tells whether the lease can be
	// extended.
	Lease     string `json:"lease,omitempty"`
	Asked     string `json:"asked,omitempty"`
	Renewable bool   `json:"renewable,omitempty"`
	// Duration is the duration of the lease that Vault has granted.
	Duration time.Duration `json:"duration,omitempty"`
}

// Value describes the value of a provider's variable on the cluster. It does not contain the value.
type Value struct {
	Origin
	// Since is the time at which the variable got this value.
	Since time.Time `json:"since"`
	// Secret tells whether a Secret of the provider has the value.
	Secret bool `json:"secret,omitempty"`
	// Fingerprint is a keyed hash of the value. Without the record's key it reveals nothing about the value.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Provider describes the values of one provider's variables.
type Provider struct {
	// Variables are the variables of the provider by name.
	Variables map[string]Value `json:"variables"`
	// Restart are the Deployments that must be restarted, because they still run with former values.
	Restart []string `json:"restart,omitempty"`
}

// Record is the record of the values that the providers of a management cluster were given, by the label of the provider.
type Record struct {
	FormatVersion string               `json:"formatVersion"`
	Providers     map[string]*Provider `json:"providers"`

	key     []byte
	version string // resource version of the Secret; "" if the Secret does not exist
}

// Read returns the record in the cluster. The record is empty if the cluster has none. It returns an error if the API server does not
// answer, or if this fleetctl does not know the format of the record.
func Read(ctx context.Context, client *kube.Client) (*Record, error) {
	record := &Record{FormatVersion: "1", Providers: map[string]*Provider{}}
	secret := &corev1.Secret{}
	if err := client.Get(ctx, Key, secret); err != nil {
		if kube.IsAbsent(err) {
			return record, nil
		}
		return nil, fmt.Errorf("read which values the providers were given: %w", err)
	}
	record.version, record.key = secret.ResourceVersion, secret.Data[keyField]
	if err := json.Unmarshal(secret.Data[recordField], record); err != nil || record.FormatVersion != "1" {
		return nil, diag.Errorf("a newer fleetctl may have written it: use that; or delete the Secret: the next `fleetctl init` makes it again",
			"read which values the providers were given: this fleetctl cannot read the Secret %s", Key)
	}
	for label, p := range record.Providers {
		if p == nil {
			delete(record.Providers, label)
		}
	}
	if record.Providers == nil {
		record.Providers = map[string]*Provider{}
	}
	return record, nil
}

// fingerprint returns the keyed hash of a variable's value.
func (r *Record) fingerprint(name, value string) string {
	sum := hmac.New(sha256.New, r.key)
	_, _ = fmt.Fprintf(sum, "%d:%s%s", len(name), name, value) // writing to a hash does not fail
	return hex.EncodeToString(sum.Sum(nil))
}

// Dropped returns the variables in named that have a recorded value of the provider with the label, but none in given.
func (r *Record) Dropped(label string, named map[string]*string, given map[string]string) []string {
	known := r.Providers[label]
	if known == nil {
		return nil
	}
	var names []string
	for name := range known.Variables {
		_, isNamed := named[name]
		if _, isGiven := given[name]; isNamed && !isGiven {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Changed returns the variables whose value in given differs from the recorded value of the provider with the label. known is false if
// nothing is recorded for the provider.
func (r *Record) Changed(label string, given map[string]string) (names []string, known bool) {
	there := r.Providers[label]
	if there == nil {
		return nil, false
	}
	for name, value := range given {
		if was, ok := there.Variables[name]; !ok || was.Fingerprint != r.fingerprint(name, value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, true
}

// Give records the values of the provider with the label. It keeps the recorded values of variables that are not in given.
func (r *Record) Give(label string, given map[string]string, secret func(name string) bool, origins map[string]Origin, now time.Time) {
	before := r.Providers[label]
	now = now.UTC().Truncate(time.Second)
	after := &Provider{Variables: map[string]Value{}}
	if before != nil {
		for name, v := range before.Variables {
			if origin, ok := origins[name]; ok { // the value is kept, but its lease may be renewed
				v.Origin = origin
			}
			after.Variables[name] = v
		}
	}
	for name, value := range given {
		v := Value{Origin: origins[name], Since: now, Secret: secret(name), Fingerprint: r.fingerprint(name, value)}
		if before != nil {
			if was, ok := before.Variables[name]; ok && was.Fingerprint == v.Fingerprint {
				v.Since = was.Since
			}
		}
		after.Variables[name] = v
	}
	r.Providers[label] = after
}

// Change reads the record in the cluster, changes it, and writes it if it differs. If somebody else changes the record at the same time, it
// begins again, at most maxConflicts times.
func Change(ctx context.Context, client *kube.Client, change func(*Record)) error {
	var err error
	for range maxConflicts {
		var record *Record
		if record, err = Read(ctx, client); err != nil {
			return err
		}
		before := maps.Clone(record.Providers)
		for label, p := range before {
			before[label] = p.clone()
		}
		if len(record.key) == 0 {
			record.key = make([]byte, sha256.Size)
			if _, err := rand.Read(record.key); err != nil {
				return err
			}
		}
		change(record)
		if reflect.DeepEqual(before, record.Providers) {
			return nil
		}
		if err = record.write(ctx, client); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("record which values the providers were given: %w", err)
	}
	return nil
}

func (p *Provider) clone() *Provider {
	other := *p
	other.Variables, other.Restart = maps.Clone(p.Variables), slices.Clone(p.Restart)
	return &other
}

// write creates or updates the Secret. It fails if the Secret has changed since the record was read.
func (r *Record) write(ctx context.Context, client *kube.Client) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Key.Namespace}}
	if err := client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Key.Namespace, Name: Key.Name, ResourceVersion: r.version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string][]byte{recordField: content, keyField: r.key},
	}
	if r.version == "" {
		return client.Create(ctx, secret)
	}
	return client.Update(ctx, secret)
}
