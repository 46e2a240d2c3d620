package pivot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// end is the last step of the pivot. After it, no run has to go on with the pivot.
func (p *Move) end(
	ctx context.Context, target *Target, m *resolve.Manifests, endpoint *repoaccess.Endpoint, pushed *following.Pushed, detail func(string),
) error {
	err := p.withdraw(ctx, target, m, endpoint, pushed, detail)
	if _, nothing := errors.AsType[steps.NothingToDo](err); err != nil && !nothing {
		return err
	}
	if failed := removeKept(p.session.Cluster); failed != nil {
		return failed
	}
	return err
}

// withdraw takes the credentials off the target that only the source needed: those of providers that run on machines of their own cloud
// now, where the cloud gives the machines an identity. It keeps a credential without which the provider does not reach the cloud. The work
// has changed hands already, so nothing here fails the pivot.
func (p *Move) withdraw(
	ctx context.Context, target *Target, m *resolve.Manifests, endpoint *repoaccess.Endpoint, pushed *following.Pushed, detail func(string),
) error {
	if p.KeepCredentials {
		return steps.NothingToDo("the credentials are to stay")
	}
	p.tellStaying(ctx, target, m.Versions)
	held := replaceable(m.Versions)
	if len(held) == 0 {
		return steps.NothingToDo("no provider has a credential that it could do without")
	}
	taken := 0
	for _, r := range held {
		err := p.withdrawOne(ctx, target, m.Versions, r, detail)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.session.Deps.Report.Warn(kept(target.Name, r, err))
			continue
		}
		taken++
		if err := p.declareWithdrawn(ctx, endpoint, pushed, r, detail); err != nil {
			p.session.Deps.Report.Warn(undeclared(r, err))
		}
	}
	if taken == 0 {
		return steps.NothingToDo("they stay: see the warnings")
	}
	return nil
}

// replaceable returns the credentials that the installed providers have, and that they may do without.
func replaceable(v *resolve.Versions) []credentials.Replaceable {
	return slices.DeleteFunc(credentials.AllReplaceable(), func(r credentials.Replaceable) bool {
		value := v.Variables[r.Variable]
		installed := slices.ContainsFunc(v.Providers, func(p releases.Provider) bool {
			return p.Name == r.Provider && p.Type == releases.Infrastructure
		})
		return !installed || value == "" || value == r.None
	})
}

// without returns v with no credential for one provider.
func without(v *resolve.Versions, r credentials.Replaceable) (*resolve.Versions, error) {
	other := *v
	other.Variables, other.Origins = maps.Clone(v.Variables), maps.Clone(v.Origins)
	other.Variables[r.Variable] = r.None
	other.Origins[r.Variable] = credentials.Origin{Source: "the identity of the machines"}
	other.Vault = slices.DeleteFunc(slices.Clone(v.Vault), func(x v1alpha1.Variable) bool { return x.Name == r.Variable })
	var err error
	other.Source, err = v.Source.WithVariables(other.Variables)
	return &other, err
}

// withdrawOne takes one credential off the target, and gives it back if the provider does not reach the cloud without it.
func (p *Move) withdrawOne(
	ctx context.Context, target *Target, v *resolve.Versions, r credentials.Replaceable, detail func(string),
) error {
	if err := onItsCloud(ctx, target, r); err != nil {
		return err
	}
	proof, err := newProof(ctx, target, r)
	if err != nil {
		return err
	}
	other, err := without(v, r) //nolint:contextcheck // it reads nothing yet
	if err != nil {
		return err
	}
	install := func(v *resolve.Versions) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := fromvault.Install(ctx, p.session, v, target.manager, capi.InstallOptions{Providers: v.Providers, Detail: detail})
			return err
		}
	}
	detail("taking " + r.Variable + " off " + target.Name)
	return proof.without(ctx, install(other), install(v))
}

// onItsCloud returns an error unless all nodes of the target are machines of the provider's cloud.
func onItsCloud(ctx context.Context, target *Target, r credentials.Replaceable) error {
	nodes := &corev1.NodeList{}
	if err := target.client.List(ctx, nodes); err != nil {
		return fmt.Errorf("list the nodes of %s: %w", target.Name, err)
	}
	for i := range nodes.Items {
		if id := nodes.Items[i].Spec.ProviderID; !strings.HasPrefix(id, r.NodePrefix) {
			return diag.Errorf("", "node %s is not a machine of that cloud", nodes.Items[i].Name)
		}
	}
	if len(nodes.Items) == 0 {
		return diag.Errorf("", "it has no nodes")
	}
	return nil
}

// kept is the warning about a credential that stays on the target.
func kept(target string, r credentials.Replaceable, why error) string {
	return fmt.Sprintf("%s stays on %s, because the provider %s cannot do without it there: %s", r.Variable, target, r.Provider,
		diag.InLine(why))
}

// undeclared is the warning about a fleet repo that does not say that the credential is gone.
func undeclared(r credentials.Replaceable, why error) string {
	return fmt.Sprintf("%s is off the target, but fleet.yaml does not say so, and the next `fleetctl init` would put it back. Commit it "+
		"yourself, by a pull request too: the variable %s of the provider %s gets `value: %s` instead of its source %s",
		r.Variable, r.Variable, r.Provider, r.None, diag.Because(why))
}

// declareWithdrawn commits to fleet.yaml that the provider has no credential, so that no later run puts it back.
func (p *Move) declareWithdrawn(
	ctx context.Context, endpoint *repoaccess.Endpoint, commit *following.Pushed, r credentials.Replaceable, detail func(string),
) error {
	s := p.session
	pushed := &following.Pushed{Session: s, Access: commit.Access, Repo: commit.Repo}
	message := fmt.Sprintf("Take %s off %s, which runs in its cloud now\n\nWritten by fleetctl pivot.\n", r.Variable, s.Mgmt.Name)
	_, _, err := converge.CommitTo(ctx, s, endpoint, pushed, message, func(_ context.Context, root string) ([]gitrepo.Change, error) {
		before, err := within.Named(filepath.Join(root, v1alpha1.FileName), within.MostNamed)
		if err != nil {
			return nil, err
		}
		after, err := v1alpha1.SetVariableValue(before, s.DeclaredAs(), v1alpha1.ProviderInfrastructure, r.Provider, r.Variable, r.None)
		if err != nil || bytes.Equal(after, before) {
			return nil, err
		}
		return []gitrepo.Change{{Path: v1alpha1.FileName, Content: after}}, nil
	}, detail)
	return err
}
