package gitrepo

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// HostKeyError is the error about an SSH host whose key is unknown. It matches ErrHostKey. Show the fingerprint: only a person who has
// compared it should add Line to the known hosts.
type HostKeyError struct {
	// Host is the address as known_hosts has it: host or [host]:port.
	Host string
	// KeyType (ssh-ed25519, …) and Fingerprint (SHA256:…) of the key that the host showed.
	KeyType, Fingerprint string
	// Line is the line for the known hosts, if the fingerprint is right.
	Line string
}

// Error has the fingerprint in it.
func (e *HostKeyError) Error() string {
	return fmt.Sprintf("%v: the host %s is not known; its %s key has the fingerprint %s", ErrHostKey, e.Host, e.KeyType, e.Fingerprint)
}

// Unwrap makes the error match ErrHostKey.
func (e *HostKeyError) Unwrap() error { return ErrHostKey }

// HostKeyChangedError is the error about an SSH host that shows another key than the known one, or a revoked key. It matches ErrHostKey.
// The only way to accept the key is to change the known hosts.
type HostKeyChangedError struct {
	// Host is the address as known_hosts has it: host or [host]:port.
	Host string
	// KeyType and Fingerprint of the key that the host showed; empty if the host has no key of a known type.
	KeyType, Fingerprint string
	// Known are the types and fingerprints that were expected.
	Known []string
}

// Error has both fingerprints in it.
func (e *HostKeyChangedError) Error() string {
	shown := "it has no key of a known type"
	if e.Fingerprint != "" {
		shown = fmt.Sprintf("it shows a %s key with the fingerprint %s", e.KeyType, e.Fingerprint)
	}
	return fmt.Sprintf("%v: the key of the host %s has changed: %s, known is %s", ErrHostKey, e.Host, shown, strings.Join(e.Known, ", "))
}

// Unwrap makes the error match ErrHostKey.
func (e *HostKeyChangedError) Unwrap() error { return ErrHostKey }

// preferredAlgorithms are the algorithms, in order, for an unknown host, so that the error shows the key that operators publish.
var preferredAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// hostKeys checks the host keys of one address.
type hostKeys struct {
	addr       string
	callback   ssh.HostKeyCallback
	algorithms []string
	known      []knownhosts.PublicKey
}

// knownHostKeys looks addr (host:port) up in the pinned lines, and, if they do not have it, in the user's known_hosts. It offers the server
// only the algorithms of the known keys. Otherwise a server with several keys could show a key that is not known, and would look like a
// changed host (go-git #1341, #1551).
func (a Auth) knownHostKeys(addr string) (*hostKeys, error) {
	pinned, err := parseKnownHosts([]byte(a.KnownHosts), true)
	if err != nil {
		return nil, diag.Wrap("read the pinned known hosts", err, "each line is: host type key, as ssh-keyscan prints it")
	}
	db := pinned
	if a.UserKnownHosts && len(pinned.HostKeys(addr)) == 0 {
		if db, err = userKnownHosts(); err != nil {
			return nil, err
		}
	}
	keys := &hostKeys{addr: addr, callback: db.HostKeyCallback(), algorithms: db.HostKeyAlgorithms(addr), known: db.HostKeys(addr)}
	if len(keys.algorithms) == 0 {
		keys.algorithms = preferredAlgorithms
	}
	return keys, nil
}

// check is an ssh.HostKeyCallback whose errors are ours.
func (h *hostKeys) check(hostname string, remote net.Addr, key ssh.PublicKey) error {
	err := h.callback(hostname, remote, key)
	if err == nil {
		return nil
	}
	var mismatch *xknownhosts.KeyError
	var revoked *xknownhosts.RevokedError
	switch {
	case errors.As(err, &revoked), errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		return h.changed(key)
	case errors.As(err, &mismatch):
		return &HostKeyError{
			Host: knownhosts.Normalize(h.addr), KeyType: key.Type(), Fingerprint: ssh.FingerprintSHA256(key),
			Line: knownhosts.Line([]string{h.addr}, key),
		}
	}
	return fmt.Errorf("%w: %w", ErrHostKey, err)
}

// changed returns the error for a host that shows key instead of a known key; nil means that the host has no key of a known type.
func (h *hostKeys) changed(key ssh.PublicKey) error {
	e := &HostKeyChangedError{Host: knownhosts.Normalize(h.addr)}
	if key != nil {
		e.KeyType, e.Fingerprint = key.Type(), ssh.FingerprintSHA256(key)
	}
	for _, k := range h.known {
		e.Known = append(e.Known, k.Type()+" "+ssh.FingerprintSHA256(k.PublicKey))
	}
	return e
}

// TrustedHostKeys returns the known_hosts lines of auth for the host of an ssh URL, which Flux needs. It makes no connection. If there is
// no line for the host, it returns "". For another kind of URL, the error matches ErrURL.
func TrustedHostKeys(url string, auth Auth) (string, error) {
	protocol, addr, err := ParseURL(url)
	if err != nil {
		return "", err
	}
	if protocol != ProtocolSSH {
		return "", fmt.Errorf("%w: %s has no host key", ErrURL, protocol)
	}
	keys, err := auth.knownHostKeys(addr)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, k := range keys.known {
		if k.Cert {
			fmt.Fprintf(&lines, "@cert-authority %s %s %s\n", knownhosts.Normalize(addr), k.Type(), base64.StdEncoding.EncodeToString(k.Marshal()))
			continue
		}
		fmt.Fprintln(&lines, knownhosts.Line([]string{addr}, k.PublicKey))
	}
	return lines.String(), nil
}

// userKnownHosts reads ~/.ssh/known_hosts. A missing file counts as an empty one.
func userKnownHosts() (*knownhosts.HostKeyDB, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return parseKnownHosts(nil, false)
	}
	path := filepath.Join(home, ".ssh", "known_hosts")
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return parseKnownHosts(content, false)
}

// parseKnownHosts makes a database of the lines. A line that cannot be read is an error if strict is true. Otherwise it is left out, as
// by OpenSSH.
func parseKnownHosts(content []byte, strict bool) (*knownhosts.HostKeyDB, error) {
	var good [][]byte
	var numbers []int
	n := 0
	for line := range bytes.Lines(content) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if _, _, _, _, _, err := ssh.ParseKnownHosts(append(slices.Clone(line), '\n')); err != nil {
			if strict {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		good, numbers = append(good, line), append(numbers, n)
	}
	db, err := readKnownHosts(good...)
	if err == nil {
		return db, nil
	}
	// The library is stricter about a line than its parser (about a hashed name, for example), and refuses a whole file for one line.
	var readable [][]byte
	for i, line := range good {
		if _, err := readKnownHosts(line); err == nil {
			readable = append(readable, line)
		} else if strict {
			return nil, fmt.Errorf("line %d: %w", numbers[i], err)
		}
	}
	return readKnownHosts(readable...)
}

// readKnownHosts makes a database of lines. The library reads files only, hence the temporary one.
func readKnownHosts(lines ...[]byte) (*knownhosts.HostKeyDB, error) {
	dir, remove, err := atomicfile.TempFolder("", "known-hosts")
	if err != nil {
		return nil, err
	}
	defer func() { _ = remove() }() // best effort: public keys only
	file, err := os.Create(filepath.Join(dir, "known_hosts"))
	if err != nil {
		return nil, err
	}
	_, err = file.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	db, err := knownhosts.NewDB(file.Name())
	if err != nil {
		if _, reason, ok := strings.Cut(err.Error(), file.Name()+":1: "); ok { // of a line that was read alone; the file is nobody's business
			err = errors.New(reason)
		}
		return nil, err
	}
	return db, nil
}
