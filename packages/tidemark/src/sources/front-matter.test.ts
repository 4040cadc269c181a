import { describe, expect, it } from 'vitest'
import { parseFrontMatter, readMatterList, readMatterText } from './front-matter.ts'

async function parse(text: string) {
  const parsed = await parseFrontMatter(text)
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed
}

async function readList(lines: string): Promise<readonly string[]> {
  return readMatterList((await parse(`---\n${lines}\n---\n`)).matter, 'paths')
}

async function readText(lines: string): Promise<string | null> {
  return readMatterText((await parse(`---\n${lines}\n---\n`)).matter, 'description')
}

async function refuse(text: string): Promise<string> {
  const parsed = await parseFrontMatter(text)
  return parsed.ok ? 'accepted' : parsed.why
}

describe('a list is read', () => {
  it.each<[string, string, readonly string[]]>([
    ['one item', 'paths: src/**/*.ts', ['src/**/*.ts']],
    ['in quotes', 'paths: "src/**"', ['src/**']],
    ['several on a line', 'paths: src/*.{ts,tsx}, lib/**', ['src/*.{ts,tsx}', 'lib/**']],
    ['with a comment after the value', 'paths: src/** # sources', ['src/**']],
    [
      'with comments after its items',
      'paths:\n  - "src/**" # sources\n  - lib/** # more',
      ['src/**', 'lib/**'],
    ],
    ['in brackets', "paths: ['a/{b,c}/*', d]", ['a/{b,c}/*', 'd']],
    ['in brackets on several lines', 'paths: [a, # one\n  "b"\n]', ['a', 'b']],
    ['not indented', 'title: x\npaths:\n- a\n\n# why\n- b\nother: y', ['a', 'b']],
    ['of block texts', 'paths:\n  - >-\n    a b\n  - |-\n    c', ['a b', 'c']],
    ['under a key in quotes', '"paths": [a]', ['a']],
    ['by an anchor', 'all: &all [a, b]\npaths: *all', ['a', 'b']],
    ['with items by an anchor', 'one: &one a\npaths: [*one, b]', ['a', 'b']],
    ['with escapes', "paths: [\"a\\u002fb\", 'it''s']", ['a/b', "it's"]],
    ['a glob that YAML takes for an alias', 'paths: **/*.ts', ['**/*.ts']],
    ['globs that YAML takes for aliases and maps', 'paths: [*.ts, lib/{a,b}]', ['*.ts', 'lib/{a,b}']],
    ['a glob that begins with braces', 'paths: {src,lib}/**', ['{src,lib}/**']],
    ['of numbers and words', 'paths: [1, true, null, ~, x]', ['1', 'true', 'x']],
    ['without items', 'paths:', []],
    ['of nothing', 'paths: ~', []],
    ['that is a map', 'paths: { a: b }', []],
    ['that is not there', 'other: a', []],
  ])('%s', async (_, lines, expected) => {
    expect(await readList(lines)).toEqual(expected)
  })
})

describe('a text is read', () => {
  it.each([
    ['plain', 'description: Reviews code.', 'Reviews code.'],
    ['in quotes', 'description: \'Says: "no".\'', 'Says: "no".'],
    ['on several lines', 'description: One\n  two.', 'One two.'],
    ['folded', 'description: >-\n  One\n  two.', 'One two.'],
    ['line by line', 'description: |\n  One\n    two.\n', 'One\n  two.'],
    ['with a comment', 'description: One # two', 'One'],
    ['with a sign that begins no comment', 'description: One#two', 'One#two'],
    ['a number', 'description: 1_000', '1_000'],
    [
      'with colons, as many people write it',
      'description: Use it so: always.\nname: x',
      'Use it so: always.',
    ],
    ['with a sign that YAML reserves', 'description: @team reviews', '@team reviews'],
    ['of a tag that nobody knows', 'description: !!js/function x', 'x'],
  ])('%s', async (_, lines, expected) => {
    expect(await readText(lines)).toBe(expected)
  })

  it('but not from a list', async () => {
    expect(await readText('description: [a]')).toBeNull()
  })
})

describe('the text after it', () => {
  it.each([
    ['follows', '---\na: b\n---\nBody.\n', 'Body.\n'],
    ['follows CRLF and a byte order mark', '\ufeff---\r\na: b\r\n---\r\nBody.\r\n', 'Body.\r\n'],
    ['follows no fields', '---\n---\nBody.', 'Body.'],
    ['is the whole file where there is none', 'Body.\n---\na: b\n---\n', 'Body.\n---\na: b\n---\n'],
    ['is the whole file between two lines', '---\nSome words.\n---\nBody.', '---\nSome words.\n---\nBody.'],
  ])('%s', async (_, text, body) => {
    expect((await parse(text)).body).toBe(body)
  })
})

describe('a broken file is refused in one line', () => {
  it.each([
    ['that has no end', '---\na: b\nBody.', 'its front matter has no end (a line with ---)'],
    [
      'with a name twice',
      '---\na: b\na: c\n---\n',
      'its front matter is not valid YAML: line 3: Map keys must be unique',
    ],
    [
      'with tabs',
      '---\na:\n\t- b\n---\n',
      'its front matter is not valid YAML: line 3: Tabs are not allowed as indentation',
    ],
    [
      'with a list on the line of its name',
      '---\npaths: - "src/**"\n---\n',
      'its front matter is not valid YAML: line 2: Unexpected block-seq-ind on same line with key',
    ],
    [
      'with a quote that does not end',
      '---\na: "b\n---\n',
      'its front matter is not valid YAML: line 3: Missing closing "quote',
    ],
    [
      'nested without end',
      `---\na:\n  ${'['.repeat(9_000)}\n---\n`,
      'its front matter is not valid YAML: line 3: Values are nested too deeply',
    ],
    [
      'of a megabyte',
      `---\na: ${'b'.repeat(1_000_000)}\n---\n`,
      'its front matter has more than 10000 characters',
    ],
  ])('%s', async (_, text, why) => {
    expect(await refuse(text)).toBe(why)
  })
})

describe('a hostile file', () => {
  it('whose aliases stand for half a million texts gives no more texts than it has', async () => {
    const names = [...'abcdef']
    const rows = names.map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? 'x' : `*${names[index - 1]}`)
          .join(', ')}]`,
    )
    const { matter } = await parse(`---\n${rows.join('\n')}\n---\n`)
    expect(readMatterList(matter, 'a')).toHaveLength(9)
    expect(readMatterList(matter, 'f')).toEqual([])
  })

  it('sets no field that the others inherit', async () => {
    const { matter } = await parse('---\n__proto__: [a]\nconstructor: b\n---\n')
    expect([...matter]).toEqual([
      ['__proto__', ['a']],
      ['constructor', 'b'],
    ])
    expect(matter.get('toString')).toBeUndefined()
  })

  it.each(['{a: ', '&a ', '! ', '%\n', 'a: b: c\n', '\t', ':'])('made of %j takes a moment', async (part) => {
    const started = process.cpuUsage()
    await parseFrontMatter(`---\na: ${part.repeat(9_900 / part.length)}\n---\n`)
    await parseFrontMatter(`---\n${part.repeat(9_900 / part.length)}\n---\n`)
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000)
  })
})
