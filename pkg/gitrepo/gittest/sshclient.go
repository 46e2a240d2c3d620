package gittest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHClient is ssh as git calls it, for machines without one: ssh -i KEY -o UserKnownHostsFile=FILE [-p PORT] [USER@]HOST COMMAND. It
// returns the exit code.
func SSHClient(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := sshClient(args, stdin, stdout, stderr)
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		return exit.ExitStatus()
	}
	if err != nil {
		fmt.Fprintln(stderr, "ssh:", err)
		return 255
	}
	return 0
}

func sshClient(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	port, keyFile, hostsFile, rest := "22", "", "", []string(nil)
	for len(args) > 0 {
		option := args[0]
		if !strings.HasPrefix(option, "-") {
			rest = args
			break
		}
		if len(args) < 2 {
			return fmt.Errorf("%s has no value", option)
		}
		switch value := args[1]; option {
		case "-i":
			keyFile = value
		case "-p":
			port = value
		case "-o":
			if file, ok := strings.CutPrefix(value, "UserKnownHostsFile="); ok {
				hostsFile = file
			}
		default:
			return fmt.Errorf("unknown option %s", option)
		}
		args = args[2:]
	}
	if len(rest) < 2 {
		return errors.New("no host and command are given")
	}
	user, host, ok := strings.Cut(rest[0], "@")
	if !ok {
		user, host = "git", rest[0]
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return err
	}
	known, err := knownhosts.New(hostsFile)
	if err != nil {
		return err
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(host, port), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: known,
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}, // the one that all our servers have
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	session.Stdout, session.Stderr = stdout, stderr
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	// Not as the session's Stdin: Run would wait for its end, and git ends it when this program has ended.
	go func() {
		_, _ = io.Copy(in, stdin)
		_ = in.Close()
	}()
	return session.Run(strings.Join(rest[1:], " "))
}
