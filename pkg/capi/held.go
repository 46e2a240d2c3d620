package capi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// HeldKey is the Secret with the management cluster's record of its providers' values. The record does not contain the values.
var HeldKey = kube.Key{Namespace: "fleetctl-system", Name: "fleetctl-credentials"}

const (
	heldField = "record"
	heldKey   = "key"
	// maxUnheld bounds the attempts to write a record that somebody else changes at the same time.
	maxUnheld = 5
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

// HeldValue describes the value of a provider's variable on the cluster. It does not contain the value.
type HeldValue struct {
	Origin
	// Since is the time at which the variable got this value.
	Since time.Time `json:"since"`
	// Secret tells whether a Secret of the provider has the value.
	Secret bool `json:"secret,omitempty"`
	// Fingerprint is a keyed hash of the value. Without the record's key it reveals nothing about the value.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// HeldProvider describes the values of one provider's variables.
type HeldProvider struct {
	// Variables are the variables of the provider by name.
	Variables map[string]HeldValue `json:"variables"`
	// Restart are the Deployments that must be restarted, because they still run with former values.
	Restart []string `json:"restart,omitempty"`
}

// Held is the record of the values that the providers of a management cluster were given, by the label of the provider.
type Held struct {
	FormatVersion string                   `json:"formatVersion"`
	Providers     map[string]*HeldProvider `json:"providers"`

	key     []byte
	version string // resource version of the Secret; "" if the Secret does not exist
}

// Held returns the record in the cluster. The record is empty if the cluster has none. It returns an error if the API server does not
// answer, or if this fleetctl does not know the format of the record.
func (m *Manager) Held(ctx context.Context) (*Held, error) {
	held := &Held{FormatVersion: "1", Providers: map[string]*HeldProvider{}}
	secret := &corev1.Secret{}
	if err := m.kube.Get(ctx, HeldKey, secret); err != nil {
		if kube.IsAbsent(err) {
			return held, nil
		}
		return nil, fmt.Errorf("read which values the providers were given: %w", err)
	}
	held.version, held.key = secret.ResourceVersion, secret.Data[heldKey]
	if err := json.Unmarshal(secret.Data[heldField], held); err != nil || held.FormatVersion != "1" {
		return nil, diag.Errorf("a newer fleetctl may have written it: use that; or delete the Secret: the next `fleetctl init` makes it again",
			"read which values the providers were given: this fleetctl cannot read the Secret %s", HeldKey)
	}
	for label, p := range held.Providers {
		if p == nil {
			delete(held.Providers, label)
		}
	}
	if held.Providers == nil {
		held.Providers = map[string]*HeldProvider{}
	}
	return held, nil
}

// fingerprint returns the keyed hash of a variable's value.
func (h *Held) fingerprint(name, value string) string {
	sum := hmac.New(sha256.New, h.key)
	_, _ = fmt.Fprintf(sum, "%d:%s%s", len(name), name, value) // writing to a hash does not fail
	return hex.EncodeToString(sum.Sum(nil))
}

// dropped returns the variables that p still names, and that have a recorded value but none in given.
func (h *Held) dropped(p releases.Provider, named map[string]*string, given map[string]string) []string {
	known := h.Providers[p.Label()]
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

// changed returns the variables of p whose value in given differs from the recorded one. known is false if nothing is recorded for p.
func (h *Held) changed(p releases.Provider, given map[string]string) (names []string, known bool) {
	there := h.Providers[p.Label()]
	if there == nil {
		return nil, false
	}
	for name, value := range given {
		if was, ok := there.Variables[name]; !ok || was.Fingerprint != h.fingerprint(name, value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, true
}

// give records the values of p. It keeps the recorded values of variables that are not in given.
func (h *Held) give(p releases.Provider, given map[string]string, secret func(name string) bool, origins map[string]Origin, now time.Time) {
	before := h.Providers[p.Label()]
	now = now.UTC().Truncate(time.Second)
	after := &HeldProvider{Variables: map[string]HeldValue{}}
	if before != nil {
		for name, v := range before.Variables {
			if origin, ok := origins[name]; ok { // the value is kept, but its lease may be renewed
				v.Origin = origin
			}
			after.Variables[name] = v
		}
	}
	for name, value := range given {
		v := HeldValue{Origin: origins[name], Since: now, Secret: secret(name), Fingerprint: h.fingerprint(name, value)}
		if before != nil {
			if was, ok := before.Variables[name]; ok && was.Fingerprint == v.Fingerprint {
				v.Since = was.Since
			}
		}
		after.Variables[name] = v
	}
	h.Providers[p.Label()] = after
}

// changeHeld reads the record, changes it, and writes it if it differs. If somebody else changes the record at the same time, it begins
// again, at most maxUnheld times.
func (m *Manager) changeHeld(ctx context.Context, change func(*Held)) error {
	var err error
	for range maxUnheld {
		var held *Held
		if held, err = m.Held(ctx); err != nil {
			return err
		}
		before := maps.Clone(held.Providers)
		for label, p := range before {
			before[label] = p.clone()
		}
		if len(held.key) == 0 {
			held.key = make([]byte, sha256.Size)
			if _, err := rand.Read(held.key); err != nil {
				return err
			}
		}
		change(held)
		if reflect.DeepEqual(before, held.Providers) {
			return nil
		}
		if err = m.writeHeld(ctx, held); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("record which values the providers were given: %w", err)
	}
	return nil
}

func (p *HeldProvider) clone() *HeldProvider {
	other := *p
	other.Variables, other.Restart = maps.Clone(p.Variables), slices.Clone(p.Restart)
	return &other
}

func (m *Manager) writeHeld(ctx context.Context, held *Held) error {
	content, err := json.Marshal(held)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: HeldKey.Namespace}}
	if err := m.kube.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: HeldKey.Namespace, Name: HeldKey.Name, ResourceVersion: held.version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string][]byte{heldField: content, heldKey: held.key},
	}
	if held.version == "" {
		return m.kube.Create(ctx, secret)
	}
	return m.kube.Update(ctx, secret)
}

// EndOf returns the time at which a value expires, and false if the value does not tell. It reads the exp of a JSON web token, and the
// Expiration in the output of a credential command of AWS (credential_process) or Kubernetes (ExecCredential), also in base64.
func EndOf(value string) (time.Time, bool) {
	if end, ok := endOfText([]byte(value)); ok {
		return end, true
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return time.Time{}, false
	}
	return endOfText(decoded)
}

func endOfText(text []byte) (time.Time, bool) {
	var said struct {
		Expiration          time.Time `json:"Expiration"` //nolint:tagliatelle // AWS's name
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		Status              struct {
			ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	if json.Unmarshal(text, &said) == nil {
		for _, end := range []time.Time{said.Expiration, said.ExpirationTimestamp, said.Status.ExpirationTimestamp} {
			if !end.IsZero() {
				return end.UTC(), true
			}
		}
	}
	end, err := endOfToken(string(text))
	return end, err == nil
}

var errNoToken = errors.New("no token with an expiry")

func endOfToken(text string) (time.Time, error) {
	parts := splitToken(text)
	if parts == nil {
		return time.Time{}, errNoToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, err
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return time.Time{}, err
	}
	if claims.Exp <= 0 || claims.Exp > 1<<40 {
		return time.Time{}, errNoToken
	}
	return time.Unix(int64(claims.Exp), 0).UTC(), nil
}

// splitToken returns the three parts of a JSON web token, or nil.
func splitToken(text string) []string {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "eyJ") {
		return nil
	}
	return parts
}
