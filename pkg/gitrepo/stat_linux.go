package gitrepo

import "syscall"

// changeTime returns the time at which a file's data or metadata changed last.
//
//nolint:unconvert // they have 32 bits on some systems
func changeTime(s *syscall.Stat_t) (sec, nsec int64) { return int64(s.Ctim.Sec), int64(s.Ctim.Nsec) }
