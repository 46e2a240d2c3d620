package cmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// editText lets the user's editor change a text. The text is in a file that only the user can read, in a private folder, as long as the
// editor runs. saved gets what the editor has written meanwhile, each time that it writes.
func editText(ctx context.Context, f *factory, name string, text []byte, saved func([]byte)) (edited []byte, err error) {
	dir, remove, err := atomicfile.TempFolder(os.Getenv("XDG_RUNTIME_DIR"), "edit") // in memory, if the system has such a folder
	if err != nil {
		dir, remove, err = atomicfile.TempFolder("", "edit")
	}
	if err != nil {
		return nil, diag.Wrap("make a private folder for the editor", err, "")
	}
	defer func() {
		err = errors.Join(err, remove())
	}()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	if stop, err := watchText(path, saved); err == nil { // without it the edit works, and only a kill loses it
		defer stop()
	}
	editor := strings.Fields(editorProgram())
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], path)...) //nolint:gosec // the user's own editor, as they named it
	raw := f.streams.Raw()                                                  // the editor owns the terminal while it runs
	cmd.Stdin, cmd.Stdout, cmd.Stderr = raw.In, raw.Err, raw.Err
	ended := diag.Wrap("run the editor "+editor[0], cmd.Run(), "set EDITOR to the editor that you use")
	edited, err = os.ReadFile(path) // even after an error, because the editor may have written before
	if ended != nil {
		return edited, ended
	}
	return edited, err
}

func editorProgram() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if editor := strings.TrimSpace(os.Getenv(name)); editor != "" {
			return editor
		}
	}
	return "vi"
}

// watchText calls saved with the content of a file each time that it is written. After stop it is called no more.
func watchText(path string, saved func([]byte)) (stop func(), err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	// Watch the folder, not the file: many editors replace the file.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.Events {
			if event.Name != path {
				continue
			}
			if text, err := os.ReadFile(path); err == nil {
				saved(text)
			}
		}
	}()
	go func() {
		for range watcher.Errors { // a last write that this loop misses is read when the editor ends
			continue
		}
	}()
	return func() {
		_ = watcher.Close()
		<-done
	}, nil
}
