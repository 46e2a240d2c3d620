package sameorigin

import "testing"

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true,
		"127.vault.example.com": false, "127.0.0.1.nip.io": false, "10.0.0.1": false, "vault": false, "": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
