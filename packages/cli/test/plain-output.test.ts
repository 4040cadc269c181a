/** What commands print: at once, nothing that a terminal would execute, and nothing that it cannot show. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFullRun } from '@tidemark/core/testing'
import { createSimulator } from '@tidemark/simulator'
import { anthropic, createTidemark } from 'tidemark'
import { afterAll, describe, expect, it } from 'vitest'
import { main } from '../src/commands/main.ts'
import { SAMPLE_LOG_PATH } from '../src/sample-session.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-plain-'))
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  let [out, err] = ['', '']
  const code = await main(args, {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: { NO_COLOR: '1', TZ: 'UTC', ...env },
    isTty: false,
    isInputTty: true,
    columns: 80,
    ask: async () => 'y',
  })
  return { code, out, err }
}

/** A log of another program in which every text that a page may show contains control characters. */
function writeHostileLog(): string {
  const evil = (text: string): string => `${text}\u001b]0;x\u0007\u009b31m`
  const base = {
    sessionId: evil('s'),
    cwd: evil('/w'),
    version: evil('2.0'),
    timestamp: '2026-01-01T00:00:00.000Z',
    batch: null,
  }
  const call = { type: 'tool_use', id: evil('t'), name: evil('Read'), input: { file_path: evil('/w/a.ts') } }
  const usage = { input_tokens: 9_000, output_tokens: 30, cache_creation_input_tokens: 5 }
  const reply = { id: evil('m'), role: 'assistant', model: evil('model'), content: [call], usage }
  const result = { type: 'tool_result', tool_use_id: evil('t'), content: evil('text '.repeat(20_000)) }
  const records = [
    { type: 'user', uuid: evil('a'), parentUuid: null, message: { role: 'user', content: evil('hello') } },
    { type: 'assistant', uuid: evil('b'), parentUuid: evil('a'), message: reply },
    { type: 'user', uuid: evil('c'), parentUuid: evil('b'), message: { role: 'user', content: [result] } },
    { type: 'user', uuid: evil('d'), parentUuid: evil('c'), message: { role: 'user', content: evil('on') } },
  ]
  const path = join(folder, 'hostile.jsonl')
  writeFileSync(path, records.map((record) => `${JSON.stringify({ ...base, ...record })}\n`).join(''))
  return path
}

/** Reads figures such as `12.3k` and `438`. */
function readTokens(figures: readonly string[]): readonly number[] {
  return figures.map((figure) => Number.parseFloat(figure) * (figure.endsWith('k') ? 1_000 : 1))
}

describe('a log with control characters in every text', () => {
  it.each([[['inspect']], [['export']], [['export', '--no-redact']], [['compact', '--full']]])(
    'is printed without any of them by %j',
    async ([command = '', ...options]) => {
      const { code, out, err } = await run([command, writeHostileLog(), ...options])
      expect([code, err]).toEqual([0, ''])
      expect(out).toMatch(/hello/)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is searched for
      expect(out.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g)).toBeNull()
    },
  )
})

describe('a terminal that shows only ASCII', () => {
  const logged = readFileSync(SAMPLE_LOG_PATH, 'utf8')
  const helpOf = (name: string): readonly string[] => [name, '--help']
  it.each([
    [['--help']],
    ...['inspect', 'compact', 'sessions', 'repair', 'export', 'simulate', 'sample', 'tour'].map((name) => [
      helpOf(name),
    ]),
    [['sample']],
    ...(isFullRun() ? [[['tour']]] : []),
    [['inspect', SAMPLE_LOG_PATH]],
    [['compact', SAMPLE_LOG_PATH, '--full']],
  ])('gets nothing but ASCII from %j, except for what the log contains', async (args) => {
    const { out, err } = await run(args, { LANG: 'C' })
    const others = `${out}${err}`.match(/[^\n\x20-\x7e]/g) ?? []
    expect(others.filter((character) => !logged.includes(character))).toEqual([])
  })
})

it.each([
  ['README.md', '../../../README.md'],
  ['the README of the command', '../README.md'],
])('the command that %s says writes nothing writes nothing', async (_name, readme) => {
  const text = readFileSync(new URL(readme, import.meta.url), 'utf8')
  const [, command = ''] = /tidemark (compact FILE.*?) +#.*writes nothing/.exec(text) ?? []
  const own = join(folder, 'own.jsonl')
  copyFileSync(SAMPLE_LOG_PATH, own)
  const { code } = await run(command.split(' ').map((word) => (word === 'FILE' ? own : word)))
  expect([code, readFileSync(own, 'utf8')]).toEqual([0, readFileSync(SAMPLE_LOG_PATH, 'utf8')])
})

it.each(['inspect', 'compact'])(
  '%s --session with an empty value is wrong use, not every session',
  async (name) => {
    expect(await run([name, SAMPLE_LOG_PATH, '--session', ''])).toEqual({
      code: 2,
      out: '',
      err: `tidemark: option '--session <which>' argument '' is invalid. Expected the number of a session, or the beginning of its id. See tidemark ${name} --help.\n`,
    })
  },
)

it('the question before a session is changed is not overwritten while the user thinks', async () => {
  const own = join(folder, 'asked.jsonl')
  const lines = readFileSync(SAMPLE_LOG_PATH, 'utf8')
  writeFileSync(own, lines)
  const written: string[] = []
  const code = await main(['compact', own, '--target', '20000'], {
    write: () => {},
    warn: (text) => written.push(text),
    env: { NO_COLOR: '1' },
    isTty: true,
    isErrorTty: true,
    isInputTty: true,
    columns: 80,
    ask: async (question) => {
      written.push(question)
      await new Promise((resolve) => setTimeout(resolve, 1_600))
      written.push('n')
      return 'n'
    },
  })
  const asked = written.findIndex((text) => text.endsWith('[y/N] '))
  expect([code, written.slice(asked + 1)]).toEqual([1, ['n', 'Nothing was changed.\n']])
  expect(readFileSync(own, 'utf8')).toBe(lines)
})

it('--help appears at once: no code of a command is loaded for it', () => {
  const code = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) })
    const { main } = await import(${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)})
    const print = (text) => process.stderr.write(text)
    await main(['--help'], { write: print, warn: print, env: {}, isTty: false, columns: 80 })
    console.log(JSON.stringify(loaded))
  `
  const options = ['--conditions=tidemark-source', '--input-type=module', '-e', code]
  const { stdout, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8' })
  const own = JSON.parse(stdout).flatMap((url: string) => url.split('/packages/')[1] ?? [])
  expect(stderr).toContain('Usage: tidemark')
  expect(own.sort()).toEqual([
    'cli/package.json',
    'cli/src/commands/define-commands.ts',
    'cli/src/commands/define-gateway.ts',
    'cli/src/commands/main.ts',
    'cli/src/commands/option-parsers.ts',
    'cli/src/index.ts',
    'terminal/src/terminal.ts',
  ])
})

describe('the page of a compaction', () => {
  /** A log of another program in which two files with long names are written, and a plan is shown and approved. */
  function writePlannedLog(): string {
    const base = { sessionId: 's', cwd: '/w', version: '2.0', timestamp: '2026-01-01T00:00:00.000Z' }
    const files = ['concurrent-sessions-of-two-agents.ts', 'manual-commits-and-their-hooks.test.ts']
    const calls = [
      ...files.map(
        (name) => ['Write', { file_path: `/w/${name}`, content: `${name}\n`.repeat(50) }] as const,
      ),
      ['ExitPlanMode', { plan: '1. Read.\n2. Write.' }] as const,
      ...[1, 2, 3].map((count) => ['Bash', { command: `npm run part${count}` }] as const),
    ]
    const records = calls.flatMap(([name, input], at) => {
      const call = { type: 'tool_use', id: `toolu_${at}`, name, input }
      const content = name === 'Bash' ? `part ${at} is built. `.repeat(6_000) : 'Done.'
      const result = { type: 'tool_result', tool_use_id: `toolu_${at}`, content }
      const message = { id: `m${at}`, role: 'assistant', model: 'claude-sonnet-4-5', content: [call] }
      return [
        { type: 'assistant', uuid: `a${at}`, parentUuid: at === 0 ? 'first' : `u${at - 1}`, message },
        { type: 'user', uuid: `u${at}`, parentUuid: `a${at}`, message: { role: 'user', content: [result] } },
      ]
    })
    const first = {
      type: 'user',
      uuid: 'first',
      parentUuid: null,
      message: { role: 'user', content: 'Build it.' },
    }
    const lines = [first, ...records].map((record) => JSON.stringify({ ...base, ...record }))
    const path = join(folder, 'planned.jsonl')
    writeFileSync(path, [...lines, '{"type":"user","mess', ''].join('\n'))
    return path
  }

  it('fits its columns, calls a plan a plan, and says what of the log could not be read', async () => {
    const { code, out } = await run(['compact', writePlannedLog(), '--dry-run'])
    expect([code, out.split('\n').filter((line) => line.length > 80)]).toEqual([0, []])
    expect(out).toMatch(/re-attached +3 .*manual-commits-and-their-hooks\.test\.ts/)
    expect(out).toMatch(/\bplan$/m)
    expect(out.replaceAll(/\s+/g, ' ')).toContain(
      'the log has a damaged place, so the draft may lack something',
    )
    expect(out).not.toMatch(/toolu_|compacted before/)
  })

  /** A session of ours, whose sizes include a long system prompt. */
  async function writeOwnSession(): Promise<string> {
    const { fetch } = createSimulator({
      script: () => ({ blocks: [{ type: 'text', text: 'Done. '.repeat(900) }] }),
    })
    const model = anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch })
    const tide = createTidemark({
      model,
      home: folder,
      env: {},
      system: 'Amounts are in cents. '.repeat(900),
    })
    const session = await tide.open('own')
    for (const prompt of ['Build it.', 'Test it.', 'Ship it.', 'Say so.', 'Thanks.', 'Bye.'])
      await session.run(prompt).outcome
    await tide.close()
    return join(folder, 'sessions', 'own.jsonl')
  }

  it('shows parts that add up to the sizes, with a target and without, also with a system prompt', async () => {
    const planned = writePlannedLog()
    const own = await writeOwnSession()
    for (const args of [[planned], [planned, '--target', '9000'], [own]]) {
      const { out: page } = await run(['compact', ...args, '--dry-run'])
      const [out = ''] = page.split('\nDraft ')
      const parts = [
        ...out.matchAll(
          /^ {2}(summarized|kept|unanswered|system, tools|notes|summary|re-attached) +(?:\d+ +)?([\d.]+k?)(?: |$)/gm,
        ),
      ]
      const [before = 0, after = 0] = readTokens(/^ {2}(\S+) → (\S+) tokens/m.exec(out)?.slice(1) ?? [])
      const sizes = new Map(parts.map(([, name, size = '']) => [name, readTokens([size])[0] ?? 0]))
      const whole = (sizes.get('kept') ?? 0) + (sizes.get('unanswered') ?? 0)
      const stays = whole + (sizes.get('system, tools') ?? 0)
      const text = sizes.get('notes') ?? sizes.get('summary') ?? 0
      expect(sizes.has('system, tools')).toBe(args[0] === own)
      expect(text).toBeLessThan((sizes.get('summarized') ?? 0) / 2)
      // Each figure is rounded to three digits.
      expect(Math.abs((sizes.get('summarized') ?? 0) + stays - before)).toBeLessThan(before / 50)
      expect(Math.abs(text + stays + (sizes.get('re-attached') ?? 0) - after)).toBeLessThan(after / 50)
      expect(text).toBeGreaterThan(0)
    }
  })
})
