package privatenet

// KillHelper ends the helper as the kernel may, short of memory.
func (n *Network) KillHelper() error { return n.helper.cmd.Process.Kill() }
