package releases

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Upgrade is a provider, or cert-manager, that runs in another version than is wanted.
type Upgrade struct {
	// Provider with the version that is wanted; its type is empty for cert-manager.
	Provider
	// From is the version that runs.
	From string
}

// String is "core provider cluster-api v1.13.1 to v1.14.2".
func (u Upgrade) String() string {
	if u.IsCertManager() {
		return fmt.Sprintf("%s %s to %s", CertManager, u.From, u.Version)
	}
	p := u.Provider
	p.Version = u.From
	return fmt.Sprintf("%s to %s", p, u.Version)
}

// IsCertManager tells that u is of cert-manager, and of no provider.
func (u Upgrade) IsCertManager() bool { return u.Type == "" && u.Name == CertManager }

// CoreContract is the contract to which clusterctl's library brings a core provider. compatibleContracts are the contracts that other
// providers beside it may have.
var (
	CoreContract        = clusterv1.GroupVersion.Version
	compatibleContracts = []string{CoreContract, "v1beta1"}
)

// Fits tells whether a provider with that contract works with this Cluster API.
func Fits(of ProviderType, contract string) bool {
	return contract == CoreContract || of != Core && slices.Contains(compatibleContracts, contract)
}

// CheckUpgrade refuses a downgrade, and a step that skips a version which Cluster API does not allow to be skipped, whatever else is
// installed.
func CheckUpgrade(u Upgrade) error {
	from, err := semver.ParseTolerant(u.From)
	if err != nil {
		return fmt.Errorf("upgrade %s: %w", u, err)
	}
	to, err := semver.ParseTolerant(u.Version)
	if err != nil {
		return fmt.Errorf("upgrade %s: %w", u, err)
	}
	if to.LT(from) {
		return diag.Errorf("put "+u.From+
			" or a newer version into fleet.yaml: what runs has stored its objects in its own way, and an older one may not read them",
			"%s: there is no way back to an older version", u)
	}
	const mostMinors = 3
	if OfCore(u.Provider) && from.GE(semver.MustParse("1.10.0")) && to.Minor > from.Minor+mostMinors {
		return diag.Errorf(fmt.Sprintf("go to v%d.%d first", from.Major, from.Minor+mostMinors),
			"%s: Cluster API is upgraded by %d minor versions at most", u, mostMinors)
	}
	return nil
}

// OfCore tells whether a provider is a part of Cluster API itself, whose parts are released together.
func OfCore(p Provider) bool {
	return p.Type == Core || p.Name == config.KubeadmBootstrapProviderName && (p.Type == Bootstrap || p.Type == ControlPlane)
}

// SameMinor tells whether two versions differ in the patch alone. What is no version differs from nothing.
func SameMinor(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX != nil || errY != nil || x.Major == y.Major && x.Minor == y.Minor
}

// Contract is Cluster API's contract that p, which has a version, implements.
func (s *Source) Contract(ctx context.Context, p Provider) (string, error) {
	client, err := s.Repository(ctx, p)
	if err != nil {
		return "", err
	}
	metadata, err := client.Metadata(p.Version).Get(ctx)
	if err != nil {
		return "", diag.Wrap("read the metadata of "+p.String(), err, "")
	}
	number, err := version.ParseSemantic(p.Version)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", p, err)
	}
	series := metadata.GetReleaseSeriesForVersion(number)
	if series == nil {
		return "", diag.Errorf("check the version, or the url of the provider in fleet.yaml",
			"the metadata of %s does not know its release series", p)
	}
	return series.Contract, nil
}

// IsOlder tells whether a version is before another one. What is no version is before nothing.
func IsOlder(a, b string) bool { return compareVersions(a, b) < 0 }
