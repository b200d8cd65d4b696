// The judge of Go: go/parser. It reads texts, each after its length in four bytes, big-endian, and answers each with a line.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"strings"
)

const longestMessage = 300

func verdict(text []byte) (said string) {
	defer func() {
		if failure := recover(); failure != nil {
			said = line("?", fmt.Sprint(failure))
		}
	}()
	if _, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution); err != nil {
		return line("no", err.Error())
	}
	return "ok\n"
}

func line(word, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > longestMessage {
		message = message[:longestMessage]
	}
	return word + " " + strings.ToValidUTF8(message, "?") + "\n"
}

func main() {
	texts := bufio.NewReaderSize(os.Stdin, 1<<20)
	answers := bufio.NewWriter(os.Stdout)
	for {
		var length uint32
		if binary.Read(texts, binary.BigEndian, &length) != nil {
			return
		}
		text := make([]byte, length)
		if _, err := io.ReadFull(texts, text); err != nil {
			return
		}
		answers.WriteString(verdict(text))
		// Answers are sent together while more texts wait.
		if texts.Buffered() < 4 {
			answers.Flush()
		}
	}
}
