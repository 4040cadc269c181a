import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodingSession } from '../../test/summarize/coding-session.ts'
import { buildLedger, estimate } from '../../test/summarize/summary-rules.ts'
import { findNamesInText } from '../text/code-in-text.ts'

const rules = { tokens: 1_500, estimate }

describe('the ledger', () => {
  it('lists what the work is using by file, newest first, and names a folder that files share once', () => {
    const work = new CodingSession()
    work.says('Rename parseQuery in the parser.')
    work.reads('/app/src/parser.ts', 'export function parseQuery(rawText: string) {}')
    work.edits('/app/src/parser.ts', 'export function readQuery(rawText: string) {}')
    work.runs('grep -rn parseQuery src', 'src/lexer.ts:3: parseQuery(input_line)')
    work.edits('/app/src/lexer.ts', 'readQuery(input_line)')
    expect(buildLedger(work.history, rules).lines).toEqual([
      'In use, in /app/src/',
      'lexer.ts: readQuery input_line',
      'parser.ts: parseQuery rawText',
    ])
  })

  it('takes bare and relative names for the whole path they end', () => {
    const work = new CodingSession()
    work.edits('/app/src/parser.ts', 'x')
    work.answers('parser.ts is done, and so is src/parser.ts, b/src/parser.ts in the diff.')
    expect(buildLedger(work.history, rules).lines).toEqual(['In use', '/app/src/parser.ts'])
  })

  it('tells files of the same name in several folders apart, and a path of which only the end is known', () => {
    const work = new CodingSession()
    work.edits('/app/web/src/index.ts', 'x')
    work.edits('/app/api/src/index.ts', 'x')
    work.answers('Next is lib/index.ts, then src/index.ts.')
    expect(buildLedger(work.history, rules).lines.toSorted()).toEqual([
      'In use, in /app/',
      'api/src/index.ts',
      'web/src/index.ts',
      '…/lib/index.ts',
    ])
  })

  it('lets what was used last go before what was met long ago, and what was used before what was met', () => {
    const work = new CodingSession()
    work.edits('/app/old.ts', 'oldName')
    for (let at = 0; at < 30; at += 1) work.answers('…')
    work.reads('/app/read.ts', 'metName')
    work.edits('/app/new.ts', 'newName')
    const tight = buildLedger(work.history, { ...rules, tokens: 14 })
    expect(tight.lines).toEqual(['In use, in /app/', 'new.ts: newName', 'read.ts: metName'])
  })

  it('lists files of one folder below its name, and whole paths outside the folder that most share', () => {
    const work = new CodingSession()
    for (const path of ['/app/src/a.ts', '/app/src/b.ts', '/app/test/c.ts', '/app/test/d.ts', '/etc/e.conf'])
      work.edits(path, 'x')
    expect(buildLedger(work.history, rules).lines).toEqual([
      'In use, in /app/',
      '/etc/e.conf',
      'test/',
      ' d.ts',
      ' c.ts',
      'src/',
      ' b.ts',
      ' a.ts',
    ])
  })

  it('knows a file on Windows by its path and by its name', () => {
    const work = new CodingSession()
    work.edits('D:\\app\\src\\parser.ts', 'readQuery')
    work.edits('D:\\app\\src\\lexer.ts', 'x')
    work.answers('parser.ts is done.')
    expect(buildLedger(work.history, rules).lines).toEqual([
      'In use, in D:/app/src/',
      'parser.ts: readQuery',
      'lexer.ts',
    ])
  })

  it('lets a name that a text has often go before one that it has once', () => {
    const work = new CodingSession()
    work.answers('onceNamed oftenNamed oftenNamed oftenNamed')
    expect(buildLedger(work.history, rules).lines).toEqual(['In use', 'Also: oftenNamed onceNamed'])
  })

  it('is nothing where nothing was named, and where there is no room', () => {
    const work = new CodingSession()
    work.says('hello')
    expect(buildLedger(work.history, rules)).toEqual({ lines: [], text: '', tokens: 0 })
    work.edits('/app/a.ts', 'aName')
    expect(buildLedger(work.history, { ...rules, tokens: 3 }).text).toBe('')
  })

  it('names nothing from summaries of what the log holds, but all from one of what it does not', () => {
    const work = new CodingSession()
    work.compacts('Summary:\nworked on lostName in /app/lost.ts')
    work.edits('/app/a.ts', 'aName')
    work.compacts('Summary:\ninventedName in /app/invented.ts')
    const { text } = buildLedger(work.history, rules)
    expect(['lostName', 'lost.ts', 'inventedName', 'invented.ts'].map((name) => text.includes(name))).toEqual(
      [true, true, false, false],
    )
  })

  it('has no secrets, nor parts of them', () => {
    const work = new CodingSession()
    work.runs(
      `deploy --password my_secret_word123`,
      `nerdctl login -u me -p my_secret_pw1\nPASSWORD=other_secret_word9\nTOKEN: 'third_secret_word'`,
    )
    work.answers(`It is ghp_${'aB3'.repeat(12)} for deployName.`)
    expect(buildLedger(work.history, rules).text.match(/\w*secret\w*|ghp_\w*|deployName/g)).toEqual([
      'deployName',
    ])
  })

  it('is within its tokens, whatever is named', () => {
    const path = fc.array(fc.stringMatching(/^[a-z_]{1,12}$/), { minLength: 1, maxLength: 5 })
    const name = fc.stringMatching(/^[a-z]{2,12}(_[a-z]{2,9}|[A-Z][a-z]{1,9}){1,3}$/)
    const edits = fc.array(fc.tuple(path, fc.array(name, { maxLength: 12 })), { maxLength: 25 })
    fc.assert(
      fc.property(edits, fc.integer({ min: 0, max: 900 }), (made, tokens) => {
        const work = new CodingSession()
        for (const [parts, names] of made) work.edits(`/${parts.join('/')}.ts`, names.join(' '))
        const ledger = buildLedger(work.history, { tokens, estimate })
        expect(ledger.tokens).toBeLessThanOrEqual(tokens)
        expect(ledger).toEqual(buildLedger(work.history, { tokens, estimate }))
      }),
      { numRuns: countPropertyRuns(60) },
    )
  })
})

function listNames(text: string): readonly string[] {
  const { files, identifiers } = findNamesInText(text)
  return [...files, ...[...identifiers.keys()].map((name) => `<${name}>`)]
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
    expect(listNames(text)).toEqual(expected)
  })
})
