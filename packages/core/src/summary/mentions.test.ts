import { describe, expect, it } from 'vitest'
import { namesIn } from './mentions.ts'

function names(text: string): readonly string[] {
  const { files, identifiers } = namesIn(text)
  return [...files, ...[...identifiers].map((name) => `<${name}>`)]
}

describe('names in a text', () => {
  it.each<[string, string, readonly string[]]>([
    ['camel case', 'call parseQuery now', ['<parseQuery>']],
    ['a type', 'a QueryParser and an HTTPClient', ['<QueryParser>', '<HTTPClient>']],
    ['snake case', 'set max_retries to 3', ['<max_retries>']],
    ['constants', 'MAX_RETRIES', ['<MAX_RETRIES>']],
    ['no plain words', 'the parser Parser PARSER of queries', []],
    ['a path and the names in it', 'see /src/my_parser.ts.', ['/src/my_parser.ts', '<my_parser>']],
    ['a relative path', 'in ./src/parser.ts, or src/lexer.go:12', ['./src/parser.ts', 'src/lexer.go']],
    ['a bare file', 'open parser.ts', ['parser.ts']],
    ['no field for a file', 'parser.parse() and repo.Log and t.log2', []],
    ['an unknown ending behind a folder', 'lib/grammar.peg', ['lib/grammar.peg']],
    ['no address', 'https://example.test/a and //example.com', []],
    ['no hash or id', 'toolu01a2b3c4d5e6f7g8 a1b2_c3d4_e5f60718', []],
    ['a line break in quoted code', String.raw`printf("\nActual %s", maxSize)`, ['<maxSize>']],
    ['each once', 'parseQuery(parseQuery)', ['<parseQuery>']],
    ['other scripts around it', '请修改 parseQuery 函数', ['<parseQuery>']],
  ])('%s', (_, text, expected) => {
    expect(names(text)).toEqual(expected)
  })
})
