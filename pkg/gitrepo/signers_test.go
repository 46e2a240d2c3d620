package gitrepo_test

import (
	"bytes"
	"crypto"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// Programs that sign and verify as git wants it of gpg and ssh-keygen, for machines that have neither: this very test program, called by
// another name. The signatures are real ones. The integration tests sign by the programs of the machine.
const (
	pgpProgram = "pgp-signer"
	sshProgram = "ssh-signer"
)

// signingProgram acts as the program of that name; false where it is none of these.
func signingProgram(name string, args []string) (isOne bool, code int) {
	var err error
	if signs := slices.Contains(args, "-bsau") || slices.Contains(args, "sign"); signs && os.Getenv("FLEETCTL_GIT_TOKEN") != "" {
		fmt.Fprintln(os.Stderr, "it was given a credential of ours, which an agent would keep")
		return name == pgpProgram || name == sshProgram, 1
	}
	switch name {
	case pgpProgram:
		err = pgpSigner(args)
	case sshProgram:
		err = sshSigner(args)
	default:
		return false, 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true, 1
	}
	return true, 0
}

// signers prepare a repository for signing with a key of their own.
func signers() map[string]func(t *testing.T, repo *gitrepo.Repo) {
	return map[string]func(t *testing.T, repo *gitrepo.Repo){
		"ssh": func(t *testing.T, repo *gitrepo.Repo) {
			t.Helper()
			signBySSH(t, repo)
			configure(t, repo, "gpg.ssh.program", called(t, sshProgram))
		},
		"openpgp": func(t *testing.T, repo *gitrepo.Repo) {
			t.Helper()
			key := filepath.Join(t.TempDir(), "key")
			entity, err := openpgp.NewEntity("Ann", "", "ann@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
			if err != nil {
				t.Fatal(err)
			}
			var private bytes.Buffer
			if err := entity.SerializePrivate(&private, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(key, private.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PGP_SIGNER_KEY", key) // to verify with; git says which key only to sign
			configure(t, repo, "gpg.program", called(t, pgpProgram), "user.signingKey", key)
		},
	}
}

// signBySSH lets git sign with a key that it also trusts.
func signBySSH(t *testing.T, repo *gitrepo.Repo) {
	t.Helper()
	key, err := gitrepo.GenerateDeployKey("me")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, allowed := filepath.Join(dir, "key"), filepath.Join(dir, "allowed")
	for name, content := range map[string]string{file: string(key.Private), allowed: "* " + key.Public} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(t, repo, "gpg.format", "ssh", "user.signingKey", file, "gpg.ssh.allowedSignersFile", allowed)
}

func configure(t *testing.T, repo *gitrepo.Repo, pairs ...string) {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		gittest.Git(t, repo.Dir(), "config", pair[0], pair[1])
	}
}

// called is the path of this program under another name.
func called(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// pgpSigner is gpg as git calls it: `--status-fd=2 -bsau KEY` signs standard input, `… --verify SIGNATURE -` verifies it.
func pgpSigner(args []string) error {
	path := os.Getenv("PGP_SIGNER_KEY")
	verify := slices.Index(args, "--verify")
	if verify < 0 {
		path = args[len(args)-1]
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	keys, err := openpgp.ReadKeyRing(bytes.NewReader(content))
	if err != nil {
		return err
	}
	if verify < 0 {
		if !slices.Contains(args, "-bsau") {
			return fmt.Errorf("unknown arguments: %q", args)
		}
		fmt.Fprintln(os.Stderr, "[GNUPG:] SIG_CREATED ")
		return openpgp.ArmoredDetachSign(os.Stdout, keys[0], os.Stdin, nil)
	}
	signature, err := os.Open(args[verify+1])
	if err != nil {
		return err
	}
	defer func() { _ = signature.Close() }()
	by, err := openpgp.CheckArmoredDetachedSignature(keys, os.Stdin, signature, nil)
	if err != nil {
		return err
	}
	fmt.Printf("\n[GNUPG:] GOODSIG %s Ann\n[GNUPG:] TRUST_ULTIMATE\n", by.PrimaryKey.KeyIdString())
	return nil
}

// sshSignature is what OpenSSH's PROTOCOL.sshsig says, behind its six bytes of magic.
type sshSignature struct {
	Version                                    uint32
	PublicKey, Namespace, Reserved, Hash, Blob string
}

const sshMagic = "SSHSIG"

// sshPayload is what is signed: the digest of a message, for git.
func sshPayload(message []byte) []byte {
	digest := sha512.Sum512(message)
	return append([]byte(sshMagic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Digest string }{"git", "", "sha512", string(digest[:])})...)
}

// sshSigner is ssh-keygen as git and fleetctl call it: -Y sign, find-principals and verify.
func sshSigner(args []string) error {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	file, err := os.ReadFile(value("-f"))
	if err != nil {
		return err
	}
	switch value("-Y") {
	case "sign":
		return sshSign(file)
	case "find-principals":
		fmt.Println("me@example.com") // the file trusts one key, for everyone
		return nil
	case "verify":
		return sshVerify(file, value("-s"))
	default:
		return fmt.Errorf("unknown arguments: %q", args)
	}
}

func sshSign(file []byte) error {
	message, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	private, err := ssh.ParseRawPrivateKey(file)
	if err != nil {
		return err
	}
	key, err := ssh.NewSignerFromSigner(private.(crypto.Signer))
	if err != nil {
		return err
	}
	blob, err := key.Sign(nil, sshPayload(message))
	if err != nil {
		return err
	}
	all := append([]byte(sshMagic), ssh.Marshal(sshSignature{
		1, string(key.PublicKey().Marshal()), "git", "", "sha512",
		string(ssh.Marshal(blob)),
	})...)
	return pem.Encode(os.Stdout, &pem.Block{Type: "SSH SIGNATURE", Bytes: all})
}

func sshVerify(allowed []byte, path string) error {
	armoured, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	message, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(armoured)
	if block == nil || !bytes.HasPrefix(block.Bytes, []byte(sshMagic)) {
		return errors.New("no signature")
	}
	var all sshSignature
	var blob ssh.Signature
	if err := errors.Join(ssh.Unmarshal(block.Bytes[len(sshMagic):], &all), ssh.Unmarshal([]byte(all.Blob), &blob)); err != nil {
		return err
	}
	_, trusted, _ := strings.Cut(string(allowed), " ")
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(trusted)) //nolint:dogsled // a comment, options and a rest that nobody needs
	if err != nil {
		return err
	}
	if string(key.Marshal()) != all.PublicKey {
		return errors.New("the signature of a stranger")
	}
	if err := key.Verify(sshPayload(message), &blob); err != nil {
		return err
	}
	fmt.Printf("Good \"git\" signature for me@example.com with ED25519 key %s\n", ssh.FingerprintSHA256(key))
	return nil
}
