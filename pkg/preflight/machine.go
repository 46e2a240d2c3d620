package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Disk checks that the folder, or the nearest parent that exists, can be written to and has that many bytes free.
func Disk(folder string, need int64) func(context.Context) Result {
	return func(context.Context) Result {
		existing, err := nearest(folder)
		if err != nil {
			return FailWith(err)
		}
		if err := writable(existing); err != nil {
			return Fail(fmt.Sprintf("sudo chown -R $(id -u) %s", existing), "cannot write to %s: %v", existing, cause(err))
		}
		return judgeDisk(existing, need, need, "free some space there")
	}
}

func judgeDisk(folder string, fail, warn int64, hint string) Result {
	existing, err := nearest(folder)
	if err != nil {
		return Skip("%v", err)
	}
	free, err := freeBytes(existing)
	switch {
	case err != nil:
		return Skip("cannot tell how much is free at %s: %v", existing, err)
	case free < fail:
		return Fail(hint, "%s free at %s; %s are needed", size(free), folder, size(fail))
	case free < warn:
		return Warn(hint, "%s free at %s; %s are better", size(free), folder, size(warn))
	}
	return OK("%s free at %s", size(free), folder)
}

// nearest returns the folder itself or the first of its parents that exists.
func nearest(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(folder)
		switch {
		case err == nil && !info.IsDir():
			return "", diag.Errorf("remove it, or choose another place", "%s is not a folder", folder)
		case err == nil:
			return folder, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || filepath.Dir(folder) == folder:
			return "", err
		}
		folder = filepath.Dir(folder)
	}
}

// writable tries, since permission bits do not tell about read-only and networked file systems. It leaves nothing behind.
func writable(folder string) error {
	f, err := atomicfile.New(filepath.Join(folder, "preflight"), 0o600) // which removes what a killed run left
	if err != nil {
		return err
	}
	f.Discard()
	return nil
}

// cause drops the path that an os error repeats.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// Port checks that something can listen on a TCP port of this machine.
func Port(address string, port uint16, purpose string) func(context.Context) Result {
	return func(ctx context.Context) Result {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			return Skip("%s is no address of this machine now", address) // an engine's bridge, before its first container
		}
		if err != nil {
			if op, ok := errors.AsType[*net.OpError](err); ok {
				err = op.Err
			}
			return Fail(portHint(port), "cannot listen on %s port %d, needed for %s: %v", address, port, purpose, err)
		}
		if err := l.Close(); err != nil {
			return FailWith(err)
		}
		return OK("free for %s", purpose)
	}
}

// Clock checks that this machine's clock is not before a moment that is surely past, such as the time at which the program
// was built: certificates made with such a clock are not valid yet for anybody else.
func Clock(now func() time.Time, past time.Time) func(context.Context) Result {
	return func(context.Context) Result {
		t := now().UTC()
		switch {
		case past.IsZero():
			return Skip("nothing to compare it with")
		case t.Before(past.Add(-24 * time.Hour)):
			return Fail(`set the clock: "sudo timedatectl set-ntp true"`, "the clock says %s, which is before %s",
				t.Format(time.DateOnly), past.UTC().Format(time.DateOnly))
		}
		return OK("%s", t.Format("2006-01-02 15:04 MST"))
	}
}
