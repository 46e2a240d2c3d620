//go:build !integration

package embedded_test

func makeEphemeral(string, string) {}
