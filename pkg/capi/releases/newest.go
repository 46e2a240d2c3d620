package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Newest is the result of NewestThatFits.
type Newest struct {
	// Version is the newest version that fits, or "" if none does.
	Version string
	// Newer is the newest version of all if it does not fit. Why is the reason.
	Newer, Why string
}

// unreadable is the number of versions without metadata that are skipped. A tag may exist before its release.
const unreadable = 5

// NewestThatFits returns the newest version of p that this fleetctl's Cluster API works with, and that one upgrade can reach from the
// installed version, or else from the declared one. Both may be "". Pre-releases count only if there are no releases.
func (s *Source) NewestThatFits(ctx context.Context, p Provider, installed, declared string) (*Newest, error) {
	p.Version = ""
	client, err := s.Repository(ctx, p)
	if err != nil {
		return nil, err
	}
	versions, err := s.releasedVersions(ctx, p, client)
	if err != nil {
		return nil, diag.Wrap("list the versions of "+p.String(), err, "")
	}
	out := &Newest{}
	m := &metadata{client: client}
	var failed []error
	for _, v := range versions {
		if installed != "" && IsOlder(v, installed) {
			break // a downgrade is not possible, and all other versions are even older
		}
		p.Version = v
		contract, err := m.contract(ctx, v)
		why := unfit(p, cmp.Or(installed, declared), contract)
		if err == nil && why == "" && m.of != v {
			err = m.read(ctx, v) // the release itself may not exist yet
		}
		if _, silent := errors.AsType[*contact.Error](err); silent || ctx.Err() != nil {
			return nil, diag.Wrap("read the metadata of "+p.String(), err, "")
		}
		switch {
		case err != nil && len(failed) == unreadable:
			return nil, failed[0]
		case err != nil:
			failed = append(failed, diag.Wrap("read the metadata of "+p.String(), &quotingError{err}, ""))
		case why == "":
			out.Version = v
			return out, nil
		case out.Newer == "":
			out.Newer, out.Why = v, why
		}
	}
	if out.Newer == "" && len(failed) > 0 {
		return nil, failed[0]
	}
	if out.Newer == "" { // all versions are older than the installed one
		out.Newer, out.Why = versions[0], "is older than the installed "+installed
	}
	return out, nil
}

// unfit returns why p cannot be installed over the version from, given its contract. It returns "" if it can.
func unfit(p Provider, from, contract string) string {
	if !Fits(p.Type, contract) {
		return fmt.Sprintf("has the contract %s of Cluster API: another fleetctl may work with it", contract)
	}
	if from == "" || !IsOlder(from, p.Version) {
		return ""
	}
	if err := CheckUpgrade(Upgrade{Provider: p, From: from}); err != nil {
		return "is too far for one step: " + cmp.Or(diag.Hint(err), err.Error())
	}
	return ""
}

// releasedVersions returns the versions of p that may be installed, newest first: the releases, or the pre-releases if there are no
// releases.
func (s *Source) releasedVersions(ctx context.Context, p Provider, client repository.Client) ([]string, error) {
	if s.repository != "" {
		versions, err := s.versions(p.Label())
		return onlyReleases(versions), err
	}
	listed, err := client.GetVersions(ctx)
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(slices.Clone(listed), func(v string) bool {
		_, err := version.ParseSemantic(v)
		return err != nil
	})
	if len(versions) == 0 {
		return nil, errors.New("it has no versions")
	}
	sortNewestFirst(versions)
	return onlyReleases(versions), nil
}

// onlyReleases returns the versions without pre-releases, or all if all are pre-releases. versions is sorted newest first.
func onlyReleases(versions []string) []string {
	if i := slices.IndexFunc(versions, func(v string) bool { return comparePreRelease(v, "v0.0.0") > 0 }); i > 0 {
		return versions[:i]
	}
	return versions
}

// metadata is the last metadata that was read of a provider. It usually has the contracts of older versions too.
type metadata struct {
	client repository.Client
	of     string
	last   *clusterctlv1.Metadata
}

func (m *metadata) read(ctx context.Context, v string) error {
	read, err := m.client.Metadata(v).Get(ctx)
	if err == nil {
		m.of, m.last = v, read
	}
	return err
}

// contract returns the contract of a version.
func (m *metadata) contract(ctx context.Context, v string) (string, error) {
	number, err := version.ParseSemantic(v)
	if err != nil {
		return "", err
	}
	if m.last != nil {
		if series := m.last.GetReleaseSeriesForVersion(number); series != nil {
			return series.Contract, nil
		}
	}
	if err := m.read(ctx, v); err != nil {
		return "", err
	}
	if series := m.last.GetReleaseSeriesForVersion(number); series != nil {
		return series.Contract, nil
	}
	return "", errors.New("it does not know its release series")
}
