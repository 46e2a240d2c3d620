package gitrepo

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// DeployKey is an SSH key pair that gives Flux access to one repository.
type DeployKey struct {
	// Private key, OpenSSH PEM. A secret.
	Private []byte
	// Public key as one line for authorized_keys, with a final newline.
	Public string
	// Fingerprint of the public key (SHA256:…), as Git servers show it.
	Fingerprint string
}

// GenerateDeployKey makes a new ed25519 key pair. The Git server shows the comment, which should name the fleet.
func GenerateDeployKey(comment string) (*DeployKey, error) {
	comment = oneWord(comment)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the deploy key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, fmt.Errorf("encode the deploy key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encode the public half of the deploy key: %w", err)
	}
	return &DeployKey{Private: pem.EncodeToMemory(block), Public: publicLine(key, comment), Fingerprint: ssh.FingerprintSHA256(key)}, nil
}

// ParseDeployKey reads a private key that GenerateDeployKey made, so that its public half can be shown again.
func ParseDeployKey(private []byte, comment string) (*DeployKey, error) {
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("read the deploy key: %w", err)
	}
	key := signer.PublicKey()
	return &DeployKey{Private: private, Public: publicLine(key, oneWord(comment)), Fingerprint: ssh.FingerprintSHA256(key)}, nil
}

// oneWord makes a comment one word, so that it cannot end the line, which is a key in authorized_keys.
func oneWord(comment string) string { return strings.Join(strings.Fields(comment), "-") }

func publicLine(key ssh.PublicKey, comment string) string {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if comment != "" {
		line += " " + comment
	}
	return line + "\n"
}
