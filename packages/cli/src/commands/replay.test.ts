import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Terminal } from '@tidemark/terminal/terminal'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { writeLog } from '../../test/made-up-logs.ts'
import { main } from './main.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-replay-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function run(args: readonly string[], given: Partial<Terminal> = {}) {
  let out = ''
  let err = ''
  const terminal: Terminal = {
    write: (text) => {
      out += text
    },
    warn: (text) => {
      err += text
    },
    env: { TZ: 'UTC' },
    isTty: false,
    columns: 80,
    ...given,
  }
  const code = await main(args, terminal)
  return { code, out, err }
}

function writeLines(name: string, lines: readonly object[]): string {
  const path = join(folder, name)
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return path
}

/** A log of Claude Code in which a file is read and a line of it edited. Each request has all earlier messages. */
function writeEditingLog(name: string, rounds = 3): string {
  const lines: object[] = []
  const add = (type: string, message: object): void => {
    const number = lines.length + 1
    lines.push({
      type,
      uuid: `${name}-${number}`,
      parentUuid: number === 1 ? null : `${name}-${number - 1}`,
      timestamp: new Date(Date.parse('2026-03-09T09:00:00Z') + number * 5_000).toISOString(),
      ...{ sessionId: `${name}-0000-4000`, cwd: '/home/user/shop', version: '2.1.0' },
      message,
    })
  }
  const text = Array.from({ length: 120 }, (_, index) => `const value${index} = compute(${index})`).join('\n')
  let sent = 0
  const respond = (content: object): void => {
    const context = 20_000 + lines.length * 700
    const usage = {
      ...{ input_tokens: 0, output_tokens: 40, cache_read_input_tokens: sent },
      cache_creation_input_tokens: context - sent,
      cache_creation: { ephemeral_5m_input_tokens: context - sent, ephemeral_1h_input_tokens: 0 },
    }
    sent = context
    const id = `${name}-m${lines.length}`
    add('assistant', {
      id,
      role: 'assistant',
      model: 'claude-opus-4-6',
      content: [content],
      stop_reason: 'tool_use',
      usage,
    })
  }
  const giveResult = (id: string, content: string): void =>
    add('user', { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] })
  add('user', { role: 'user', content: 'Please rename the values.' })
  for (let round = 0; round < rounds; round += 1) {
    const [read, edit] = [`${name}-read-${round}`, `${name}-edit-${round}`]
    respond({ type: 'tool_use', id: read, name: 'Read', input: { file_path: `/src/${round}.ts` } })
    giveResult(read, text)
    const input = {
      file_path: `/src/${round}.ts`,
      old_string: 'const value7 = compute(7)',
      new_string: 'const seven = 7',
    }
    respond({ type: 'tool_use', id: edit, name: 'Edit', input })
    giveResult(edit, 'ok')
  }
  return writeLines(`${name}.jsonl`, lines)
}

function writeCodexLog(): string {
  const line = (type: string, payload: object, second: number) => ({
    timestamp: `2026-04-11T20:00:${String(second).padStart(2, '0')}.000Z`,
    type,
    payload,
  })
  const say = (role: string, text: string, second: number) =>
    line(
      'response_item',
      { type: 'message', role, content: [{ type: role === 'user' ? 'input_text' : 'output_text', text }] },
      second,
    )
  const tokens = (input: number, cached: number, output: number) => ({
    ...{ input_tokens: input, cached_input_tokens: cached, output_tokens: output },
    total_tokens: input + output,
  })
  return writeLines('rollout.jsonl', [
    line('session_meta', { id: 'rollout-1', cwd: '/projects/boat', cli_version: '0.1.0' }, 1),
    line('turn_context', { model: 'gpt-5.4', cwd: '/projects/boat' }, 1),
    say('user', 'List the harbours.', 2),
    say('assistant', 'Three harbours.', 3),
    line(
      'event_msg',
      {
        type: 'token_count',
        info: { total_token_usage: tokens(9_000, 0, 30), last_token_usage: tokens(9_000, 0, 30) },
      },
      3,
    ),
    say('user', 'And the tides?', 4),
    say('assistant', 'High at six.', 5),
    line(
      'event_msg',
      {
        type: 'token_count',
        info: { total_token_usage: tokens(18_100, 9_000, 60), last_token_usage: tokens(9_100, 9_000, 30) },
      },
      5,
    ),
  ])
}

const editing = writeEditingLog('editing')

describe('tidemark replay', () => {
  it('prints what a session cost and would have cost, the edits that saw their lines, and a caveat', async () => {
    const { code, out, err } = await run(['replay', editing], { columns: 120 })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [file, line, , caveat] = out.split('\n')
    expect(file).toMatch(/editing\.jsonl$/)
    expect(line).toMatch(
      /^ {2}as recorded \$0\.\d\d · Tidemark \$0\.\d\d \([−+±]\d+%\) · edits that still saw their lines 100%$/,
    )
    expect(caveat).toMatch(/^Open loop: .* Replayed with nothing changed,$/)
  })

  it('prints one line for each policy, within 80 columns and without colours', async () => {
    const { out } = await run(['replay', editing, '--policy', 'default, claude-code-like,nothing,default'])
    const lines = out.split('\n')
    expect(lines.slice(1, 5).map((line) => line.trim().split(' $')[0])).toEqual([
      'as recorded',
      'Tidemark',
      'claude-code-like',
      'nothing',
    ])
    expect(lines.filter(({ length }) => length > 80)).toEqual([])
    expect(out).not.toContain('\u001b[')
  })

  it('has the recorded cost that inspect shows for the same file, from Claude Code and from Codex', async () => {
    for (const path of [editing, writeLog(folder, { name: 'plain' }), writeCodexLog()]) {
      const inspected = JSON.parse((await run(['inspect', path, '--json'])).out)
      const replayed = JSON.parse((await run(['replay', path, '--json'])).out)
      expect(replayed.sessions[0].recorded.usd).toBe(inspected.sessions[0].costUsd)
      expect(replayed.sessions[0].calls).toBe(inspected.sessions[0].apiCalls)
    }
  })

  it('prints one JSON value with --json', async () => {
    const { out } = await run(['replay', editing, '--json', '--policy', 'default,nothing'])
    const dollars = expect.any(Number)
    const counts = { anchors: { used: 3, seen: 3 }, compactions: 0, clearings: 0, refused: 0 }
    expect(JSON.parse(out)).toEqual({
      sessions: [
        {
          file: editing,
          model: 'claude-opus-4-6',
          calls: 6,
          recorded: { usd: dollars, replayedUsd: dollars, breaksUsd: dollars },
          policies: [
            { name: 'default', usd: dollars, ...counts },
            { name: 'nothing', usd: dollars, ...counts },
          ],
        },
      ],
      skipped: [],
      caveat: expect.stringMatching(/^Open loop/),
    })
  })

  it('leaves out a log that it cannot read or price with one line each, and replays the others', async () => {
    const broken = join(folder, 'broken.jsonl')
    writeFileSync(broken, '{"half')
    const strange = writeLog(folder, { name: 'strange', model: 'llama-x' })
    const { code, out, err } = await run(['replay', broken, strange, editing])
    expect(code).toBe(1)
    expect(out).toContain('as recorded')
    const errors = err.trimEnd().split('\n')
    expect(errors).toHaveLength(2)
    expect(errors.find((line) => line.includes('strange'))).toContain(
      'the prices of its model llama-x are not known',
    )
    expect(errors.find((line) => line.includes('broken'))).toMatch(/^tidemark: .*broken\.jsonl/)
  })

  it('replays all sessions of a folder, and prints what they cost together', async () => {
    const own = join(folder, 'many')
    mkdirSync(own)
    writeLog(own, { name: 'one' })
    writeLog(own, { name: 'two', day: '2026-03-10' })
    const { code, out } = await run(['replay', own])
    expect(code).toBe(0)
    expect(out).toMatch(/\n2 sessions\n {2}as recorded \$/)
    expect((await run(['replay', own, '--limit', '1'])).out).not.toContain('sessions\n')
  })

  it('replays the newest sessions of this machine if no path is given', async () => {
    const home = join(folder, 'home')
    const project = join(home, 'projects', 'shop')
    mkdirSync(project, { recursive: true })
    writeLog(project, { name: 'mine' })
    const env = {
      TZ: 'UTC',
      HOME: folder,
      CLAUDE_CONFIG_DIR: home,
      CODEX_HOME: join(folder, 'none'),
      TIDEMARK_HOME: join(folder, 'none'),
    }
    const { code, out } = await run(['replay'], { env })
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('mine.jsonl') })
  })

  it('takes a policy from a file', async () => {
    const path = join(folder, 'mine.json')
    writeFileSync(path, JSON.stringify({ cache: { ttl: '1h' } }))
    const { out } = await run(['replay', editing, '--policy', `default,${path}`, '--json'])
    const [own, other] = JSON.parse(out).sessions[0].policies
    expect(other.name).toBe(path)
    expect(other.usd).toBeGreaterThan(own.usd)
  })

  it('explains in one line what is wrong with a policy', async () => {
    const [text, field] = [join(folder, 'text.json'), join(folder, 'field.json')]
    writeFileSync(text, 'no JSON')
    writeFileSync(field, JSON.stringify({ cach: { ttl: '1h' } }))
    for (const [policy, why] of [
      [
        'cheap',
        /^tidemark: there is no policy cheap: expected default, economy, claude-code-like, nothing, or a JSON file of settings\.\n$/,
      ],
      [text, /^tidemark: .*text\.json is not a policy: .*\n$/],
      [field, /^tidemark: .*field\.json is not a policy: .*cach: no such field; did you mean cache\?.*\n$/],
      [folder, /^tidemark: the policy .* cannot be read: .*\n$/],
    ] as const) {
      const { code, out, err } = await run(['replay', editing, '--policy', policy])
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toMatch(why)
    }
  })

  it('says in one line that a folder has no session', async () => {
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    const { code, out, err } = await run(['replay', empty])
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^tidemark: .*empty has no session in it\.\n$/)
  })

  it('shows on a terminal how far it is, and leaves nothing of that behind', async () => {
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 2_000
      return now
    })
    try {
      const { err } = await run(['replay', editing], { isErrorTty: true, columns: 120 })
      const shown = err.split('\r\u001b[2K')
      expect(shown).toContainEqual(
        expect.stringMatching(/^replaying 1 of 1: default 46% {2}.*editing\.jsonl$/),
      )
      expect(shown.at(-1)).toBe('')
    } finally {
      clock.mockRestore()
    }
  })

  it('ends without output when it is interrupted', async () => {
    const { code, out } = await run(['replay', editing], { interrupted: AbortSignal.abort() })
    expect({ code, out }).toEqual({ code: 130, out: '' })
  })
})
