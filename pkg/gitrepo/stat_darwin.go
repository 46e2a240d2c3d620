package gitrepo

import "syscall"

// changeTime returns the time at which a file's data or metadata changed last.
func changeTime(s *syscall.Stat_t) (sec, nsec int64) { return s.Ctimespec.Sec, s.Ctimespec.Nsec }
