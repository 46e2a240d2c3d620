// Package syswatch is for tests that have to show that a piece of code does not do something. It runs the code in a separate process. It
// reports every program that was started, every socket, and every file outside of one folder that was opened or changed. Each of these
// calls fails in the process.
//
// The package uses seccomp's user notifications: the kernel asks this process about each such system call and waits for the answer. This
// needs no privilege and no other program, but Linux 5.5 or newer on a 64-bit processor of Intel or Arm.
package syswatch
