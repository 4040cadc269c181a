/** Hooks in settings files, run by `tidemark chat`: what each event changes for the user and the model. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { echo, type Script } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { type ChatWorld, createChatWorld, playSteps } from './chat-world.ts'

const WRITE = { Write: { file_path: 'b.txt', content: 'new' } }

/** Writes the user's settings with one command for each of these events. */
function writeHooks(
  { env }: ChatWorld,
  hooks: Readonly<Record<string, string>>,
  more: object = {},
  timeout = 20,
): void {
  const path = join(String(env.HOME), '.config', 'tidemark', 'settings.json')
  const byEvent = Object.entries(hooks).map(([name, command]) => {
    const [event = '', matcher = ''] = name.split(' ')
    return [event, [{ matcher, hooks: [{ type: 'command', command, timeout }] }]]
  })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ hooks: Object.fromEntries(byEvent), ...more }))
}

/** A model that calls a tool once, and then repeats everything that it was sent last. */
const repeatAfterCall: Script = ({ messages }, { turn }) =>
  turn === 0
    ? { blocks: [{ type: 'tool_use', name: 'Write', input: { file_path: 'b.txt', content: 'new' } }] }
    : { blocks: [{ type: 'text', text: JSON.stringify(messages.at(-1)?.content) }] }

const print = (value: object): string => `echo '${JSON.stringify(value)}'`

describe('prompts', () => {
  it('UserPromptSubmit blocks a prompt with exit code 2: nothing is sent, and the reason is shown', async () => {
    const world = await createChatWorld(echo)
    writeHooks(world, { UserPromptSubmit: 'echo "No secrets." >&2; exit 2' })
    expect(await world.run('chat', '-p', 'sk-1')).toMatchObject({
      code: 1,
      err: expect.stringContaining('No secrets.'),
    })
    expect(world.server.simulator.requests).toHaveLength(0)
  })

  it('UserPromptSubmit and SessionStart add what they print, SessionEnd runs at the end', async () => {
    const script: Script = ({ messages }) => ({ blocks: [{ type: 'text', text: JSON.stringify(messages) }] })
    const world = await createChatWorld(script)
    writeHooks(world, {
      UserPromptSubmit: 'echo "The branch is main."',
      SessionStart: `node -e 'let t="";process.stdin.on("data",c=>t+=c).on("end",()=>console.log("Began by "+JSON.parse(t).source))'`,
      'SessionEnd close': 'cat >ended.json',
    })
    const first = await world.run('chat', '-p', 'Hello.')
    expect(first.out).toMatch(/Began by startup[\s\S]*Hello\.[\s\S]*The branch is main\./)
    const ended = JSON.parse(String(world.read('ended.json')))
    expect(ended).toMatchObject({ hook_event_name: 'SessionEnd', reason: 'close', cwd: world.folder })
    expect(readFileSync(ended.transcript_path, 'utf8')).toContain('Hello.')
    expect((await world.run('chat', '--continue', '-p', 'More.')).out).toContain('Began by resume')
  })
})

describe('tool calls', () => {
  it('PreToolUse with exit code 2 refuses the call, and the model is told why', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { 'PreToolUse Write|Edit': 'echo "Not on Fridays." >&2; exit 2' })
    const { out } = await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')
    expect([out, world.read('b.txt')]).toEqual([expect.stringContaining('Not on Fridays.'), null])
  })

  it('a matcher for another tool runs nothing', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { 'PreToolUse Bash': 'exit 2' })
    await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')
    expect(world.read('b.txt')).toBe('new')
  })

  const ALLOW = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow' } }

  it('PreToolUse that allows spares the question, and lifts no ban', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { PreToolUse: print(ALLOW) })
    await world.run('chat', '-p', 'Write.')
    expect(world.read('b.txt')).toBe('new')
    const banned = await createChatWorld(repeatAfterCall)
    writeHooks(banned, { PreToolUse: print(ALLOW) }, { permissions: { deny: ['Edit'] } })
    await banned.run('chat', '-p', 'Write.')
    expect(banned.read('b.txt')).toBeNull()
  })

  it('PreToolUse changes the input', async () => {
    const world = await createChatWorld(repeatAfterCall)
    const updatedInput = { file_path: 'c.txt', content: 'changed' }
    const own = { ...ALLOW.hookSpecificOutput, updatedInput }
    writeHooks(world, { PreToolUse: print({ hookSpecificOutput: own }) })
    await world.run('chat', '-p', 'Write.')
    expect([world.read('b.txt'), world.read('c.txt')]).toEqual([null, 'changed'])
  })

  const PERMIT = {
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } },
  }

  it('PermissionRequest decides where nobody can be asked, and before the user is asked', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { PermissionRequest: print(PERMIT) })
    expect((await world.run('chat', '-p', 'Write.')).err).toBe('')
    expect(world.read('b.txt')).toBe('new')
    const asked = await createChatWorld(repeatAfterCall)
    writeHooks(asked, { PermissionRequest: print(PERMIT) })
    expect((await asked.answer('Write.', 'n')).questions).toEqual([])
    expect(asked.read('b.txt')).toBe('new')
  })

  it('PermissionRequest without a decision leaves the question to the user', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { PermissionRequest: 'true' })
    expect((await world.answer('Write.', 'y')).questions).toHaveLength(1)
    expect(world.read('b.txt')).toBe('new')
    const unattended = await createChatWorld(repeatAfterCall)
    writeHooks(unattended, { PermissionRequest: 'true' })
    const { err, out } = await unattended.run('chat', '-p', 'Write.')
    expect(err).toContain("1 tool call was refused. To allow them: --allowed-tools 'Edit'")
    expect(out).toContain('Nobody can be asked.')
  })

  it('PostToolUse objects to a result, and the model reads it there', async () => {
    const world = await createChatWorld(repeatAfterCall)
    writeHooks(world, { PostToolUse: 'echo "b.txt has no line end." >&2; exit 2' })
    const { out } = await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')
    expect(out).toContain('A check after this call says: b.txt has no line end.')
  })

  it('"continue": false ends the turn after the call; the session can go on', async () => {
    const world = await createChatWorld(playSteps(WRITE, 'Done.'))
    writeHooks(world, { PostToolUse: print({ continue: false, stopReason: 'The budget is spent.' }) })
    const { code, err } = await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')
    expect([code, err]).toEqual([1, expect.stringContaining('A hook ended the turn: The budget is spent.')])
    expect(world.read('b.txt')).toBe('new')
    writeHooks(world, {})
    expect(await world.run('chat', '--continue', '-p', '')).toMatchObject({ code: 0, out: 'Done.\n' })
  })

  it('"continue": false before the call: the call does not run', async () => {
    const world = await createChatWorld(playSteps(WRITE, 'Done.'))
    writeHooks(world, { PreToolUse: print({ continue: false, stopReason: 'Stop.' }) })
    expect(await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')).toMatchObject({ code: 1 })
    expect([world.read('b.txt'), world.server.simulator.requests.length]).toEqual([null, 1])
  })
})

it('Stop makes the model go on with what is left to do', async () => {
  const script: Script = ({ messages }) => ({
    blocks: [{ type: 'text', text: `Answer to ${JSON.stringify(messages.at(-1)?.content)}` }],
  })
  const world = await createChatWorld(script)
  writeHooks(world, {
    Stop: 'if [ -e asked ]; then exit 0; fi; touch asked; echo "The tests fail." >&2; exit 2',
  })
  expect((await world.run('chat', '-p', 'Hello.')).out).toContain('The tests fail.')
})

describe('a hook that does not work', () => {
  it.each([
    ['fails', 'echo oh >&2; exit 1', /The hook echo oh >&2; exit 1 failed: The command exited with 1: oh/],
    ['hangs', 'sleep 60', /^tidemark: The hook sleep 60 took longer than 1 seconds/],
    ['prints 10 MB', "head -c 10000000 /dev/zero | tr '\\0' x", /^$/],
    ['prints what is no JSON', "echo '{no'", /begins like JSON and is not/],
  ])('and %s is shown and takes nothing down', async (_, command, shown) => {
    const world = await createChatWorld(playSteps(WRITE, 'Done.'))
    const events = ['UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop', 'SessionStart', 'SessionEnd']
    // Only the one that hangs is meant to reach its time limit.
    const timeout = command === 'sleep 60' ? 1 : 30
    writeHooks(world, Object.fromEntries(events.map((event) => [event, command])), {}, timeout)
    const { code, out, err } = await world.run('chat', '-p', 'Write.', '--allowed-tools', 'Edit')
    expect([code, out, world.read('b.txt')]).toEqual([0, 'Done.\n', 'new'])
    expect(err).toMatch(shown)
    if (err !== '') expect(err.trimEnd().split('\n')).toHaveLength(events.length)
  })
})

it('hooks do not get the key of the model; the variables of the settings they get', async () => {
  const world = await createChatWorld(echo)
  writeHooks(world, { SessionStart: 'echo "key=$ANTHROPIC_API_KEY own=$OWN" >seen' }, { env: { OWN: 'yes' } })
  Object.assign(world.env, { ANTHROPIC_API_KEY: 'sk-secret' })
  await world.run('chat', '-p', 'Hello.')
  expect(world.read('seen')).toBe('key= own=yes\n')
})

it('with stream-json, what a hook says is a line of its own', async () => {
  const world = await createChatWorld(echo)
  writeHooks(world, { SessionStart: print({ systemMessage: 'The index is old.' }) })
  const { lines } = await world.run('chat', '-p', 'Hello.', '--output-format', 'stream-json')
  expect(lines).toContainEqual(
    expect.objectContaining({ type: 'system', subtype: 'notice', message: 'The index is old.' }),
  )
})

it('InstructionsLoaded runs for each memory file that is read, with the reason', async () => {
  const world = await createChatWorld(playSteps({ Read: { file_path: 'src/a.ts' } }, 'Done.'))
  writeHooks(world, { InstructionsLoaded: 'line=$(cat); echo "$line" >>loaded.jsonl' })
  world.write('AGENTS.md', 'Root rules.')
  world.write('src/AGENTS.md', 'Nested rules.')
  world.write('.claude/rules/source.md', '---\npaths: src/**\n---\nRules of the source.')
  world.write('src/a.ts', 'a')
  expect(await world.run('chat', '-p', 'Look.')).toMatchObject({ code: 0 })
  const loaded = String(world.read('loaded.jsonl'))
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line))
  expect(
    loaded.map(({ file_path, memory_type, load_reason }) => [file_path, memory_type, load_reason]),
  ).toEqual([
    [join(world.folder, 'AGENTS.md'), 'Project', 'session_start'],
    [join(world.folder, '.claude', 'rules', 'source.md'), 'Project', 'path_glob_match'],
    [join(world.folder, 'src', 'AGENTS.md'), 'Project', 'nested_traversal'],
  ])
})
