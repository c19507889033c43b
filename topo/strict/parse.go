package strict

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is how long a file may be.
const MaxBytes = 4 << 20

// Limits that keep a hostile file from costing more than its size.
const (
	maxDepth = 64      // nesting
	maxNodes = 1 << 18 // values decoded, aliases expanded
)

// parse turns bytes into one document's body. Its error is a *Problem.
func parse(file string, data []byte) (body ast.Node, err error) {
	at := func(tk *token.Token, format string, args ...any) *Problem {
		p := &Problem{File: file, Line: 1, Col: 1, Err: fmt.Errorf(format, args...)}
		if tk != nil && tk.Position != nil {
			p.Line, p.Col = max(1, tk.Position.Line), max(1, tk.Position.Column)
		}
		return p
	}
	// The YAML library panics on some malformed input; for the user that is a syntax error.
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, at(nil, "not YAML (%v)", r)
		}
	}()
	switch {
	case len(data) > MaxBytes:
		return nil, at(nil, "larger than %d MiB", MaxBytes>>20)
	case !utf8.Valid(data):
		return nil, at(nil, "not UTF-8 text")
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), "\ufeff")) // some editors begin a file so
	if tk := tooDeep(tokens); tk != nil {
		return nil, at(tk, "nested more than %d deep", maxDepth)
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if ye, ok := errors.AsType[yaml.Error](err); ok {
			msg, _, _ := strings.Cut(ye.GetMessage(), "\n")
			return nil, at(ye.GetToken(), "not YAML: %s", msg)
		}
		return nil, at(nil, "not YAML: %w", err)
	}
	for _, d := range f.Docs {
		switch {
		case d.Body == nil || d.Body.Type() == ast.DirectiveType || d.Body.Type() == ast.CommentType:
		case body == nil:
			body = d.Body
		default:
			return nil, at(d.Body.GetToken(), "a second document begins here; one file holds one")
		}
	}
	if body == nil {
		return nil, at(nil, "the file is empty")
	}
	return body, nil
}

// tooDeep finds the token where nesting passes maxDepth, before a recursive parser meets it:
// flow brackets open at once, or openers of block values one after another on a line.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, run, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position != nil && tk.Position.Line != line {
			line, run = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			run++
		case token.CollectEntryType:
			run = 0
		}
		if flow > maxDepth || run > maxDepth || tk.Position != nil && tk.Position.IndentLevel > 2*maxDepth {
			return tk
		}
	}
	return nil
}
