//go:build fakeclock

package ids

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// For tests, which step the clock of a running program: libfaketime cannot reach a program of Go's. The file has an
// offset in seconds.
func init() {
	file, isSet := os.LookupEnv("FAKECLOCK_FILE")
	if !isSet {
		return
	}
	now = func() time.Time {
		text, _ := os.ReadFile(file)
		seconds, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		return time.Now().Add(time.Duration(seconds * float64(time.Second)))
	}
}
