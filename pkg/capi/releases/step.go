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

// Upgrade is a provider, or cert-manager, that runs in another version than the wanted one.
type Upgrade struct {
	// Provider has the wanted version. Its type is empty for cert-manager.
	Provider
	// From is the running version.
	From string
}

// String returns for example "core provider cluster-api v1.13.1 to v1.14.2".
func (u Upgrade) String() string {
	if u.IsCertManager() {
		return fmt.Sprintf("%s %s to %s", CertManager, u.From, u.Version)
	}
	p := u.Provider
	p.Version = u.From
	return fmt.Sprintf("%s to %s", p, u.Version)
}

// IsCertManager tells whether u is an upgrade of cert-manager.
func (u Upgrade) IsCertManager() bool { return u.Type == "" && u.Name == CertManager }

// CoreContract is the contract of the core providers that clusterctl's library can install. compatibleContracts are the contracts that
// other providers may have.
var (
	CoreContract        = clusterv1.GroupVersion.Version
	compatibleContracts = []string{CoreContract, "v1beta1"}
)

// Fits tells whether a provider with this contract works with this Cluster API.
func Fits(of ProviderType, contract string) bool {
	return contract == CoreContract || of != Core && slices.Contains(compatibleContracts, contract)
}

// CheckUpgrade refuses a downgrade. It also refuses an upgrade over more minor versions than Cluster API allows.
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
			" or a newer version into fleet.yaml: an older version may not be able to read the objects that the running one has stored",
			"%s: a downgrade is not possible", u)
	}
	const mostMinors = 3
	if OfCore(u.Provider) && from.GE(semver.MustParse("1.10.0")) && to.Minor > from.Minor+mostMinors {
		return diag.Errorf(fmt.Sprintf("go to v%d.%d first", from.Major, from.Minor+mostMinors),
			"%s: Cluster API is upgraded by %d minor versions at most", u, mostMinors)
	}
	return nil
}

// OfCore tells whether a provider is part of Cluster API itself. All parts of Cluster API are released together.
func OfCore(p Provider) bool {
	return p.Type == Core || p.Name == config.KubeadmBootstrapProviderName && (p.Type == Bootstrap || p.Type == ControlPlane)
}

// SameMinor tells whether two versions have the same major and minor version. It also returns true if one of them is not a version.
func SameMinor(a, b string) bool {
	x, errX := semver.ParseTolerant(a)
	y, errY := semver.ParseTolerant(b)
	return errX != nil || errY != nil || x.Major == y.Major && x.Minor == y.Minor
}

// Contract returns the contract of Cluster API that p implements. p must have a version.
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

// IsOlder tells whether version a is before version b. Texts that are not versions are compared as texts.
func IsOlder(a, b string) bool { return compareVersions(a, b) < 0 }
