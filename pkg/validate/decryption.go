package validate

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// ownerKey identifies the Kustomizations that may own an object, on all clusters of a management cluster.
type ownerKey struct{ managementCluster, namespace, name string }

// checkDecryption reports objects that SOPS has encrypted, below a Kustomization that does not decrypt. For a Secret, kustomize-controller
// then refuses everything that the Kustomization applies; it would apply other objects with the encrypted values. Source: the function
// apply of the controller.
func checkDecryption(all []*object) diag.Findings {
	var encrypted []*object
	decrypts, declared := map[ownerKey]bool{}, map[ownerKey]*object{}
	for _, o := range all {
		if o.IsKustomization() {
			key := ownerKey{o.ManagementCluster, o.Namespace, o.Name}
			declared[key] = o
			if o.decrypts() {
				decrypts[key] = true
			}
		} else if o.Template == "" && o.Owner.Kind == render.KindKustomization && o.isEncrypted() {
			encrypted = append(encrypted, o)
		}
	}
	var out diag.Findings
	for _, o := range encrypted {
		key := ownerKey{o.ManagementCluster, o.Owner.Namespace, o.Owner.Name}
		owner := declared[key]
		if owner == nil || decrypts[key] {
			continue
		}
		out = append(out, o.at("sops", RuleDecryption, "it is encrypted, and the "+o.Owner.String()+" that applies it does not decrypt: "+
			"Flux applies nothing of that folder", owner.decryptionHint()))
	}
	return out
}

// decryptionHint says how objects of a Kustomization get decrypted. Only the management cluster has the key of the fleet.
func (o *object) decryptionHint() string {
	if len(o.Targets) > 0 {
		return "a workload cluster's own Flux has no key: put the Secret into common/sync of the environment, which the management cluster " +
			"decrypts; or give the clusters a key of their own, see docs/tasks/secrets.md"
	}
	return "add `decryption: {provider: sops}` to spec in " + o.Source.File
}

// decrypts tells whether a Kustomization has settings to decrypt.
func (o *object) decrypts() bool {
	var k struct {
		Spec struct {
			Decryption json.RawMessage `json:"decryption"`
		} `json:"spec"`
	}
	return json.Unmarshal(o.JSON, &k) != nil || len(k.Spec.Decryption) > 0 && string(k.Spec.Decryption) != "null"
}

// isEncrypted tells whether SOPS has encrypted an object, and the object does not say that Flux leaves it so.
func (o *object) isEncrypted() bool {
	if !bytes.Contains(o.JSON, []byte(`"sops"`)) {
		return false
	}
	var secret struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		SOPS map[string]any `json:"sops"`
	}
	return json.Unmarshal(o.JSON, &secret) == nil && len(secret.SOPS) > 0 &&
		!strings.EqualFold(secret.Metadata.Annotations["kustomize.toolkit.fluxcd.io/decrypt"], "disabled")
}
