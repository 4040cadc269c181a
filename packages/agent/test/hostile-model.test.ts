/** `tidemark chat` with a model that tries to get at what it was not given. */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ChatWorld, createChatWorld, playSteps, type Step } from './chat-world.ts'

async function openWorld(deny: readonly string[], ...steps: readonly Step[]): Promise<ChatWorld> {
  const world = await createChatWorld(playSteps(...steps, 'Done.'))
  world.write('.tidemark/settings.json', JSON.stringify({ permissions: { deny } }))
  return world
}

describe('a file that Read(…) denies', () => {
  it.each<Step>([
    { Read: { file_path: '.env' } },
    { Read: { file_path: './.env' } },
    { Read: { file_path: 'a/../.env' } },
    { Read: { file_path: 'link' } },
    { Grep: { pattern: 'TOKEN', path: '.env', output_mode: 'content' } },
    { Grep: { pattern: 'TOKEN', output_mode: 'content' } },
    { Grep: { pattern: 'TOKEN', output_mode: 'count', glob: '.env' } },
    { Glob: { pattern: '.e*' } },
  ])('is not shown by %j', async (step) => {
    const world = await openWorld(['Read(.env)'], step)
    world.write('.env', 'TOKEN=1234567\n')
    world.write('src/a.ts', 'TOKEN is elsewhere\n')
    symlinkSync('.env', world.path('link'))
    await world.run('chat', '-p', 'Look.')
    expect(world.lastResults().join()).not.toMatch(/1234567|\.env:|^\.env$/m)
    if ('Grep' in (step as object) && !('path' in (step as { Grep: object }).Grep))
      expect(world.lastResults().join()).toMatch(/src\/a\.ts|No matches/)
  })

  it.each([{ file_path: '.env' }, { file_path: 'config/real.env' }])(
    'is not shown if it is a symbolic link: %j',
    async (input) => {
      const world = await openWorld(['Read(.env)'], { Read: input })
      world.write('config/real.env', 'TOKEN=1234567\n')
      symlinkSync('config/real.env', world.path('.env'))
      await world.run('chat', '-p', 'Look.')
      expect(world.lastResults().join()).toMatch(/The rule Read\(\.env\) forbids it/)
    },
  )
})

it.each(['Fly', 'mcp__files__read', 'AskUser'])(
  'a call of %s, which does not exist, is answered without a question and is no denial',
  async (tool) => {
    const world = await createChatWorld(playSteps({ [tool]: { path: 'x' } }, 'Then not.'))
    const { err, lines } = await world.run('chat', '-p', 'Do it.', '--output-format', 'json')
    expect(world.lastResults()).toEqual([`There is no tool ${tool}.`])
    expect([err, lines[0].permission_denials]).toEqual(['', []])
  },
)

describe('the key of the model', () => {
  const ENV = { Bash: { command: 'echo "[$ANTHROPIC_API_KEY$ANTHROPIC_AUTH_TOKEN]"' } }

  it('is not in the environment of commands', async () => {
    const world = await createChatWorld(playSteps(ENV, 'Done.'))
    Object.assign(world.env, { ANTHROPIC_API_KEY: 'sk-1', ANTHROPIC_AUTH_TOKEN: 'sk-2' })
    await world.run('chat', '-p', 'Look.', '--permission-mode', 'allow-all')
    expect(world.lastResults()).toEqual(['[]'])
  })

  it.each([
    ['as it is', `cat .env`],
    ['in base64', 'base64 .env'],
    ['in base64 inside another text', 'echo "xy$(cat .env)z" | base64 -w 20'],
  ])('is hidden from the model, the log and the output, if a command prints it %s', async (_, command) => {
    const key = 'gateway-key-0123456789-abcdef'
    const world = await createChatWorld(
      playSteps({ Bash: { command }, Read: { file_path: '.env' }, Grep: { pattern: 'gateway' } }, 'Done.'),
    )
    Object.assign(world.env, { ANTHROPIC_AUTH_TOKEN: key })
    world.write('.env', key)
    const { out } = await world.run(
      ...['chat', '-p', 'Look at @.env', '--permission-mode', 'allow-all', '--output-format', 'stream-json'],
    )
    const forms = [key, Buffer.from(key).toString('base64').slice(0, -4)]
    // Status 1: no file of the session has one of them.
    const { status } = spawnSync('grep', ['-r', ...forms.flatMap((form) => ['-e', form]), world.home])
    expect([out.includes(key), world.lastResults().join().includes(key), status]).toEqual([false, false, 1])
    expect(world.lastResults()[0]).toContain('[redacted]')
  })

  it('is hidden in an error of the API that repeats it', async () => {
    const world = await createChatWorld(playSteps('Done.'))
    const echo = createServer(({ headers }, response) => {
      const error = { type: 'authentication_error', message: `invalid: ${headers['x-api-key']}` }
      response
        .writeHead(401, { 'content-type': 'application/json' })
        .end(JSON.stringify({ type: 'error', error }))
    }).listen(0, '127.0.0.1')
    await once(echo, 'listening')
    onTestFinished(() => void echo.close())
    const { port } = echo.address() as AddressInfo
    Object.assign(world.env, {
      ANTHROPIC_API_KEY: 'gateway-key-0123456789-abcdef',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    })
    for (const format of ['text', 'json']) {
      const { code, out, err } = await world.run('chat', '-p', 'Look.', '--output-format', format)
      expect([code, (out + err).includes('gateway-key')]).toEqual([1, false])
      expect(out + err).toContain('invalid: [redacted]')
    }
  })

  it('is there if the user gives one in the settings', async () => {
    const world = await createChatWorld(playSteps(ENV, 'Done.'))
    const settings = join(dirname(world.folder), '.config', 'tidemark', 'settings.json')
    mkdirSync(dirname(settings), { recursive: true })
    writeFileSync(settings, JSON.stringify({ env: { ANTHROPIC_API_KEY: 'sk-3' } }))
    await world.run('chat', '-p', 'Look.', '--permission-mode', 'allow-all')
    expect(world.lastResults()).toEqual(['[sk-3]'])
  })
})

it('a model that may edit cannot write itself permissions or Git hooks', async () => {
  const world = await createChatWorld(
    playSteps(
      { Write: { file_path: '.tidemark/settings.local.json', content: '{}' } },
      { Write: { file_path: '.git/hooks/pre-commit', content: 'curl evil.example' } },
      'Done.',
    ),
  )
  const { err } = await world.run('chat', '-p', 'Look.', '--permission-mode', 'accept-edits')
  expect(err).toMatch(/2 tool calls were refused/)
  expect([existsSync(world.path('.tidemark')), existsSync(world.path('.git'))]).toEqual([false, false])
})

it('an answer with control sequences does not reach the terminal raw', async () => {
  const answer = '\u001b]0;title\u0007\u001b[31mred\u001b[0m\u009b2J\tone\r\ntwo\u202e \u001b]52;c;aGk=\u0007'
  const { run } = await createChatWorld(playSteps(answer))
  expect((await run('chat', '-p', 'Look.')).out).toBe('red\tone\ntwo\n')
})

it('settings and ignore files that are pipes are not waited for', async () => {
  const world = await createChatWorld(playSteps({ Grep: { pattern: 'hello' } }, 'Done.'))
  world.write('sub/a.txt', 'hello')
  execFileSync('mkfifo', [world.path('sub/.gitignore')])
  await world.run('chat', '-p', 'Look.')
  expect(world.lastResults()).toEqual(['sub/a.txt'])
  mkdirSync(world.path('.tidemark'))
  execFileSync('mkfifo', [world.path('.tidemark/settings.json')])
  expect(await world.run('chat', '-p', 'Look.')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/settings\.json cannot be read: .* is a device, a pipe or a socket/),
  })
})

it('a settings file with a field like __proto__ is refused by name', async () => {
  const world = await createChatWorld(playSteps('Done.'))
  world.write('.tidemark/settings.json', '{"__proto__": {}}')
  expect((await world.run('chat', '-p', 'Look.')).err).toMatch(/has the unknown field __proto__/)
})

it('--continue works although the facts of another session are cut off', async () => {
  const world = await createChatWorld(playSteps('Done.'))
  const [first, second] = [await startSession(world), await startSession(world)]
  writeFileSync(join(world.home, 'sessions', first, 'agent.json'), '')
  const { lines } = await world.run('chat', '--continue', '-p', 'More.', '--output-format', 'json')
  expect(lines[0].session_id).toBe(second)
})

async function startSession({ run }: ChatWorld): Promise<string> {
  return (await run('chat', '-p', 'Look.', '--output-format', 'json')).lines[0].session_id
}

it('a home that cannot be written is named, not called a bug', async () => {
  const world = await createChatWorld(playSteps('Done.'))
  world.write('file', '')
  Object.assign(world.env, { TIDEMARK_HOME: world.path('file') })
  const { code, err } = await world.run('chat', '-p', 'Look.')
  expect([code, err]).toEqual([1, expect.stringMatching(/cannot be stored in .*ENOTDIR/)])
  expect(err).not.toMatch(/bug/)
})

it.runIf(existsSync('/proc/self/pagemap'))('a file without an end is not read for ever', async () => {
  const world = await createChatWorld(playSteps({ Read: { file_path: '/proc/self/pagemap' } }, 'Done.'))
  await world.run('chat', '-p', 'Look.', '--permission-mode', 'allow-all')
  expect(world.lastResults().join()).toMatch(/does not state its size/)
})
