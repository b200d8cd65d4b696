// The judge of Go: go/parser, for the version of Go that the first argument names. It reads texts, each after its length
// in four bytes, big-endian, and answers each with a line.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/version"
	"io"
	"os"
	"runtime"
	"strings"
)

const longestMessage = 300

// Before it methods had no type parameters; newer parsers read them for every version.
const genericMethods = "go1.27"

func verdict(text []byte, asked string) (said string) {
	defer func() {
		if failure := recover(); failure != nil {
			said = line("?", fmt.Sprint(failure))
		}
	}()
	if version.Compare(version.Lang(runtime.Version()), asked) < 0 {
		return line("?", fmt.Sprintf("it is built with %s, which does not read %s", runtime.Version(), asked))
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return line("no", err.Error())
	}
	if version.Compare(asked, genericMethods) < 0 {
		for _, declared := range file.Decls {
			if function, ok := declared.(*ast.FuncDecl); ok && function.Recv != nil && function.Type.TypeParams != nil {
				return line("no", "method must have no type parameters")
			}
		}
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
	asked := version.Lang(runtime.Version())
	if len(os.Args) > 1 {
		asked = "go" + os.Args[1]
	}
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
		answers.WriteString(verdict(text, asked))
		// Answers are sent together while more texts wait.
		if texts.Buffered() < 4 {
			answers.Flush()
		}
	}
}
