//go:build unix

package tine

import (
	"os"
	"syscall"
)

// isOwn reports whether this user or root owns a file.
func isOwn(file os.FileInfo) bool {
	stat, ok := file.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
