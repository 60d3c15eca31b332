//go:build unix

package tine

import (
	"os"
	"syscall"
)

// isOwn says whether a file is this user's, or root's.
func isOwn(file os.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
