package render

import "testing"

// kustomize reads a file of any name where it was written.
func TestMemoryTakesAnyName(t *testing.T) {
	for _, name := range []string{
		"my config.yaml", "gr\u00fc\u00dfe.yaml", "a+b@c,d(1).yaml", "a:b.yaml", "a:20b.yaml", "a..b.yaml",
		"..a.yaml", "a\nb.yaml", "~'\"![.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			memory := newMemory()
			full := "/some folder/" + name
			if err := memory.WriteFile(full, []byte("x")); err != nil {
				t.Fatal(err)
			}
			dir, file, err := memory.CleanedAbs(full)
			if err != nil || string(dir) != "/some folder" || file != name {
				t.Errorf("CleanedAbs: %q, %q, %v", dir, file, err)
			}
			if names, err := memory.ReadDir("/some folder"); err != nil || len(names) != 1 || names[0] != name {
				t.Errorf("ReadDir: %q, %v", names, err)
			}
			if content, err := memory.ReadFile("/some folder/../some folder/" + name); err != nil || string(content) != "x" {
				t.Errorf("ReadFile: %q, %v", content, err)
			}
		})
	}
}
