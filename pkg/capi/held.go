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

// HeldKey is the Secret in which a management cluster keeps which values its providers were given, without the values.
var HeldKey = kube.Key{Namespace: "fleetctl-system", Name: "fleetctl-credentials"}

const (
	heldField = "record"
	heldKey   = "key"
	// maxUnheld bounds how often a record that somebody else has changed meanwhile is read again.
	maxUnheld = 5
)

// Origin says where the value of a variable comes from. It never holds the value.
type Origin struct {
	// Source is for people: "environment variable AWS_B64ENCODED_CREDENTIALS".
	Source string `json:"source,omitempty"`
	// Until is the time at which the value expires; nil if no expiry is known.
	Until *time.Time `json:"until,omitempty"`
	// Lease is Vault's ID of the value's lease. Asked is the duration that fleetctl has asked for. Renewable tells whether the lease can be
	// extended.
	Lease     string `json:"lease,omitempty"`
	Asked     string `json:"asked,omitempty"`
	Renewable bool   `json:"renewable,omitempty"`
	// Duration of the lease, as Vault has granted it.
	Duration time.Duration `json:"duration,omitempty"`
}

// HeldValue describes the value of a provider's variable on the cluster, without the value.
type HeldValue struct {
	Origin
	// Since is the time at which the variable got this value.
	Since time.Time `json:"since"`
	// Secret tells whether a Secret of the provider has the value.
	Secret bool `json:"secret,omitempty"`
	// Fingerprint is a keyed hash of the value. Without the record's key, it tells nothing about the value.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// HeldProvider describes the values that one provider was given.
type HeldProvider struct {
	// Variables of the provider, by name.
	Variables map[string]HeldValue `json:"variables"`
	// Restart are the Deployments that have to be restarted, because they still run with former values.
	Restart []string `json:"restart,omitempty"`
}

// Held records the values that a management cluster's providers were given, by the label of the provider.
type Held struct {
	FormatVersion string                   `json:"formatVersion"`
	Providers     map[string]*HeldProvider `json:"providers"`

	key     []byte
	version string // resource version of the Secret; "" if the Secret does not exist
}

// Held reads the record from the cluster. The record is empty if the cluster has none. Errors: the API server does not answer, or the
// record is not in a format that this fleetctl knows.
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
		return nil, diag.Errorf("a newer fleetctl may have written it; else delete the Secret: the next `fleetctl init` makes it anew",
			"read which values the providers were given: Secret %s is none that this fleetctl can read", HeldKey)
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
	_, _ = fmt.Fprintf(sum, "%d:%s%s", len(name), name, value) // a hash takes all
	return hex.EncodeToString(sum.Sum(nil))
}

// dropped returns the variables of p that have a recorded value and none in given, although p still names them.
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

// changed returns the variables of p whose value in given is not the recorded one. known is false if nothing is recorded for p.
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

// give records the values of p. Recorded values of variables that are not in given stay.
func (h *Held) give(p releases.Provider, given map[string]string, secret func(name string) bool, origins map[string]Origin, now time.Time) {
	before := h.Providers[p.Label()]
	now = now.UTC().Truncate(time.Second)
	after := &HeldProvider{Variables: map[string]HeldValue{}}
	if before != nil {
		for name, v := range before.Variables {
			if origin, ok := origins[name]; ok { // kept, and renewed perhaps
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

// changeHeld reads the record, changes it, and writes it if it differs. If somebody else has changed the record meanwhile, changeHeld
// begins again, at most maxUnheld times.
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
		return fmt.Errorf("keep which values the providers were given: %w", err)
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

// EndOf is the time at which a value expires, if the value itself says so: the exp of a JSON web token, or the Expiration in the output of
// a credential command of AWS (credential_process) or Kubernetes (ExecCredential), also in base64.
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

var errNoToken = errors.New("no token with an end")

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

// splitToken gives the three parts of a JSON web token, or nil.
func splitToken(text string) []string {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "eyJ") {
		return nil
	}
	return parts
}
