package gitrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrSigning says that git is configured to sign, and that signing fails. fleetctl then makes no unsigned commit or tag.
var ErrSigning = errors.New("cannot sign as git is configured to")

// signer signs commits and tags with the programs that git signs with, so that agents and hardware keys work as they do there.
type signer struct {
	format, key, program, identity string
}

// newSigner returns the signer; nil if none of the variables asks for signatures.
func newSigner(all settings, by Author, variables ...string) (*signer, error) {
	wanted := false
	for _, v := range variables {
		wanted = wanted || all.on(v)
	}
	if !wanted {
		return nil, nil //nolint:nilnil // no signer is the usual case
	}
	s := &signer{
		format: cmp.Or(all["gpg.format"], "openpgp"), key: all["user.signingkey"],
		identity: fmt.Sprintf("%s <%s>", by.Name, by.Email),
	}
	switch s.format {
	case "openpgp":
		s.program = cmp.Or(all["gpg.openpgp.program"], all["gpg.program"], "gpg")
	case "x509":
		s.program = cmp.Or(all["gpg.x509.program"], "gpgsm")
	case "ssh":
		s.program = cmp.Or(all["gpg.ssh.program"], "ssh-keygen")
		if s.key == "" {
			return nil, diag.Errorf("git config user.signingKey ~/.ssh/id_ed25519.pub",
				"%w: gpg.format is ssh, and user.signingKey names no key", ErrSigning)
		}
	default:
		return nil, diag.Errorf("set gpg.format to openpgp, ssh or x509", "%w: unknown gpg.format %q", ErrSigning, s.format)
	}
	return s, nil
}

// sign returns the signature of payload. The error matches ErrSigning and quotes the output of the program.
func (s *signer) sign(ctx context.Context, payload []byte) (string, error) {
	if s.format == "ssh" {
		return s.ssh(ctx, payload)
	}
	signature, said, err := s.run(ctx, payload, "--status-fd=2", "-bsau", cmp.Or(s.key, s.identity))
	if err == nil && !strings.Contains("\n"+said, "\n[GNUPG:] SIG_CREATED ") {
		err = errors.New("it made no signature")
	}
	return signature, s.explain(err, said)
}

func (s *signer) ssh(ctx context.Context, payload []byte) (string, error) {
	key, args := s.key, []string{"-Y", "sign", "-n", "git"}
	literal, isLiteral := strings.CutPrefix(key, "key::")
	if isLiteral || strings.HasPrefix(key, "ssh-") {
		// The setting has the public key itself. The agent has the private key.
		dir, remove, err := atomicfile.TempFolder("", "signing")
		if err != nil {
			return "", err
		}
		defer func() { _ = remove() }() // the file only has a public key, so an error does not matter
		key = filepath.Join(dir, "key.pub")
		if err := os.WriteFile(key, []byte(literal+"\n"), 0o600); err != nil {
			return "", err
		}
		args = append(args, "-U")
	} else if rest, ok := strings.CutPrefix(key, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		key = filepath.Join(home, rest)
	}
	signature, said, err := s.run(ctx, payload, append(args, "-f", key)...)
	if err == nil && !strings.HasPrefix(signature, "-----BEGIN SSH SIGNATURE-----") {
		err = errors.New("it made no signature")
	}
	return signature, s.explain(err, said)
}

func (s *signer) run(ctx context.Context, payload []byte, args ...string) (out, said string, err error) {
	var stdout bytes.Buffer
	var stderr speech
	// Leave out fleetctl's credentials: an agent that the program starts keeps running, with its environment.
	program := userProgram{path: s.program, args: args, env: environment(), input: payload, stdout: &stdout, stderr: &stderr}
	err = program.run(ctx)
	return strings.ReplaceAll(stdout.String(), "\r\n", "\n"), stderr.String(), err
}

// explain adds the output of the program, and a hint, to an error of signing.
func (s *signer) explain(err error, said string) error {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[GNUPG:]") {
			lines = append(lines, line)
		}
	}
	cause := redact(fmt.Errorf("%s: %w: %s", s.program, err, strings.Join(lines, "; ")))
	return diag.Errorf("check user.signingKey, gpg.format and that the key's agent runs: `git commit --gpg-sign` has to work",
		"%w: %w", ErrSigning, cause)
}

// encoder is a commit or a tag.
type encoder interface {
	EncodeWithoutSignature(o plumbing.EncodedObject) error
}

// signObject returns the signature of a commit or a tag; "" without a signer.
func signObject(ctx context.Context, s *signer, object encoder) (string, error) {
	if s == nil {
		return "", nil
	}
	o := &plumbing.MemoryObject{}
	if err := object.EncodeWithoutSignature(o); err != nil {
		return "", err
	}
	reader, err := o.Reader()
	if err != nil {
		return "", err
	}
	payload, err := io.ReadAll(reader) // it is in memory: fleetctl has written it
	if err := errors.Join(err, reader.Close()); err != nil {
		return "", err
	}
	return s.sign(ctx, payload)
}
