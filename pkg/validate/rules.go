// Package validate finds the faults of a fleet repo that a reviewer does not see. It reads every file once, builds what Flux would build,
// checks every object against the schema of its kind, and checks the rules of the layout. It needs no cluster.
package validate

import (
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// The rules. A rule that also holds for fleet.yaml has the same name there.
const (
	RuleSyntax         = v1alpha1.RuleSyntax
	RuleLimit          = v1alpha1.RuleLimit
	RuleAPIVersion     = v1alpha1.RuleVersion
	RuleUnknownField   = v1alpha1.RuleUnknownField
	RuleDuplicateField = v1alpha1.RuleDuplicateField
	RuleType           = v1alpha1.RuleType
	RuleRequired       = v1alpha1.RuleRequired
	RuleValue          = v1alpha1.RuleValue
	RuleDuplicate      = v1alpha1.RuleDuplicate
	RuleUnused         = v1alpha1.RuleUnused
	RulePlainSecret    = v1alpha1.RulePlainSecret

	RuleSchemaRule     = "schema-rule"
	RuleMetadata       = "metadata"
	RuleDeprecated     = "deprecated-version"
	RuleUnknownKind    = "unknown-kind"
	RuleMissingCRDs    = "missing-crds"
	RuleController     = "missing-controller"
	RuleBadCRD         = "unusable-crd"
	RuleKustomize      = "kustomize-build"
	RuleHelm           = "helm-render"
	RuleVariable       = "variable"
	RulePatch          = "idle-patch"
	RuleForeign        = "foreign-source"
	RuleMissingChart   = "missing-chart"
	RuleChartName      = "chart-name"
	RuleMissingPath    = "missing-path"
	RuleMissingSource  = "missing-source"
	RuleMissingSecret  = "missing-secret"
	RuleMissingConfig  = "missing-configmap"
	RuleDecryption     = "not-decrypted"
	RuleMissingID      = "missing-identity"
	RuleIdentityNS     = "identity-namespace"
	RuleMissingNS      = "missing-namespace"
	RuleMissingObject  = "missing-object"
	RuleIdleSelector   = "idle-selector"
	RuleClusterRef     = "cluster-reference"
	RuleSkew           = "version-skew"
	RuleNetworks       = "network-overlap"
	RuleRefused        = "provider-refuses"
	RuleMissingNetwork = "missing-network"
	RuleMissingDepends = "missing-dependency"
	RuleDependsCycle   = "dependency-cycle"
	RuleClusterName    = "cluster-name"
	RuleDuplicateName  = "duplicate-cluster"
	RuleConflict       = "duplicate-object"
	RuleClusterFile    = "missing-cluster-file"
	RuleEnvironment    = "unknown-environment"
	RuleFolder         = "unknown-folder"
	RuleSameName       = "same-name"
	RuleCommit         = "commit-subject"
	RuleNotApplied     = "not-applied"
	RuleNothing        = "nothing-applied"
	RuleChannel        = "channel"
	RuleProduction     = "production-on-branch"
	RulePrune          = "prune-protection"
	RuleFleetTag       = "fleet-tag"
	RuleLock           = "stale-lock"
	RuleIgnore         = "bad-ignore"
	RuleIgnoreUnused   = "unused-ignore"
)

// rule is a rule, and the check that reports it.
type rule struct {
	ID       string
	Severity diag.Severity
	Summary  string
	// check reports faults by this rule in a judged fleet. It may report faults by other rules of the list as well, which then have no check
	// of their own. Rules that are reported while files are read, rendered and judged have none either.
	check func(r *run, j *judged) diag.Findings
}

// judged is a fleet that is rendered, and whose objects are checked against their schemas.
type judged struct {
	placed   *placement
	renderer *render.Renderer
	schemas  *schemas
	// objects are all objects. checked are the objects that fleet.yaml does not exclude.
	objects, checked []*object
	// secrets are the findings about secrets in files.
	secrets diag.Findings
}

// rules is the one list of rules, in the order of the documentation. It is a function because the checks in it look up their rules here.
func rules() []rule {
	return []rule{
		{ID: RuleSyntax, Severity: diag.SeverityError, Summary: "A YAML file can be read."},
		{ID: RuleLimit, Severity: diag.SeverityError, Summary: "A file has a sane size, its aliases expanded."},
		{ID: RuleDuplicateField, Severity: diag.SeverityError, Summary: "No field is given twice."},
		{ID: RuleUnknownField, Severity: diag.SeverityError, Summary: "Every field is one that the kind, the chart or fleet.yaml knows."},
		{ID: RuleType, Severity: diag.SeverityError, Summary: "Every value has the type of its field."},
		{ID: RuleRequired, Severity: diag.SeverityError, Summary: "Every required field exists."},
		{
			ID: RuleValue, Severity: diag.SeverityError, Summary: "Every value is one that its field takes.",
			check: func(r *run, _ *judged) diag.Findings { return r.checkProviders() },
		},
		{ID: RuleDuplicate, Severity: diag.SeverityError, Summary: "Names and keys of lists are there once."},
		{ID: RuleAPIVersion, Severity: diag.SeverityError, Summary: "The version of a kind is one that is served."},
		{ID: RuleSchemaRule, Severity: diag.SeverityError, Summary: "An object keeps the rules (CEL) of its CRD."},
		{ID: RuleMetadata, Severity: diag.SeverityError, Summary: "Names, labels and annotations are valid."},
		{ID: RuleDeprecated, Severity: diag.SeverityWarning, Summary: "No version of a kind is on its way out."},
		{
			ID: RuleUnknownKind, Severity: diag.SeverityWarning, Summary: "The schema of every kind is known.",
			check: func(r *run, j *judged) diag.Findings { return r.unknownKinds(j.schemas, j.checked) },
		},
		{ID: RuleMissingCRDs, Severity: diag.SeverityWarning, Summary: "The CRDs of every provider are available."},
		{
			ID: RuleController, Severity: diag.SeverityWarning,
			Summary: "Flux runs, with the controller of each kind, where an object of Flux is applied.",
			check: func(r *run, j *judged) diag.Findings {
				return append(r.checkControllers(j.schemas, j.checked), r.checkFluxless(j)...)
			},
		},
		{ID: RuleBadCRD, Severity: diag.SeverityError, Summary: "Every CRD is one that an API server would take."},
		{ID: RuleKustomize, Severity: diag.SeverityError, Summary: "Every folder that Flux applies builds."},
		{ID: RuleHelm, Severity: diag.SeverityError, Summary: "Every chart renders with the values of each cluster."},
		{ID: RuleVariable, Severity: diag.SeverityError, Summary: "Every variable that Flux fills in is known."},
		{ID: RulePatch, Severity: diag.SeverityWarning, Summary: "Every patch, image and replacement finds an object."},
		{
			ID: RuleForeign, Severity: diag.SeverityWarning, Summary: "Everything that Flux applies comes from this repo, and is checked.",
			check: func(r *run, _ *judged) diag.Findings { return r.checkSubmodules() },
		},
		{ID: RuleMissingChart, Severity: diag.SeverityError, Summary: "The chart of every HelmRelease exists."},
		{
			ID: RuleChartName, Severity: diag.SeverityError,
			Summary: "The HelmChart that clusters share has the name of their environment and flavour.",
		},
		{
			ID: RuleMissingPath, Severity: diag.SeverityError, Summary: "The path of every Flux Kustomization exists.",
			check: func(r *run, _ *judged) diag.Findings { return append(r.checkFolders(), r.checkEnabledFeatures()...) },
		},
		{
			ID: RuleMissingSource, Severity: diag.SeverityError, Summary: "Every source that is referred to exists.",
			check: func(r *run, j *judged) diag.Findings { return r.checkReferences(j.objects) },
		},
		{
			ID: RuleMissingSecret, Severity: diag.SeverityError,
			Summary: "Every Secret that is referred to is in the repo, or made by fleetctl or Cluster API.",
		},
		{ID: RuleMissingConfig, Severity: diag.SeverityError, Summary: "Every ConfigMap that is referred to exists."},
		{
			ID: RuleDecryption, Severity: diag.SeverityError, Summary: "Flux decrypts every encrypted object that it applies.",
			check: func(_ *run, j *judged) diag.Findings { return checkDecryption(j.objects) },
		},
		{ID: RuleMissingID, Severity: diag.SeverityError, Summary: "Every identity that a cluster refers to exists."},
		{ID: RuleIdentityNS, Severity: diag.SeverityError, Summary: "Every identity admits the namespace of each cluster that refers to it."},
		{
			ID: RuleMissingNS, Severity: diag.SeverityError,
			Summary: "The namespace of every object exists, and every object that needs a namespace has one.",
		},
		{
			ID: RuleMissingObject, Severity: diag.SeverityWarning,
			Summary: "Everything in its namespace that an object of Kubernetes names exists.",
			check:   func(r *run, j *judged) diag.Findings { return r.checkImageMarkers(j.objects) },
		},
		{ID: RuleIdleSelector, Severity: diag.SeverityWarning, Summary: "Every selector for pods, machines or clusters finds one."},
		{
			ID: RuleClusterRef, Severity: diag.SeverityError,
			Summary: "Every reference of a Cluster API object leads to an object that exists and fits.",
		},
		{
			ID: RuleSkew, Severity: diag.SeverityError, Summary: "The versions of Kubernetes of a cluster go together.",
			check: func(_ *run, j *judged) diag.Findings { return checkSkew(j.objects) },
		},
		{
			ID: RuleNetworks, Severity: diag.SeverityError, Summary: "The networks of a cluster have no addresses in common.",
			check: func(_ *run, j *judged) diag.Findings { return checkNetworks(j.objects) },
		},
		{
			ID: RuleRefused, Severity: diag.SeverityError,
			Summary: "The webhooks and controllers of a provider take every object that its CRDs take.",
			check:   func(r *run, j *judged) diag.Findings { return checkRefusedTogether(r, j.objects) },
		},
		{ID: RuleMissingNetwork, Severity: diag.SeverityError, Summary: "The network that a chart names for its clusters exists."},
		{ID: RuleMissingDepends, Severity: diag.SeverityError, Summary: "Every dependency exists."},
		{ID: RuleDependsCycle, Severity: diag.SeverityError, Summary: "Nothing depends on itself in the end."},
		{ID: RuleClusterName, Severity: diag.SeverityError, Summary: "A cluster's folder, HelmRelease, release and namespace have one name."},
		{
			ID: RuleDuplicateName, Severity: diag.SeverityError,
			Summary: "No two clusters of a management cluster, or of an environment, have one name.",
		},
		{
			ID: RuleConflict, Severity: diag.SeverityError, Summary: "No object is made by two Flux objects of one cluster.",
			check: func(r *run, _ *judged) diag.Findings { return r.checkReleaseNames() },
		},
		{ID: RuleClusterFile, Severity: diag.SeverityError, Summary: "Every folder of a cluster has a cluster.yaml that declares it."},
		{ID: RuleEnvironment, Severity: diag.SeverityError, Summary: "Every cluster is in an environment of fleet.yaml."},
		{ID: RuleFolder, Severity: diag.SeverityWarning, Summary: "Every folder is one of the layout."},
		{
			ID: RuleSameName, Severity: diag.SeverityError,
			Summary: "No two names in a folder are the same on macOS or Windows.",
		},
		{
			ID: RuleCommit, Severity: diag.SeverityError,
			Summary: "The first line of every new commit follows the convention of the fleet.",
		},
		{
			ID: RuleNotApplied, Severity: diag.SeverityError,
			Summary: "Every environment with clusters, and every file of the layout, is applied by Flux.",
			check:   func(r *run, j *judged) diag.Findings { return r.checkUnapplied(j.renderer, j.placed) },
		},
		{
			ID: RuleNothing, Severity: diag.SeverityError, Summary: "Something is applied, and could be checked.",
			check: func(r *run, j *judged) diag.Findings { return r.checkAnything(j.renderer, j.checked) },
		},
		{
			ID: RuleChannel, Severity: diag.SeverityError, Summary: "Everything of an environment follows the channel of the environment.",
			check: func(r *run, j *judged) diag.Findings { return r.checkChannels(j.objects, j.placed.clusters) },
		},
		{ID: RuleProduction, Severity: diag.SeverityError, Summary: "Production is never on a branch."},
		{
			ID: RulePlainSecret, Severity: diag.SeverityError, Summary: "No secret is in clear.",
			check: func(r *run, j *judged) diag.Findings { return r.checkAppliedSecrets(j.objects, j.secrets) },
		},
		{
			ID: RulePrune, Severity: diag.SeverityError, Summary: "Every cluster has prune protection.",
			check: func(r *run, j *judged) diag.Findings { return r.checkProtection(j.objects, j.placed.clusters) },
		},
		{
			ID: RuleFleetTag, Severity: diag.SeverityError, Summary: "No cluster is tagged as another fleet's.",
			check: func(r *run, j *judged) diag.Findings { return r.checkFleetTags(j.objects) },
		},
		{
			ID: RuleLock, Severity: diag.SeverityWarning, Summary: "fleet.lock knows what fleet.yaml and features name.",
			check: func(r *run, _ *judged) diag.Findings { return r.checkLock() },
		},
		{ID: RuleUnused, Severity: diag.SeverityWarning, Summary: "Every setting of fleet.yaml has an effect."},
		{ID: RuleIgnore, Severity: diag.SeverityError, Summary: "A comment that silences a rule names an existing rule, and says why."},
		{ID: RuleIgnoreUnused, Severity: diag.SeverityWarning, Summary: "A comment that silences a rule is needed."},
	}
}

// Rules returns all rules, in the order of the documentation.
func Rules() []diag.Rule {
	var out []diag.Rule
	for _, r := range rules() {
		out = append(out, diag.Rule{ID: r.ID, Severity: r.Severity, Summary: r.Summary})
	}
	return out
}

// severities has the severity of each rule, from rules. severityIn reads it on first use, because an initializer that calls rules would
// depend on itself through the checks.
var severities struct {
	once sync.Once
	of   map[string]diag.Severity
}

// severityIn returns the severity of a rule, and false for a name that is not a rule's.
func severityIn(id string) (diag.Severity, bool) {
	severities.once.Do(func() {
		severities.of = map[string]diag.Severity{}
		for _, r := range rules() {
			severities.of[r.ID] = r.Severity
		}
	})
	s, known := severities.of[id]
	return s, known
}

func isRule(id string) bool {
	_, known := severityIn(id)
	return known
}

// severityOf is the severity of a rule.
func severityOf(id string) diag.Severity {
	if s, known := severityIn(id); known {
		return s
	}
	return diag.SeverityError
}

func ruleIDs() []string {
	var out []string
	for _, r := range rules() {
		out = append(out, r.ID)
	}
	return out
}

// finding returns a finding with the severity of its rule.
func finding(rule, file string, line, column int, summary, hint string) diag.Finding {
	return diag.Finding{Severity: severityOf(rule), Rule: rule, File: file, Line: line, Column: column, Summary: summary, Hint: hint}
}
