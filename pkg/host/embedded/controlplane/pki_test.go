package controlplane

import (
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ensured is a pki at a time, and what was made for it.
func ensured(t *testing.T, dir string, now time.Time) []string {
	t.Helper()
	made, err := pki{dir: dir}.ensure(now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestKeysAreMadeOnceAndRenewedInTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	all := len(leaves()) + 2 // the authority, and the key for tokens
	if made := ensured(t, dir, start); len(made) != all {
		t.Errorf("first start made %v", made)
	}
	tokens, err := os.ReadFile(pki{dir: dir}.key(serviceAccountName))
	if err != nil {
		t.Fatal(err)
	}
	if made := ensured(t, dir, start.Add(leafLife/2)); len(made) != 0 {
		t.Errorf("made %v although all hold", made)
	}
	for _, late := range []time.Time{start.Add(leafLife * 4 / 5), start.Add(2 * leafLife)} {
		if made := ensured(t, dir, late); len(made) != len(leaves()) || slices.Contains(made, authorityName) {
			t.Errorf("made %v at %s", made, late)
		}
		verify(t, dir, late)
	}
	afterAll := start.Add(2 * authorityLife)
	if made := ensured(t, dir, afterAll); len(made) != len(leaves())+1 {
		t.Errorf("made %v after the authority had expired", made)
	}
	verify(t, dir, afterAll)
	if now, err := os.ReadFile(pki{dir: dir}.key(serviceAccountName)); err != nil || string(now) != string(tokens) {
		t.Errorf("the key for tokens was replaced: every token is void (%v)", err)
	}
}

// verify holds each certificate to the authority, and the serving one to its names.
func verify(t *testing.T, dir string, now time.Time) {
	t.Helper()
	p := pki{dir: dir}
	ca, err := p.read(authorityName)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, l := range leaves() {
		have, err := p.read(l.name)
		if err != nil {
			t.Fatal(err)
		}
		o := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := have.cert.Verify(o); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
		if l.server {
			o.KeyUsages, o.DNSName = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, "kubernetes.default.svc"
			if _, err := have.cert.Verify(o); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
			if err := have.cert.VerifyHostname("127.0.0.1"); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestKeysArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensured(t, dir, start)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestKilledBetweenKeyAndCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	ensured(t, dir, start)
	p := pki{dir: dir}
	other, err := os.ReadFile(p.key(runnerName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.key(adminName), other, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.read(adminName); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: %v", err)
	}
	if made := ensured(t, dir, start); !slices.Equal(made, []string{adminName}) {
		t.Errorf("made %v", made)
	}
	verify(t, dir, start)
}

func TestPortsAreKeptAndReplacedWhenTaken(t *testing.T) {
	dir := t.TempDir()
	first, moved, err := choosePorts(t.Context(), dir)
	if err != nil || moved {
		t.Fatal(moved, err)
	}
	if first.APIServer == first.Etcd || first.Etcd == first.EtcdPeer || first.APIServer == 0 {
		t.Errorf("chose %+v", first)
	}
	again, moved, err := choosePorts(t.Context(), dir)
	if err != nil || moved || again != first {
		t.Errorf("chose %+v after %+v (moved: %v, %v)", again, first, moved, err)
	}
	thief, err := listen(t.Context(), first.APIServer)
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	if !first.taken(t.Context()) {
		t.Error("taken does not see it")
	}
	other, moved, err := choosePorts(t.Context(), dir)
	if err != nil || !moved || other.APIServer == first.APIServer || other.Etcd != first.Etcd {
		t.Errorf("chose %+v after %+v was taken (moved: %v, %v)", other, first, moved, err)
	}
}

// A key file that a power cut has emptied is made again, since its content is lost. A file that only looks wrong is not replaced.
func TestEmptiedKeys(t *testing.T) {
	p := pki{dir: filepath.Join(t.TempDir(), "pki")}
	ensured(t, p.dir, start)
	for name, emptied := range map[string]string{
		authorityName: p.cert(authorityName), adminName: p.key(adminName), serviceAccountName: p.key(serviceAccountName),
	} {
		for _, content := range []string{"", "\x00\x00\x00"} {
			if err := os.WriteFile(emptied, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if made := ensured(t, p.dir, start); !slices.Contains(made, name) {
				t.Errorf("%s emptied: made %v", name, made)
			}
			verify(t, p.dir, start)
		}
	}
	if err := os.WriteFile(p.key(serviceAccountName), []byte("somebody's notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := p.ensure(start); err == nil {
		t.Errorf("made %v over what is no key", made)
	}
}

func TestDamagedPorts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, portsFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	chosen, moved, err := choosePorts(t.Context(), dir)
	if err != nil || !moved || chosen.APIServer == 0 {
		t.Errorf("chose %+v, moved %v, %v", chosen, moved, err)
	}
	if again, moved, err := choosePorts(t.Context(), dir); err != nil || moved || again != chosen {
		t.Errorf("then %+v, moved %v, %v", again, moved, err)
	}
}

// The public half of the key for tokens follows the key: without it, or with another key's, the API server refuses every token.
func TestPublicKeyOfTokens(t *testing.T) {
	dir, start := t.TempDir(), time.Now()
	ensured(t, dir, start)
	p := pki{dir: dir}
	want, err := os.ReadFile(p.cert(serviceAccountName))
	if err != nil {
		t.Fatal(err)
	}
	other := pki{dir: t.TempDir()}
	ensured(t, other.dir, start)
	foreign, err := os.ReadFile(other.cert(serviceAccountName))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"another key's": foreign, "empty": {}} {
		if err := os.WriteFile(p.cert(serviceAccountName), content, 0o600); err != nil {
			t.Fatal(err)
		}
		ensured(t, dir, start)
		if got, err := os.ReadFile(p.cert(serviceAccountName)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// The clouds verify service account tokens, and Azure promises to accept RS256 alone. A host of an older fleetctl keeps its key: Secrets
// hold tokens that are signed with it.
func TestKeyOfTokensIsOneForAllClouds(t *testing.T) {
	dir, start := t.TempDir(), time.Now()
	ensured(t, dir, start)
	p := pki{dir: dir}
	public := func() any {
		t.Helper()
		raw, err := readPEM(p.cert(serviceAccountName))
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.ParsePKIXPublicKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if key, is := public().(*rsa.PublicKey); !is || key.N.BitLen() != 2048 {
		t.Errorf("the tokens are signed with a key of the type %T", public())
	}
	older, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := encodeKey(older)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.key(serviceAccountName), private, 0o600); err != nil {
		t.Fatal(err)
	}
	ensured(t, dir, start)
	if !older.PublicKey.Equal(public()) {
		t.Errorf("the public key of an older host is a %T", public())
	}
	if kept, err := os.ReadFile(p.key(serviceAccountName)); err != nil || string(kept) != string(private) {
		t.Errorf("the key of an older host is replaced: %v", err)
	}
}
