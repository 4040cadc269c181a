/** Each event with a real command from a settings file on disk: it hangs, fails, blocks, answers, or prints 10 MB. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type HookResult, runHooks, type SessionHooks } from '@tidemark/core/engine/hooks'
import { sampleCases } from '@tidemark/core/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDeadlines } from '../platform/node-ports.ts'
import { joinCommandHooks } from './command-hooks.ts'
import { HOOK_EVENTS, type HookEvent, type HookSettings, toHookEvent } from './hook-settings.ts'

const sessionId = 's-1'
const call = { type: 'tool_use' as const, id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }
const result = { type: 'tool_result' as const, tool_use_id: 'toolu_1', content: 'a.txt' }

interface EventCase {
  readonly input: object
  /** What standard input must have, besides the fields of all events. */
  readonly fields: object
  /** What exit code 2 becomes; null if the event cannot be blocked. */
  readonly block: object | null
  /** What the text `plain` becomes; undefined if it is dropped. */
  readonly text: object | undefined
  readonly addsContext: boolean
}

const DENIED = { decision: 'deny', reason: 'no' }
const BLOCKED = { block: 'no' }
const CONTEXT = { additionalContext: 'plain' }
const TOOL = { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'toolu_1' }

const CASES: { readonly [Point in keyof SessionHooks]-?: EventCase } = {
  userPromptSubmit: {
    input: { prompt: [{ type: 'text', text: 'Hello.' }] },
    fields: { prompt: 'Hello.' },
    block: BLOCKED,
    text: CONTEXT,
    addsContext: true,
  },
  preToolUse: { input: { call }, fields: TOOL, block: DENIED, text: undefined, addsContext: true },
  permissionRequest: {
    input: { call, reason: 'It runs.' },
    fields: { ...TOOL, reason: 'It runs.' },
    block: DENIED,
    text: undefined,
    addsContext: false,
  },
  postToolUse: {
    input: { call, result },
    fields: { ...TOOL, tool_response: { content: 'a.txt', is_error: false } },
    block: BLOCKED,
    text: undefined,
    addsContext: true,
  },
  stop: {
    input: { stopReason: 'end_turn', isContinued: true },
    fields: { stop_hook_active: true, stop_reason: 'end_turn' },
    block: BLOCKED,
    text: undefined,
    addsContext: false,
  },
  preCompact: {
    input: { trigger: 'auto', customInstructions: 'Keep ids.' },
    fields: { trigger: 'auto', custom_instructions: 'Keep ids.' },
    block: BLOCKED,
    text: { newCustomInstructions: 'plain' },
    addsContext: false,
  },
  postCompact: {
    input: { trigger: 'manual', summary: 'Summary: done.', receipt: {} },
    fields: { trigger: 'manual', compact_summary: 'Summary: done.' },
    block: null,
    text: CONTEXT,
    addsContext: true,
  },
  sessionStart: {
    input: { source: 'resume' },
    fields: { source: 'resume' },
    block: null,
    text: CONTEXT,
    addsContext: true,
  },
  sessionEnd: {
    input: { reason: 'close' },
    fields: { reason: 'close' },
    block: null,
    text: undefined,
    addsContext: false,
  },
  instructionsLoaded: {
    input: { filePath: '/p/CLAUDE.md', memoryType: 'Project', loadReason: 'compact' },
    fields: { file_path: '/p/CLAUDE.md', memory_type: 'Project', load_reason: 'compact' },
    block: null,
    text: undefined,
    addsContext: false,
  },
  subagentStart: {
    input: { agentId: 'a1', agentType: 'review' },
    fields: { agent_id: 'a1', agent_type: 'review' },
    block: null,
    text: undefined,
    addsContext: true,
  },
  subagentStop: {
    input: { agentId: 'a1', agentType: 'review', lastMessage: 'Done.', isContinued: false },
    fields: {
      agent_id: 'a1',
      agent_type: 'review',
      last_assistant_message: 'Done.',
      stop_hook_active: false,
    },
    block: BLOCKED,
    text: undefined,
    addsContext: false,
  },
}

type AnyResult = HookResult<Record<string, unknown>>

function createFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-hooks-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Writes the settings to a file, reads them from there, and runs the hooks of a point. */
async function runFromFile(
  point: keyof SessionHooks,
  settings: HookSettings,
  folder: string,
  input: object = CASES[point].input,
): Promise<readonly AnyResult[]> {
  const path = join(folder, 'settings.json')
  writeFileSync(path, JSON.stringify({ hooks: settings }))
  const { hooks } = JSON.parse(readFileSync(path, 'utf8'))
  const session = { log: '/logs/s-1.jsonl', cwd: folder, env: { PATH: process.env.PATH, HOME: folder } }
  const joined = joinCommandHooks({ settings: hooks, permissionMode: 'default' }, session)
  const limits = {
    deadlines: createDeadlines(),
    timeoutSeconds: 20,
    outputCharacters: 10_000,
    signal: undefined,
  }
  const results: AnyResult[] = []
  const list = (joined[point] ?? []) as Parameters<typeof runHooks>[0]
  for await (const end of runHooks(list, { sessionId, ...input }, limits)) results.push(end as AnyResult)
  return results
}

const runOne = (point: keyof SessionHooks, command: string, folder: string, timeout = 20) =>
  runFromFile(point, { [toHookEvent(point)]: [{ hooks: [{ type: 'command', command, timeout }] }] }, folder)

const isRunning = (pid: string): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid.trim()}/stat`, 'latin1'))
  } catch {
    return false
  }
}

describe.each(Object.entries(CASES) as [keyof SessionHooks, EventCase][])('%s', (point, expected) => {
  const event = toHookEvent(point)

  it('a command that fails is reported with what it printed', async () => {
    const [end] = await runOne(point, 'echo oh >&2; exit 7', createFolder())
    expect(end).toMatchObject({ ok: false, why: 'threw', message: 'The command exited with 7: oh' })
  })

  it('exit code 2 blocks where something can be blocked, with the errors as the reason', async () => {
    const [end] = await runOne(point, 'echo ignored; echo no >&2; exit 2', createFolder())
    expect(end).toMatchObject(
      expected.block === null
        ? { ok: false, message: 'The command exited with 2: no' }
        : { ok: true, output: expected.block },
    )
  })

  it('JSON is read', async () => {
    const own = { hookEventName: event, additionalContext: 'ctx' }
    const answer = JSON.stringify({ systemMessage: 'hi', suppressOutput: true, hookSpecificOutput: own })
    const [end] = await runOne(point, `echo '${answer}'`, createFolder())
    const output = { userDisplayMessage: 'hi', ...(expected.addsContext ? { additionalContext: 'ctx' } : {}) }
    expect(end).toMatchObject({ ok: true, output })
    expect(Object.keys((end?.ok === true && end.output) || {}).sort()).toEqual(Object.keys(output).sort())
  })

  it('text is context or instructions, or is dropped', async () => {
    const [end] = await runOne(point, 'echo plain', createFolder())
    expect(end).toMatchObject({ ok: true, output: expected.text })
  })

  it('standard input has the event, the session and what happened', async () => {
    const folder = createFolder()
    await runOne(point, 'cat >given.json', folder)
    expect(JSON.parse(readFileSync(join(folder, 'given.json'), 'utf8'))).toEqual({
      session_id: 's-1',
      transcript_path: '/logs/s-1.jsonl',
      cwd: folder,
      permission_mode: 'default',
      hook_event_name: event,
      ...expected.fields,
    })
  })
})

it.each(sampleCases(Object.keys(CASES) as (keyof SessionHooks)[], 3))(
  '%s: 10 MB of output, and of errors, do no harm',
  async (point) => {
    const ten = "head -c 10000000 /dev/zero | tr '\\0' x"
    const [end] = await runOne(point, `${ten}; (${ten}) >&2`, createFolder())
    expect(end?.ok).toBe(true)
    expect(JSON.stringify(end).length).toBeLessThan(1_001_000)
    const [blocked] = await runOne(point, `(${ten}) >&2; exit 2`, createFolder())
    expect(JSON.stringify(blocked).length).toBeLessThan(10_200)
  },
)

it('at every event, a command that hangs is ended at its timeout, with its children', async () => {
  const points = Object.keys(CASES) as (keyof SessionHooks)[]
  await Promise.all(
    points.map(async (point) => {
      const folder = createFolder()
      const [end] = await runOne(point, 'sleep 60 & echo $! >child; wait', folder, 5)
      expect(end).toMatchObject({ ok: false, why: 'timeout', message: expect.stringContaining('5 seconds') })
      const child = readFileSync(join(folder, 'child'), 'utf8')
      await expect.poll(() => isRunning(child)).toBe(false)
    }),
  )
})

it('a command that ignores SIGTERM is killed', async () => {
  const folder = createFolder()
  await runOne('stop', "trap '' TERM; echo $$ >shell; while :; do sleep 0.1; done", folder, 2)
  const shell = readFileSync(join(folder, 'shell'), 'utf8')
  await expect.poll(() => isRunning(shell)).toBe(false)
})

it('what the .bashrc of the user prints is not taken for the answer of a hook', async () => {
  const folder = createFolder()
  writeFileSync(join(folder, '.bashrc'), 'echo polluted\n')
  const [end] = await runOne('sessionStart', 'echo plain', folder)
  expect(end).toMatchObject({ output: { additionalContext: 'plain' } })
})

it('all twelve events have a case', () => {
  expect(
    Object.keys(CASES)
      .map((point) => toHookEvent(point as keyof SessionHooks))
      .sort(),
  ).toEqual([...HOOK_EVENTS].sort())
  expect(HOOK_EVENTS).toHaveLength(12)
})

describe('JSON answers', () => {
  const answer = async (point: keyof SessionHooks, value: object) => {
    const [end] = await runOne(point, `echo '${JSON.stringify(value)}'`, createFolder())
    return end?.ok === true ? end.output : end?.message
  }
  const specific = (hookEventName: HookEvent, own: object) => ({
    hookSpecificOutput: { hookEventName, ...own },
  })

  it.each<[keyof SessionHooks, object, object | RegExp]>([
    [
      'preToolUse',
      specific('PreToolUse', {
        permissionDecision: 'allow',
        permissionDecisionReason: 'fine',
        updatedInput: { command: 'ls -a' },
      }),
      { decision: 'allow', reason: 'fine', input: { command: 'ls -a' } },
    ],
    ['preToolUse', specific('PreToolUse', { permissionDecision: 'ask' }), { decision: 'ask' }],
    [
      'preToolUse',
      specific('PreToolUse', { permissionDecision: 'maybe' }),
      { decision: 'deny', reason: expect.stringContaining('unknown decision "maybe"') },
    ],
    ['preToolUse', { decision: 'block', reason: 'old' }, { decision: 'deny', reason: 'old' }],
    ['preToolUse', { decision: 'approve' }, { decision: 'allow' }],
    ['preToolUse', { continue: false, stopReason: 'enough', decision: 'approve' }, { endTurn: 'enough' }],
    ['preToolUse', specific('PreToolUse', { updatedInput: 5 }), /updatedInput that is no object/],
    ['preToolUse', specific('PostToolUse', {}), /answered for the event "PostToolUse" instead of PreToolUse/],
    [
      'permissionRequest',
      specific('PermissionRequest', { decision: { behavior: 'allow', updatedInput: { command: 'x' } } }),
      { decision: 'allow', input: { command: 'x' } },
    ],
    [
      'permissionRequest',
      specific('PermissionRequest', { decision: { behavior: 'deny', message: 'no', interrupt: true } }),
      { decision: 'deny', reason: 'no', endTurn: 'no' },
    ],
    ['userPromptSubmit', { decision: 'block', reason: 'secret' }, { block: 'secret' }],
    ['userPromptSubmit', { continue: false }, { block: 'A hook stopped it.' }],
    ['userPromptSubmit', { decision: 'blok' }, /unknown decision "blok"/],
    ['postToolUse', { decision: 'block' }, { block: 'A hook forbids it, and gives no reason.' }],
    ['stop', { continue: false, decision: 'block', reason: 'more' }, { endTurn: 'A hook stopped it.' }],
    ['sessionStart', { decision: 'block' }, /SessionStart cannot be blocked/],
  ])('%s: %j', async (point, value, expected) => {
    const output = await answer(point, value)
    if (expected instanceof RegExp) expect(output).toMatch(expected)
    else expect(output).toEqual(expected)
  })

  it('what begins like JSON and is not is reported', async () => {
    const [end] = await runOne('userPromptSubmit', 'echo "{oh"', createFolder())
    expect(end).toMatchObject({ ok: false, message: expect.stringContaining('is not') })
  })

  it('JSON of more than 1 MB is not read', async () => {
    const [end] = await runOne(
      'stop',
      `printf '{"a":"'; head -c 2000000 /dev/zero | tr '\\0' x; printf '"}'`,
      createFolder(),
    )
    expect(end).toMatchObject({ ok: false, message: expect.stringContaining('longer than 1 MB') })
  })
})

describe('commands of one event', () => {
  it('run at the same time, and answer in the order of the settings', async () => {
    // Each waits for the other: one after the other, the first would wait for ever.
    const meet = (own: string, other: string) => ({
      command: `touch ${own}; until [ -e ${other} ]; do sleep 0.02; done; echo ${own}`,
      timeout: 120,
    })
    const settings = { UserPromptSubmit: [{ hooks: [meet('a', 'b'), meet('b', 'a')] }] }
    const results = await runFromFile('userPromptSubmit', settings, createFolder())
    expect(results.map((end) => end.ok && end.output)).toEqual([
      { additionalContext: 'a' },
      { additionalContext: 'b' },
    ])
  })

  it('identical ones run once, also under different matchers', async () => {
    const folder = createFolder()
    const hooks = [{ command: 'echo x >>count' }]
    const settings = { PreToolUse: [{ matcher: 'Bash', hooks }, { hooks: [...hooks, ...hooks] }] }
    await runFromFile('preToolUse', settings, folder)
    expect(readFileSync(join(folder, 'count'), 'utf8')).toBe('x\n')
  })

  it.each([
    [undefined, true],
    ['', true],
    ['*', true],
    ['Bash', true],
    ['bash', false],
    ['Bas', false],
    ['Edit|Bash', true],
    ['Edit, Bash', true],
    ['^Ba', true],
    ['.*sh$', true],
    ['Edit.*', false],
  ])('the matcher %j runs for Bash: %j', async (matcher, runs) => {
    const group = { ...(matcher === undefined ? {} : { matcher }), hooks: [{ command: 'exit 2' }] }
    const [end] = await runFromFile('preToolUse', { PreToolUse: [group] }, createFolder())
    expect(end?.ok === true && end.output !== undefined).toBe(runs)
  })
})

it('a program with arguments runs without a shell', async () => {
  const folder = createFolder()
  const settings = { SessionStart: [{ hooks: [{ command: 'echo', args: ['$HOME', 'a b'] }] }] }
  const [end] = await runFromFile('sessionStart', settings, folder)
  expect(end).toMatchObject({ ok: true, output: { additionalContext: '$HOME a b' } })
})

it('a program that does not exist, and input that is not read, are no harm', async () => {
  const folder = createFolder()
  const settings = {
    PostToolUse: [{ hooks: [{ command: '/no/such/program', args: [] }, { command: 'exec <&-; true' }] }],
  }
  const big = { call, result: { ...result, content: 'x'.repeat(3_000_000) } }
  const results = await runFromFile('postToolUse', settings, folder, big)
  expect(results.map(({ ok }) => ok)).toEqual([false, true])
})

it('a process that a command leaves behind on purpose is neither waited for nor ended', async () => {
  const folder = createFolder()
  const started = performance.now()
  const [end] = await runOne('sessionEnd', 'sleep 30 & echo $! >child', folder)
  expect([end?.ok, performance.now() - started < 25_000]).toEqual([true, true])
  await sleep(100)
  const child = readFileSync(join(folder, 'child'), 'utf8')
  expect(isRunning(child)).toBe(true)
  process.kill(Number(child))
})

it('the project is in the environment, under both names', async () => {
  const folder = createFolder()
  const [end] = await runOne('sessionStart', 'echo "$CLAUDE_PROJECT_DIR $TIDEMARK_PROJECT_DIR"', folder)
  expect(end).toMatchObject({ output: { additionalContext: `${folder} ${folder}` } })
})
