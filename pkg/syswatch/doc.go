// Package syswatch is for tests that have to show what a piece of code does not do: it runs the code in a process of its own and reports
// every program that was started, every socket, and every file outside of one folder that was opened or changed. Each of these fails in
// that process.
//
// It stands on seccomp's user notifications: the kernel asks this process about each such system call and waits for the answer. That needs
// no privilege and no other program, but Linux 5.5 or newer on a 64-bit processor of Intel or Arm.
package syswatch
